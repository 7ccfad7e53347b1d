//! How strongly an order binds: numbers of dependents, chains, and calls that could overtake their neighbours.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::Serialize;

/// Collects the graph's degrees, eight bytes for each call.
#[derive(Default)]
pub struct Degrees {
    calls: Vec<Node>,
    edges: u64,
    ordered: u64,
    reorderable: u64,
    neighbour: Option<u64>,
    longest_chain: u32,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Direct dependents; `u32::MAX` for a call outside of the order.
    dependents: u32,
    /// Calls of the longest chain that ends here.
    depth: u32,
}

const OUTSIDE: u32 = u32::MAX;

/// What `Degrees` found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Calls that take part in the order.
    pub calls: u64,
    /// Pairs of a call and a direct predecessor.
    pub edges: u64,
    /// Median of the outdegree: the number of calls that wait for a call directly.
    pub outdegree_median: u32,
    /// Mean of the outdegree.
    pub outdegree_mean: f64,
    /// Largest outdegree.
    pub outdegree_max: u32,
    /// A call with the largest outdegree.
    pub outdegree_max_call: Option<u64>,
    /// Calls that do not follow the call before them directly.
    pub reorderable: u64,
    /// Their share of all calls but the first.
    pub reorderable_share: f64,
    /// Calls of the longest chain: each follows the one before.
    pub longest_chain: u32,
}

impl Degrees {
    /// Adds a call with its predecessors, ascending; calls come in turn. `takes_part` is false for a call that is not
    /// replayed where the order leaves these out, though it may end descriptions.
    pub fn add(&mut self, number: u64, predecessors: &[u64], takes_part: bool) {
        let mut depth = 0;
        for &before in predecessors {
            let node = &mut self.calls[before as usize];
            node.dependents = if node.dependents == OUTSIDE { 1 } else { node.dependents.saturating_add(1) };
            depth = depth.max(node.depth);
        }
        self.edges += predecessors.len() as u64;
        let is_node = takes_part || !predecessors.is_empty();
        self.calls.resize(number as usize, Node { dependents: OUTSIDE, depth: 0 });
        self.calls.push(Node { dependents: if is_node { 0 } else { OUTSIDE }, depth: depth + u32::from(is_node) });
        if is_node {
            self.longest_chain = self.longest_chain.max(depth + 1);
        }
        if !takes_part {
            return;
        }
        if self.neighbour.is_some_and(|neighbour| predecessors.binary_search(&neighbour).is_err()) {
            self.reorderable += 1;
        }
        self.ordered += 1;
        self.neighbour = Some(number);
    }

    /// The number of direct dependents of each call that takes part, in the order of the trace.
    pub fn outdegrees(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().map(|node| node.dependents).filter(|&dependents| dependents != OUTSIDE)
    }

    /// For each outdegree that occurs, ascending, the number of calls that have it.
    pub fn distribution(&self) -> Vec<(u32, u64)> {
        // No copy of all degrees: few of them differ.
        let mut calls: HashMap<u32, u64, FixedState> = HashMap::default();
        self.outdegrees().for_each(|degree| *calls.entry(degree).or_default() += 1);
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_unstable();
        calls
    }

    /// The figures of the whole graph.
    pub fn summary(&self) -> Summary {
        let distribution = self.distribution();
        let calls = distribution.iter().map(|(_, calls)| calls).sum::<u64>();
        let mut below = 0;
        let median = distribution.iter().find(|(_, calls_of_degree)| {
            below += calls_of_degree;
            below * 2 >= calls
        });
        let max = distribution.last().map_or(0, |&(degree, _)| degree);
        Summary {
            calls,
            edges: self.edges,
            outdegree_median: median.map_or(0, |&(degree, _)| degree),
            outdegree_mean: if calls == 0 { 0.0 } else { self.edges as f64 / calls as f64 },
            outdegree_max: max,
            outdegree_max_call: self.calls.iter().position(|node| node.dependents == max).map(|number| number as u64),
            reorderable: self.reorderable,
            reorderable_share: if self.ordered < 2 { 0.0 } else { self.reorderable as f64 / (self.ordered - 1) as f64 },
            longest_chain: self.longest_chain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_a_small_graph() {
        let mut degrees = Degrees::default();
        degrees.add(0, &[], true);
        degrees.add(1, &[0], true);
        degrees.add(2, &[], false);
        degrees.add(3, &[0], true);
        degrees.add(4, &[1, 3], true);
        let summary = degrees.summary();
        assert_eq!(degrees.distribution(), [(0, 1), (1, 2), (2, 1)]);
        assert_eq!((summary.calls, summary.edges), (4, 4));
        assert_eq!((summary.outdegree_median, summary.outdegree_max, summary.outdegree_max_call), (1, 2, Some(0)));
        assert_eq!((summary.reorderable, summary.longest_chain), (1, 3));
        assert!((summary.reorderable_share - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_empty_graph_has_no_degrees() {
        assert_eq!(Degrees::default().summary(), Summary::default());
    }
}
