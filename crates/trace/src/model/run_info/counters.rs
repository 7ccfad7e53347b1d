//! What the machine and its disks counted before and during a run.

use serde::{Deserialize, Serialize};

/// Contention for the processors right before a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Company {
    /// Processors that the replay may use.
    pub processors: usize,
    /// Other threads that were running or ready to, on average, for that many processors.
    pub ready: f64,
    /// The percentage of the processors' time that the host gave to others.
    pub stolen_pct: f64,
}

/// What a disk counted while a run went on. Whoever else used it is in there as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Its name; that of the disk for a partition.
    pub disk: String,
    /// Requests that it completed.
    pub requests: u64,
    /// Requests that were merged into others, so that they are not among these.
    pub merged: u64,
    /// The times that all of them took, added up, in seconds. Divided by a time it is the mean number of requests in flight.
    pub busy_s: f64,
    /// How long was counted, in seconds.
    pub seconds: f64,
}
