//! The way in for requests that share a depth: all of the run's, or those of one target.

use std::collections::VecDeque;

use iosonar_trace::{HeldBy, Nanos};

use crate::planned::Planned;

/// Requests that are due, and how many of them may fly. A gate that is full holds only what stands before it.
#[derive(Debug)]
pub(super) struct Gate {
    /// Due, but not yet let go: oldest first.
    pub due: VecDeque<Planned>,
    /// In flight, revived ones not counted.
    pub ordinary: usize,
    /// Waiting for an overlap, or flying after they did.
    pub pushed_back: usize,
    /// What held the head of `due` last, and when it was seen to do so.
    pub held: Option<(HeldBy, Nanos)>,
    /// Whether the head of `due` was counted as one that everything behind it waits for.
    pub head_waits: bool,
}

impl Gate {
    pub fn new(capacity: usize) -> Self {
        Self { due: VecDeque::with_capacity(capacity), ordinary: 0, pushed_back: 0, held: None, head_waits: false }
    }

    /// Whether it takes no more requests.
    pub fn is_full(&self) -> bool {
        self.due.len() == self.due.capacity()
    }
}
