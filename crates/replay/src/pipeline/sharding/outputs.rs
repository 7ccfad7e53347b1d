//! The queues from preparation to the issuing loops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Producer, PushError};

use super::shards::Shards;
use super::shared::SharedRequests;
use crate::io::PreparedIo;
use crate::io::{Role, Share};

/// Passes each request to its loop, and guards of shared requests to the others. All queues keep the order.
pub enum Outputs {
    /// To one loop.
    One(Producer<PreparedIo>),
    /// To several loops.
    Several(Sharing),
}

/// The queues to several loops.
pub struct Sharing {
    queues: Vec<Producer<PreparedIo>>,
    shards: Shards,
    /// `None` if no requests conflict, so that none needs guards.
    shared: Option<Arc<SharedRequests>>,
    /// Where to look first for a free state.
    next_state: u16,
    prepared: Arc<AtomicU64>,
}

impl From<Producer<PreparedIo>> for Outputs {
    fn from(queue: Producer<PreparedIo>) -> Self {
        Self::One(queue)
    }
}

impl Outputs {
    /// To one loop for each queue. `prepared` receives the highest sequence number.
    pub fn new(
        mut queues: Vec<Producer<PreparedIo>>,
        shards: Shards,
        shared: Option<Arc<SharedRequests>>,
        prepared: Arc<AtomicU64>,
    ) -> Self {
        debug_assert_eq!(queues.len(), shards.issuers());
        match queues.len() {
            1 => Self::One(queues.remove(0)),
            _ => Self::Several(Sharing { queues, shards, shared, next_state: 0, prepared }),
        }
    }

    /// Appends a request to the queue of its loop; returns it if that is not possible now.
    #[inline]
    #[must_use]
    pub fn push(&mut self, io: PreparedIo) -> Option<PreparedIo> {
        match self {
            Self::One(queue) => push(queue, io),
            Self::Several(sharing) => sharing.push(io),
        }
    }

    /// Whether a loop has ended. Then the others end, too, as an early end affects all of them.
    pub fn is_abandoned(&self) -> bool {
        self.queues().iter().any(Producer::is_abandoned)
    }

    /// Free entries.
    pub fn slots(&self) -> usize {
        self.queues().iter().map(Producer::slots).sum()
    }

    /// All entries.
    pub fn capacity(&self) -> usize {
        self.queues().iter().map(|queue| queue.buffer().capacity()).sum()
    }

    fn queues(&self) -> &[Producer<PreparedIo>] {
        match self {
            Self::One(queue) => std::slice::from_ref(queue),
            Self::Several(sharing) => &sharing.queues,
        }
    }
}

impl Sharing {
    /// Not inlined, so that the way to one loop stays short.
    #[inline(never)]
    fn push(&mut self, io: PreparedIo) -> Option<PreparedIo> {
        let owner = self.shards.owner(&io, |number| self.queues[number].slots());
        let needs_guards = io.skip.is_none() && io.sectors.0 > 0;
        let (loops, queues) = (self.shards.loops(&io, owner), &mut self.queues);
        let Some(shared) = self.shared.as_ref().filter(|_| needs_guards && loops.len() > 1) else {
            self.prepared.store(io.sequence_number, Ordering::Relaxed);
            return push(&mut queues[owner], io);
        };
        // In all queues or in none: only this thread fills them.
        let has_room = loops.iter().all(|number| !queues[number].is_full());
        let Some(state) = has_room.then(|| shared.open(self.next_state.into(), loops.len() - 1)).flatten() else {
            return Some(io);
        };
        self.next_state = state + 1;
        self.prepared.store(io.sequence_number, Ordering::Relaxed);
        for number in loops.iter().filter(|&number| number != owner) {
            let guard = io.guard(Share { state, role: Role::Guard, owner: owner as u8 });
            let _ = push(&mut queues[number], guard);
        }
        let share = Some(Share { state, role: Role::Owner, owner: owner as u8 });
        push(&mut queues[owner], PreparedIo { share, ..io })
    }
}

#[inline]
fn push(queue: &mut Producer<PreparedIo>, io: PreparedIo) -> Option<PreparedIo> {
    queue.push(io).err().map(|PushError::Full(back)| back)
}
