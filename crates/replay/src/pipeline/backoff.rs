//! How long the rooms beside the loop sleep between looks at their queues.
//!
//! Each waking costs the loop: on a machine of few processors it may take the loop's own for some microseconds, right when
//! a request is due. A thousand wakings a second made two of a hundred requests late. So they sleep for as long as their
//! queues allow: the less was found, the longer.

use std::thread;
use std::time::Duration;

use iosonar_trace::Nanos;

const SHORTEST: Duration = Duration::from_micros(250);
const LONGEST: Duration = Duration::from_millis(16);

/// Sleeps, longer and longer while there is little to do.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    /// At most so many is little.
    little: usize,
    /// More than so many is much.
    much: usize,
}

impl Backoff {
    /// For a queue of that capacity: a 64th of it is little, an eighth is much.
    pub fn for_queue(capacity: usize) -> Self {
        Self { next: SHORTEST, little: capacity / 64, much: capacity / 8 }
    }

    /// Sleeps, given how much was found since the last time.
    pub fn sleep(&mut self, found: usize) {
        self.adapt(found);
        thread::sleep(self.next);
    }

    fn adapt(&mut self, found: usize) {
        if found <= self.little {
            self.next = (self.next * 2).min(LONGEST);
        } else if found > self.much {
            self.next = (self.next / 4).max(SHORTEST);
        }
    }

    /// Sleeps until something that is that far away, but not longer than an order to stop may be overlooked.
    pub fn until(left: Nanos) {
        thread::sleep(Duration::from_nanos(left.0 as u64).min(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_longer_while_idle_and_shorter_under_load() {
        let mut nap = Backoff::for_queue(64);
        (0..20).for_each(|_| nap.adapt(0));
        assert_eq!(nap.next, LONGEST);
        nap.adapt(5);
        assert_eq!(nap.next, LONGEST, "neither little nor much");
        (0..20).for_each(|_| nap.adapt(9));
        assert_eq!(nap.next, SHORTEST);
    }
}
