//! Closed loop: a request is issued after an earlier one has completed, as by programs that wait for their I/O.
//!
//! There are as many clients as the depth allows requests in flight. Each client has one request at a time. When that
//! request has completed or was left out, the client takes the load's next request; the old one is its *predecessor*. With
//! think times, the client first waits as long as the load does between the two. The first request of a client has no
//! predecessor: it is issued at its time in the load, or at virtual zero without think times. A request that waits for an
//! overlap keeps its client.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use clap::ValueEnum;
use iosonar_trace::Nanos;
use rtrb::Consumer;
use serde::Serialize;

use crate::io::PreparedIo;

/// Whether clients pause between their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Think time as in the load, between its requests
    #[value(name = "think")]
    AsLoad,
    /// No think time: always --depth requests in flight
    #[value(name = "no-think")]
    Never,
    /// Each request waits for the one that it seems to have waited for in the load, and as long after it
    #[value(name = "dependencies")]
    Inferred,
}

/// A request whose client is thinking, ordered by deadline, then by position in the load.
pub(super) struct Thinking(pub Nanos, pub u64, pub PreparedIo);

impl PartialEq for Thinking {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Thinking {}

impl PartialOrd for Thinking {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Thinking {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// The clients of a closed loop. Their number bounds all collections, so that nothing is allocated during the run.
pub struct Clients {
    think: Think,
    /// Clients without a request so far.
    unused: usize,
    /// Clients waiting for the load, longest wait first: when the last request ended, and its time in the load.
    free: VecDeque<(Nanos, Nanos)>,
    thinking: BinaryHeap<Reverse<Thinking>>,
    taken: u64,
    /// The time in the load of the request in each slot.
    scheduled: Vec<Nanos>,
}

impl Clients {
    /// Creates clients for a loop with this many slots.
    pub fn new(think: Think, clients: usize, slots: usize) -> Self {
        Self {
            think,
            unused: clients,
            free: VecDeque::with_capacity(clients),
            thinking: BinaryHeap::with_capacity(clients),
            taken: 0,
            scheduled: vec![Nanos::ZERO; slots],
        }
    }

    /// Returns the next request that is due, after assigning requests to all free clients.
    #[inline]
    pub fn next_due(&mut self, input: &mut Consumer<PreparedIo>, now: Nanos) -> Option<PreparedIo> {
        while self.unused > 0 || !self.free.is_empty() {
            let Ok(mut next) = input.pop() else { break };
            let is_first = self.unused > 0;
            next.deadline = match (self.think, if is_first { None } else { self.free.pop_front() }) {
                (Think::AsLoad, None) => next.scheduled,
                (Think::AsLoad, Some((since, last))) => since + (next.scheduled - last).max(Nanos::ZERO),
                (_, None) => Nanos::ZERO,
                (_, Some((since, _))) => since,
            };
            self.unused -= usize::from(is_first);
            self.thinking.push(Reverse(Thinking(next.deadline, self.taken, next)));
            self.taken += 1;
        }
        let Reverse(first) = self.thinking.peek()?;
        if first.0 > now {
            return None;
        }
        self.thinking.pop().map(|Reverse(Thinking(.., request))| request)
    }

    /// Records the time in the load of the request in a slot.
    #[inline]
    pub fn assign(&mut self, slot: u32, scheduled: Nanos) {
        self.scheduled[slot as usize] = scheduled;
    }

    /// Frees the client of a completed request.
    #[inline]
    pub fn completed(&mut self, slot: u32, now: Nanos) {
        self.skipped(self.scheduled[slot as usize], now);
    }

    /// Frees the client of a request that was left out.
    #[inline]
    pub fn skipped(&mut self, scheduled: Nanos, now: Nanos) {
        self.free.push_back((now, scheduled));
    }

    /// When the next client stops thinking.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.thinking.peek().map(|Reverse(first)| first.0)
    }

    /// Whether a client waits for the load.
    pub fn has_free(&self) -> bool {
        self.unused > 0 || !self.free.is_empty()
    }
}
