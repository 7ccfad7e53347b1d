//! Queues of due requests: one for all targets, or one for each.

use std::collections::VecDeque;

use iosonar_pacing::ideal::{Hold, Places};
use iosonar_trace::{DelayReason, Nanos};

use super::slot::QueueDelay;
use crate::io::PreparedIo;
use crate::io::Share;

/// The due requests that share a depth. A full queue holds only its own requests.
#[derive(Debug)]
pub(super) struct DispatchQueue {
    /// Due requests that are not yet admitted, oldest first.
    pub due: VecDeque<PreparedIo>,
    /// Places of requests in flight, without those that were pushed back.
    pub places: Places,
    /// Pushed-back requests, waiting or in flight.
    pub pushed_back: usize,
    /// What holds the head other than the places.
    delay_reason: Option<DelayReason>,
    /// When the completion log last held the head.
    by_log_until: Nanos,
    /// The last hold of the head by something else than these, and its reason.
    last_hold: (DelayReason, Hold),
    /// The end of the last request of this queue, which may have ended a hold.
    last_end: Hold,
    /// What held the request that was last admitted.
    pub last_admitted: QueueDelay,
    /// Whether the head is already counted in [`LoopCounters::ordered_waits`](super::LoopCounters::ordered_waits).
    pub is_head_counted: bool,
}

impl DispatchQueue {
    fn new(capacity: usize, depth: usize) -> Self {
        Self {
            due: VecDeque::with_capacity(capacity),
            places: Places::new(depth),
            pushed_back: 0,
            delay_reason: None,
            by_log_until: Hold::NONE.until,
            last_hold: (DelayReason::None, Hold::NONE),
            last_end: Hold::NONE,
            last_admitted: QueueDelay::NOTHING,
            is_head_counted: false,
        }
    }

    /// Something else than the places holds the head.
    #[inline]
    pub fn hold_head(&mut self, by: DelayReason) {
        self.delay_reason = Some(by);
    }

    /// What held the head until now; it is admitted, with a place unless it is pushed back.
    #[inline]
    pub fn admit_head(&mut self, now: Nanos, is_pushed_back: bool) -> QueueDelay {
        match self.delay_reason.take() {
            Some(DelayReason::CompletionLog) => self.by_log_until = now,
            Some(by) => self.last_hold = (by, self.last_end),
            None => {}
        }
        let by_places = if is_pushed_back { self.places.next() } else { self.places.take() };
        let (by, hold) = self.last_hold;
        let by = if hold.until >= by_places.until { by } else { DelayReason::Depth };
        self.last_admitted = QueueDelay { by, hold: hold.and(by_places), by_log_until: self.by_log_until };
        self.last_admitted
    }

    /// A request that was in a slot does not occupy the queue any more, as its end shows.
    #[inline]
    pub fn release(&mut self, was_pushed_back: bool, end: Hold) {
        self.last_end = end;
        if was_pushed_back {
            self.pushed_back -= 1;
        } else {
            self.places.free(end);
        }
    }

    /// Whether it accepts no more requests.
    pub fn is_full(&self) -> bool {
        self.due.len() == self.due.capacity()
    }
}

/// All queues: one for all targets, or one for each.
pub(super) struct DispatchQueues {
    all: Vec<DispatchQueue>,
    /// Requests in all queues.
    due: usize,
    /// The queue that is served first in the next round.
    first: usize,
    /// The highest sequence number admitted.
    admitted: u64,
}

impl DispatchQueues {
    /// Creates queues of this capacity and depth each.
    pub fn new(queues: usize, capacity: usize, depth: usize) -> Self {
        Self { all: (0..queues).map(|_| DispatchQueue::new(capacity, depth)).collect(), due: 0, first: 0, admitted: 0 }
    }

    /// Number of queues.
    #[inline]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The index of a target's queue.
    #[inline]
    pub fn index_of(&self, target: u16) -> usize {
        if self.all.len() == 1 { 0 } else { usize::from(target) }
    }

    #[inline]
    pub fn get(&self, queue: usize) -> &DispatchQueue {
        &self.all[queue]
    }

    #[inline]
    pub fn get_mut(&mut self, queue: usize) -> &mut DispatchQueue {
        &mut self.all[queue]
    }

    /// Requests in all queues.
    #[inline]
    pub fn due(&self) -> usize {
        self.due
    }

    /// See [`CompletedIo::admitted`](crate::CompletedIo::admitted).
    #[inline]
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Whether any queue is full.
    pub fn is_any_full(&self) -> bool {
        self.all.iter().any(DispatchQueue::is_full)
    }

    /// Appends a request to its target's queue, which must not be full.
    #[inline]
    pub fn push(&mut self, io: PreparedIo) {
        let queue = self.index_of(io.target);
        let due = &mut self.all[queue].due;
        if due.is_empty() {
            // Restarts at the beginning of the buffer, which is in the cache.
            due.clear();
        }
        due.push_back(io);
        self.due += 1;
    }

    /// Removes the oldest request of a queue.
    #[inline]
    pub fn take_head(&mut self, queue: usize) -> PreparedIo {
        self.due -= 1;
        let next = self.all[queue].due.pop_front().expect("the queue has a head");
        self.admitted = self.admitted.max(next.sequence_number);
        next
    }

    /// Whether requests concern several loops.
    pub fn shares(&self) -> impl Iterator<Item = Option<Share>> {
        self.all.iter().flat_map(|queue| queue.due.iter().map(|due| due.share))
    }

    /// Discards all requests.
    pub fn clear(&mut self) {
        self.all.iter_mut().for_each(|queue| queue.due.clear());
        self.due = 0;
    }

    /// The order in which queues are served, starting with another one in each round. Otherwise a queue that can fill
    /// every batch would starve the others.
    #[inline]
    pub fn round_robin(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.all.len());
        self.first = (first + 1) % count;
        (0..count).map(move |offset| (first + offset) % count)
    }
}
