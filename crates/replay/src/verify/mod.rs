//! Verification: a read of a sector written in this run must return the data written last.
//!
//! ```text
//!  preparation                 loop, target                   completion log
//!  writes a header into  ──▶  writes, reads; paranoia   ──▶  checks read data, records what writes leave
//!  each sector                reads back each write          [checker] ── [expected_state] ── [block]
//!  [header]                                                         │
//!                             final pass over all sectors ◀─────────┘  [final_pass]
//! ```
//!
//! Times are those of the loop: the target performed a request at some time between its issue and its completion. The
//! allowed content of a sector follows from these times only, so that correct storage never causes a mismatch, even if
//! requests overlap or fail.

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

/// The extent of verification. Each level includes the previous ones.
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
