//! The number of requests in flight, of all issuing loops.

use std::sync::atomic::{AtomicU32, Ordering};

/// The most issuing loops of a run.
pub const MAX_LOOPS: usize = 64;

/// The number of one loop, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LoopCount(AtomicU32);

/// For each loop, how many of its requests are in flight.
#[derive(Debug)]
pub struct InFlight(Box<[LoopCount; MAX_LOOPS]>);

impl Default for InFlight {
    fn default() -> Self {
        Self(Box::new([(); MAX_LOOPS].map(|()| LoopCount::default())))
    }
}

impl InFlight {
    /// Where a loop writes its number.
    pub fn of(&self, issuer: usize) -> &AtomicU32 {
        &self.0[issuer].0
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.0.iter().map(|number| number.0.load(Ordering::Relaxed)).sum()
    }
}
