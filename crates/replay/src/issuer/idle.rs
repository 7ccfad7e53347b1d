//! Ways to pass the time until a deadline: how exact against what it costs.

use std::io;

use iosonar_trace::Nanos;

use crate::target::Target;

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

/// Sleeps until shortly before the deadline, and spins for the rest.
#[derive(Debug)]
pub struct Hybrid {
    /// How long before the deadline it wakes up: a little more than waking takes.
    pub margin: Nanos,
}

impl<T: Target> Idle<T> for Hybrid {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left > self.margin {
            // Bounded, so that an order to stop is seen.
            return target.wait(Nanos((left - self.margin).0.min(100_000_000)));
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
        // Bounded, so that an order to stop is seen.
        target.wait(Nanos(left.0.min(100_000_000)))
    }
}
