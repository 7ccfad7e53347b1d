//! How the loop waits for a deadline: accuracy against processor time.

use std::io;

use iosonar_trace::Nanos;

use crate::engine::Target;

/// Sleeps are bounded, so that a stop is noticed.
const MAX_SLEEP: Nanos = Nanos(100_000_000);

/// What a loop can sleep on: it ends early when something completes.
pub trait Waiter {
    /// Sleeps, at most `timeout`.
    fn wait(&mut self, timeout: Nanos) -> io::Result<()>;
}

impl<T: Target> Waiter for T {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        Target::wait(self, timeout)
    }
}

/// How the loop waits while there is nothing to do.
pub trait Idle<T> {
    /// Before a deadline, the loop does nothing else for this long.
    const DEADLINE_MARGIN: Nanos = Nanos(3_000);

    /// Whether what completes at a moment comes before what is due at it. In real time there is no such moment.
    const COMPLETIONS_FIRST: bool = false;

    /// Waits, at most `left`.
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()>;

    /// Called in turns without waiting, with the time `left` to the next deadline.
    #[inline]
    fn busy(&mut self, _left: Nanos) {}
}

/// Busy-waits: most accurate, occupies a processor.
#[derive(Debug, Default)]
pub struct Spin;

impl<T> Idle<T> for Spin {
    #[inline]
    fn idle(&mut self, _: Nanos, _: &mut T) -> io::Result<()> {
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps while only a completion can make progress, and otherwise busy-waits. For a loop that runs the other stages
/// inline: a loop that spins there would take processor time from the kernel threads that complete requests.
#[derive(Debug, Default)]
pub struct BlockingWait;

impl<T: Waiter> Idle<T> for BlockingWait {
    #[inline]
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left == Nanos::MAX {
            return target.wait(MAX_SLEEP);
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until shortly before the deadline, then busy-waits.
#[derive(Debug)]
pub struct Hybrid {
    /// How long before the deadline it wakes up: slightly more than the wake-up latency.
    pub margin: Nanos,
}

impl<T: Waiter> Idle<T> for Hybrid {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left > self.margin {
            return target.wait((left - self.margin).min(MAX_SLEEP));
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until the deadline: late by the wake-up latency, uses the least processor time.
#[derive(Debug, Default)]
pub struct Sleep;

impl<T: Waiter> Idle<T> for Sleep {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        target.wait(left.min(MAX_SLEEP))
    }
}
