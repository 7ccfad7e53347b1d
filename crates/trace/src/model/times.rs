//! Which times a row may have: one rule for all formats, for rows that are read and rows that are written.

use super::io_result::IoResult;
use super::request::Request;
use super::units::Nanos;

/// Why a row is left out that has a time beyond those of [`Nanos::is_time`].
pub const TOO_FAR: &str = "a time is 292 years or more from zero";

impl Request {
    /// Why the request cannot be kept, if its time is none.
    pub(super) fn problem_of_times(&self) -> Option<&'static str> {
        (!self.at.is_time()).then_some(TOO_FAR)
    }

    /// Removes a latency and a queueing time that no request has, and returns their number. The request itself is not in
    /// doubt.
    pub(crate) fn remove_impossible_times(&mut self) -> u64 {
        let mut removed = 0;
        for span in [&mut self.latency, &mut self.queued] {
            if span.take_if(|span| !span.is_possible_span()).is_some() {
                removed += 1;
            }
        }
        removed
    }
}

impl IoResult {
    /// Why the result cannot be kept, if one of its times is none.
    pub(super) fn problem_of_times(&self) -> Option<&'static str> {
        let Self { scheduled, issued, completed, ready, submitted, last_empty_poll, .. } = self;
        let optional = [issued, completed, ready, submitted, last_empty_poll].into_iter().flatten();
        optional.chain([scheduled]).any(|time: &Nanos| !time.is_time()).then_some(TOO_FAR)
    }

    /// Removes the completion if no request has such a latency, and returns the number of times removed. The row itself is
    /// not in doubt.
    pub(crate) fn remove_impossible_times(&mut self) -> u64 {
        let is_impossible = self.latency().is_some_and(|latency| !latency.is_possible_span());
        u64::from(is_impossible && self.completed.take().is_some())
    }
}
