//! Input of the loop.

use iosonar_trace::Nanos;
use rtrb::Consumer;

use crate::io::PreparedIo;

/// The queue of prepared requests, and its first request.
pub(super) struct Input {
    queue: Consumer<PreparedIo>,
    /// Popped while the loop is idle, because another processor wrote its memory.
    upcoming: Option<PreparedIo>,
    /// Whether the conflict index entries of `upcoming` were prefetched.
    is_prefetched: bool,
}

impl Input {
    pub fn new(queue: Consumer<PreparedIo>) -> Self {
        Self { queue, upcoming: None, is_prefetched: false }
    }

    /// Deadline and target of the next request.
    #[inline]
    pub fn peek(&mut self) -> Option<(Nanos, u16)> {
        let next = self.upcoming.as_ref().or_else(|| self.queue.peek().ok());
        next.map(|next| (next.deadline, next.target))
    }

    /// Removes the request that [`peek`](Self::peek) returned.
    #[inline]
    pub fn take(&mut self) -> Option<PreparedIo> {
        self.upcoming.take().or_else(|| self.queue.pop().ok())
    }

    /// The next request, once.
    #[inline]
    pub fn next_to_prefetch(&mut self) -> Option<&PreparedIo> {
        if self.upcoming.is_none() {
            self.upcoming = self.queue.pop().ok();
            self.is_prefetched = false;
        }
        let is_done = std::mem::replace(&mut self.is_prefetched, true);
        self.upcoming.as_ref().filter(|_| !is_done)
    }

    /// The underlying queue, for [`Takers`](super::takers::Takers).
    pub fn queue(&mut self) -> &mut Consumer<PreparedIo> {
        &mut self.queue
    }

    /// Whether no more requests can arrive.
    pub fn is_abandoned(&self) -> bool {
        self.queue.is_abandoned()
    }

    /// Whether no request is available now.
    pub fn is_empty(&self) -> bool {
        self.upcoming.is_none() && self.queue.is_empty()
    }
}
