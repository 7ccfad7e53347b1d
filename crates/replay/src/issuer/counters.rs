//! Counters of the issuing loop.

use iosonar_pacing::demand::Burst;
use iosonar_trace::Nanos;

use crate::pipeline::program::EarlyEnd;

/// The loop's counters at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCounters {
    /// Requests dropped because of a conflict.
    pub dropped: u64,
    /// Requests that held up everything behind them because of a conflict (`ordering`).
    pub ordered_waits: u64,
    /// Maximum number of requests in flight.
    pub max_in_flight: u32,
    /// Maximum number of requests waiting for an overlap.
    pub max_pushed_back: u32,
    /// Loop turns in which the completion log's queue was full.
    pub completion_log_stalls: u64,
    /// Submission calls.
    pub submissions: u64,
    /// Submission calls that took longer than 50 µs, blocked by the kernel or the device.
    pub slow_submissions: u64,
    /// Total time of slow submission calls.
    pub slow_submission_time: Nanos,
    /// Time in which the loop was interrupted while requests were in flight.
    pub blind_time: Nanos,
    /// Why a program ended early.
    pub early_end: Option<EarlyEnd>,
    /// Whether the run ended because virtual time did not go on.
    pub stands_still: bool,
    /// The burst of the load that is the farthest beyond the loop.
    pub burst: Option<Burst>,
}

impl LoopCounters {
    /// Adds those of another loop. Sums of maxima are the most that all loops can have had together.
    pub fn add(&mut self, other: &Self) {
        self.dropped += other.dropped;
        self.ordered_waits += other.ordered_waits;
        self.max_in_flight += other.max_in_flight;
        self.max_pushed_back += other.max_pushed_back;
        self.completion_log_stalls += other.completion_log_stalls;
        self.submissions += other.submissions;
        self.slow_submissions += other.slow_submissions;
        self.slow_submission_time = self.slow_submission_time + other.slow_submission_time;
        self.blind_time = self.blind_time.max(other.blind_time);
        self.stands_still |= other.stands_still;
        self.early_end = self.early_end.take().or_else(|| other.early_end.clone());
        self.burst = [self.burst, other.burst].into_iter().flatten().reduce(Burst::larger);
    }
}
