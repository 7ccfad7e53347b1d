//! A closed loop: a request goes when an earlier one has completed, as programs do that wait for answers.
//!
//! There are as many clients as the depth allows requests in flight. A client has one request at a time, and takes the
//! load's next one as soon as its last one is through (completed, or left out): that one is the *predecessor*. With think
//! times it waits as long as the load does between the two before it issues; without, not at all. The first request of a
//! client has no predecessor: it goes at the load's time, or at zero. A request that waits for an overlap keeps its client.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use clap::ValueEnum;
use iosonar_trace::Nanos;
use rtrb::Consumer;
use serde::Serialize;

use crate::pipeline::io::PreparedIo;

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
}

/// A request whose client thinks; compared by when it goes, then by its place in the load.
struct Thinking(Nanos, u64, PreparedIo);

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

/// The clients. Their number bounds everything here, so that nothing is allocated later on.
pub struct Clients {
    think: Think,
    /// Those that have not had a request yet.
    fresh: usize,
    /// Those that wait for the load: since when, and the load's time of their last request; longest first.
    free: VecDeque<(Nanos, Nanos)>,
    thinking: BinaryHeap<Reverse<Thinking>>,
    dealt: u64,
    /// The load's time of the request in each slot.
    asked: Vec<Nanos>,
}

impl Clients {
    /// That many, for a loop with that many slots.
    pub fn new(think: Think, clients: usize, slots: usize) -> Self {
        Self {
            think,
            fresh: clients,
            free: VecDeque::with_capacity(clients),
            thinking: BinaryHeap::with_capacity(clients),
            dealt: 0,
            asked: vec![Nanos::ZERO; slots],
        }
    }

    /// The next request that is due; clients that are free take from the input first.
    #[inline]
    pub fn due(&mut self, input: &mut Consumer<PreparedIo>, now: Nanos) -> Option<PreparedIo> {
        while self.fresh > 0 || !self.free.is_empty() {
            let Ok(mut next) = input.pop() else { break };
            let is_fresh = self.fresh > 0;
            next.deadline = match (self.think, if is_fresh { None } else { self.free.pop_front() }) {
                (Think::AsLoad, None) => next.scheduled,
                (Think::Never, None) => Nanos::ZERO,
                (Think::AsLoad, Some((since, last))) => since + (next.scheduled - last).max(Nanos::ZERO),
                (Think::Never, Some((since, _))) => since,
            };
            self.fresh -= usize::from(is_fresh);
            self.thinking.push(Reverse(Thinking(next.deadline, self.dealt, next)));
            self.dealt += 1;
        }
        let Reverse(first) = self.thinking.peek()?;
        if first.0 > now {
            return None;
        }
        self.thinking.pop().map(|Reverse(Thinking(.., planned))| planned)
    }

    /// Notes which slot a request got.
    #[inline]
    pub fn occupy(&mut self, slot: u32, asked: Nanos) {
        self.asked[slot as usize] = asked;
    }

    /// The request in that slot is through.
    #[inline]
    pub fn completed(&mut self, slot: u32, now: Nanos) {
        self.left_out(self.asked[slot as usize], now);
    }

    /// A request with that time in the load was left out.
    #[inline]
    pub fn left_out(&mut self, asked: Nanos, now: Nanos) {
        self.free.push_back((now, asked));
    }

    /// When the next client ends its thinking.
    pub fn next(&self) -> Option<Nanos> {
        self.thinking.peek().map(|Reverse(first)| first.0)
    }

    /// Whether a client waits for the load.
    pub fn want(&self) -> bool {
        self.fresh > 0 || !self.free.is_empty()
    }
}
