//! Requests to stop the loop early.

use std::sync::atomic::{AtomicU8, Ordering};

/// A request to stop, from another thread. It can be escalated, but not revoked.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Stops issuing, then waits for requests in flight.
    pub fn drain(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Stops without waiting: requests in flight are recorded as unfinished.
    pub fn abort(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether requests in flight are not waited for.
    pub fn is_abort(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
