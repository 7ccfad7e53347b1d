//! How much of a run's data was verified, and with what result.

use serde::{Deserialize, Serialize};

/// How much is checked. Each includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyMode {
    /// Nothing, and writes carry no headers.
    #[default]
    Off,
    /// Every read of a sector that was written in this run.
    Reads,
    /// Also every sector that was written, at the end.
    Final,
    /// Also every write, at once after it.
    Paranoia,
}

/// How much was checked, and with what result. Sectors have 512 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// What was asked for.
    pub mode: VerifyMode,
    /// Percentage of the written sectors of which it was known what they hold: below 100 if `--verify-memory` was too
    /// little for all.
    pub known_pct: f64,
    /// Sectors of the load's reads that were checked.
    pub read_sectors: u64,
    /// Sectors that were checked at once after they were written.
    pub reread_sectors: u64,
    /// Sectors of which nothing can be said, because they were read or written while another request wrote them.
    pub undecided_sectors: u64,
    /// Sectors that were not what they had to be, whenever that was seen.
    pub mismatches: u64,
    /// Sectors that could not be read when iosonar itself asked for them.
    pub errors: u64,
    /// The last pass, if one was asked for.
    #[serde(rename = "final")]
    pub last: Option<FinalPassCounts>,
}

/// The last pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalPassCounts {
    /// Sectors that were checked.
    pub checked: u64,
    /// Sectors that had been written or zeroed, and not discarded since on a target that promises no zeros. Estimated if not
    /// all are known.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub errors: u64,
    /// Sectors that were not what they had to be.
    pub mismatches: u64,
    /// Whether it came to its end.
    pub complete: bool,
}

impl Verification {
    /// Whether something was found that must not be.
    pub fn has_failed(&self) -> bool {
        self.mismatches + self.errors > 0
    }

    /// Whether everything was looked at that was to be.
    pub fn is_whole(&self) -> bool {
        self.last.as_ref().is_none_or(|last| last.complete)
    }
}
