//! What happened on each device of the load by itself.

use iosonar_trace::{DeviceId, IoResult, Outcome};
use serde::{Deserialize, Serialize};

use super::closing::Closing;
use crate::result::histogram::{Quantiles, Times};

/// One device of the load. Rates are over the time of the whole run, so that those of all devices add up to its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatistics {
    /// Its number in the load.
    pub device: u16,
    /// Its name in the load; empty where that has none.
    pub source: String,
    /// The target that it was mapped to; null if to none.
    pub target: Option<String>,
    /// Its requests that have a row.
    pub requests: u64,
    /// Of these, completed by the target, with or without error.
    pub completed: u64,
    /// Reads, those that were left out included.
    pub reads: u64,
    /// Writes, those that were left out included.
    pub writes: u64,
    /// Flushes, discards and write-zeroes, those that were left out included.
    pub others: u64,
    /// Never given to the target, for whatever reason.
    pub left_out: u64,
    /// Waited for a request that they overlap.
    pub pushed_back: u64,
    /// Ended with an error number.
    pub errors: u64,
    /// Moved less than asked, without an error.
    pub short: u64,
    /// Never came back.
    pub unfinished: u64,
    /// Completed requests for each second of the run.
    pub iops: f64,
    /// Bytes moved in each second of the run.
    pub bytes_per_s: f64,
    /// Its highest end sector in the load over its target's sectors; null without a target.
    pub wrap_factor: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
}

/// Counts the rows of one device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCounter {
    rows: u64,
    ops: [u64; 5],
    outcomes: [u64; Outcome::ALL.len()],
    pushed_back: u64,
    bytes: u64,
    latency: Times,
}

impl DeviceCounter {
    fn new() -> Self {
        Self {
            rows: 0,
            ops: [0; 5],
            outcomes: [0; Outcome::ALL.len()],
            pushed_back: 0,
            bytes: 0,
            latency: Times::growing(),
        }
    }

    fn add(&mut self, record: &IoResult) {
        self.rows += 1;
        self.ops[record.op as usize] += 1;
        self.outcomes[record.outcome as usize] += 1;
        self.pushed_back += u64::from(record.pushed_back);
        self.bytes += record.bytes_done;
        if let Some(latency) = record.latency() {
            self.latency.add(latency);
        }
    }

    fn close(&self, device: u16, with: &Closing<'_>, elapsed_s: f64) -> DeviceStatistics {
        let per_second = |x: u64| if elapsed_s > 0.0 { x as f64 / elapsed_s } else { 0.0 };
        let [reads, writes, others @ ..] = self.ops;
        let outcome = |o: Outcome| self.outcomes[o as usize];
        let issued = [Outcome::Ok, Outcome::Short, Outcome::Error, Outcome::Unfinished, Outcome::Corrupt];
        let completed = self.latency.count();
        DeviceStatistics {
            device,
            source: with.fed.devices.get(usize::from(device)).map(|d| d.name.clone()).unwrap_or_default(),
            target: with.target_of(device).map(|(path, _)| iosonar_trace::path_text(path)),
            requests: self.rows,
            completed,
            reads,
            writes,
            others: others.iter().sum(),
            left_out: self.rows - issued.map(outcome).iter().sum::<u64>(),
            pushed_back: self.pushed_back,
            errors: outcome(Outcome::Error),
            short: outcome(Outcome::Short),
            unfinished: outcome(Outcome::Unfinished),
            iops: per_second(completed),
            bytes_per_s: per_second(self.bytes),
            wrap_factor: with.wrap_factor(device),
            latency_us: self.latency.quantiles(),
        }
    }
}

/// Counts the rows of all devices, each by itself. A device costs nothing before its first row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices(Vec<Option<Box<DeviceCounter>>>);

impl Devices {
    #[inline]
    pub fn add(&mut self, record: &IoResult) {
        let DeviceId(device) = record.device;
        let device = usize::from(device);
        if device >= self.0.len() {
            self.0.resize_with(device + 1, || None);
        }
        self.0[device].get_or_insert_with(|| Box::new(DeviceCounter::new())).add(record);
    }

    /// In the order of their numbers.
    pub fn close(&self, with: &Closing<'_>, elapsed_s: f64) -> Vec<DeviceStatistics> {
        let seen = self.0.iter().enumerate().filter_map(|(device, counter)| Some((device as u16, counter.as_ref()?)));
        seen.map(|(device, counter)| counter.close(device, with, elapsed_s)).collect()
    }
}
