//! What was counted up to a moment, and what changed between two moments.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use iosonar_trace::Nanos;
use iosonar_trace::run_info::{DeviceCounters, Quantiles};

use super::counts::{DeviceName, Live};
use super::times::{Distribution, FineCounts};

/// What was counted of an operation.
#[derive(Clone, Debug)]
pub struct OperationSnapshot {
    /// Its name.
    pub name: &'static str,
    /// Its rows by outcome, without those that did not occur.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Its latencies.
    pub latency: Distribution,
    /// Its delays; empty without scheduled times.
    pub delay: Distribution,
}

/// What was counted of a device of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// Its names.
    pub name: DeviceName,
    /// Its rows.
    pub rows: u64,
    /// Those that its target completed.
    pub completed: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Those that failed.
    pub errors: u64,
}

/// What was counted up to a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was read.
    pub at: Instant,
    /// Those that were due: with a row, in flight, or waiting, as far as the loop has read the load.
    pub demanded: u64,
    /// Those that were issued.
    pub submitted: u64,
    /// Those that completed.
    pub completed: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Those that failed.
    pub errors: u64,
    /// Those that were left out because they were too late.
    pub dropped: u64,
    /// Those in flight.
    pub in_flight: u32,
    /// Those due and not issued, at the last issue that is known; `None` if rows do not tell.
    pub waiting: Option<u32>,
    /// The latest scheduled time of a row.
    pub scheduled: Nanos,
    /// The operations that occurred.
    pub operations: Vec<OperationSnapshot>,
    /// The devices of the load that occurred.
    pub devices: Vec<DeviceSnapshot>,
    /// The kernel's counters of the targets since the start of the run.
    pub counters: Vec<DeviceCounters>,
    /// All latencies.
    pub latency: FineCounts,
    /// All delays.
    pub delay: FineCounts,
}

impl Live {
    /// Reads what was counted, then the number in flight: what completes in between is missing until the next time, and never
    /// counted twice.
    pub fn snapshot(&self, in_flight: impl FnOnce() -> u32) -> Snapshot {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (rows, issued) = (read(&self.rows), read(&self.issued));
        let in_flight = in_flight();
        let waiting = self.words.has_waiting.then(|| self.waiting.load(Ordering::Relaxed));
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.submitted = reached.submitted.max(issued + u64::from(in_flight));
        let due = rows + u64::from(in_flight) + u64::from(waiting.unwrap_or(0));
        reached.demanded = reached.demanded.max(due).max(reached.submitted);
        Snapshot {
            at: Instant::now(),
            demanded: reached.demanded,
            submitted: reached.submitted,
            completed: read(&self.completed),
            bytes: read(&self.bytes),
            errors: read(&self.errors),
            dropped: read(&self.dropped),
            in_flight,
            waiting,
            scheduled: Nanos(self.scheduled.load(Ordering::Relaxed)),
            operations: self.operations(),
            devices: self.devices(),
            counters: self.counters.get().map(|read| read()).unwrap_or_default(),
            latency: self.latency.read(),
            delay: self.delay.read(),
        }
    }

    fn operations(&self) -> Vec<OperationSnapshot> {
        let used = self.operations.iter().enumerate().filter_map(|(index, operation)| Some((index, operation.get()?)));
        let read = used.map(|(index, operation)| {
            let counts = operation.outcomes.iter().map(|count| count.load(Ordering::Relaxed));
            let named = counts.enumerate().filter(|(_, count)| *count > 0);
            OperationSnapshot {
                name: (self.words.operation)(index).unwrap_or_default(),
                outcomes: named.filter_map(|(index, count)| Some(((self.words.outcome)(index)?, count))).collect(),
                bytes: operation.bytes.load(Ordering::Relaxed),
                latency: operation.latency.read(),
                delay: operation.delay.read(),
            }
        });
        read.collect()
    }

    fn devices(&self) -> Vec<DeviceSnapshot> {
        let names = self.names.get();
        let used = self.devices.iter().enumerate().filter_map(|(number, device)| Some((number, device.get()?)));
        let read = used.map(|(number, device)| DeviceSnapshot {
            name: names
                .and_then(|names| names.get(number).cloned())
                .unwrap_or_else(|| DeviceName { source: number.to_string(), target: String::new() }),
            rows: device.rows.load(Ordering::Relaxed),
            completed: device.completed.load(Ordering::Relaxed),
            bytes: device.bytes.load(Ordering::Relaxed),
            errors: device.errors.load(Ordering::Relaxed),
        });
        read.collect()
    }
}

impl Snapshot {
    /// Quantiles of all latencies, as in the run's statistics.
    pub fn latency_us(&self) -> Option<Quantiles> {
        self.latency.quantiles(self.operations.iter().map(|operation| &operation.latency))
    }

    /// Quantiles of all delays, as in the run's statistics.
    pub fn delay_us(&self) -> Option<Quantiles> {
        self.delay.quantiles(self.operations.iter().map(|operation| &operation.delay))
    }
}

/// What happened between two moments.
#[derive(Clone, Debug)]
pub struct Recent {
    /// How many were due, per second.
    pub demanded_per_s: f64,
    /// How many completed, per second.
    pub completed_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Their latencies, without a mean; `None` if none completed.
    pub latency_us: Option<Quantiles>,
    /// Their delays, without a mean.
    pub delay_us: Option<Quantiles>,
    /// Their latencies in buckets.
    pub latency: Distribution,
}

impl Recent {
    /// From one moment to a later one.
    pub fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
        let per_s = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let mut latency = Distribution::empty();
        for operation in &now.operations {
            let earlier = before.operations.iter().find(|earlier| earlier.name == operation.name);
            latency.add_since(&operation.latency, earlier.map(|earlier| &earlier.latency));
        }
        Self {
            demanded_per_s: per_s(before.demanded, now.demanded),
            completed_per_s: per_s(before.completed, now.completed),
            bytes_per_s: per_s(before.bytes, now.bytes),
            latency_us: now.latency.quantiles_since(&before.latency),
            delay_us: now.delay.quantiles_since(&before.delay),
            latency,
        }
    }
}
