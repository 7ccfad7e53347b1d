//! The rooms on both sides of the loop as stages: work that the loop does itself while it waits.
//!
//! Threads of their own are better where there are processors for them. Where there are not, they take the processor away
//! from the loop or from the kernel's work, each hand-over wakes somebody up, and what one of them has in its cache is
//! used by another: see docs/running.md for what that costs.

use std::io;

use iosonar_trace::Nanos;

use crate::issuer::Idle;
use crate::pipeline::prepare::{Prepare, Preparer, Step};
use crate::result::completion_log::{CompletionLog, Recorded};
use crate::schedule::clock::Clock;

/// Requests made ready, and recorded, at most before the loop looks for completions again.
const AT_ONCE: i64 = 16;
/// What making one ready and recording one takes, with something to spare, but for large data.
const EACH: Nanos = Nanos(4_000);

/// Both rooms.
pub struct InlineStages<'a, C> {
    /// Gone when it has nothing more to do: that is how the loop knows.
    feeder: Option<Preparer<'a, C>>,
    fed: Option<Prepare>,
    completion_log: CompletionLog<'a>,
}

impl<'a, C: Clock> InlineStages<'a, C> {
    /// Of rooms that were not started.
    pub fn new(feeder: Preparer<'a, C>, completion_log: CompletionLog<'a>) -> Self {
        Self { feeder: Some(feeder), fed: None, completion_log }
    }

    /// Does some of what there is to do, and can be done in that time. Returns whether there was anything.
    fn step(&mut self, left: Nanos) -> bool {
        // A deadline may have passed: then there is no time for anything.
        let most = (left.0 / EACH.0).clamp(0, AT_ONCE) as usize;
        let mut steps = 0;
        while steps < most
            && let Some(feeder) = &mut self.feeder
        {
            match feeder.step(left - EACH) {
                Step::PrepareStats => steps += 1,
                Step::Ended => self.fed = self.feeder.take().map(Preparer::finish),
                Step::Early(_) | Step::NoBuffer | Step::TooLong | Step::QueueFull => break,
            }
        }
        steps + self.completion_log.step(most, left - EACH) > 0
    }

    /// What both leave, when the loop has gone.
    pub fn finish(self) -> (Prepare, Recorded) {
        let fed = self.fed.or_else(|| self.feeder.map(Preparer::finish)).expect("one or the other");
        (fed, self.completion_log.run())
    }
}

/// Does the stages while the loop waits, and passes the time in another way when there are none.
pub struct InlineIdle<'a, C, I> {
    /// What there is to do.
    pub stages: InlineStages<'a, C>,
    /// How to wait when nothing is left to do.
    pub idle: I,
}

impl<T, C: Clock, I: Idle<T>> Idle<T> for InlineIdle<'_, C, I> {
    /// A loop that always has something to do would only come to its stages when it has run out of requests.
    #[inline]
    fn busy(&mut self, left: Nanos) {
        if self.stages.feeder.as_ref().is_some_and(Preparer::is_low) {
            self.stages.step(left);
        }
    }

    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if self.stages.step(left) { Ok(()) } else { self.idle.idle(left, target) }
    }
}
