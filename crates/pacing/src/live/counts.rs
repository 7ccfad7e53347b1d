//! Counts of a run that goes on: one thread adds rows.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use iosonar_trace::Nanos;
use iosonar_trace::run_info::DeviceCounters;

use super::times::{Cells, Fine, add};

/// Devices of a load beyond this number count as the last.
const MAX_DEVICES: usize = 256;

/// What is counted of a row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The index of its operation.
    pub operation: usize,
    /// The index of its outcome.
    pub outcome: usize,
    /// Its device in the load.
    pub device: usize,
    /// When it was to be issued.
    pub scheduled: Nanos,
    /// When it was issued.
    pub issued: Option<Nanos>,
    /// From issue to completion.
    pub latency: Option<Nanos>,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Whether it failed, read corrupt data, or returned another result than the original.
    pub has_error: bool,
    /// Whether it was left out because it was too late.
    pub is_dropped: bool,
    /// How many were due and not issued at its issue.
    pub waiting: u32,
}

/// The words of what is counted.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// `requests` or `calls`.
    pub plural: &'static str,
    /// The operations, by index.
    pub operation: fn(usize) -> Option<&'static str>,
    /// The outcomes, by index.
    pub outcome: fn(usize) -> Option<&'static str>,
    /// Whether rows tell how many were due.
    pub has_waiting: bool,
}

/// Counts of an operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) outcomes: Box<[AtomicU64]>,
    pub(super) bytes: AtomicU64,
    pub(super) latency: Cells,
    pub(super) delay: Cells,
}

/// Counts of a device of the load.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub(super) rows: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) errors: AtomicU64,
}

/// A device of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceName {
    /// Its name in the load.
    pub source: String,
    /// The path of its target.
    pub target: String,
}

/// Reads the kernel's counters of the targets.
type ReadCounters = Box<dyn Fn() -> Vec<DeviceCounters> + Send + Sync>;

/// Numbers that never fall, although their parts are read one after the other.
#[derive(Debug, Default)]
pub(super) struct Reached {
    pub demanded: u64,
    pub submitted: u64,
}

/// What is counted while a run goes on.
pub struct Live {
    pub(super) words: Words,
    /// Whether rows have scheduled times, and so delays.
    pub(super) is_timed: bool,
    pub(super) operations: Box<[OnceLock<Box<Operation>>]>,
    pub(super) devices: Box<[OnceLock<Box<Device>>]>,
    pub(super) latency: Fine,
    pub(super) delay: Fine,
    pub(super) rows: AtomicU64,
    pub(super) issued: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// The latest scheduled time, in ns.
    pub(super) scheduled: AtomicI64,
    /// When the last of the rows was issued that were issued so far, in ns.
    pub(super) last_issue: AtomicI64,
    /// How many were due then.
    pub(super) waiting: AtomicU32,
    pub(super) names: OnceLock<Vec<DeviceName>>,
    pub(super) counters: OnceLock<ReadCounters>,
    pub(super) reached: Mutex<Reached>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("words", &self.words).finish_non_exhaustive()
    }
}

impl Live {
    /// Counts nothing yet.
    pub fn new(words: Words, is_timed: bool) -> Self {
        let count = |name: fn(usize) -> Option<&'static str>| (0..).take_while(|index| name(*index).is_some()).count();
        Self {
            words,
            is_timed,
            operations: (0..count(words.operation)).map(|_| OnceLock::new()).collect(),
            devices: (0..MAX_DEVICES).map(|_| OnceLock::new()).collect(),
            latency: Fine::new(),
            delay: Fine::new(),
            rows: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            scheduled: AtomicI64::new(0),
            last_issue: AtomicI64::new(i64::MIN),
            waiting: AtomicU32::new(0),
            names: OnceLock::new(),
            counters: OnceLock::new(),
            reached: Mutex::default(),
        }
    }

    /// What is counted, in words.
    pub fn words(&self) -> Words {
        self.words
    }

    /// Whether rows have scheduled times.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Sets the names of the devices of the load.
    pub fn name_devices(&self, names: Vec<DeviceName>) {
        let _ = self.names.set(names);
    }

    /// Sets how the kernel's counters of the targets are read.
    pub fn read_counters(&self, read: impl Fn() -> Vec<DeviceCounters> + Send + Sync + 'static) {
        let _ = self.counters.set(Box::new(read));
    }

    /// Counts a row. Only one thread may call this.
    pub fn add(&self, row: &Row) {
        let outcomes = || (0..).take_while(|index| (self.words.outcome)(*index).is_some());
        let operation = self.operations[row.operation].get_or_init(|| {
            Box::new(Operation {
                outcomes: outcomes().map(|_| AtomicU64::new(0)).collect(),
                bytes: AtomicU64::new(0),
                latency: Cells::new(),
                delay: Cells::new(),
            })
        });
        let device = self.devices[row.device.min(MAX_DEVICES - 1)].get_or_init(Box::default);
        add(&operation.outcomes[row.outcome], 1);
        [&self.rows, &device.rows].iter().for_each(|rows| add(rows, 1));
        [&self.bytes, &operation.bytes, &device.bytes].iter().for_each(|bytes| add(bytes, row.bytes));
        [&self.errors, &device.errors].iter().for_each(|errors| add(errors, row.has_error.into()));
        add(&self.dropped, row.is_dropped.into());
        if let Some(latency) = row.latency {
            [&self.completed, &device.completed].iter().for_each(|completed| add(completed, 1));
            operation.latency.add(latency);
            self.latency.add(latency);
        }
        if let Some(issued) = row.issued {
            add(&self.issued, 1);
            if self.is_timed {
                operation.delay.add(issued - row.scheduled);
                self.delay.add(issued - row.scheduled);
            }
            if issued.0 >= self.last_issue.load(Ordering::Relaxed) {
                self.last_issue.store(issued.0, Ordering::Relaxed);
                self.waiting.store(row.waiting, Ordering::Relaxed);
            }
        }
        if row.scheduled.0 > self.scheduled.load(Ordering::Relaxed) {
            self.scheduled.store(row.scheduled.0, Ordering::Relaxed);
        }
    }
}
