//! Sleeps between polls, for the stages beside the loop.
//!
//! With few processors, a thread that wakes up can take the loop's processor for some microseconds just when a request is
//! due: with a thousand wake-ups per second, two of a hundred requests were late. So stages sleep as long as their queues
//! allow: longer, the less they found.

use std::thread;
use std::time::Duration;

use iosonar_trace::Nanos;

const SHORTEST: Duration = Duration::from_micros(250);
const LONGEST: Duration = Duration::from_millis(16);

/// Sleeps longer while there is little to do.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    /// At most this many entries lengthen the sleep.
    few: usize,
    /// More entries than this shorten the sleep.
    many: usize,
}

impl Backoff {
    /// For a queue of this capacity: up to 1/64 of it lengthens the sleep, more than 1/8 shortens it.
    pub fn for_queue(capacity: usize) -> Self {
        Self { next: SHORTEST, few: capacity / 64, many: capacity / 8 }
    }

    /// Sleeps. `found` is the number of entries found since the last sleep.
    pub fn sleep(&mut self, found: usize) {
        self.adapt(found);
        thread::sleep(self.next);
    }

    /// As [`Backoff::sleep`], but not longer than this.
    pub fn sleep_at_most(&mut self, found: usize, most: Duration) {
        self.adapt(found);
        thread::sleep(self.next.min(most));
    }

    fn adapt(&mut self, found: usize) {
        if found <= self.few {
            self.next = (self.next * 2).min(LONGEST);
        } else if found > self.many {
            self.next = (self.next / 4).max(SHORTEST);
        }
    }

    /// Sleeps for this time, limited so that a stop is noticed.
    pub fn sleep_up_to(left: Nanos) {
        thread::sleep(Duration::from_nanos(left.0 as u64).min(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_get_longer_while_idle_and_shorter_under_load() {
        let mut backoff = Backoff::for_queue(64);
        (0..20).for_each(|_| backoff.adapt(0));
        assert_eq!(backoff.next, LONGEST);
        backoff.adapt(5);
        assert_eq!(backoff.next, LONGEST, "neither few nor many");
        (0..20).for_each(|_| backoff.adapt(9));
        assert_eq!(backoff.next, SHORTEST);
    }
}
