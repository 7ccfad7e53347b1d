//! A target with simulated time: it completes each request after a given latency, in order of completion, and can fail.
//!
//! Clock and target share a time that advances only by [`Mock::wait`](Waiter::wait) and with each reading of the clock, so
//! that scheduling, push-back and statistics are exact and deterministic.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use iosonar_pacing::clock::Clock;
use iosonar_pacing::idle::Waiter;
use iosonar_pacing::idle::{Idle, Turn};
use iosonar_trace::Nanos;

use super::{Completion, Io, Target};

/// The time in nanoseconds that a mock target and its clock share.
#[derive(Clone, Debug, Default)]
pub struct Time(Rc<Moment>);

#[derive(Debug, Default)]
struct Moment {
    now: Cell<i64>,
    /// Added by each reading.
    step: i64,
    /// The loop does not run from here to there.
    stall: Cell<Option<(i64, i64)>>,
}

impl Time {
    /// Starts at `ns` and advances by 1 ns with each reading.
    pub fn starting_at(ns: i64) -> Self {
        Self::with_step(ns, 1)
    }

    /// Starts at `ns` and advances by `step` with each reading.
    pub fn with_step(ns: i64, step: i64) -> Self {
        Self(Rc::new(Moment { now: Cell::new(ns), step, stall: Cell::default() }))
    }

    /// The first reading after `from` is not before `to`: the loop was stopped.
    pub fn stall(&self, from: Nanos, to: Nanos) {
        self.0.stall.set(Some((from.0, to.0)));
    }

    /// Advances to `at`, unless that is in the past.
    pub fn advance_to(&self, at: Nanos) {
        self.0.now.set(self.get().max(at.0));
    }

    fn get(&self) -> i64 {
        self.0.now.get()
    }
}

impl Clock for Time {
    fn now(&self) -> Nanos {
        self.advance_to(Nanos(self.get() + self.0.step));
        if let Some((from, to)) = self.0.stall.get()
            && self.get() >= from
        {
            self.advance_to(Nanos(to));
            self.0.stall.set(None);
        }
        Nanos(self.get())
    }

    fn sleep(&self, time: Nanos) {
        self.advance_to(Nanos(self.get() + time.0));
    }

    fn of_monotonic(&self, at: Nanos) -> Option<Nanos> {
        Some(at)
    }
}

/// Chooses latency and result of a request.
pub type Responder = Box<dyn FnMut(&Io<'_>) -> (Nanos, i64)>;

/// A mock target.
pub struct Mock {
    time: Time,
    responder: Responder,
    staged: Vec<(Nanos, Completion)>,
    in_flight: BTreeMap<(Nanos, u32), Completion>,
    /// Every staged request: time, operation number, offset and length in bytes.
    pub log: Vec<(Nanos, u8, u64, u64)>,
}

impl Mock {
    /// Completes requests as `responder` chooses.
    pub fn new(time: Time, responder: Responder) -> Self {
        Self { time, responder, staged: Vec::new(), in_flight: BTreeMap::new(), log: Vec::new() }
    }

    /// Completes all requests successfully after `latency`.
    pub fn with_latency(time: Time, latency: Nanos) -> Self {
        Self::new(time, Box::new(move |io| (latency, io.length as i64)))
    }
}

impl Target for Mock {
    fn stage(&mut self, io: Io<'_>) {
        let (latency, result) = (self.responder)(&io);
        self.staged.push((latency, Completion { slot: io.slot, result, issued: None }));
        self.log.push((Nanos(self.time.get()), io.op as u8, io.offset, io.length));
    }

    fn submit(&mut self) -> io::Result<()> {
        let now = Nanos(self.time.get());
        for (latency, completion) in self.staged.drain(..) {
            self.in_flight.insert((now + latency, completion.slot), completion);
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Completion> {
        let first = self.in_flight.first_entry()?;
        (first.key().0.0 <= self.time.get()).then(|| first.remove())
    }
}

impl Waiter for Mock {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let until = self.time.get().saturating_add(timeout.0);
        let next = self.in_flight.keys().next().map_or(until, |(at, _)| at.0.min(until));
        self.time.advance_to(Nanos(next));
        Ok(())
    }
}

/// Advances the simulated time to the next event.
#[derive(Debug, Default)]
pub struct SkipToNextEvent;

impl<T: Target> Idle<T> for SkipToNextEvent {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        target.wait(Nanos(left.0.min(1_000_000_000))).map(|()| Turn::Simulated)
    }
}
