//! When a request is to go: the load's time made into the run's.

use iosonar_trace::{Metadata, Nanos};

use crate::error::Result;
use crate::schedule::iterations::{Iterations, Numbered};
use crate::schedule::perturb::{Perturb, Perturbed};

/// A request, and when it is to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// The request.
    pub next: Numbered,
    /// When the load wants it, since virtual zero.
    pub scheduled: Nanos,
    /// When it is to go: at that time, unless issue times are perturbed.
    pub deadline: Nanos,
}

/// The load's time made into the run's. Virtual zero is the first request that it is asked about.
#[derive(Clone, Debug)]
pub struct TimeMap {
    speedup: f64,
    asap: bool,
    first: Option<Nanos>,
}

impl TimeMap {
    /// Divides the load's time by `speedup`; `asap` makes all times zero.
    pub fn new(speedup: f64, asap: bool) -> Self {
        Self { speedup, asap, first: None }
    }

    /// When the load wants a request, since virtual zero.
    pub fn scheduled(&mut self, at: Nanos) -> Nanos {
        let since = at - *self.first.get_or_insert(at);
        match (self.asap, self.speedup) {
            (true, _) => Nanos::ZERO,
            (false, 1.0) => since,
            (false, speedup) => Nanos((since.0 as f64 / speedup).round() as i64),
        }
    }
}

/// All requests of a run, in the order of their deadlines.
pub struct Schedule<'a> {
    iterations: Iterations<'a>,
    schedule: TimeMap,
    /// Requests that the load wants at this time or later are left out.
    until: Nanos,
    perturbed: Option<Perturbed<Scheduled>>,
    is_end: bool,
}

impl<'a> Schedule<'a> {
    /// Of all iterations, at their time.
    pub fn new(iterations: Iterations<'a>, schedule: TimeMap) -> Self {
        Self { iterations, schedule, until: Nanos::MAX, perturbed: None, is_end: false }
    }

    /// Ends it at that time of the run.
    pub fn until(self, until: Nanos) -> Self {
        Self { until, ..self }
    }

    /// Perturbs the deadlines.
    pub fn perturbed(self, how: Perturb, seed: u64) -> Self {
        Self { perturbed: Some(Perturbed::new(how, seed)), ..self }
    }

    /// The next one.
    pub fn take_next(&mut self) -> Result<Option<Scheduled>> {
        loop {
            if let Some((deadline, held)) = self.perturbed.as_mut().and_then(|p| p.take(self.is_end)) {
                return Ok(Some(Scheduled { deadline, ..held }));
            }
            if self.is_end {
                return Ok(None);
            }
            let Some(next) = self.next_scheduled()? else {
                self.is_end = true;
                continue;
            };
            match &mut self.perturbed {
                Some(perturbed) => perturbed.put(next.scheduled, next),
                None => return Ok(Some(next)),
            }
        }
    }

    fn next_scheduled(&mut self) -> Result<Option<Scheduled>> {
        let Some(next) = self.iterations.take_next()? else { return Ok(None) };
        let scheduled = self.schedule.scheduled(next.request.at);
        Ok((scheduled < self.until).then_some(Scheduled { next, scheduled, deadline: scheduled }))
    }

    /// What the load says of itself.
    pub fn metadata(&self) -> &Metadata {
        self.iterations.metadata()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_first_and_divides() {
        let mut schedule = TimeMap::new(2.0, false);
        assert_eq!([7, 9, 12].map(|at| schedule.scheduled(Nanos(at)).0), [0, 1, 3]);
        let mut schedule = TimeMap::new(1.0, true);
        assert_eq!([7, 9].map(|at| schedule.scheduled(Nanos(at)).0), [0, 0]);
    }
}
