//! What the workers leave at the end.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use iosonar_trace::Nanos;

use super::Workers;

impl Workers {
    /// The error that ended the workers.
    pub fn take_error(&self) -> Option<io::Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether a call failed because the replay has no more descriptors.
    pub fn lacks_descriptors(&self) -> bool {
        self.lacks_descriptors.load(Ordering::Relaxed)
    }

    /// How long calls were ready and a thread was free, but the replayer issued none.
    pub fn idle_time(&self) -> Nanos {
        Nanos(self.lost_ns.load(Ordering::Relaxed))
    }

    /// The most calls that were executed at the same time.
    pub fn max_in_flight(&self) -> u32 {
        self.max_in_flight.load(Ordering::Relaxed)
    }
}
