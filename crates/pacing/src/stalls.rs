//! Reports of the running loop to other threads: the number of requests in flight, and stalls that can delay requests. For the
//! loop itself: how long it could not see completions.
#![allow(unsafe_code, reason = "getrusage fills a local structure")]

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use iosonar_trace::Nanos;
use rtrb::Producer;

use super::idle::Turn;
use crate::ideal::LATE;

/// Shorter stalls are not reported.
pub const MIN_STALL: Nanos = Nanos(20_000);
/// An idle turn takes less time than this, unless it was interrupted.
const MAX_IDLE_TURN: Nanos = Nanos(2_000);
/// A busy loop reads the number of preemptions this often at most: a system call.
const UNREAD: Nanos = Nanos(100_000);
/// A shorter submission call is the device's and the kernel's work, unless the thread was preempted in it.
const LONG_SUBMISSION: Nanos = Nanos(10_000_000);
/// What a loop does beside looking for completions takes less time than this.
const INTERRUPTION: Nanos = Nanos(1_000_000);

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

/// What the scheduler counts for the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    /// Involuntary context switches so far.
    pub preemptions: fn() -> i64,
    /// Time so far in which it could run, but another thread had the processor.
    pub ready: fn() -> Nanos,
}

impl Scheduler {
    /// That of the kernel.
    const KERNEL: Self = Self { preemptions, ready };
    /// With a simulated clock.
    pub const NONE: Self = Self { preemptions: || 0, ready: || Nanos::ZERO };
}

/// The loop's side of the reports; never waits or allocates.
pub struct StallMonitor<'a> {
    in_flight: &'a AtomicU32,
    stalls: Producer<Stall>,
    /// End of the time that is accounted for.
    accounted_until: Nanos,
    /// Until when the loop looked for completions, or had no reason to.
    looked_until: Nanos,
    /// Time so far in which the loop should have looked for completions and did not.
    blind: Nanos,
    /// The interruptions among it while requests were in flight.
    blind_in_flight: Nanos,
    /// The blind time when the last poll found no completion.
    blind_at_empty_poll: Nanos,
    /// Time of the last idle turn.
    last_idle: Nanos,
    /// Turns since then.
    turns: u32,
    scheduler: Scheduler,
    /// The number of preemptions when last read, and when that was.
    seen_preemptions: i64,
    preemptions_read: Nanos,
    /// The time ready to run when last read; `None` before.
    seen_ready: Option<Nanos>,
}

impl<'a> StallMonitor<'a> {
    /// Stores the number in flight in `in_flight`, and pushes stalls to `stalls`, dropping them while that queue is full.
    pub fn new(in_flight: &'a AtomicU32, stalls: Producer<Stall>) -> Self {
        Self::with_scheduler(in_flight, stalls, Scheduler::KERNEL)
    }

    /// The same with another scheduler.
    pub fn with_scheduler(in_flight: &'a AtomicU32, stalls: Producer<Stall>, scheduler: Scheduler) -> Self {
        Self {
            in_flight,
            stalls,
            accounted_until: Nanos::MAX,
            looked_until: Nanos::MAX,
            blind: Nanos::ZERO,
            blind_in_flight: Nanos::ZERO,
            blind_at_empty_poll: Nanos::ZERO,
            last_idle: Nanos(i64::MIN),
            turns: 0,
            scheduler,
            seen_preemptions: 0,
            preemptions_read: Nanos(i64::MIN),
            seen_ready: None,
        }
    }

    /// Records the activity up to `now`. A preemption during a system call happens at its return, so a long call with a
    /// preemption is reported as [`Activity::Preempted`].
    #[inline]
    pub fn record(&mut self, now: Nanos, activity: Activity) {
        self.look(now, activity);
        self.turns += u32::from(activity == Activity::Waiting);
        if now.0.saturating_sub(self.accounted_until.0) > MIN_STALL.0 {
            let (before, after) = (self.seen_preemptions, self.read_preemptions(now));
            let was_preempted = after != before;
            let activity = if was_preempted { Activity::Preempted } else { activity };
            let _ = self.stalls.push(Stall { from: self.accounted_until, to: now, activity });
        } else if self.accounted_until == Nanos::MAX {
            self.read_preemptions(now);
            self.seen_ready.get_or_insert_with(self.scheduler.ready);
        }
        self.accounted_until = now;
    }

    /// Records that the loop looks for completions now, after this activity.
    #[inline]
    pub fn look(&mut self, now: Nanos, activity: Activity) {
        let gap = now - self.looked_until;
        if gap > LATE {
            self.add_blind(gap, activity);
        }
        self.looked_until = now;
    }

