//! Where requests come from.

use iosonar_trace::Nanos;
use rtrb::Consumer;

use crate::pipeline::io::PreparedIo;

/// The queue from the feeder, and the first request of it.
pub(super) struct Input {
    queue: Consumer<PreparedIo>,
    /// Fetched before its time: the memory that it lies in was written by another processor.
    upcoming: Option<PreparedIo>,
    /// Whether what that is going to need was looked at.
    is_rehearsed: bool,
}

impl Input {
    pub fn new(queue: Consumer<PreparedIo>) -> Self {
        Self { queue, upcoming: None, is_rehearsed: false }
    }

    /// When the next request is due, and on which target, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<(Nanos, u16)> {
        if self.upcoming.is_none() {
            self.upcoming = self.queue.pop().ok();
            self.is_rehearsed = false;
        }
        self.upcoming.as_ref().map(|next| (next.deadline, next.target))
    }

    /// Takes the one that [`next`](Self::next) saw.
    #[inline]
    pub fn take(&mut self) -> Option<PreparedIo> {
        self.upcoming.take()
    }

    /// The next one, but only once.
    #[inline]
    pub fn rehearsal(&mut self) -> Option<&PreparedIo> {
        let is_done = std::mem::replace(&mut self.is_rehearsed, true);
        self.upcoming.as_ref().filter(|_| !is_done)
    }

    /// The queue itself, for who deals requests out in another way.
    pub fn queue(&mut self) -> &mut Consumer<PreparedIo> {
        &mut self.queue
    }

    /// Whether nothing more can come.
    pub fn is_abandoned(&self) -> bool {
        self.queue.is_abandoned()
    }

    /// Whether nothing is there now.
    pub fn is_empty(&self) -> bool {
        self.upcoming.is_none() && self.queue.is_empty()
    }
}
