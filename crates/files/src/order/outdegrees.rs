//! How many calls wait for a call directly, counted in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use super::{Order, Policy};
use crate::{Call, Resolved};

/// Calls that follow a call only after so many others do not count.
const RANGE: u64 = 1 << 20;

/// Counts the calls of a trace by outdegree: the number of calls that wait for a call directly.
pub struct Outdegrees {
    order: Order,
    /// The number of the first call of `open`.
    base: u64,
    /// Dependents of the latest calls; `None` for a call outside of the order.
    open: VecDeque<Option<u32>>,
    calls: BTreeMap<u32, u64>,
}

impl Outdegrees {
    /// Without calls.
    pub fn new(policy: Policy) -> Self {
        Self { order: Order::new(policy), base: 0, open: VecDeque::new(), calls: BTreeMap::new() }
    }

    /// Adds a call; calls come in turn, from any number on.
    pub fn add(&mut self, number: u64, call: &Call, resolved: &Resolved) {
        if self.open.is_empty() {
            self.base = number;
        }
        let floor = number.saturating_sub(RANGE);
        while self.base < floor {
            let retired = self.open.pop_front().flatten();
            self.count(retired);
            self.base += 1;
        }
        self.order.forget_before(floor);
        let takes_part = resolved.skip.is_none() || self.order.policy().orders_skipped_calls();
        let predecessors = self.order.predecessors(number, call, resolved);
        for before in predecessors {
            let waiting = before.checked_sub(self.base).and_then(|at| self.open.get_mut(at as usize));
            if let Some(dependents) = waiting {
                *dependents = Some(dependents.map_or(1, |dependents| dependents.saturating_add(1)));
            }
        }
        self.open.push_back((takes_part || !predecessors.is_empty()).then_some(0));
    }

    /// The number of calls of each outdegree.
    pub fn histogram(mut self) -> BTreeMap<u32, u64> {
        for dependents in std::mem::take(&mut self.open) {
            self.count(dependents);
        }
        self.calls
    }

    fn count(&mut self, dependents: Option<u32>) {
        if let Some(dependents) = dependents {
            *self.calls.entry(dependents).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::order::Degrees;
    use crate::order::random::{predecessors, traces};

    proptest! {
        #[test]
        fn the_histogram_is_that_of_the_graph(trace in traces()) {
            for policy in Policy::ALL {
                let (mut degrees, mut outdegrees) = (Degrees::default(), Outdegrees::new(policy));
                for (number, ((call, resolved), before)) in (0..).zip(trace.iter().zip(predecessors(policy, &trace))) {
                    degrees.add(number, &before, resolved.skip.is_none() || policy.orders_skipped_calls());
                    outdegrees.add(number, call, resolved);
                }
                let (summary, histogram) = (degrees.summary(), outdegrees.histogram());
                prop_assert_eq!(histogram.values().sum::<u64>(), summary.calls);
                prop_assert_eq!(histogram.iter().map(|(&degree, calls)| u64::from(degree) * calls).sum::<u64>(), summary.edges);
                prop_assert_eq!(histogram.last_key_value().map_or(0, |(&degree, _)| degree), summary.outdegree_max);
            }
        }
    }
}
