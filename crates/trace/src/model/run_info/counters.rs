//! Counters of the machine before a run, and of the machine and its disks during the run.

use serde::{Deserialize, Serialize};

use crate::human;

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

/// What all programs of the machine did during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineUsage {
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Percentage of the time of all processors in which they were busy.
    pub busy_pct: f64,
    /// The part of it in the kernel, interrupts included.
    pub kernel_pct: f64,
    /// Percentage in which they were idle while a thread waited for I/O.
    pub iowait_pct: f64,
    /// Processor time of the replayer alone, in seconds.
    pub replayer_s: f64,
    /// The least memory that programs could have without swapping.
    pub available_bytes: u64,
    /// The most memory in the page cache.
    pub cached_bytes: u64,
    /// The most memory that waited to be written.
    pub dirty_bytes: u64,
    /// Bytes received by all hardware interfaces; without any, by all but loopback.
    pub received_bytes: u64,
    /// Bytes that these sent.
    pub sent_bytes: u64,
    /// All interfaces that received or sent something.
    pub interfaces: Vec<InterfaceUsage>,
    /// The course of these.
    pub samples: UsageSamples,
}

/// A network interface during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceUsage {
    /// Its name.
    pub name: String,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// Bytes that it sent.
    pub sent_bytes: u64,
}

/// Samples at about equal distances; each value is of the time since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageSamples {
    /// When they were taken, in seconds since the start of the measurement.
    pub at_s: Vec<f64>,
    /// As in [`MachineUsage`].
    pub busy_pct: Vec<f64>,
    /// At that time.
    pub available_bytes: Vec<u64>,
    /// As in [`MachineUsage`].
    pub received_bytes: Vec<u64>,
    /// As in [`MachineUsage`].
    pub sent_bytes: Vec<u64>,
}

impl MachineUsage {
    /// For people.
    pub fn words(&self) -> String {
        let [busy, kernel] = [self.busy_pct, self.kernel_pct].map(|pct| human::percent(pct / 100.0));
        let [available, received, sent] =
            [self.available_bytes, self.received_bytes, self.sent_bytes].map(human::bytes);
        format!(
            "processors {busy} busy ({kernel} in the kernel), at least {available} of memory available, network {received} \
             received, {sent} sent"
        )
    }
}
