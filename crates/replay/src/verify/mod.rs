//! Whether the target keeps what it is given: every read of a sector that was written in this run must bring back what was
//! written there last.
//!
//! ```text
//!  feeder                      loop, target                     completion log
//!  stamps each sector's  ──▶  writes, reads, and with   ──▶  checks what was read, enters what was written
//!  header                     paranoia reads at once         [checker] ── [ledger] ── [block]
//!  [header]                                                         │
//!                             last pass over all that was written ◀─┘  [last]
//! ```
//!
//! Times are those of the loop: a request was with the target at most from its issue to its completion. What may lie in a
//! sector follows from them alone, so that an honest target never raises an alarm, whatever overlaps or fails.

use clap::ValueEnum;
use iosonar_trace::run_info::VerifyMode;
use serde::{Deserialize, Serialize};

pub mod block;
pub mod checker;
pub mod expected_state;
pub mod final_pass;
pub mod findings;
pub mod header;
pub mod report;
pub mod watermark;

/// How much is checked. Each includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// No checks
    #[default]
    Off,
    /// Check each read of sectors written in this run
    Reads,
    /// Also read back all written sectors at the end
    Final,
    /// Also read back each write at once
    Paranoia,
}

impl From<Verify> for VerifyMode {
    fn from(verify: Verify) -> Self {
        match verify {
            Verify::Off => Self::Off,
            Verify::Reads => Self::Reads,
            Verify::Final => Self::Final,
            Verify::Paranoia => Self::Paranoia,
        }
    }
}

#[cfg(test)]
mod tests;
