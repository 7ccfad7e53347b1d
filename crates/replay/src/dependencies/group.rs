//! The requests of a process, or of all whose process is unknown.
//!
//! A request may have come because a completion that no other one waited for is so long ago, or by itself. Each of these has
//! a rate: of completions by their age, of others by the time since the request before. A request is attributed to each in
//! proportion to the rates when it came, and these shares are what the rates are estimated from. If the rates foretell the
//! times of requests better than the times since the request before alone do, as in bursts, requests wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use iosonar_trace::Nanos;

/// Requests this soon after another one may have been made together with it.
const TOGETHER: Nanos = Nanos(10_000);
/// The most completions that are free to be waited for; the oldest are forgotten.
const MAX_FREE: usize = 64;
/// Fewer requests say too little.
const MIN_REQUESTS: f64 = 50.0;
/// How much more likely, in nats, the times are with waiting than without before it is believed.
const MIN_GAIN: f64 = 10.0;
/// Where fewer requests than this come by themselves, one without a free completion waits for the last completion, too.
const FEW_BY_THEMSELVES: f64 = 0.1;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct After {
    /// The number of the request whose completion it waits for.
    pub request: u64,
    /// The time from that completion to this request.
    pub think: Nanos,
    /// How likely it waits for this one.
    pub confidence: f64,
}

/// Events, and the time in which they could occur.
#[derive(Clone, Copy, Debug)]
struct Rate {
    events: f64,
    ns: f64,
}

impl Rate {
    /// Half an event in this time, before anything is known.
    fn expected(ns: f64) -> Self {
        Self { events: 0.5, ns }
    }

    fn per_ns(self) -> f64 {
        self.events / self.ns
    }
}

/// What a pass counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub requests: u64,
    /// Requests that wait for another one, and the sum of their likelihoods.
    pub waiting: u64,
    pub share: f64,
    /// Requests whose times were foretold, and how much more likely they were with waiting than without.
    foretold: f64,
    /// Those of them that were made together with the one before.
    together: f64,
    gain: f64,
    /// Where one request comes at a time: times from one to the next, and those without the response times.
    gaps: Spread,
    thinks: Spread,
    /// The same as `gain`, of others by these times.
    gain_of_times: f64,
}

/// Mean and variance of times (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, time: Nanos) {
        let off = time.0 as f64 - self.mean;
        self.count += 1.0;
        self.mean += off / self.count;
        self.squares += off * (time.0 as f64 - self.mean);
    }
}

impl Count {
    /// Whether it says too little.
    pub fn is_few(&self) -> bool {
        self.foretold < MIN_REQUESTS
    }

    /// Adds those of another group.
    pub fn add(&mut self, other: &Self) {
        self.foretold += other.foretold;
        if other.is_serial() {
            self.gain_of_times += other.gain_of_times();
        } else {
            self.gain += other.gain;
        }
    }

    /// Whether requests wait, as far as that is known.
    pub fn waits(&self) -> bool {
        let by_times = self.gain_of_times() > MIN_GAIN;
        match self.is_serial() {
            true => by_times,
            false => self.gain + self.gain_of_times > MIN_GAIN || by_times && self.are_rounds(),
        }
    }

    /// Whether there is one request at a time.
    fn is_serial(&self) -> bool {
        self.are_few(self.foretold - self.gaps.count)
    }

    /// Whether there are several at a time only where they were made together.
    fn are_rounds(&self) -> bool {
        self.are_few(self.foretold - self.together - self.gaps.count)
    }

    /// Whether independent requests would have overlapped four times as often.
    fn are_few(&self, overlapping: f64) -> bool {
        let busy = 1.0 - self.thinks.mean / self.gaps.mean.max(1.0);
        self.gaps.count > 0.0 && 4.0 * overlapping <= (self.foretold - self.together) * busy
    }

