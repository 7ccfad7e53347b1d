//! Transitive reduction: leaves out predecessors that follow from others.

/// Numbers of calls that one search may visit.
const MAX_VISITED: usize = 100_000;

/// Reduces the predecessors of each call of a trace in turn. It keeps the reduced graph, some 16 bytes for each call.
#[derive(Default)]
pub struct Reducer {
    /// Where in `edges` the predecessors of each call end.
    ends: Vec<usize>,
    edges: Vec<u64>,
    /// The last search that visited each call.
    visited: Vec<u64>,
    to_visit: Vec<u64>,
    undecided: u64,
}

impl Reducer {
    /// Those of the predecessors (ascending) that no other predecessor follows, directly or through other calls.
    pub fn reduce(&mut self, number: u64, predecessors: &[u64]) -> &[u64] {
        let start = self.edges.len();
        self.ends.resize(number as usize, start);
        self.visited.resize(number as usize + 1, 0);
        let search = number + 1;
        let oldest = predecessors.first().copied().unwrap_or(0);
        let mut visits = 0;
        // A later call cannot precede an earlier one.
        for &before in predecessors.iter().rev() {
            if self.visited[before as usize] == search {
                continue;
            }
            self.edges.push(before);
            if before == oldest {
                break;
            }
            self.to_visit.push(before);
            while let Some(call) = self.to_visit.pop() {
                if visits == MAX_VISITED {
                    break;
                }
                visits += 1;
                let range = if call == 0 { 0 } else { self.ends[call as usize - 1] }..self.ends[call as usize];
                for index in range {
                    let earlier = self.edges[index];
                    if earlier >= oldest && self.visited[earlier as usize] != search {
                        self.visited[earlier as usize] = search;
                        self.to_visit.push(earlier);
                    }
                }
            }
            self.to_visit.clear();
        }
        if visits == MAX_VISITED {
            self.undecided += 1;
        }
        self.edges[start..].reverse();
        self.ends.push(self.edges.len());
        &self.edges[start..]
    }

    /// Calls with so many earlier calls between them and a predecessor that the search stopped: they may have predecessors
    /// that follow from others.
    pub fn undecided(&self) -> u64 {
        self.undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_predecessor_that_follows_from_another_is_left_out() {
        let mut reducer = Reducer::default();
        assert_eq!(reducer.reduce(0, &[]), [] as [u64; 0]);
        assert_eq!(reducer.reduce(1, &[0]), [0]);
        assert_eq!(reducer.reduce(2, &[0]), [0]);
        assert_eq!(reducer.reduce(3, &[0, 1, 2]), [1, 2]);
        assert_eq!(reducer.reduce(5, &[0, 3]), [3]);
        assert_eq!(reducer.undecided(), 0);
    }

    proptest! {
        #[test]
        fn the_reduction_reaches_the_same_calls_with_the_fewest_edges(
            choices in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..40),
        ) {
            let mut reducer = Reducer::default();
            let mut reached: Vec<std::collections::BTreeSet<u64>> = Vec::new();
            for (number, choice) in choices.iter().enumerate() {
                let mut predecessors: Vec<u64> = if number == 0 {
                    Vec::new()
                } else {
                    choice.iter().map(|index| index.index(number) as u64).collect()
                };
                predecessors.sort_unstable();
                predecessors.dedup();
                let expected: Vec<u64> = predecessors
                    .iter()
                    .copied()
                    .filter(|p| !predecessors.iter().any(|q| reached[*q as usize].contains(p)))
                    .collect();
                prop_assert_eq!(reducer.reduce(number as u64, &predecessors), &expected[..]);
                let mut all: std::collections::BTreeSet<u64> = predecessors.iter().copied().collect();
                for p in predecessors {
                    all.extend(&reached[p as usize]);
                }
                reached.push(all);
            }
        }
    }
}