    #[cold]
    fn add_blind(&mut self, gap: Nanos, activity: Activity) {
        // Read without being stored, as `record` compares as well.
        let is_work = activity == Activity::Submitting
            && gap < LONG_SUBMISSION
            && (self.scheduler.preemptions)() == self.seen_preemptions;
        if !is_work {
            self.count_blind(gap);
        }
        self.read_ready();
    }

    fn count_blind(&mut self, time: Nanos) {
        self.blind = self.blind + time;
        if time >= INTERRUPTION && self.in_flight.load(Ordering::Relaxed) > 0 {
            self.blind_in_flight = self.blind_in_flight + time;
        }
    }

    /// Records that the loop has nothing to do for the time `left`.
    #[inline]
    pub fn idle_for(&mut self, now: Nanos, left: Nanos) {
        // Preemptions while idle do not explain later stalls. Only a long turn can contain one, so the system call is
        // rarely made. Those while busy that made no stall do so only if they were just before.
        let was_idle = std::mem::replace(&mut self.turns, 0) <= 1;
        if now - self.last_idle > MAX_IDLE_TURN && (was_idle || now - self.preemptions_read > UNREAD) {
            self.read_preemptions(now);
        }
        self.last_idle = now;
        self.accounted_until = if left < Nanos::MAX { now + left } else { left };
    }

    /// Records how the loop waited after [`idle_for`](Self::idle_for).
    #[inline]
    pub fn waited(&mut self, turn: Turn) {
        let until = match turn {
            Turn::Busy => self.last_idle,
            Turn::Slept(most) => {
                // What ended the sleep made the thread ready, which then waited for a processor.
                let waited = self.read_ready();
                if waited > LATE {
                    self.count_blind(waited);
                }
                self.last_idle + most + waited
            }
            Turn::Simulated => Nanos::MAX,
        };
        self.looked_until = until;
        // Where only a completion can make progress, due requests may be waiting.
        if self.accounted_until == Nanos::MAX {
            self.accounted_until = until;
        }
    }

    /// The earliest moment at which a completion can have happened that was found at `now`. `blind` is the value of
    /// [`blind`](Self::blind) at the issue of the request.
    #[inline]
    pub fn earliest(&mut self, now: Nanos, blind: Nanos) -> Nanos {
        self.look(now, Activity::Reaping);
        now - (self.blind - blind.max(self.blind_at_empty_poll))
    }

    /// A poll found no completion.
    #[inline]
    pub fn found_none(&mut self) {
        self.blind_at_empty_poll = self.blind;
    }

    /// See [`earliest`](Self::earliest).
    #[inline]
    pub fn blind(&self) -> Nanos {
        self.blind
    }

    /// Time so far in interruptions of the loop while requests were in flight.
    pub fn blind_in_flight(&self) -> Nanos {
        self.blind_in_flight
    }

    /// The time ready to run since the last call.
    fn read_ready(&mut self) -> Nanos {
        let ready = (self.scheduler.ready)();
        ready - self.seen_ready.replace(ready).unwrap_or(ready)
    }

