//! Closed loop by dependencies: a request is issued a think time after the request that it waits for has completed, and at
//! its time in the load if it waits for none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosonar_trace::Nanos;
use rtrb::Consumer;

use super::closed::Thinking;
use crate::dependencies::MAX_DISTANCE;
use crate::io::PreparedIo;

const NONE: u32 = u32::MAX;
/// Requests taken from the load at a time.
const BATCH: usize = 32;

/// A request that others may wait for.
#[derive(Clone, Copy)]
struct Known {
    number: u64,
    /// When it completed or was left out; `None` before that.
    ended: Option<Nanos>,
    /// The first request that waits for it.
    first: u32,
}

/// A request that waits, and the next one that waits for the same.
struct Waiting {
    request: Option<PreparedIo>,
    next: u32,
}

/// The requests taken from the load and not issued yet. Everything is allocated before the run.
pub struct Dependents {
    /// The latest requests, by the remainder of their number.
    known: Vec<Known>,
    waiting: Vec<Waiting>,
    free: Vec<u32>,
    thinking: BinaryHeap<Reverse<Thinking>>,
    taken: u64,
    /// Requests of the load may not be taken before a very old one has ended.
    is_blocked: bool,
}

impl Dependents {
    /// Room for so many requests.
    pub fn new(room: usize) -> Self {
        let unknown = Known { number: u64::MAX, ended: Some(Nanos::ZERO), first: NONE };
        Self {
            known: vec![unknown; MAX_DISTANCE as usize],
            waiting: (0..room).map(|_| Waiting { request: None, next: NONE }).collect(),
            free: (0..room as u32).rev().collect(),
            // Of those taken, and of those that waited.
            thinking: BinaryHeap::with_capacity(2 * room),
            taken: 0,
            is_blocked: false,
        }
    }

    /// The next request that is due, after taking some from the load.
    pub fn next_due(&mut self, input: &mut Consumer<PreparedIo>, now: Nanos) -> Option<PreparedIo> {
        for _ in 0..BATCH {
            let Some(number) = input.peek().ok().map(|next| next.request).filter(|_| self.has_room()) else { break };
            self.is_blocked = self.known[place(number)].ended.is_none();
            if self.is_blocked {
                break;
            }
            if let Ok(next) = input.pop() {
                self.take(next);
            }
        }
        self.thinking.peek().filter(|Reverse(first)| first.0 <= now)?;
        self.thinking.pop().map(|Reverse(Thinking(.., request))| request)
    }

    /// A request has completed, or was left out.
    pub fn ended(&mut self, number: u64, now: Nanos) {
        let Known { number: known, ended, first } = &mut self.known[place(number)];
        if *known != number {
            return;
        }
        *ended = Some(now);
        let mut next = std::mem::replace(first, NONE);
        while let Some(waiting) = self.waiting.get_mut(next as usize) {
            let request = waiting.request.take();
            self.free.push(next);
            next = waiting.next;
            if let Some(request) = request {
                self.think(now + request.deadline, request);
            }
        }
    }

    /// When the next request is due.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.thinking.peek().map(|Reverse(first)| first.0)
    }

    /// Whether a request of the load can be taken.
    pub fn has_free(&self) -> bool {
        self.has_room() && !self.is_blocked
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty() && self.thinking.len() < self.waiting.len()
    }

    fn take(&mut self, next: PreparedIo) {
        self.known[place(next.request)] = Known { number: next.request, ended: None, first: NONE };
        let Some(after) = next.origin.and_then(|origin| origin.cause) else {
            return self.think(next.scheduled, next);
        };
        let before = &mut self.known[place(after)];
        match before.ended {
            _ if before.number != after => self.think(next.scheduled, next),
            Some(ended) => self.think(ended + next.deadline, next),
            None => {
                let Some(free) = self.free.pop() else { return };
                let first = std::mem::replace(&mut before.first, free);
                self.waiting[free as usize] = Waiting { request: Some(next), next: first };
            }
        }
    }

    fn think(&mut self, deadline: Nanos, request: PreparedIo) {
        let request = PreparedIo { deadline, ..request };
        self.thinking.push(Reverse(Thinking(deadline, self.taken, request)));
        self.taken += 1;
    }
}

fn place(number: u64) -> usize {
    (number % MAX_DISTANCE) as usize
}
