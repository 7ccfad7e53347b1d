//! The order to end early.

use std::sync::atomic::{AtomicU8, Ordering};

/// An order to the loop, from other threads: it only ever grows.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Issues nothing more, and waits for what is in flight.
    pub fn gently(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Waits for nothing more: what is in flight is recorded as unfinished.
    pub fn at_once(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether any stop was ordered.
    pub fn is_ordered(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether not even what is in flight is to be waited for.
    pub fn is_at_once(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
