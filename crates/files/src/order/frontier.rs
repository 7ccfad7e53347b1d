//! Calls that had ended when another began: those that no other of them follows.
//!
//! Waiting for these is waiting for all. Let p have ended before c began. If p is not listed, then p ended before some q began
//! that also ended before c began, and q began later than p. Apply the same to q. Begins only grow, so this ends at a listed
//! call, and each call on the way waited for the one before it. No listed call follows from another by the same argument: the
//! list is the transitive reduction of this relation. (The last call of those that had ended would not do: two calls that
//! overlap may both have ended before a third began.) Of all ended calls let q be the one that began last: p is listed exactly
//! if it is q or ended after q began. So only the calls in flight need memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use foldhash::fast::FixedState;
use iosonar_trace::Nanos;

use super::edges::Lane;

/// A call and its time in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub number: u64,
    pub begin: Nanos,
    /// `Nanos::MAX` if it did not return.
    pub end: Nanos,
    pub lane: Lane,
}

/// A call that has ended.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub call: Interval,
    /// The first call that can follow it. A call that ended early does not precede calls that came before this was known.
    from: u64,
}

impl Ended {
    /// Whether the other follows it.
    pub(super) fn precedes(&self, other: &Interval) -> bool {
        self.call.end <= other.begin && self.from <= other.number
    }
}

/// The order of intervals: p precedes c if p ends no later than c begins and is before it in the trace. Of the calls that
/// precede the next one it keeps those that precede no other of them. Memory is bounded by the calls in flight.
#[derive(Default)]
pub(super) struct Frontier {
    in_flight: BinaryHeap<Reverse<(Nanos, u64, Nanos, u32)>>,
    /// Calls of `in_flight` that count as ended already.
    ended_early: HashSet<u64, FixedState>,
    /// Of all ended calls, the one that began last: with the largest number.
    newest: Option<Interval>,
    /// Ended, and not followed by another ended call; by end.
    maximal: VecDeque<Ended>,
}

impl Frontier {
    /// Time moves on to the start of the next call.
    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some(&Reverse((end, number, begin, lane))) = self.in_flight.peek() {
            if end > now || end == Nanos::MAX {
                break;
            }
            self.in_flight.pop();
            if self.ended_early.is_empty() || !self.ended_early.remove(&number) {
                self.ended(Interval { number, begin, end, lane: Lane(lane) }, number + 1);
            }
        }
    }

    /// A call is in flight: the next one of the trace.
    pub(super) fn begin(&mut self, call: Interval) {
        self.in_flight.push(Reverse((call.end, call.number, call.begin, call.lane.0)));
    }

    /// A call in flight must have ended when the next call of the trace began, whatever its recorded end says: recorders round
    /// times. `advance(next.begin)` comes first.
    pub(super) fn end_early(&mut self, call: Interval, next: &Interval) {
        if call.end > next.begin && self.ended_early.insert(call.number) {
            self.ended(Interval { end: next.begin, ..call }, next.number);
        }
    }

    /// The calls of which no other ended call follows. To wait for them is to wait for all that have ended.
    pub(super) fn maximal(&self) -> impl Iterator<Item = &Ended> {
        self.maximal.iter()
    }

    /// Calls end in the order of their ends. An ended call precedes another exactly if it precedes `newest`, which began last:
    /// so one comparison decides, and the calls that `newest` follows are the first ones of `maximal`.
    fn ended(&mut self, call: Interval, from: u64) {
        let ended = Ended { call, from };
        if let Some(newest) = self.newest.filter(|newest| newest.number > call.number) {
            if !ended.precedes(&newest) {
                self.maximal.push_back(ended);
            }
            return;
        }
        let mut index = 0;
        while let Some(earlier) = self.maximal.get(index).filter(|earlier| earlier.call.end <= call.begin) {
            if earlier.precedes(&call) {
                self.maximal.remove(index);
            } else {
                index += 1;
            }
        }
        self.maximal.push_back(ended);
        self.newest = Some(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(number: u64, begin: i64, end: i64) -> Interval {
        Interval { number, begin: Nanos(begin), end: Nanos(end), lane: Lane::NONE }
    }

    fn precedes(p: &Interval, c: &Interval) -> bool {
        p.number < c.number && p.end <= c.begin
    }

    proptest! {
        #[test]
        fn the_maximal_calls_are_those_of_the_definition(
            times in prop::collection::vec((0i64..4, 0i64..12), 1..60),
        ) {
            let mut begin = 0;
            let mut calls: Vec<Interval> = Vec::new();
            let mut frontier = Frontier::default();
            for (number, (gap, length)) in times.into_iter().enumerate() {
                begin += gap;
                let call = interval(number as u64, begin, begin + length);
                frontier.advance(call.begin);
                let mut found: Vec<u64> = frontier.maximal().map(|ended| ended.call.number).collect();
                found.sort_unstable();
                let ended: Vec<&Interval> = calls.iter().filter(|p| precedes(p, &call)).collect();
                let expected: Vec<u64> = ended
                    .iter()
                    .filter(|p| !ended.iter().any(|q| precedes(p, q)))
                    .map(|p| p.number)
                    .collect();
                prop_assert_eq!(found, expected);
                frontier.begin(call);
                calls.push(call);
            }
        }
    }

    #[test]
    fn a_call_that_ends_early_is_not_ended_twice() {
        let mut frontier = Frontier::default();
        let first = interval(0, 0, 10);
        frontier.begin(first);
        frontier.advance(Nanos(5));
        assert_eq!(frontier.maximal().count(), 0);
        let second = interval(1, 5, 6);
        frontier.end_early(first, &second);
        frontier.end_early(first, &second);
        assert_eq!(frontier.maximal().count(), 1);
        frontier.begin(second);
        frontier.advance(Nanos(20));
        assert_eq!(frontier.maximal().map(|ended| ended.call.number).collect::<Vec<_>>(), [1]);
    }
}
