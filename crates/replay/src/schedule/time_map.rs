//! From times of the load to times of the run.

use iosonar_pacing::perturb::{Perturb, Perturbed};
use iosonar_pacing::{Error, Result};
use iosonar_trace::{Metadata, Nanos};

use crate::schedule::iterations::{Iterations, NumberedRequest};

/// A request with its times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// The request, with its number and iteration.
    pub next: NumberedRequest,
    /// Its time in the load after speed-up, since virtual zero.
    pub scheduled: Nanos,
    /// When to issue it: the scheduled time, unless perturbed.
    pub deadline: Nanos,
}

/// Maps times of the load to times of the run. Virtual zero is the time of the first request mapped.
#[derive(Clone, Debug)]
pub struct TimeMap {
    speedup: f64,
    asap: bool,
    first: Option<Nanos>,
}

impl TimeMap {
    /// Divides times by `speedup`; with `asap` all times are zero.
    pub fn new(speedup: f64, asap: bool) -> Self {
        Self { speedup, asap, first: None }
    }

    /// The scheduled time of a request at this time of the load.
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
    time_map: TimeMap,
    /// Requests scheduled at this time or later are left out.
    until: Nanos,
    perturbed: Option<Perturbed<Scheduled>>,
    is_end: bool,
}

impl<'a> Schedule<'a> {
    /// The requests of all iterations.
    pub fn new(iterations: Iterations<'a>, time_map: TimeMap) -> Self {
        Self { iterations, time_map, until: Nanos::MAX, perturbed: None, is_end: false }
    }

    /// Ends the schedule at this time of the run.
    pub fn until(self, until: Nanos) -> Self {
        Self { until, ..self }
    }

    /// Perturbs the deadlines.
    pub fn perturbed(self, perturb: Perturb, seed: u64) -> Self {
        Self { perturbed: Some(Perturbed::new(perturb, seed)), ..self }
    }

    /// The next request, by its deadline; `None` at the end.
    pub fn take_next(&mut self) -> Result<Option<Scheduled>> {
        loop {
            if let Some((deadline, pending)) = self.perturbed.as_mut().and_then(|p| p.pop(self.is_end)) {
                return Ok(Some(Scheduled { deadline, ..pending }));
            }
            if self.is_end {
                return Ok(None);
            }
            let Some(next) = self.next_scheduled()? else {
                self.is_end = true;
                continue;
            };
            match &mut self.perturbed {
                Some(perturbed) => perturbed.push(next.scheduled, next),
                None => return Ok(Some(next)),
            }
        }
    }

    fn next_scheduled(&mut self) -> Result<Option<Scheduled>> {
        let Some(next) = self.iterations.take_next()? else { return Ok(None) };
        let scheduled = self.time_map.scheduled(next.request.at);
        if scheduled == Nanos::MAX && self.until == Nanos::MAX {
            return Err(too_late(&format!("request {}", next.number)));
        }
        Ok((scheduled < self.until).then_some(Scheduled { next, scheduled, deadline: scheduled }))
    }

    /// The load's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.iterations.metadata()
    }
}

/// The error for a request whose time no run can have.
pub fn too_late(which: &str) -> Error {
    Error::Options(format!(
        "{which} of the load would be due 292 years or more after the first, which no time of a run can be: raise \
         --speedup, or end the run before with --for or --duration"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::iterations::testing::load;
    use crate::schedule::window::Window;

    #[test]
    fn a_time_out_of_range_is_an_error_if_the_run_reaches_it() {
        let schedule = |speedup| {
            let iterations = Iterations::new(load(&[0, 1_000_000_000, 2_000_000_000]), Window::default(), None);
            Schedule::new(iterations, TimeMap::new(speedup, false))
        };
        let taken = |mut schedule: Schedule<'_>| -> (usize, Option<String>) {
            for number in 0.. {
                match schedule.take_next() {
                    Ok(Some(_)) => {}
                    Ok(None) => return (number, None),
                    Err(error) => return (number, Some(error.to_string())),
                }
            }
            unreachable!("the load ends")
        };
        let (number, error) = taken(schedule(1.5e-10));
        assert!(number == 2 && error.as_deref().is_some_and(|error| error.contains("request 2 ")), "{error:?}");
        assert_eq!(taken(schedule(1.5e-10).until(Nanos(i64::MAX - 1))), (2, None));
        assert_eq!(taken(schedule(1.0)), (3, None));
    }

    #[test]
    fn times_since_the_first_request_are_divided_by_the_speedup() {
        let mut time_map = TimeMap::new(2.0, false);
        assert_eq!([7, 9, 12].map(|at| time_map.scheduled(Nanos(at)).0), [0, 1, 3]);
        let mut time_map = TimeMap::new(1.0, true);
        assert_eq!([7, 9].map(|at| time_map.scheduled(Nanos(at)).0), [0, 0]);
    }
}
