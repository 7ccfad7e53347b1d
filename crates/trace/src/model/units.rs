//! Types for units, so that positions, lengths and times cannot be mixed up.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Bytes in a sector: 512, whatever the device's block size, as in Linux' block layer.
pub const SECTOR_BYTES: u64 = 512;

/// The highest end of a request: its offset in bytes must fit into the `i64` that system calls take.
pub const MAX_END_SECTOR: u64 = i64::MAX as u64 / SECTOR_BYTES;

/// Nanoseconds since the start of the trace or of the run, or a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

/// A position on a device, in sectors of 512 bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sector(pub u64);

/// A length in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sectors(pub u64);

impl Nanos {
    /// The start of the trace, or virtual zero of a run.
    pub const ZERO: Self = Self(0);
    /// Later than every request.
    pub const MAX: Self = Self(i64::MAX);

    /// Whether a request may have taken that long in a queue or in the device: not less than nothing, and not a year, as a
    /// negative difference looks that a recorder printed without its sign.
    pub fn is_possible_span(self) -> bool {
        const YEAR: i64 = 31_557_600_000_000_000;
        (0..YEAR).contains(&self.0)
    }

    /// Whether it is a time, up to 292 years from zero. The two ends of the range are what a larger number becomes.
    pub fn is_time(self) -> bool {
        self.0 != i64::MIN && self.0 != i64::MAX
    }

    /// From seconds, rounded to the nanosecond; out-of-range values saturate.
    pub fn from_secs(secs: f64) -> Self {
        Self((secs * 1e9).round() as i64)
    }

    /// The time in seconds, rounded to a double.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}.{:09} s",
            if self.0 < 0 { "-" } else { "" },
            self.0.unsigned_abs() / 1_000_000_000,
            self.0.unsigned_abs() % 1_000_000_000
        )
    }
}

impl Sectors {
    /// The length in bytes.
    pub fn bytes(self) -> u64 {
        self.0.saturating_mul(SECTOR_BYTES)
    }
}

impl Sector {
    /// The position in bytes.
    pub fn bytes(self) -> u64 {
        self.0.saturating_mul(SECTOR_BYTES)
    }
}

impl Add<Sectors> for Sector {
    type Output = Self;
    fn add(self, length: Sectors) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}
