//! An engine without I/O: requests complete immediately. Measures the cost of the loop.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use iosonar_pacing::idle::Waiter;
use iosonar_trace::Nanos;

use super::{Completion, Io, Target};

/// An engine without I/O.
#[derive(Debug, Default)]
pub struct Null {
    staged: usize,
    completed: VecDeque<Completion>,
}

impl Null {
    /// For at most `slots` requests in flight.
    pub fn new(slots: usize) -> Self {
        Self { staged: 0, completed: VecDeque::with_capacity(slots) }
    }
}

impl Target for Null {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        self.staged += 1;
        self.completed.push_back(Completion { slot: io.slot, result: io.length as i64, issued: None });
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        self.staged = 0;
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        if self.completed.len() > self.staged { self.completed.pop_front() } else { None }
    }

    #[inline]
    fn at_hand(&mut self) -> usize {
        self.completed.len() - self.staged
    }
}

impl Waiter for Null {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if self.completed.len() == self.staged {
            std::thread::sleep(Duration::from_nanos(timeout.0.max(0) as u64));
        }
        Ok(())
    }
}
