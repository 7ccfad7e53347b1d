//! How the stages beside the engine sleep while their queues are full or empty.

use std::thread;
use std::time::Duration;

use iosonar_pacing::backoff::Backoff;

/// Without times to keep, a stage sleeps so shortly that its queue neither fills nor empties meanwhile.
const SHORT: Duration = Duration::from_millis(1);

/// Sleeps of a stage.
#[derive(Debug)]
pub enum Pause {
    /// Frequent wake-ups would make calls late.
    Adapting(Backoff),
    /// Calls have no times.
    Short,
}

impl Pause {
    /// For a queue of this capacity.
    pub fn new(capacity: usize, keeps_times: bool) -> Self {
        if keeps_times { Self::Adapting(Backoff::for_queue(capacity)) } else { Self::Short }
    }

    /// Sleeps. `found` is the number of entries found since the last sleep.
    pub fn sleep(&mut self, found: usize) {
        match self {
            Self::Adapting(backoff) => backoff.sleep(found),
            Self::Short => thread::sleep(SHORT),
        }
    }

    /// As [`Pause::sleep`], but not longer than this.
    pub fn sleep_at_most(&mut self, found: usize, most: Duration) {
        match self {
            Self::Adapting(backoff) => backoff.sleep_at_most(found, most),
            Self::Short => thread::sleep(SHORT.min(most)),
        }
    }
}
