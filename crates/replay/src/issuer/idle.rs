//! Ways to pass the time until a deadline: how exact against what it costs.

use std::io;

use iosonar_trace::Nanos;

use crate::engine::Target;

/// Sleeps are bounded, so that an order to stop is seen.
const LONGEST: Nanos = Nanos(100_000_000);

/// What the loop does while there is nothing to do: how exact it is against what it costs.
pub trait Idle<T> {
    /// Passes time, at most `left`.
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()>;

    /// Is called in turns in which there was something else to do, `left` before a deadline.
    #[inline]
    fn busy(&mut self, _left: Nanos) {}
}

/// Asks the clock again at once: exact, and takes a processor.
#[derive(Debug, Default)]
pub struct Spin;

impl<T> Idle<T> for Spin {
    #[inline]
    fn idle(&mut self, _: Nanos, _: &mut T) -> io::Result<()> {
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps where only a completion can change anything, and is as exact as [`Spin`] before a deadline. For a loop that has
/// no other threads to wait for: while it spins, the kernel's threads that complete requests have a processor less.
#[derive(Debug, Default)]
pub struct BlockingWait;

impl<T: Target> Idle<T> for BlockingWait {
    #[inline]
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left == Nanos::MAX {
            return target.wait(LONGEST);
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until shortly before the deadline, and spins for the rest.
#[derive(Debug)]
pub struct Hybrid {
    /// How long before the deadline it wakes up: a little more than waking takes.
    pub margin: Nanos,
}

impl<T: Target> Idle<T> for Hybrid {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left > self.margin {
            return target.wait((left - self.margin).min(LONGEST));
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until the deadline: late by the time that waking takes, and costs the least.
#[derive(Debug, Default)]
pub struct Sleep;

impl<T: Target> Idle<T> for Sleep {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        target.wait(left.min(LONGEST))
    }
}
