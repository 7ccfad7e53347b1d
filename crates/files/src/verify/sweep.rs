//! The latest completion in the replay of all calls that had ended at a moment of the trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosonar_trace::Nanos;

use super::times::Completion;

/// Sweeps over the time of the trace. Memory is bounded by the calls in flight in the trace.
#[derive(Default)]
pub(super) struct Sweep {
    in_flight: BinaryHeap<Reverse<(Nanos, u64, Nanos)>>,
    latest: Option<Completion>,
    ended: u64,
}

impl Sweep {
    /// Moves to a moment. Returns the last completion of the calls that had ended by then, and the number of these calls.
    pub(super) fn until(&mut self, moment: Nanos) -> (Option<Completion>, u64) {
        while let Some(&Reverse((end, number, at))) = self.in_flight.peek() {
            if end > moment {
                break;
            }
            self.in_flight.pop();
            self.ended += 1;
            if self.latest.is_none_or(|latest| at > latest.at) {
                self.latest = Some(Completion { number, at });
            }
        }
        (self.latest, self.ended)
    }

    /// Adds a call that ended at `end` in the trace. One that did not return precedes nothing.
    pub(super) fn add(&mut self, end: Option<Nanos>, done: Completion) {
        if let Some(end) = end {
            self.in_flight.push(Reverse((end, done.number, done.at)));
        }
    }
}
