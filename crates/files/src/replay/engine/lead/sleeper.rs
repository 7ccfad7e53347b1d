//! How the leader sleeps.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::Nanos;

use crate::replay::engine::job::Completion;

/// A waiting leader looks for a stop this often.
const MAX_SLEEP: Nanos = Nanos(100_000_000);
/// No thread.
pub const NONE: u32 = u32::MAX;

/// A leader that sleeps until a call is due or completes.
pub struct Sleeper<'a> {
    /// The leader, while it sleeps.
    pub sleeper: &'a AtomicU32,
    /// What wakes it.
    pub completed: &'a ArrayQueue<Completion>,
    pub me: u32,
}

impl Sleeper<'_> {
    /// Sleeps until a call completes, at most this long.
    pub fn sleep(&self, time: Duration) {
        self.sleeper.store(self.me, Ordering::SeqCst);
        if self.completed.is_empty() {
            thread::park_timeout(time);
        }
        self.sleeper.store(NONE, Ordering::SeqCst);
    }
}

impl Waiter for Sleeper<'_> {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        self.sleep(Duration::from_nanos(timeout.min(MAX_SLEEP).0.max(0) as u64));
        Ok(())
    }
}
