//! The window of a load, once or again and again.
//!
//! Time goes on from iteration to iteration: the next one begins a mean distance of two requests behind the last request
//! of the one before, as with the transform `repeat`. Each iteration opens the load anew: nothing is kept of it.

use iosonar_trace::{Metadata, Nanos, Reader, Request};

use crate::error::Result;
use crate::schedule::window::Window;

/// What lies between two iterations of a load whose requests all have the same time.
const WITHOUT_EXTENT: Nanos = Nanos(1_000_000_000);

/// A load that can be opened again.
pub type Reopen<'a> = Box<dyn FnMut() -> Result<Box<dyn Reader<Request>>> + Send + 'a>;

/// A request of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbered {
    /// What it does; its time is that of the load, with the iterations before it.
    pub request: Request,
    /// Its number in the whole load.
    pub number: u64,
    /// How many iterations went before.
    pub iteration: u32,
}

/// How long an iteration takes: from the first request to the last, and the mean distance of two.
pub fn period(requests: u64, first: Nanos, last: Nanos) -> Nanos {
    let span = last - first;
    match (span.0, requests) {
        (0, _) | (_, 0 | 1) => WITHOUT_EXTENT,
        (span, requests) => Nanos(span + span / (requests as i64 - 1)).max(Nanos(span + 1)),
    }
}

/// Reads it.
pub struct Iterations<'a> {
    load: Box<dyn Reader<Request>>,
    window: Window,
    again: Option<Reopen<'a>>,
    iteration: u32,
    /// The next request's number in the load.
    number: u64,
    /// Requests of the window so far in this iteration, and the time of its first and last.
    inside: u64,
    first: Nanos,
    last: Nanos,
    /// What this iteration's times are shifted by.
    shift: Nanos,
    /// Of the first iteration, as soon as that is over.
    known: Option<Metadata>,
}

impl<'a> Iterations<'a> {
    /// One iteration, or as many as are asked for if there is a way to open the load again.
    pub fn new(load: Box<dyn Reader<Request>>, window: Window, again: Option<Reopen<'a>>) -> Self {
        let zero = Nanos::ZERO;
        Self {
            load,
            window,
            again,
            iteration: 0,
            number: 0,
            inside: 0,
            first: zero,
            last: zero,
            shift: zero,
            known: None,
        }
    }

    /// The next request of the window.
    pub fn take_next(&mut self) -> Result<Option<Numbered>> {
        loop {
            let Some((number, mut request)) = self.next_inside()? else {
                if !self.begin_again()? {
                    return Ok(None);
                }
                continue;
            };
            if self.inside == 0 {
                self.first = request.at;
            }
            (self.inside, self.last) = (self.inside + 1, request.at);
            request.at = request.at + self.shift;
            return Ok(Some(Numbered { request, number, iteration: self.iteration }));
        }
    }

    fn next_inside(&mut self) -> Result<Option<(u64, Request)>> {
        while let Some(request) = self.load.next()? {
            self.number += 1;
            if request.at >= self.window.end {
                break;
            }
            if !self.window.is_behind(request.at) {
                return Ok(Some((self.number - 1, request)));
            }
        }
        Ok(None)
    }

    /// False if this was the last iteration. An empty window stays empty, however often it is repeated.
    fn begin_again(&mut self) -> Result<bool> {
        let Some(again) = self.again.as_mut().filter(|_| self.inside > 0) else { return Ok(false) };
        self.shift = self.shift + period(self.inside, self.first, self.last);
        let next = again()?;
        let ended = std::mem::replace(&mut self.load, next);
        self.known.get_or_insert_with(|| ended.metadata().clone());
        (self.number, self.inside) = (0, 0);
        self.iteration += 1;
        Ok(true)
    }

    /// What the load says of itself: the first iteration as a whole, if that is over.
    pub fn metadata(&self) -> &Metadata {
        self.known.as_ref().unwrap_or_else(|| self.load.metadata())
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Kind, Op, Sector, Sectors};

    use super::*;

    struct Made(std::vec::IntoIter<i64>, Metadata);

    impl Reader<Request> for Made {
        fn metadata(&self) -> &Metadata {
            &self.1
        }
        fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
            Ok(self.0.next().map(|at| Request::new(Nanos(at), Op::Read, Sector(at as u64), Sectors(8))))
        }
    }

    fn load(times: &[i64]) -> Box<dyn Reader<Request>> {
        Box::new(Made(Vec::from(times).into_iter(), Metadata::new(Kind::Load, "test")))
    }

    fn first(n: usize, times: &'static [i64], window: Window) -> Vec<(i64, u64, u32)> {
        let mut iterations = Iterations::new(load(times), window, Some(Box::new(|| Ok(load(times)))));
        let taken = std::iter::from_fn(|| iterations.take_next().unwrap()).take(n);
        taken.map(|next| (next.request.at.0, next.number, next.iteration)).collect()
    }

    #[test]
    fn time_goes_on_from_round_to_round() {
        let seen = first(7, &[100, 120, 160], Window::default());
        // An iteration takes 60 and a mean distance of 30.
        let expected = [(100, 0, 0), (120, 1, 0), (160, 2, 0), (190, 0, 1), (210, 1, 1), (250, 2, 1), (280, 0, 2)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_round_is_as_long_as_the_window() {
        let window = Window { start: Nanos(110), end: Nanos(170) };
        let seen = first(5, &[100, 120, 160, 200], window);
        assert_eq!(seen, [(120, 1, 0), (160, 2, 0), (200, 1, 1), (240, 2, 1), (280, 1, 2)]);
    }

    #[test]
    fn without_a_start_a_load_begins_where_it_does() {
        let until = Window { end: Nanos(20), ..Window::default() };
        assert_eq!(first(2, &[-30, 10, 20], until), [(-30, 0, 0), (10, 1, 0)]);
        assert_eq!(first(1, &[-30, 10, 20], Window { start: Nanos(-10), ..until }), [(10, 1, 0)]);
    }

    #[test]
    fn what_has_no_extent_is_a_second_long_and_what_is_empty_ends() {
        let second = WITHOUT_EXTENT.0;
        assert_eq!(first(3, &[5], Window::default()), [(5, 0, 0), (5 + second, 0, 1), (5 + 2 * second, 0, 2)]);
        assert_eq!(first(3, &[5, 5], Window::default()), [(5, 0, 0), (5, 1, 0), (5 + second, 0, 1)]);
        assert_eq!(first(3, &[], Window::default()), []);
        assert_eq!(first(3, &[5], Window { start: Nanos(6), end: Nanos(9) }), []);
    }

    #[test]
    fn without_a_way_to_open_it_again_there_is_one_round() {
        let mut iterations = Iterations::new(load(&[1, 2]), Window::default(), None);
        assert_eq!(std::iter::from_fn(|| iterations.take_next().unwrap()).count(), 2);
    }
}
