//! What the loop tells others while it runs: how much is in flight, and what took it so long that requests could be late.
#![allow(unsafe_code, reason = "a system call that fills a structure of ours")]

use std::sync::atomic::{AtomicU32, Ordering};

use iosonar_trace::Nanos;
use rtrb::Producer;

/// Shorter stalls are not told.
pub const STALL: Nanos = Nanos(20_000);
/// An idle turn takes less than this, unless something interrupted it.
const TURN: Nanos = Nanos(2_000);

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
    /// Nothing: another thread ran on its processor.
    Preempted,
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
pub struct StallMonitor<'a> {
    in_flight: &'a AtomicU32,
    stalls: Producer<Stall>,
    /// Up to here the loop's time is accounted for.
    last: Nanos,
    /// The last idle turn.
    rested: Nanos,
    /// Tells how often this thread was preempted so far.
    preemptions: fn() -> i64,
    /// How often it had been when that was last looked at.
    known: i64,
}

impl<'a> StallMonitor<'a> {
    /// Shows the number in flight there, and puts stalls here; what finds no room is not told.
    pub fn new(in_flight: &'a AtomicU32, stalls: Producer<Stall>) -> Self {
        Self::counting(in_flight, stalls, preemptions)
    }

    fn counting(in_flight: &'a AtomicU32, stalls: Producer<Stall>, preemptions: fn() -> i64) -> Self {
        Self { in_flight, stalls, last: Nanos::MAX, rested: Nanos(i64::MIN), preemptions, known: 0 }
    }

    /// It has been doing this, and it is now that late. A thread that is preempted in a system call is so when the call
    /// returns: then the call is not what took long.
    #[inline]
    pub fn passed(&mut self, now: Nanos, doing: Doing) {
        if now.0.saturating_sub(self.last.0) > STALL.0 {
            let (known, now_known) = (self.known, self.look());
            let was_preempted = now_known != known;
            let doing = if was_preempted { Doing::Preempted } else { doing };
            let _ = self.stalls.push(Stall { from: self.last, to: now, doing });
        } else if self.last == Nanos::MAX {
            self.look();
        }
        self.last = now;
    }

    /// Nothing is to be done until then.
    #[inline]
    pub fn rests_until(&mut self, now: Nanos, left: Nanos) {
        // Preemptions while there was nothing to do explain no later stall. Only a turn that took long can have had one,
        // so the system call is made rarely.
        if now.0.saturating_sub(self.rested.0) > TURN.0 {
            self.look();
        }
        self.rested = now;
        self.last = Nanos(now.0.saturating_add(left.0));
    }

    fn look(&mut self) -> i64 {
        self.known = (self.preemptions)();
        self.known
    }

    /// So many requests are in flight.
    #[inline]
    pub fn shows(&self, in_flight: usize) {
        self.in_flight.store(in_flight as u32, Ordering::Relaxed);
    }
}

/// How often the scheduler has taken the processor from this thread.
fn preemptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills a structure of its own size, of which every bit pattern is valid.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rtrb::RingBuffer;

    use super::*;

    thread_local! {
        static PREEMPTIONS: Cell<i64> = const { Cell::new(7) };
    }

    #[test]
    fn a_call_in_which_the_thread_was_preempted_is_not_what_took_long() {
        let (in_flight, (stalls, mut seen)) = (AtomicU32::new(0), RingBuffer::new(8));
        let mut stall_monitor = StallMonitor::counting(&in_flight, stalls, || PREEMPTIONS.get());
        stall_monitor.passed(Nanos(0), Doing::Waiting);
        stall_monitor.passed(Nanos(100_000), Doing::Submitting);
        PREEMPTIONS.set(8);
        stall_monitor.passed(Nanos(200_000), Doing::Submitting);
        stall_monitor.passed(Nanos(300_000), Doing::Reaping);
        // Preempted while nothing was to be done: the next call took long by itself.
        PREEMPTIONS.set(9);
        stall_monitor.rests_until(Nanos(310_000), Nanos(0));
        stall_monitor.passed(Nanos(400_000), Doing::Submitting);
        let doings: Vec<_> = std::iter::from_fn(|| seen.pop().ok()).map(|stall| stall.doing).collect();
        assert_eq!(doings, [Doing::Submitting, Doing::Preempted, Doing::Reaping, Doing::Submitting]);
    }

    #[test]
    fn preemptions_of_this_thread_are_counted() {
        let before = preemptions();
        assert!(before >= 0 && preemptions() >= before);
    }
}
