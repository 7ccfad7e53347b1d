//! When a call was issued, and when calls may follow it.

use iosonar_trace::Nanos;

/// A call and the moment from which calls may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub number: u64,
    pub at: Nanos,
}

/// When a call was issued, and from when on its dependents could be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub issued: Nanos,
    pub done: Nanos,
}
