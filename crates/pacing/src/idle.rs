//! How the loop waits for a deadline: accuracy against processor time.

use std::io;
use std::time::{Duration, Instant};

use iosonar_trace::Nanos;

/// Sleeps are bounded, so that a stop is noticed, and so is a stall of the whole program while it sleeps.
const MAX_SLEEP: Nanos = Nanos(10_000_000);

/// What a turn of waiting was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The thread kept its processor.
    Busy,
    /// The thread slept, at most for this long.
    Slept(Nanos),
    /// The time is simulated.
    Simulated,
}

/// What a loop can sleep on: it ends early when something completes.
pub trait Waiter {
    /// Sleeps, at most `timeout`.
    fn wait(&mut self, timeout: Nanos) -> io::Result<()>;
}

/// How the loop waits while there is nothing to do.
pub trait Idle<T> {
    /// Before a deadline, the loop does nothing else for this long.
    const DEADLINE_MARGIN: Nanos = Nanos(3_000);

    /// Whether what completes at a moment comes before what is due at it. In real time there is no such moment.
    const COMPLETIONS_FIRST: bool = false;

    /// Waits, at most `left`.
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn>;

    /// Called in turns without waiting, with the time `left` to the next deadline.
    #[inline]
    fn busy(&mut self, _left: Nanos) {}
}

/// Busy-waits: most accurate, occupies a processor.
#[derive(Debug, Default)]
pub struct Spin;

impl<T> Idle<T> for Spin {
    #[inline]
    fn idle(&mut self, _: Nanos, _: &mut T) -> io::Result<Turn> {
        std::hint::spin_loop();
        Ok(Turn::Busy)
    }
}

/// Sleeps while only a completion can make progress, and otherwise busy-waits. For a loop that runs the other stages
/// inline: a loop that spins there would take processor time from the kernel threads that complete requests.
#[derive(Debug, Default)]
pub struct BlockingWait;

impl<T: Waiter> Idle<T> for BlockingWait {
    #[inline]
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        if left == Nanos::MAX {
            return sleep(left, target);
        }
        std::hint::spin_loop();
        Ok(Turn::Busy)
    }
}

/// Sleeps until shortly before the deadline, then busy-waits.
#[derive(Debug)]
pub struct Hybrid {
    /// How long before the deadline it wakes up: slightly more than the wake-up latency.
    pub margin: Nanos,
}

impl<T: Waiter> Idle<T> for Hybrid {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        if left > self.margin {
            return sleep(left - self.margin, target);
        }
        std::hint::spin_loop();
        Ok(Turn::Busy)
    }
}

/// Sleeps until the deadline: late by the wake-up latency, uses the least processor time.
#[derive(Debug, Default)]
pub struct Sleep;

impl<T: Waiter> Idle<T> for Sleep {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        sleep(left, target)
    }
}

fn sleep<T: Waiter>(left: Nanos, target: &mut T) -> io::Result<Turn> {
    let most = left.min(MAX_SLEEP);
    target.wait(most).map(|()| Turn::Slept(most))
}

/// Where only a completion can make progress, polls for it for some time before it waits as `idle` does: a fast device is done
/// before a sleeping loop would wake up.
#[derive(Debug)]
pub struct BusyPoll<I> {
    idle: I,
    time: Duration,
    /// Since when the loop has found nothing to do.
    since: Option<Instant>,
}

impl<I> BusyPoll<I> {
    /// Polls for this long. Not at all if it is zero.
    pub fn new(idle: I, time: Nanos) -> Self {
        Self { idle, time: Duration::from_nanos(time.0.max(0).unsigned_abs()), since: None }
    }

    #[inline]
    fn is_polling(&mut self) -> bool {
        !self.time.is_zero() && self.since.get_or_insert_with(Instant::now).elapsed() < self.time
    }
}

impl<T, I: Idle<T>> Idle<T> for BusyPoll<I> {
    const DEADLINE_MARGIN: Nanos = I::DEADLINE_MARGIN;
    const COMPLETIONS_FIRST: bool = I::COMPLETIONS_FIRST;

    #[inline]
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        if left == Nanos::MAX && self.is_polling() {
            std::hint::spin_loop();
            return Ok(Turn::Busy);
        }
        self.since = None;
        self.idle.idle(left, target)
    }

    #[inline]
    fn busy(&mut self, left: Nanos) {
        self.since = None;
        self.idle.busy(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its waits.
    struct Waits(usize);

    impl Idle<Waits> for () {
        fn idle(&mut self, _: Nanos, target: &mut Waits) -> io::Result<Turn> {
            target.0 += 1;
            Ok(Turn::Busy)
        }
    }

    #[test]
    fn polling_precedes_waits_for_completions_not_for_deadlines() {
        let waits = |time, left: &[Nanos]| {
            let (mut target, mut idle) = (Waits(0), BusyPoll::new((), Nanos(time)));
            left.iter().for_each(|left| assert_eq!(idle.idle(*left, &mut target).unwrap(), Turn::Busy));
            target.0
        };
        let hour = 3_600_000_000_000;
        assert_eq!(waits(hour, &[Nanos::MAX; 100]), 0);
        assert_eq!(waits(hour, &[Nanos(5_000); 100]), 100);
        assert_eq!(waits(0, &[Nanos::MAX; 100]), 100);
        // Each wait is followed by another time of polling.
        let (mut target, mut idle) = (Waits(0), BusyPoll::new((), Nanos(1_000)));
        for waits in 1..4 {
            while target.0 < waits {
                idle.idle(Nanos::MAX, &mut target).unwrap();
            }
            assert!(idle.since.is_none());
        }
        // Work ends the polling time.
        idle.time = Duration::from_nanos(hour as u64);
        idle.idle(Nanos::MAX, &mut target).unwrap();
        assert!(idle.since.is_some());
        Idle::<Waits>::busy(&mut idle, Nanos::MAX);
        assert!(idle.since.is_none());
    }
}
