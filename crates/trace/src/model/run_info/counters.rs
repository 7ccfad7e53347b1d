//! Counters of the machine before a run, and of its disks during the run.

use serde::{Deserialize, Serialize};

/// Contention for the processors right before a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessorContention {
    /// Processors that the replay may use.
    pub processors: usize,
    /// Mean number of other threads running or runnable on these processors.
    pub ready: f64,
    /// Percentage of the processors' time that the host gave to other guests.
    pub stolen_pct: f64,
}

/// A disk's counters over a run. They include the I/O of other users of the disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Name of the disk; for a partition, that of its disk.
    pub disk: String,
    /// Completed requests.
    pub requests: u64,
    /// Requests merged into others; `requests` does not include them.
    pub merged: u64,
    /// Sum of the times of all requests, in seconds. Divided by a duration, it is the mean number of requests in flight.
    pub busy_s: f64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
}
