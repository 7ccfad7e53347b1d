//! Which times calls may have: one rule for text and tables.

use iosonar_trace::Nanos;

use super::call::Call;
use super::result_row::CallResult;

/// The farthest time from zero, 73 years: sums and differences of times then fit into 64 bits.
pub const MAX_TIME: i64 = i64::MAX / 4;

const NEGATIVE: &str = "completed_ns is before issued_ns";
const TOO_FAR: &str = "a time is more than 73 years from zero, or a duration is longer";

impl Call {
    pub(super) fn problem_of_times(&self) -> Option<&'static str> {
        problem([Some(self.begin), self.duration])
    }
}

impl CallResult {
    pub(crate) fn problem_of_times(&self) -> Option<&'static str> {
        let Self { scheduled, issued, completed, predecessors_end, gap, expected_duration, .. } = self;
        if issued.zip(*completed).is_some_and(|(issued, completed)| completed < issued) {
            return Some(NEGATIVE);
        }
        problem([Some(*scheduled), *issued, *completed, *predecessors_end, *gap, *expected_duration])
    }
}

fn problem<const N: usize>(times: [Option<Nanos>; N]) -> Option<&'static str> {
    let is_too_far = |time: Nanos| !(-MAX_TIME..=MAX_TIME).contains(&time.0);
    times.into_iter().flatten().any(is_too_far).then_some(TOO_FAR)
}
