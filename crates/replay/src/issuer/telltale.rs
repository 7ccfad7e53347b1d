//! What the loop tells others while it runs: how much is in flight, and what took it so long that requests could be late.

use std::sync::atomic::{AtomicU32, Ordering};

use iosonar_trace::Nanos;
use rtrb::Producer;

/// Shorter stalls are not told.
pub const STALL: Nanos = Nanos(20_000);

/// What the loop was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Waiting for a deadline that then had passed: the processor was not there.
    Waiting,
    /// Choosing what goes next.
    Choosing,
    /// Handing requests to the target.
    Submitting,
    /// Taking completions back.
    Reaping,
}

/// A time in which the loop could issue nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Since when.
    pub from: Nanos,
    /// Until when.
    pub to: Nanos,
    /// What it was doing.
    pub doing: Doing,
}

/// The loop's end of it: nothing here waits or allocates.
pub struct Telltale<'a> {
    in_flight: &'a AtomicU32,
    stalls: Producer<Stall>,
    /// Up to here the loop's time is accounted for.
    last: Nanos,
}

impl<'a> Telltale<'a> {
    /// Shows the number in flight there, and puts stalls here; what finds no room is not told.
    pub fn new(in_flight: &'a AtomicU32, stalls: Producer<Stall>) -> Self {
        Self { in_flight, stalls, last: Nanos::MAX }
    }

    /// It has been doing this, and it is now that late.
    #[inline]
    pub fn passed(&mut self, now: Nanos, doing: Doing) {
        if now.0.saturating_sub(self.last.0) > STALL.0 {
            let _ = self.stalls.push(Stall { from: self.last, to: now, doing });
        }
        self.last = now;
    }

    /// Nothing is to be done until then.
    #[inline]
    pub fn rests_until(&mut self, now: Nanos, left: Nanos) {
        self.last = Nanos(now.0.saturating_add(left.0));
    }

    /// So many requests are in flight.
    #[inline]
    pub fn shows(&self, in_flight: usize) {
        self.in_flight.store(in_flight as u32, Ordering::Relaxed);
    }
}
