//! Where requests go that are through.

use rtrb::{Producer, PushError};

use crate::pipeline::io::CompletedIo;

/// The queue to the completion log.
pub(super) struct Output {
    queue: Producer<CompletedIo>,
    /// Room in it when it was last asked, less what was put there since.
    room: usize,
}

impl Output {
    pub fn new(queue: Producer<CompletedIo>) -> Self {
        Self { queue, room: 0 }
    }

    /// Whether there is room for that many.
    #[inline]
    pub fn has_room(&mut self, needed: usize) -> bool {
        if self.room < needed {
            // Asked only when the last answer is used up: it is the other thread's cache line.
            self.room = self.queue.slots();
        }
        self.room >= needed
    }

    /// Puts one there, for which there is room: nothing is admitted before that was made sure of.
    #[inline]
    pub fn put(&mut self, done: CompletedIo) {
        self.room = self.room.saturating_sub(1);
        let mut left = self.queue.push(done);
        debug_assert!(left.is_ok(), "there was room");
        // Better late than lost; the completion log never waits for the loop.
        while let Err(PushError::Full(back)) = left {
            std::thread::yield_now();
            left = self.queue.push(back);
        }
    }
}
