//! Preparation and completion log as work of the loop itself, while it waits.
//!
//! Separate threads are better if there are processors for them. Otherwise they take processor time from the loop or the
//! kernel, each hand-over costs a wake-up, and data moves between caches: bench/results/running-notes.md has the costs.

use std::io;

use iosonar_pacing::clock::{Clock, Virtual};
use iosonar_pacing::idle::{Idle, Turn};
use iosonar_trace::Nanos;

use crate::engine::Target;
use crate::pipeline::prepare::{PrepareOutcome, Preparer, Step};
use crate::result::completion_log::{CompletionLog, CompletionLogOutput};

/// Maximum number of requests prepared and recorded before the loop polls for completions again.
const MAX_STEPS: i64 = 16;
/// Time to prepare a request and to record one, with a margin, without large data.
const TIME_PER_REQUEST: Nanos = Nanos(4_000);

/// Both stages.
pub struct InlineStages<'a, C> {
    /// `None` after its end, which closes the loop's input.
    preparer: Option<Preparer<'a, C>>,
    prepared: Option<PrepareOutcome>,
    completion_log: CompletionLog<'a>,
}

impl<'a, C: Clock> InlineStages<'a, C> {
    /// Combines stages that have not started.
    pub fn new(preparer: Preparer<'a, C>, completion_log: CompletionLog<'a>) -> Self {
        Self { preparer: Some(preparer), prepared: None, completion_log }
    }

    /// Does some work that fits into the time `left`. Returns whether there was any.
    fn step(&mut self, left: Nanos) -> bool {
        // Negative after a deadline: no time for work.
        let most = (left.0 / TIME_PER_REQUEST.0).clamp(0, MAX_STEPS) as usize;
        let mut steps = 0;
        if let Some(preparer) = &mut self.preparer {
            preparer.resume();
        }
        while steps < most
            && let Some(preparer) = &mut self.preparer
        {
            match preparer.step(left - TIME_PER_REQUEST) {
                Step::Prepared => steps += 1,
                Step::Ended => {
                    self.prepared = self.preparer.take().map(Preparer::finish);
                    steps += 1;
                }
                Step::Early(_) | Step::NoBuffer | Step::TooLong | Step::QueueFull => break,
            }
        }
        steps + self.completion_log.step(most, left - TIME_PER_REQUEST) > 0
    }

    /// Whether the loop has no requests, but more will come.
    fn is_starved(&self) -> bool {
        self.preparer.as_ref().is_some_and(Preparer::is_empty)
    }

    /// Ends both stages, after the loop.
    pub fn finish(self) -> (PrepareOutcome, CompletionLogOutput) {
        let prepared = self.prepared.or_else(|| self.preparer.map(Preparer::finish)).expect("one or the other");
        (prepared, self.completion_log.run())
    }
}

/// Runs the stages while the loop waits; without work it waits as `idle` does.
pub struct InlineIdle<'a, C, I> {
    pub stages: InlineStages<'a, C>,
    /// How to wait without work.
    pub idle: I,
}

impl<T, C: Clock, I: Idle<T>> Idle<T> for InlineIdle<'_, C, I> {
    /// Runs the stages while the loop's queue is low. Otherwise a loop that is always busy would run them only after it
    /// has run out of requests.
    #[inline]
    fn busy(&mut self, left: Nanos) {
        if self.stages.preparer.as_ref().is_some_and(Preparer::is_low) {
            self.stages.step(left);
        }
        self.idle.busy(left);
    }

    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        if self.stages.step(left) { Ok(Turn::Busy) } else { self.idle.idle(left, target) }
    }
}

/// Waits in virtual time: the stages take none of it, and without work it advances to the next deadline or completion.
pub struct VirtualIdle<'a> {
    pub stages: InlineStages<'a, Virtual>,
}

impl<T: Target> Idle<T> for VirtualIdle<'_> {
    /// The time stands still while the loop turns, so it must wait even for the closest deadline.
    const DEADLINE_MARGIN: Nanos = Nanos(i64::MIN);

    /// In a replay of a program's run, requests are due at the very moment when those that they waited for complete.
    const COMPLETIONS_FIRST: bool = true;

    #[inline]
    fn busy(&mut self, _: Nanos) {
        self.stages.step(Nanos::MAX);
    }

    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        if !self.stages.step(Nanos::MAX) && !self.stages.is_starved() {
            // A due request that is held needs a completion.
            target.wait(if left > Nanos::ZERO { left } else { Nanos::MAX })?;
        }
        Ok(Turn::Simulated)
    }
}
