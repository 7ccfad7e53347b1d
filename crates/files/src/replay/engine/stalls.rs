//! What the replayer itself loses: how late it is without a call being the reason, and when the whole process stood still.
//!
//! A call is *due* at its scheduled time; or, if that is later, when its predecessors have ended, or a thread of the pool is
//! free, in a replay that loses no time: [`Explained`]. What is later than that is the replayer's, and stays the replayer's in
//! the calls that follow, until they have caught up. Otherwise a stop of a replay of one thread would count once: each call waits
//! for the one before it.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use iosonar_pacing::fidelity::LATE;
use iosonar_trace::Nanos;

/// When a thread or a predecessor is free, and when it would be if the replayer had lost no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained(pub Nanos);

impl Explained {
    /// Nothing to wait for.
    pub const ALWAYS: Self = Self(Nanos(i64::MIN));

    /// Both are over.
    pub fn and(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

/// When each thread of a pool would be free, had the replayer lost no time.
#[derive(Debug)]
pub struct Servers(BinaryHeap<std::cmp::Reverse<i64>>);

impl Servers {
    /// So many threads, which are free.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| std::cmp::Reverse(i64::MIN)).collect())
    }

    /// Takes the thread that would be free first.
    pub fn take(&mut self) -> Explained {
        self.0.pop().map_or(Explained::ALWAYS, |std::cmp::Reverse(at)| Explained(Nanos(at)))
    }

    /// A thread that would be free at this time.
    pub fn give(&mut self, at: Explained) {
        self.0.push(std::cmp::Reverse(at.0.0));
    }
}

/// How long the replayer issued no call although one was ready and a thread was free: pieces of more than 50 µs, between
/// virtual zero and the last completion, as the duration of which this is a part.
#[derive(Debug)]
pub struct IdleTime {
    until: Nanos,
    sum: Nanos,
    sum_to_completion: Nanos,
}

impl IdleTime {
    /// None yet.
    pub fn new() -> Self {
        Self { until: Nanos::ZERO, sum: Nanos::ZERO, sum_to_completion: Nanos::ZERO }
    }

    /// A call is issued, which could be issued from `ready` on.
    pub fn issue(&mut self, ready: Nanos, now: Nanos) {
        self.add(ready, now);
        self.until = self.until.max(now);
    }

    /// The replayer stood still from here to there.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        let from = from.max(self.until);
        if to.0.saturating_sub(from.0) > LATE.0 {
            self.sum = self.sum + (to - from);
            self.until = to;
        }
    }

    /// An issued call has completed.
    pub fn complete(&mut self) {
        self.sum_to_completion = self.sum;
    }

    /// All of it until the last completion.
    pub fn until_completion(&self) -> Nanos {
        self.sum_to_completion
    }
}

/// How often a thread that only sleeps beats.
pub const BEAT: Nanos = Nanos(10_000_000);
/// If no thread shows a sign of life for longer, the process stood still; for a shorter time, the thread that beats may have been
/// woken late.
const MISSED: Nanos = Nanos(30_000_000);

/// Signs of life of all threads: one beats now and then, the others when a call has completed. Without any, the process was
/// stopped, frozen, or not given a processor, and calls that were in progress seem to have taken as long.
#[derive(Debug)]
pub struct Heartbeat {
    last: AtomicI64,
    gaps: Mutex<Vec<(Nanos, Nanos)>>,
}

impl Heartbeat {
    /// Begins at this time.
    pub fn new(now: Nanos) -> Self {
        Self { last: AtomicI64::new(now.0), gaps: Mutex::default() }
    }

    /// The process runs.
    pub fn beat(&self, now: Nanos) {
        let last = Nanos(self.last.fetch_max(now.0, Ordering::AcqRel));
        if now - last > MISSED {
            self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push((last + BEAT, now));
        }
    }

    /// The longest part of this time during which the process stood still.
    pub fn stood_still(&self, from: Nanos, to: Nanos) -> Option<(Nanos, Nanos)> {
        if to - from <= MISSED - BEAT {
            return None;
        }
        let last = Nanos(self.last.load(Ordering::Acquire));
        // This thread may be the first to run since.
        let now = (to - last > MISSED).then_some((last + BEAT, to));
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = gaps.iter().rev().copied().chain(now).map(|(begin, end)| (begin.max(from), end.min(to)));
        parts.filter(|(begin, end)| begin < end).max_by_key(|&(begin, end)| end - begin)
    }

    /// All times at which the process stood still.
    pub fn sum(&self) -> Nanos {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.iter().fold(Nanos::ZERO, |sum, &(begin, end)| sum + (end - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn time_in_which_a_ready_call_is_not_issued_is_lost_once() {
        let mut idle = IdleTime::new();
        idle.issue(Nanos(0), Nanos(40_000));
        idle.complete();
        assert_eq!(idle.until_completion(), Nanos::ZERO, "on time");
        // Three calls that were ready during the same stop.
        for ready in [MS, 2 * MS, 500 * MS] {
            idle.issue(Nanos(ready), Nanos(2000 * MS));
            idle.complete();
        }
        assert_eq!(idle.until_completion(), Nanos(1999 * MS));
        // A call that was in progress in the same stop, and another one.
        idle.add(Nanos(10 * MS), Nanos(1990 * MS));
        idle.add(Nanos(3000 * MS), Nanos(3100 * MS));
        idle.complete();
        assert_eq!(idle.until_completion(), Nanos(2099 * MS));
    }

    #[test]
    fn lost_time_is_between_zero_and_the_last_completion() {
        let mut idle = IdleTime::new();
        idle.issue(Nanos(-100 * MS), Nanos(2 * MS));
        idle.complete();
        assert_eq!(idle.until_completion(), Nanos(2 * MS));
        // What is left out at the end completes nothing.
        idle.issue(Nanos(3 * MS), Nanos(900 * MS));
        assert_eq!(idle.until_completion(), Nanos(2 * MS));
    }

    #[test]
    fn a_process_that_stands_still_misses_beats() {
        let heart = Heartbeat::new(Nanos::ZERO);
        (1..=5).for_each(|beat| heart.beat(Nanos(beat * BEAT.0)));
        let at = |ms: i64| Nanos(ms * MS);
        assert_eq!(heart.stood_still(at(10), at(45)), None, "a long call of a process that runs");
        // A call that was in progress in a stop returns before the thread that beats is woken, or after.
        assert_eq!(heart.stood_still(at(40), at(1050)), Some((at(60), at(1050))));
        heart.beat(at(1051));
        assert_eq!(heart.stood_still(at(40), at(1050)), Some((at(60), at(1050))));
        assert_eq!(heart.stood_still(at(500), at(1200)), Some((at(500), at(1051))));
        assert_eq!(heart.stood_still(at(1051), at(1071)), None);
        assert_eq!(heart.sum(), at(1051 - 60));
    }
}
