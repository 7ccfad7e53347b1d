//! One or more iterations through the window of a load.
//!
//! Time continues from iteration to iteration: the next one starts one mean inter-arrival time after the last request, as
//! in the transform `repeat`. Each iteration opens the load again, so that nothing is kept in memory.

use iosonar_pacing::Result;
use iosonar_trace::{Metadata, Nanos, Reader, Request, period};

use crate::schedule::window::Window;

/// Opens the load again.
pub type Reopen<'a> = Box<dyn FnMut() -> Result<Box<dyn Reader<Request>>> + Send + 'a>;

/// A request of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberedRequest {
    /// The request; its time includes the earlier iterations.
    pub request: Request,
    /// Its number in the load, from 0.
    pub number: u64,
    /// Complete iterations before this one.
    pub iteration: u32,
}

/// Reads the requests of all iterations.
pub struct Iterations<'a> {
    load: Box<dyn Reader<Request>>,
    window: Window,
    reopen: Option<Reopen<'a>>,
    iteration: u32,
    /// The next request's number in the load.
    number: u64,
    /// Number of requests in the window so far in this iteration, and the times of the first and the last one.
    in_window: u64,
    first: Nanos,
    last: Nanos,
    /// Added to the times of this iteration.
    offset: Nanos,
    /// Metadata of the first iteration, after its end.
    first_metadata: Option<Metadata>,
}

impl<'a> Iterations<'a> {
    /// One iteration, or an unlimited number with `again`.
    pub fn new(load: Box<dyn Reader<Request>>, window: Window, reopen: Option<Reopen<'a>>) -> Self {
        let zero = Nanos::ZERO;
        Self {
            load,
            window,
            reopen,
            iteration: 0,
            number: 0,
            in_window: 0,
            first: zero,
            last: zero,
            offset: zero,
            first_metadata: None,
        }
    }

    /// The next request in the window.
    pub fn take_next(&mut self) -> Result<Option<NumberedRequest>> {
        loop {
            let Some((number, mut request)) = self.next_in_window()? else {
                if !self.start_next_iteration()? {
                    return Ok(None);
                }
                continue;
            };
            if self.in_window == 0 {
                self.first = request.at;
            }
            (self.in_window, self.last) = (self.in_window + 1, request.at);
            request.at = request.at + self.offset;
            return Ok(Some(NumberedRequest { request, number, iteration: self.iteration }));
        }
    }

    fn next_in_window(&mut self) -> Result<Option<(u64, Request)>> {
        while let Some(request) = self.load.next()? {
            self.number += 1;
            if request.at >= self.window.end {
                break;
            }
            if !self.window.is_before_start(request.at) {
                return Ok(Some((self.number - 1, request)));
            }
        }
        Ok(None)
    }

    /// Returns false after the last iteration. An empty window is not repeated.
    fn start_next_iteration(&mut self) -> Result<bool> {
        let Some(reopen) = self.reopen.as_mut().filter(|_| self.in_window > 0) else { return Ok(false) };
        self.offset = self.offset + period(self.in_window, self.first, self.last);
        let next = reopen()?;
        let ended = std::mem::replace(&mut self.load, next);
        self.first_metadata.get_or_insert_with(|| ended.metadata().clone());
        (self.number, self.in_window) = (0, 0);
        self.iteration += 1;
        Ok(true)
    }

    /// The load's metadata: those of the whole first iteration, after its end.
    pub fn metadata(&self) -> &Metadata {
        self.first_metadata.as_ref().unwrap_or_else(|| self.load.metadata())
    }
}

#[cfg(test)]
pub(super) mod testing {
    use iosonar_trace::{Kind, Op, Sector, Sectors};

    use super::*;

    struct TestLoad(std::vec::IntoIter<i64>, Metadata);

    impl Reader<Request> for TestLoad {
        fn metadata(&self) -> &Metadata {
            &self.1
        }
        fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
            Ok(self.0.next().map(|at| Request::new(Nanos(at), Op::Read, Sector(at as u64), Sectors(8))))
        }
    }

    /// A load with requests at these times.
    pub fn load(times: &[i64]) -> Box<dyn Reader<Request>> {
        Box::new(TestLoad(Vec::from(times).into_iter(), Metadata::new(Kind::Load, "test")))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::load;
    use super::*;

    fn first(n: usize, times: &'static [i64], window: Window) -> Vec<(i64, u64, u32)> {
        let mut iterations = Iterations::new(load(times), window, Some(Box::new(|| Ok(load(times)))));
        let taken = std::iter::from_fn(|| iterations.take_next().unwrap()).take(n);
        taken.map(|next| (next.request.at.0, next.number, next.iteration)).collect()
    }

    #[test]
    fn times_continue_across_iterations() {
        let seen = first(7, &[100, 120, 160], Window::default());
        // An iteration takes 60 ns plus a mean inter-arrival time of 30 ns.
        let expected = [(100, 0, 0), (120, 1, 0), (160, 2, 0), (190, 0, 1), (210, 1, 1), (250, 2, 1), (280, 0, 2)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_iteration_is_as_long_as_its_window() {
        let window = Window { start: Nanos(110), end: Nanos(170) };
        let seen = first(5, &[100, 120, 160, 200], window);
        assert_eq!(seen, [(120, 1, 0), (160, 2, 0), (200, 1, 1), (240, 2, 1), (280, 1, 2)]);
    }

    #[test]
    fn a_window_without_start_begins_at_the_first_request() {
        let until = Window { end: Nanos(20), ..Window::default() };
        assert_eq!(first(2, &[-30, 10, 20], until), [(-30, 0, 0), (10, 1, 0)]);
        assert_eq!(first(1, &[-30, 10, 20], Window { start: Nanos(-10), ..until }), [(10, 1, 0)]);
    }

    #[test]
    fn simultaneous_requests_take_a_second_and_an_empty_window_ends() {
        let second = 1_000_000_000;
        assert_eq!(first(3, &[5], Window::default()), [(5, 0, 0), (5 + second, 0, 1), (5 + 2 * second, 0, 2)]);
        assert_eq!(first(3, &[5, 5], Window::default()), [(5, 0, 0), (5, 1, 0), (5 + second, 0, 1)]);
        assert_eq!(first(3, &[], Window::default()), []);
        assert_eq!(first(3, &[5], Window { start: Nanos(6), end: Nanos(9) }), []);
    }

    #[test]
    fn without_reopening_there_is_one_iteration() {
        let mut iterations = Iterations::new(load(&[1, 2]), Window::default(), None);
        assert_eq!(std::iter::from_fn(|| iterations.take_next().unwrap()).count(), 2);
    }
}
