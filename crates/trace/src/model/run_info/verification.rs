//! The extent and the result of a run's verification.

use serde::{Deserialize, Serialize};

/// Which data is verified. Each mode includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyMode {
    /// None; writes carry no headers.
    #[default]
    Off,
    /// Every read of a sector that was written in this run.
    Reads,
    /// Also every written sector, after the run.
    Final,
    /// Also every write, right after it completed.
    Paranoia,
}

/// The extent and the result of verification. Sectors have 512 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// The mode given by `--verify`.
    pub mode: VerifyMode,
    /// Percentage of the written sectors whose content is known; below 100 if `--verify-memory` was too small for all.
    pub known_pct: f64,
    /// Checked sectors of the load's reads.
    pub read_sectors: u64,
    /// Sectors checked right after they were written.
    pub reread_sectors: u64,
    /// Sectors that could not be checked, because another request wrote them during the read or write.
    pub undecided_sectors: u64,
    /// Sectors with wrong content, in all passes.
    pub mismatches: u64,
    /// Sectors that could not be read when iosonar checked them.
    pub errors: u64,
    /// The final pass, if there was one.
    #[serde(rename = "final")]
    pub last: Option<FinalPassCounts>,
}

/// The final pass over all written sectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalPassCounts {
    /// Checked sectors.
    pub checked: u64,
    /// Sectors to check: written or zeroed, and not discarded since then on a target that does not guarantee zeros.
    /// Estimated if not all are known.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub errors: u64,
    /// Sectors with wrong content.
    pub mismatches: u64,
    /// Whether the pass reached its end.
    pub complete: bool,
}

impl Verification {
    /// Whether there were mismatches or read errors.
    pub fn has_failed(&self) -> bool {
        self.mismatches + self.errors > 0
    }

    /// Whether the final pass, if any, reached its end.
    pub fn is_whole(&self) -> bool {
        self.last.as_ref().is_none_or(|last| last.complete)
    }
}
