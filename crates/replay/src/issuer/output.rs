//! Output of the loop.

use rtrb::Producer;

use crate::io::CompletedIo;

/// The queue to the completion log.
pub(super) struct Output {
    queue: Producer<CompletedIo>,
    /// Free entries when last checked, less the pushes since then.
    free: usize,
}

impl Output {
    pub fn new(queue: Producer<CompletedIo>) -> Self {
        Self { queue, free: 0 }
    }

    /// Whether this many entries are free.
    #[inline]
    pub fn has_room(&mut self, needed: usize) -> bool {
        if self.free < needed {
            // Checked only when the last count is used up, because the count is in the other thread's cache line.
            self.free = self.queue.slots();
        }
        self.free >= needed
    }

    /// Appends a request. Admission has ensured that an entry is free.
    #[inline]
    pub fn push(&mut self, done: CompletedIo) {
        self.free = self.free.saturating_sub(1);
        debug_assert!(!self.queue.is_full(), "admission ensures a free entry");
        // Waiting is better than losing a row, and cannot deadlock: the completion log never waits for the loop.
        while self.queue.is_full() {
            std::thread::yield_now();
        }
        let _ = self.queue.push(done);
    }
}
