//! What the loop counts.

use iosonar_trace::Nanos;

/// What the loop says of itself when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounters {
    /// Requests left out for an overlap.
    pub dropped: u64,
    /// Requests for which everything behind them waited.
    pub ordered_waits: u64,
    /// Most requests in flight.
    pub max_in_flight: u32,
    /// Most requests waiting for an overlap.
    pub max_pushed_back: u32,
    /// Turns in which the completion log's queue was full.
    pub completion_log_stalls: u64,
    /// Submission calls.
    pub submissions: u64,
    /// Submission calls that took more than 50 µs: the kernel or the device held the loop.
    pub slow_submissions: u64,
    /// Time spent in those.
    pub slow_submission_time: Nanos,
}
