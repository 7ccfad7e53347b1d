//! Reports of the running loop to other threads: the number of requests in flight, and stalls that can delay requests.
#![allow(unsafe_code, reason = "getrusage fills a local structure")]

use std::sync::atomic::{AtomicU32, Ordering};

use iosonar_trace::Nanos;
use rtrb::Producer;

/// Shorter stalls are not reported.
pub const MIN_STALL: Nanos = Nanos(20_000);
/// An idle turn takes less time than this, unless it was interrupted.
const MAX_IDLE_TURN: Nanos = Nanos(2_000);

/// Activity of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Waiting, beyond the deadline: the processor was not available.
    Waiting,
    /// Choosing requests.
    Choosing,
    /// Submitting requests to the target.
    Submitting,
    /// Reaping completions.
    Reaping,
    /// None: the scheduler ran another thread.
    Preempted,
}

/// A period in which the loop could not issue requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Start.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
    /// Activity of the loop in this period.
    pub activity: Activity,
}

/// The loop's side of the reports; never waits or allocates.
pub struct StallMonitor<'a> {
    in_flight: &'a AtomicU32,
    stalls: Producer<Stall>,
    /// End of the time that is accounted for.
    accounted_until: Nanos,
    /// Time of the last idle turn.
    last_idle: Nanos,
    /// Reads the number of preemptions of this thread.
    preemptions: fn() -> i64,
    /// The number of preemptions when last read.
    seen_preemptions: i64,
}

impl<'a> StallMonitor<'a> {
    /// Stores the number in flight in `in_flight`, and pushes stalls to `stalls`, dropping them while that queue is full.
    pub fn new(in_flight: &'a AtomicU32, stalls: Producer<Stall>) -> Self {
        Self::with_preemptions(in_flight, stalls, preemptions)
    }

    fn with_preemptions(in_flight: &'a AtomicU32, stalls: Producer<Stall>, preemptions: fn() -> i64) -> Self {
        Self {
            in_flight,
            stalls,
            accounted_until: Nanos::MAX,
            last_idle: Nanos(i64::MIN),
            preemptions,
            seen_preemptions: 0,
        }
    }

    /// Records the activity up to `now`. A preemption during a system call happens at its return, so a long call with a
    /// preemption is reported as [`Activity::Preempted`].
    #[inline]
    pub fn record(&mut self, now: Nanos, activity: Activity) {
        if now.0.saturating_sub(self.accounted_until.0) > MIN_STALL.0 {
            let (before, after) = (self.seen_preemptions, self.read_preemptions());
            let was_preempted = after != before;
            let activity = if was_preempted { Activity::Preempted } else { activity };
            let _ = self.stalls.push(Stall { from: self.accounted_until, to: now, activity });
        } else if self.accounted_until == Nanos::MAX {
            self.read_preemptions();
        }
        self.accounted_until = now;
    }

    /// Records that the loop has nothing to do for the time `left`.
    #[inline]
    pub fn idle_for(&mut self, now: Nanos, left: Nanos) {
        // Preemptions while idle do not explain later stalls. Only a long turn can contain one, so the system call is
        // rarely made.
        if now.0.saturating_sub(self.last_idle.0) > MAX_IDLE_TURN.0 {
            self.read_preemptions();
        }
        self.last_idle = now;
        self.accounted_until = Nanos(now.0.saturating_add(left.0));
    }

    fn read_preemptions(&mut self) -> i64 {
        self.seen_preemptions = (self.preemptions)();
        self.seen_preemptions
    }

    /// Stores the number of requests in flight.
    #[inline]
    pub fn set_in_flight(&self, in_flight: usize) {
        self.in_flight.store(in_flight as u32, Ordering::Relaxed);
    }
}

/// Involuntary context switches of this thread so far.
fn preemptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills a structure of its size, for which every bit pattern is valid.
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
    fn a_stall_with_a_preemption_is_not_blamed_on_the_call() {
        let (in_flight, (stalls, mut seen)) = (AtomicU32::new(0), RingBuffer::new(8));
        let mut stall_monitor = StallMonitor::with_preemptions(&in_flight, stalls, || PREEMPTIONS.get());
        stall_monitor.record(Nanos(0), Activity::Waiting);
        stall_monitor.record(Nanos(100_000), Activity::Submitting);
        PREEMPTIONS.set(8);
        stall_monitor.record(Nanos(200_000), Activity::Submitting);
        stall_monitor.record(Nanos(300_000), Activity::Reaping);
        // Preempted while idle: does not explain the next stall.
        PREEMPTIONS.set(9);
        stall_monitor.idle_for(Nanos(310_000), Nanos(0));
        stall_monitor.record(Nanos(400_000), Activity::Submitting);
        let activities: Vec<_> = std::iter::from_fn(|| seen.pop().ok()).map(|stall| stall.activity).collect();
        assert_eq!(activities, [Activity::Submitting, Activity::Preempted, Activity::Reaping, Activity::Submitting]);
    }

    #[test]
    fn preemptions_of_this_thread_are_counted() {
        let before = preemptions();
        assert!(before >= 0 && preemptions() >= before);
    }
}
