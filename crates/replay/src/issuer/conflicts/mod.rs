//! Conflicts: requests that overlap one in flight, the manual's "damaged I/O".
//!
//! A real application never has two writes of the same sectors in flight. A replay would, if the device is slower than
//! the original. [`index`] finds overlaps; [`Tracker`] decides what they mean and keeps waiting requests in order: a
//! request waits for all earlier conflicting requests, in flight or waiting, so that no later request overtakes a
//! pushed-back one.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

mod index;
mod lists;
mod range;

use index::Index;
pub use range::Range;

/// What to do with a request that conflicts with an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Issue it anyway
    Allow,
    /// Leave it out, and count it
    Drop,
    /// Push it back until the overlap is gone; issue others meanwhile
    #[default]
    Partial,
    /// Hold it and all requests behind it until the overlap is gone
    Ordering,
}

/// Which overlaps are conflicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Strong {
    /// Two writes
    #[value(name = "0")]
    Writes,
    /// Any two requests that are not both reads
    #[value(name = "1")]
    #[default]
    AnyWrite,
    /// Any two requests
    #[value(name = "2")]
    Everything,
}

impl Strong {
    /// Whether two overlapping requests conflict, given whether each modifies what it touches.
    #[inline]
    pub fn conflict(self, a_modifies: bool, b_modifies: bool) -> bool {
        match self {
            Self::Writes => a_modifies && b_modifies,
            Self::AnyWrite => a_modifies || b_modifies,
            Self::Everything => true,
        }
    }
}

/// Whether a request may be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Issue it now; it is tracked as in flight.
    Issue,
    /// It conflicts. With [`Policy::Partial`] it is tracked as waiting, until [`Tracker::release`] returns it.
    Conflict,
}

/// Tracks requests in flight and requests that wait for them.
#[derive(Debug)]
pub struct Tracker {
    policy: Policy,
    strong: Strong,
    index: Index,
    /// For each slot, the number of earlier conflicting requests it waits for.
    blockers: Vec<u32>,
    /// For each slot, its arrival number.
    arrival: Vec<u64>,
    arrivals: u64,
    /// Slots whose last blocker has completed, oldest first.
    released: std::collections::VecDeque<u32>,
}

impl Tracker {
    /// Tracks requests in slots `0..slots`.
    pub fn new(policy: Policy, strong: Strong, slots: usize) -> Self {
        Self {
            policy,
            strong,
            index: Index::new(slots),
            blockers: vec![0; slots],
            arrival: vec![0; slots],
            arrivals: 0,
            released: std::collections::VecDeque::with_capacity(slots),
        }
    }

    /// Checks a request, and tracks it unless it conflicts under `drop` or `ordering`.
    pub fn admit(&mut self, slot: u32, range: Range) -> Admission {
        if self.policy == Policy::Allow || range.sectors == 0 {
            return Admission::Issue;
        }
        let strong = self.strong;
        let mut blockers = 0;
        self.index.prepare(&range);
        self.index.overlapping(range, |_, other| {
            blockers += u32::from(strong.conflict(range.modifies, other.modifies));
        });
        if blockers > 0 && self.policy != Policy::Partial {
            return Admission::Conflict;
        }
        self.arrivals += 1;
        self.arrival[slot as usize] = self.arrivals;
        self.blockers[slot as usize] = blockers;
        self.index.insert(slot, range);
        if blockers == 0 { Admission::Issue } else { Admission::Conflict }
    }

    /// Whether a request would conflict, without tracking it.
    pub fn has_conflict(&mut self, range: Range) -> bool {
        let (strong, mut found) = (self.strong, false);
        self.index.prepare(&range);
        self.index.overlapping(range, |_, other| found |= strong.conflict(range.modifies, other.modifies));
        found
    }

    /// Searches for overlaps of a request only to bring the index entries into the processor's cache.
    pub fn prefetch(&self, range: Range) {
        if self.policy != Policy::Allow && !self.index.is_long(&range) {
            self.index.overlapping(range, |slot, _| {
                std::hint::black_box(self.arrival[slot as usize]);
            });
        }
    }

    /// Removes a completed request. Requests that waited only for it become available from [`Tracker::release`].
    pub fn finish(&mut self, slot: u32) {
        let Some(range) = self.index.remove(slot) else { return };
        if self.policy != Policy::Partial {
            return;
        }
        let (strong, arrival) = (self.strong, &self.arrival);
        let (blockers, released) = (&mut self.blockers, &mut self.released);
        let own_arrival = arrival[slot as usize];
        self.index.overlapping(range, |other_slot, other| {
            let other_index = other_slot as usize;
            if arrival[other_index] > own_arrival && strong.conflict(range.modifies, other.modifies) {
                blockers[other_index] -= 1;
                if blockers[other_index] == 0 {
                    released.push_back(other_slot);
                }
            }
        });
    }