    /// A thread that waits pauses as long whatever the response took; one that does not makes requests as often. The times
    /// that vary less are the more likely ones, as if they were normally distributed.
    fn gain_of_times(&self) -> f64 {
        let variance = |times: &Spread| times.squares / times.count.max(1.0) + 1e6;
        self.gaps.count / 2.0 * (variance(&self.gaps) / variance(&self.thinks)).ln()
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
    /// By log2 of the age of a free completion in nanoseconds.
    by_age: [Rate; 64],
    /// By log2 of the time since the request before: of requests that wait for none, and of all as if all were such ones.
    by_itself: [Rate; 64],
    by_gap: [Rate; 64],
    /// Requests that wait for none.
    none: f64,
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
            by_age: std::array::from_fn(|bin| Rate::expected((1_u64 << bin) as f64)),
            by_itself: std::array::from_fn(|bin| Rate::expected((1_u64 << bin) as f64)),
            by_gap: std::array::from_fn(|bin| Rate::expected((1_u64 << bin) as f64)),
            none: 0.0,
        }
    }

    /// Ends the first pass. What was learned remains.
    pub fn begin_again(&mut self) {
        self.learned = std::mem::take(&mut self.count);
        self.none = 0.0;
        self.outstanding.clear();
        self.free.clear();
        (self.completed, self.last) = (None, None);
    }

    /// The next request, in the order of times, and when it completes, if that is known. Returns what it waits for.
    pub fn arrive(&mut self, number: u64, at: Nanos, end: Option<Nanos>) -> Option<After> {
        self.count.requests += 1;
        let foretold = self.advance(at);
        let after = self.last.and_then(|last| self.attribute(at, last, foretold));
        self.last = Some(Last { at, after });
        if let Some(end) = end {
            self.outstanding.push(Reverse((end, number)));
        }
        let (since, request, confidence) = after?;
        self.count.waiting += 1;
        self.count.share += confidence;
        Some(After { request, think: at - since, confidence })
    }

    /// Lets time pass. Returns how many requests were foretold meanwhile, beyond the mean.
    fn advance(&mut self, at: Nanos) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        let (mut now, mut foretold) = (last.at, 0.0);
        while let Some(&Reverse((end, number))) = self.outstanding.peek()
            && end <= at
        {
            self.outstanding.pop();
            foretold += self.pass(now, end.max(now));
            now = now.max(end);
            self.free.push_back((end, number));
            self.completed = Some((end, number));
            if self.free.len() > MAX_FREE {
                self.free.pop_front();
            }
        }
        foretold += self.pass(now, at);
        foretold += pass(&mut self.by_itself, last.at, last.at, at);
        foretold - pass(&mut self.by_gap, last.at, last.at, at)
    }

    /// Lets time pass without a completion.
    fn pass(&mut self, from: Nanos, to: Nanos) -> f64 {
        self.free.iter().map(|&(since, _)| pass(&mut self.by_age, since, from, to)).sum()
    }

    /// Why a request came, by the rates at this time; and what it waits for.
    fn attribute(&mut self, at: Nanos, last: Last, foretold: f64) -> Option<(Nanos, u64, f64)> {
        // A thread that has nothing outstanding has waited for all of its requests, and so for the last of them.
        let waited_for_all = self.is_process && self.outstanding.is_empty();
        if waited_for_all && self.free.len() > 1 {
            self.free.drain(..self.free.len() - 1);
        }
        if let Some((since, _)) = self.completed.filter(|_| self.outstanding.is_empty()) {
            self.count.gaps.add(at - last.at);
            self.count.thinks.add(at - since);
        }
        let gap = bin((at - last.at).0);
        let by_itself = self.by_itself[gap].per_ns();
        let rate = |since: Nanos| self.by_age[bin((at - since).0)].per_ns();
        let after_any: f64 = self.free.iter().map(|&(since, _)| rate(since)).sum();
        let total = by_itself + after_any;
        let of_free = self.free.iter().map(|&(since, _)| rate(since)).enumerate();
        // The oldest of several.
        let first = of_free.rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let waits = after_any > by_itself || waited_for_all;
        self.count.foretold += 1.0;
        self.count.gain += (total / self.by_gap[gap].per_ns()).ln() - foretold;
        for &(since, _) in &self.free {
            let rate = &mut self.by_age[bin((at - since).0)];
            rate.events += rate.per_ns() / total;
        }
        self.by_itself[gap].events += by_itself / total;
        self.by_gap[gap].events += 1.0;
        if let Some((place, rate)) = first.filter(|_| waits) {
            return self.free.remove(place).map(|(since, number)| (since, number, rate / total));
        }
        let share = by_itself / total;
        if at - last.at <= TOGETHER {
            self.count.together += 1.0;
            return last.after.map(|(since, number, of_last)| (since, number, of_last * share));
        }
        self.none += 1.0;
        let is_rare = self.none < FEW_BY_THEMSELVES * self.count.foretold;
        self.completed.filter(|_| is_rare).map(|(since, number)| (since, number, 1.0 - share))
    }
}

/// Lets time pass for rates by the time since this. Returns how many events were expected meanwhile.
fn pass(rates: &mut [Rate; 64], since: Nanos, from: Nanos, to: Nanos) -> f64 {
    let (mut age, end) = ((from - since).0, (to - since).0);
    let mut expected = 0.0;
    while age < end {
        let bin = bin(age);
        let until = if bin < 63 { end.min(1 << bin) } else { end };
        let rate = &mut rates[bin];
        expected += (until - age) as f64 * rate.per_ns();
        rate.ns += (until - age) as f64;
        age = until;
    }
    expected
}

/// Log2 of an age, rounded up.
fn bin(age: i64) -> usize {
    (64 - (age.max(0) as u64).leading_zeros() as usize).min(63)
}
