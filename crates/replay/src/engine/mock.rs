//! A target that exists only in a test's time: it answers after a stated time, in the order of its answers, and can fail.
//!
//! Clock and target share one time that only [`Mock::relax`] and the clock's own readings move, so that scheduling,
//! push-back and statistics are exact and the same on every run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use iosonar_trace::Nanos;

use super::{Completion, Io, Target};
use crate::issuer::Idle;
use crate::schedule::clock::Clock;

/// The time that a mock target and its clock share, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Time(Rc<Cell<i64>>);

impl Time {
    /// That moves on by one nanosecond with each look at it.
    pub fn starting_at(ns: i64) -> Self {
        Self(Rc::new(Cell::new(ns)))
    }

    /// Moves on to that moment, if it has not come yet.
    pub fn advance_to(&self, at: Nanos) {
        self.0.set(self.0.get().max(at.0));
    }
}

impl Clock for Time {
    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + 1);
        Nanos(self.0.get())
    }
}

/// What a mock does with a request: how long it takes, and its result.
pub type Answer = Box<dyn FnMut(&Io<'_>) -> (Nanos, i64)>;

/// A target of a test.
pub struct Mock {
    time: Time,
    answer: Answer,
    staged: Vec<(Nanos, Completion)>,
    flying: BTreeMap<(Nanos, u32), Completion>,
    /// Every request that was submitted: time, operation number, offset and length in bytes.
    pub log: Vec<(Nanos, u8, u64, u64)>,
}

impl Mock {
    /// That answers as `answer` says.
    pub fn new(time: Time, answer: Answer) -> Self {
        Self { time, answer, staged: Vec::new(), flying: BTreeMap::new(), log: Vec::new() }
    }

    /// That does all that is asked of it, each request in `latency`.
    pub fn with_latency(time: Time, latency: Nanos) -> Self {
        Self::new(time, Box::new(move |io| (latency, io.length as i64)))
    }
}

impl Target for Mock {
    fn stage(&mut self, io: Io<'_>) {
        let (latency, result) = (self.answer)(&io);
        self.staged.push((latency, Completion { slot: io.slot, result }));
        self.log.push((Nanos(self.time.0.get()), io.op as u8, io.offset, io.length));
    }

    fn submit(&mut self) -> io::Result<()> {
        let now = Nanos(self.time.0.get());
        for (latency, completion) in self.staged.drain(..) {
            self.flying.insert((now + latency, completion.slot), completion);
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Completion> {
        let first = self.flying.first_entry()?;
        (first.key().0.0 <= self.time.0.get()).then(|| first.remove())
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let until = self.time.0.get() + timeout.0;
        let next = self.flying.keys().next().map_or(until, |(at, _)| at.0.min(until));
        self.time.0.set(next.max(self.time.0.get()));
        Ok(())
    }
}

/// Leaps to the next event instead of spinning.
#[derive(Debug, Default)]
pub struct Leap;

impl<T: Target> Idle<T> for Leap {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        target.wait(Nanos(left.0.min(1_000_000_000)))
    }
}
