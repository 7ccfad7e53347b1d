//! What to do about a request that overlaps one in flight: the manual's "damaged I/O".
//!
//! A real application never has two writes of the same place in flight; a replay would, as soon as the device is slower
//! than the original was. [`index`] finds overlaps; [`Tracker`] decides what they mean and keeps those that wait in
//! order: a request waits for every conflicting one that came before it, whether that is in flight or waits itself, so
//! no newcomer overtakes a pushed-back request.

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
    /// All but two reads
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

/// What a newcomer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go now; it is tracked as in flight.
    Go,
    /// Conflicts: with [`Policy::Partial`] it is tracked as waiting and comes back by [`Tracker::finish`].
    Conflict,
}

/// Knows which requests are in flight and which wait for them.
#[derive(Debug)]
pub struct Tracker {
    policy: Policy,
    strong: Strong,
    index: Index,
    /// For each slot: how many earlier conflicting requests it still waits for.
    blockers: Vec<u32>,
    /// For each slot: its turn, to tell earlier from later.
    turn: Vec<u64>,
    turns: u64,
    /// Slots whose last blocker has gone, oldest first.
    released: std::collections::VecDeque<u32>,
}

impl Tracker {
    /// For requests in slots `0..slots`.
    pub fn new(policy: Policy, strong: Strong, slots: usize) -> Self {
        Self {
            policy,
            strong,
            index: Index::new(slots),
            blockers: vec![0; slots],
            turn: vec![0; slots],
            turns: 0,
            released: std::collections::VecDeque::with_capacity(slots),
        }
    }

    /// Asks for a request, and tracks it unless the policy is not to (a conflict under drop or ordering).
    pub fn admit(&mut self, slot: u32, range: Range) -> Verdict {
        if self.policy == Policy::Allow || range.sectors == 0 {
            return Verdict::Go;
        }
        let strong = self.strong;
        let mut blockers = 0;
        self.index.prepare(&range);
        self.index.overlapping(range, |_, other| {
            blockers += u32::from(strong.conflict(range.modifies, other.modifies));
        });
        if blockers > 0 && self.policy != Policy::Partial {
            return Verdict::Conflict;
        }
        self.turns += 1;
        self.turn[slot as usize] = self.turns;
        self.blockers[slot as usize] = blockers;
        self.index.insert(slot, range);
        if blockers == 0 { Verdict::Go } else { Verdict::Conflict }
    }

    /// Looks for what a request would overlap, for nothing but to have it in the processor's cache when it is admitted.
    pub fn prefetch(&self, range: Range) {
        if self.policy != Policy::Allow && !self.index.is_long(&range) {
            self.index.overlapping(range, |slot, _| {
                std::hint::black_box(self.turn[slot as usize]);
            });
        }
    }

    /// A request in flight is through: those that waited for it alone can be had from [`Tracker::release`].
    pub fn finish(&mut self, slot: u32) {
        let Some(range) = self.index.remove(slot) else { return };
        if self.policy != Policy::Partial {
            return;
        }
        let (strong, turn) = (self.strong, &self.turn);
        let (blockers, released) = (&mut self.blockers, &mut self.released);
        let own = turn[slot as usize];
        self.index.overlapping(range, |other_slot, other| {
            let other_slot_index = other_slot as usize;
            if turn[other_slot_index] > own && strong.conflict(range.modifies, other.modifies) {
                blockers[other_slot_index] -= 1;
                if blockers[other_slot_index] == 0 {
                    released.push_back(other_slot);
                }
            }
        });
    }

    /// The next request whose conflict has gone; it counts as in flight from now on.
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
        Flying,
        Waiting,
    }

    /// The slow, obvious model: a list in order of arrival; a request may fly when no conflicting one stands before it.
    #[derive(Default)]
    struct Model(Vec<(u32, Range, State)>);

    impl Model {
        fn conflicts_before(&self, place: usize, strong: Strong, range: &Range) -> bool {
            self.0[..place].iter().any(|(_, other, _)| {
                other.target == range.target
                    && other.sectors > 0
                    && other.sector < range.sector + range.sectors
                    && range.sector < other.sector + other.sectors
                    && strong.conflict(range.modifies, other.modifies)
            })
        }

        fn admit(&mut self, policy: Policy, strong: Strong, slot: u32, range: Range) -> Verdict {
            let conflict =
                range.sectors > 0 && policy != Policy::Allow && self.conflicts_before(self.0.len(), strong, &range);
            if !conflict {
                self.0.push((slot, range, State::Flying));
                return Verdict::Go;
            }
            if policy == Policy::Partial {
                self.0.push((slot, range, State::Waiting));
            }
            Verdict::Conflict
        }

        fn finish(&mut self, strong: Strong, slot: u32) -> Vec<u32> {
            self.0.retain(|(s, ..)| *s != slot);
            let free: Vec<usize> = (0..self.0.len())
                .filter(|&i| self.0[i].2 == State::Waiting && !self.conflicts_before(i, strong, &self.0[i].1))
                .collect();
            free.into_iter()
                .map(|i| {
                    self.0[i].2 = State::Flying;
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
        // Few places and some very long ranges, so that everything overlaps and every way through the index is taken.
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
        fn agrees_with_the_obvious_model(
            policy in policies(), strong in strengths(),
            steps in prop::collection::vec((ranges(), any::<prop::sample::Index>(), 0u8..5), 1..120),
        ) {
            const SLOTS: u32 = 24;
            let mut tracker = Tracker::new(policy, strong, SLOTS as usize);
            let mut model = Model::default();
            let mut free: Vec<u32> = (0..SLOTS).collect();
            let mut flying: Vec<u32> = Vec::new();
            for (range, pick, kind) in steps {
                if kind > 0 && !free.is_empty() {
                    let slot = free.pop().unwrap();
                    let verdict = tracker.admit(slot, range);
                    prop_assert_eq!(verdict, model.admit(policy, strong, slot, range));
                    match verdict {
                        Verdict::Go => flying.push(slot),
                        Verdict::Conflict if policy != Policy::Partial => free.push(slot),
                        Verdict::Conflict => {}
                    }
                } else if !flying.is_empty() {
                    let slot = flying.swap_remove(pick.index(flying.len()));
                    tracker.finish(slot);
                    free.push(slot);
                    let mut released: Vec<u32> = std::iter::from_fn(|| tracker.release()).collect();
                    let mut expected = model.finish(strong, slot);
                    flying.extend(&released);
                    released.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(released, expected);
                }
            }
        }
    }
}
