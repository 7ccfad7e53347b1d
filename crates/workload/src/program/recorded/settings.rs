//! A recorded load with the settings of its stream.

use std::path::PathBuf;

use iosonar_trace::{DeviceId, Nanos};

use super::contents::DeviceContents;

/// Where the requests go: a region of a device of the program.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub device: DeviceId,
    pub first: u64,
    pub size: u64,
}

/// A recorded load with the settings of its stream.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(super) path: PathBuf,
    /// How errors begin: file, line, stream and key.
    pub(super) place: String,
    /// The device of the load.
    pub(super) from: DeviceId,
    pub(super) area: Area,
    pub start: Nanos,
    pub end: Nanos,
    pub(super) speedup: f64,
    pub(super) passes: u64,
    /// The time in the load that `start` means, and from one pass to the next.
    pub(super) zero: Nanos,
    pub(super) period: Nanos,
    pub about: DeviceContents,
}

impl Recorded {
    /// The time of the program at which a pass reaches this time of the load.
    pub(super) fn at(&self, pass: u64, at: Nanos) -> Nanos {
        let before = self.period.0.saturating_mul(i64::try_from(pass).unwrap_or(i64::MAX));
        let since = Nanos(before) + (at - self.zero);
        self.start + if self.speedup == 1.0 { since } else { Nanos((since.0 as f64 / self.speedup).round() as i64) }
    }
}
