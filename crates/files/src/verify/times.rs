//! When a call was issued and completed, and when calls may follow it.

use iosonar_trace::Nanos;

/// A call and the moment from which calls may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub number: u64,
    pub at: Nanos,
}

/// When a call was issued and completed in the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub issued: Nanos,
    pub completed: Nanos,
}