    /// Number of requests that [`release`](Self::release) returns next.
    #[inline]
    pub fn released(&self) -> usize {
        self.released.len()
    }

    /// The slot of one of these requests; `index` is less than [`released`](Self::released).
    #[inline]
    pub fn released_at(&self, index: usize) -> u32 {
        self.released[index]
    }

    /// The next request whose conflicts are resolved; from now on it counts as in flight.
    #[inline]
    pub fn release(&mut self) -> Option<u32> {
        self.released.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum State {
        InFlight,
        Waiting,
    }

    /// A simple, slow model: a list in order of arrival. A request may be issued if no earlier one conflicts with it.
    #[derive(Default)]
    struct Model(Vec<(u32, Range, State)>);

    impl Model {
        fn has_earlier_conflict(&self, end: usize, strong: Strong, range: &Range) -> bool {
            self.0[..end].iter().any(|(_, other, _)| {
                other.target == range.target
                    && other.sectors > 0
                    && other.sector < range.sector + range.sectors
                    && range.sector < other.sector + other.sectors
                    && strong.conflict(range.modifies, other.modifies)
            })
        }

        fn admit(&mut self, policy: Policy, strong: Strong, slot: u32, range: Range) -> Admission {
            let conflict =
                range.sectors > 0 && policy != Policy::Allow && self.has_earlier_conflict(self.0.len(), strong, &range);
            if !conflict {
                self.0.push((slot, range, State::InFlight));
                return Admission::Issue;
            }
            if policy == Policy::Partial {
                self.0.push((slot, range, State::Waiting));
            }
            Admission::Conflict
        }

        fn finish(&mut self, strong: Strong, slot: u32) -> Vec<u32> {
            self.0.retain(|(s, ..)| *s != slot);
            let free: Vec<usize> = (0..self.0.len())
                .filter(|&i| self.0[i].2 == State::Waiting && !self.has_earlier_conflict(i, strong, &self.0[i].1))
                .collect();
            free.into_iter()
                .map(|i| {
                    self.0[i].2 = State::InFlight;
                    self.0[i].0
                })
                .collect()
        }
    }

    fn policies() -> impl Strategy<Value = Policy> {
        prop::sample::select(vec![Policy::Allow, Policy::Drop, Policy::Partial, Policy::Ordering])
    }

    fn strengths() -> impl Strategy<Value = Strong> {
        prop::sample::select(vec![Strong::Writes, Strong::AnyWrite, Strong::Everything])
    }

    fn ranges() -> impl Strategy<Value = Range> {
        // Few positions and some very long ranges, so that many ranges overlap and all parts of the index are used.
        let sector = prop_oneof![6 => 0u64..600, 1 => 0u64..200_000];
        let sectors = prop_oneof![8 => 0u64..40, 2 => 40u64..20_000, 1 => 20_000u64..16_000_000];
        (0u16..2, sector, sectors, any::<bool>()).prop_map(|(target, sector, sectors, modifies)| Range {
            target,
            sector,
            sectors,
            modifies,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn the_tracker_matches_a_simple_model(
            policy in policies(), strong in strengths(),
            steps in prop::collection::vec((ranges(), any::<prop::sample::Index>(), 0u8..5), 1..120),
        ) {
            const SLOTS: u32 = 24;
            let mut tracker = Tracker::new(policy, strong, SLOTS as usize);
            let mut model = Model::default();
            let mut free: Vec<u32> = (0..SLOTS).collect();
            let mut in_flight: Vec<u32> = Vec::new();
            for (range, pick, kind) in steps {
                if kind > 0 && !free.is_empty() {
                    let slot = free.pop().unwrap();
                    let admission = tracker.admit(slot, range);
                    prop_assert_eq!(admission, model.admit(policy, strong, slot, range));
                    match admission {
                        Admission::Issue => in_flight.push(slot),
                        Admission::Conflict if policy != Policy::Partial => free.push(slot),
                        Admission::Conflict => {}
                    }
                } else if !in_flight.is_empty() {
                    let slot = in_flight.swap_remove(pick.index(in_flight.len()));
                    tracker.finish(slot);
                    free.push(slot);
                    let mut released: Vec<u32> = std::iter::from_fn(|| tracker.release()).collect();
                    let mut expected = model.finish(strong, slot);
                    in_flight.extend(&released);
                    released.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(released, expected);
                }
            }
        }
    }
}