    fn read_preemptions(&mut self, now: Nanos) -> i64 {
        self.preemptions_read = now;
        self.seen_preemptions = (self.scheduler.preemptions)();
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

/// Time of this thread on a run queue so far; always zero where the kernel does not count it.
fn ready() -> Nanos {
    thread_local! {
        static FILE: RefCell<Option<Option<File>>> = const { RefCell::new(None) };
    }
    let mut text = [0; 64];
    let read = FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| File::open("/proc/thread-self/schedstat").ok());
        file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0)
    });
    let mut words = text[..read].split(|byte| *byte == b' ');
    let digits = words.nth(1).unwrap_or_default();
    Nanos(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rtrb::RingBuffer;

    use super::*;

    thread_local! {
        static PREEMPTIONS: Cell<i64> = const { Cell::new(7) };
        static READY: Cell<i64> = const { Cell::new(9_000_000) };
    }

    const MS: i64 = 1_000_000;
    const SCHEDULER: Scheduler = Scheduler { preemptions: || PREEMPTIONS.get(), ready: || Nanos(READY.get()) };

    /// The earliest time of a completion that is found at `found`, after the loop has waited for one since 10 ms.
    fn earliest(turn: Turn, ready: i64, found: i64) -> i64 {
        let in_flight = AtomicU32::new(0);
        let mut monitor = StallMonitor::with_scheduler(&in_flight, RingBuffer::new(8).0, SCHEDULER);
        monitor.record(Nanos(10 * MS), Activity::Waiting);
        monitor.found_none();
        monitor.idle_for(Nanos(10 * MS), Nanos::MAX);
        READY.set(READY.get() + ready);
        monitor.waited(turn);
        monitor.record(Nanos(found), Activity::Waiting);
        monitor.earliest(Nanos(found), Nanos::ZERO).0
    }

    #[test]
    fn a_spinning_loop_misses_completions_only_while_stopped() {
        assert_eq!(earliest(Turn::Busy, 0, 10 * MS + 40_000), 10 * MS + 40_000, "a turn of the loop");
        assert_eq!(earliest(Turn::Busy, 0, 13 * MS), 10 * MS, "it was stopped");
        assert_eq!(earliest(Turn::Simulated, 0, 13 * MS), 13 * MS);
    }

    #[test]
    fn a_completion_ends_a_sleep_unless_the_loop_was_stopped() {
        let sleep = Turn::Slept(Nanos(10 * MS));
        assert_eq!(earliest(sleep, 0, 15 * MS), 15 * MS);
        assert_eq!(earliest(sleep, 0, 50 * MS), 20 * MS, "stopped: a sleep ends after 10 ms");
        assert_eq!(earliest(sleep, 4 * MS, 15 * MS), 11 * MS, "ready for 4 ms");
        assert_eq!(earliest(sleep, 4 * MS, 24 * MS), 20 * MS, "not counted twice");
    }

    #[test]
    fn a_long_submission_call_is_a_stall_only_if_preempted() {
        let in_flight = AtomicU32::new(0);
        let mut monitor = StallMonitor::with_scheduler(&in_flight, RingBuffer::new(8).0, SCHEDULER);
        monitor.record(Nanos(0), Activity::Choosing);
        for (at, preempted, blind) in [(9, 0, 0), (18, 1, 9), (38, 0, 29)] {
            PREEMPTIONS.set(PREEMPTIONS.get() + preempted);
            monitor.record(Nanos(at * MS), Activity::Submitting);
            assert_eq!(monitor.blind(), Nanos(blind * MS), "{at}");
        }
    }

    #[test]
    fn a_stall_with_a_preemption_is_not_blamed_on_the_call() {
        let (in_flight, (stalls, mut seen)) = (AtomicU32::new(0), RingBuffer::new(8));
        let mut stall_monitor = StallMonitor::with_scheduler(&in_flight, stalls, SCHEDULER);
        stall_monitor.record(Nanos(0), Activity::Waiting);
        stall_monitor.record(Nanos(100_000), Activity::Submitting);
        PREEMPTIONS.set(8);
        stall_monitor.record(Nanos(200_000), Activity::Submitting);
        stall_monitor.record(Nanos(300_000), Activity::Reaping);
        // Preempted while idle: does not explain the next stall.
        stall_monitor.record(Nanos(301_000), Activity::Waiting);
        stall_monitor.idle_for(Nanos(301_000), Nanos(0));
        PREEMPTIONS.set(9);
        stall_monitor.record(Nanos(310_000), Activity::Waiting);
        stall_monitor.idle_for(Nanos(310_000), Nanos(0));
        stall_monitor.record(Nanos(400_000), Activity::Submitting);
        let activities: Vec<_> = std::iter::from_fn(|| seen.pop().ok()).map(|stall| stall.activity).collect();
        assert_eq!(activities, [Activity::Submitting, Activity::Preempted, Activity::Reaping, Activity::Submitting]);
    }

    #[test]
    fn a_busy_loop_rarely_asks_for_preemptions() {
        thread_local! {
            static ASKED: Cell<u32> = const { Cell::new(0) };
        }
        let preemptions = || {
            ASKED.set(ASKED.get() + 1);
            0
        };
        let (in_flight, scheduler) = (AtomicU32::new(0), Scheduler { preemptions, ready: || Nanos::ZERO });
        let mut monitor = StallMonitor::with_scheduler(&in_flight, RingBuffer::new(8).0, scheduler);
        // Every 10 µs it submits, and then finds nothing to do.
        for at in (0..1_000_000).step_by(10_000) {
            monitor.record(Nanos(at), Activity::Waiting);
            monitor.record(Nanos(at + 5000), Activity::Submitting);
            monitor.record(Nanos(at + 5000), Activity::Waiting);
            monitor.idle_for(Nanos(at + 5000), Nanos::ZERO);
        }
        assert!((9..=11).contains(&ASKED.get()), "{}", ASKED.get());
        // Idle turns follow each other; one of them takes long.
        let before = ASKED.get();
        for at in [996_000, 996_100, 1_005_000] {
            monitor.record(Nanos(at), Activity::Waiting);
            monitor.idle_for(Nanos(at), Nanos::ZERO);
        }
        assert_eq!(ASKED.get() - before, 1);
    }

    #[test]
    fn preemptions_and_time_ready_of_this_thread_are_counted() {
        let before = preemptions();
        assert!(before >= 0 && preemptions() >= before);
        let before = ready();
        assert!(before >= Nanos::ZERO && ready() >= before);
    }
}
