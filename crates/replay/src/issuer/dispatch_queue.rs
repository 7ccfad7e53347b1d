//! The way in for requests that share a depth: all of the run's, or those of one target.

use std::collections::VecDeque;

use iosonar_trace::{DelayReason, Nanos};

use crate::pipeline::io::PreparedIo;

/// Requests that are due, and how many of them may fly. A gate that is full holds only what stands before it.
#[derive(Debug)]
pub(super) struct DispatchQueue {
    /// Due, but not yet let go: oldest first.
    pub due: VecDeque<PreparedIo>,
    /// In flight, released ones not counted.
    pub ordinary: usize,
    /// Waiting for an overlap, or flying after they did.
    pub pushed_back: usize,
    /// What held the head of `due` last, and when it was seen to do so.
    pub held: Option<(DelayReason, Nanos)>,
    /// Whether the head of `due` was counted as one that everything behind it waits for.
    pub head_waits: bool,
}

impl DispatchQueue {
    fn new(capacity: usize) -> Self {
        Self { due: VecDeque::with_capacity(capacity), ordinary: 0, pushed_back: 0, held: None, head_waits: false }
    }

    /// Whether it takes no more requests.
    pub fn is_full(&self) -> bool {
        self.due.len() == self.due.capacity()
    }
}

/// All gates: one for all targets, or one for each.
pub(super) struct Gates {
    all: Vec<DispatchQueue>,
    /// Requests before all of them.
    due: usize,
    /// The gate that is asked first: another one in each turn.
    first: usize,
    /// The highest sequence number that has passed one.
    admitted: u64,
}

impl Gates {
    /// So many, with room for so many requests before each.
    pub fn new(gates: usize, capacity: usize) -> Self {
        Self { all: (0..gates).map(|_| DispatchQueue::new(capacity)).collect(), due: 0, first: 0, admitted: 0 }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The gate of a target.
    #[inline]
    pub fn of(&self, target: u16) -> usize {
        if self.all.len() == 1 { 0 } else { usize::from(target) }
    }

    #[inline]
    pub fn get(&self, gate: usize) -> &DispatchQueue {
        &self.all[gate]
    }

    #[inline]
    pub fn get_mut(&mut self, gate: usize) -> &mut DispatchQueue {
        &mut self.all[gate]
    }

    /// Requests before all gates.
    #[inline]
    pub fn due(&self) -> usize {
        self.due
    }

    /// See [`CompletedIo::admitted`](crate::Done::admitted).
    #[inline]
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Whether any of them takes no more.
    pub fn is_any_full(&self) -> bool {
        self.all.iter().any(DispatchQueue::is_full)
    }

    /// Puts a request before its gate, which is not full.
    #[inline]
    pub fn push(&mut self, planned: PreparedIo) {
        let gate = self.of(planned.target);
        let due = &mut self.all[gate].due;
        if due.is_empty() {
            // They start from their first places again, which are in the cache.
            due.clear();
        }
        due.push_back(planned);
        self.due += 1;
    }

    /// Takes the oldest request from before a gate.
    #[inline]
    pub fn take_head(&mut self, gate: usize) -> PreparedIo {
        self.due -= 1;
        let next = self.all[gate].due.pop_front().expect("the caller saw it");
        self.admitted = self.admitted.max(next.sequence_number);
        next
    }

    /// Forgets what stands before them.
    pub fn clear(&mut self) {
        self.all.iter_mut().for_each(|gate| gate.due.clear());
        self.due = 0;
    }

    /// The order in which they are asked in this turn. None is always the first: where one could fill every batch, the
    /// others would never get a turn.
    #[inline]
    pub fn turn(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.all.len());
        self.first = (first + 1) % count;
        (0..count).map(move |turn| (first + turn) % count)
    }
}
