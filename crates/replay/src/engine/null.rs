//! A target that is through with everything at once and moves nothing: what the loop costs by itself.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use iosonar_trace::Nanos;

use super::{Completion, Io, Target};

/// A target without storage.
#[derive(Debug, Default)]
pub struct Null {
    staged: usize,
    through: VecDeque<Completion>,
}

impl Null {
    /// For at most `slots` requests in flight.
    pub fn new(slots: usize) -> Self {
        Self { staged: 0, through: VecDeque::with_capacity(slots) }
    }
}

impl Target for Null {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        self.staged += 1;
        self.through.push_back(Completion { slot: io.slot, result: io.length as i64 });
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        self.staged = 0;
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        if self.through.len() > self.staged { self.through.pop_front() } else { None }
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if self.through.len() == self.staged {
            std::thread::sleep(Duration::from_nanos(timeout.0.max(0) as u64));
        }
        Ok(())
    }
}
