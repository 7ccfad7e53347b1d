//! From times of the load to times of the run.

use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::perturb::{Perturbed, random_in_order};
use iosonar_pacing::{Error, Result};
use iosonar_trace::{Metadata, Nanos};

use crate::schedule::iterations::{Iterations, NumberedRequest};

/// A request with its times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// The request, with its number and iteration.
    pub next: NumberedRequest,
    /// Its time in the load as the options map it, since virtual zero.
    pub scheduled: Nanos,
    /// When to issue it: the scheduled time, unless perturbed.
    pub deadline: Nanos,
}

/// Maps times of the load to times of the run. Virtual zero is the time of the first request mapped.
#[derive(Clone, Debug)]
pub struct TimeMap {
    options: PacingOptions,
    has_deadlines: bool,
    first: Option<Nanos>,
}

impl TimeMap {
    /// Maps times as the options say; without deadlines all are zero.
    pub fn new(options: PacingOptions, has_deadlines: bool) -> Self {
        Self { options, has_deadlines, first: None }
    }

    /// The scheduled time of a request at this time of the load.
    pub fn scheduled(&mut self, at: Nanos) -> Nanos {
        let since = at - *self.first.get_or_insert(at);
        if self.has_deadlines { self.options.scheduled(since) } else { Nanos::ZERO }
    }
}

/// All requests of a run, in the order of their deadlines.
pub struct Schedule<'a> {
    iterations: Iterations<'a>,
    time_map: TimeMap,
    /// Requests scheduled at this time or later are left out.
    until: Nanos,
    /// If deadlines are perturbed.
    perturbed: Option<Perturbed<Scheduled>>,
    random: Box<dyn FnMut() -> u64 + Send>,
    is_end: bool,
}

impl<'a> Schedule<'a> {
    /// The requests of all iterations.
    pub fn new(iterations: Iterations<'a>, time_map: TimeMap) -> Self {
        let options = &time_map.options;
        let (until, random) = (options.until().unwrap_or(Nanos::MAX), Box::new(random_in_order(*options.seed)));
        let perturbed = options.fake().map(|_| Perturbed::default());
        Self { iterations, time_map, until, perturbed, random, is_end: false }
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
                Some(perturbed) => {
                    let delay = self.time_map.options.delay(next.scheduled, &mut self.random);
                    perturbed.push(next.scheduled, next.scheduled + delay, next);
                }
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

    fn time_map(words: &str, has_deadlines: bool) -> TimeMap {
        TimeMap::new(PacingOptions::parse(words.split_whitespace()).unwrap(), has_deadlines)
    }

    #[test]
    fn a_time_out_of_range_is_an_error_if_the_run_reaches_it() {
        let schedule = |words| {
            let iterations = Iterations::new(load(&[0, 1_000_000_000, 2_000_000_000]), Window::default(), None);
            Schedule::new(iterations, time_map(words, true))
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
        let (number, error) = taken(schedule("--speedup 1.5e-10"));
        assert!(number == 2 && error.as_deref().is_some_and(|error| error.contains("request 2 ")), "{error:?}");
        assert_eq!(taken(schedule("--speedup 1.5e-10 --for 9223372036")), (2, None));
        assert_eq!(taken(schedule("")), (3, None));
    }

    #[test]
    fn times_since_the_first_request_are_divided_by_the_speedup() {
        let mut times = time_map("--speedup 2", true);
        assert_eq!([7, 9, 12].map(|at| times.scheduled(Nanos(at)).0), [0, 1, 3]);
        let mut times = time_map("", false);
        assert_eq!([7, 9].map(|at| times.scheduled(Nanos(at)).0), [0, 0]);
    }
}
