//! The requests of a process, or of all whose process is unknown.
//!
//! A request that waits for a completion comes when there is one that no other request has waited for. One that does not wait
//! comes at any time, and so also while all completions are taken. Both times are measured; how often requests came in the
//! second one, compared with its length, says how likely they wait at all.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use iosonar_trace::Nanos;

use super::After;

/// Requests this soon after another one, without a completion between them, were made together with it.
const TOGETHER: Nanos = Nanos(10_000);
/// The most completions that are free to be waited for; the oldest are forgotten.
const MAX_FREE: usize = 64;
/// So many requests of independent ones would have come while all completions were taken: with fewer, chance decides.
const MIN_EXPECTED: f64 = 20.0;
/// A request in a group whose requests wait, without a free completion.
const SHARED: f64 = 0.5;

/// What a pass counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub requests: u64,
    /// Requests after a free completion, or together with such a one, and the sum of their likelihoods.
    pub waiting: u64,
    pub share: f64,
    /// Requests while no completion was free, and while one was.
    none: f64,
    some: f64,
    /// How many would have come while none was, if they came at any time.
    expected: f64,
    none_ns: f64,
    some_ns: f64,
}

impl Count {
    /// Whether it says too little.
    pub fn is_few(&self) -> bool {
        self.expected() < MIN_EXPECTED
    }

    /// Adds those of another group.
    pub fn add(&mut self, other: &Self) {
        self.expected += other.expected();
        self.none += other.none;
    }

    /// How likely the requests wait for completions; 0 if that is less than even, or not known.
    pub fn confidence(&self) -> f64 {
        let expected = self.expected();
        let confidence = if expected < MIN_EXPECTED { 0.0 } else { 1.0 - self.none / expected };
        if confidence < 0.5 { 0.0 } else { confidence }
    }

    fn expected(&self) -> f64 {
        let time = self.none_ns + self.some_ns;
        let own = if time > 0.0 { (self.none + self.some) * self.none_ns / time } else { 0.0 };
        self.expected + own
    }
}

/// Requests that may wait for each other.
#[derive(Debug)]
pub struct Group {
    pub count: Count,
    /// The count of the first pass.
    pub learned: Count,
    is_process: bool,
    /// When requests complete, and their numbers.
    outstanding: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// Completions that no request has waited for, oldest first.
    free: VecDeque<(Nanos, u64)>,
    /// The last completion.
    completed: Option<(Nanos, u64)>,
    last: Option<Last>,
    /// How often requests came so long after what they waited for, by log2 of nanoseconds.
    gaps: [f32; 64],
}

/// The request before.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Nanos,
    after: Option<(Nanos, u64, f64)>,
}

impl Group {
    pub fn new(is_process: bool) -> Self {
        Self {
            count: Count::default(),
            learned: Count::default(),
            is_process,
            outstanding: BinaryHeap::new(),
            free: VecDeque::new(),
            completed: None,
            last: None,
            gaps: [0.0; 64],
        }
    }

    /// Ends the first pass. What was learned remains.
    pub fn begin_again(&mut self) {
        self.learned = self.count;
        self.outstanding.clear();
        self.free.clear();
        (self.completed, self.last) = (None, None);
    }

    /// The next request, in the order of times, and when it completes, if that is known. Returns what it waits for.
    pub fn arrive(&mut self, number: u64, at: Nanos, end: Option<Nanos>) -> Option<After> {
        let has_completed = self.advance(at);
        self.count.requests += 1;
        let is_none_free = !has_completed && self.free.is_empty();
        let together = self.last.filter(|last| is_none_free && at - last.at <= TOGETHER);
        let after = match (together, self.last) {
            (Some(together), _) => together.after,
            (None, None) => None,
            (None, Some(_)) => self.claim(at),
        };
        self.last = Some(Last { at, after });
        if let Some(end) = end {
            self.outstanding.push(Reverse((end, number)));
        }
        let (since, request, confidence) = after?;
        self.count.waiting += 1;
        self.count.share += confidence;
        Some(After { request, think: at - since, confidence })
    }

    /// Lets time pass. Returns whether a request has completed.
    fn advance(&mut self, at: Nanos) -> bool {
        let mut now = self.last.map_or(at, |last| last.at);
        let mut has_completed = false;
        while let Some(&Reverse((end, number))) = self.outstanding.peek()
            && end <= at
        {
            self.outstanding.pop();
            self.pass(now, end);
            now = now.max(end);
            self.free.push_back((end, number));
            self.completed = Some((end, number));
            has_completed = true;
            if self.free.len() > MAX_FREE {
                self.free.pop_front();
            }
        }
        self.pass(now, at);
        has_completed
    }

    fn pass(&mut self, from: Nanos, to: Nanos) {
        let time = if self.free.is_empty() { &mut self.count.none_ns } else { &mut self.count.some_ns };
        *time += (to - from).0.max(0) as f64;
    }

    /// Takes the free completion after which requests come most often so late; the oldest of several.
    fn claim(&mut self, at: Nanos) -> Option<(Nanos, u64, f64)> {
        let weight = |since: Nanos| f64::from(self.gaps[bin(at - since)]) + 0.01;
        let total: f64 = self.free.iter().map(|&(since, _)| weight(since)).sum();
        let heaviest = self.free.iter().enumerate().rev().max_by(|(_, a), (_, b)| weight(a.0).total_cmp(&weight(b.0)));
        let Some((place, &(since, number))) = heaviest else {
            self.count.none += 1.0;
            return self.completed.map(|(since, number)| (since, number, SHARED));
        };
        // A thread that has nothing outstanding has waited for all of its requests, and so for the last of them.
        let waited_for_all = self.is_process && self.outstanding.is_empty();
        let (place, since, number, confidence) = match self.free.back() {
            Some(&(since, number)) if waited_for_all => (self.free.len() - 1, since, number, 1.0),
            _ => (place, since, number, weight(since) / total),
        };
        self.count.some += 1.0;
        self.gaps[bin(at - since)] += 1.0;
        self.free.remove(place);
        if waited_for_all {
            self.free.clear();
        }
        Some((since, number, confidence))
    }
}

/// Log2 of a gap.
fn bin(gap: Nanos) -> usize {
    (64 - (gap.0.max(0) as u64).leading_zeros() as usize).min(63)
}
