//! What the data of writes is, as the engine and the footer have it.

use std::fmt;

use iosonar_trace::human;
use serde::Serialize;

use super::Written;
use super::blocks::{BLOCK_BYTES, Filler};
use super::pattern::Pattern;
use super::percent::Percent;

/// What the data of writes is. Kept in the run's footer as it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DataSpec {
    /// Zeros.
    Zero,
    /// The same few bytes over and over.
    Pattern {
        /// These.
        hex: Pattern,
    },
    /// Fresh random bytes, or blocks that are random in part.
    Random {
        /// How much of each block is random.
        random_pct: Percent,
        /// What the rest of each block is.
        filler: Filler,
        /// How many of all blocks repeat an earlier one.
        dedupe_pct: Percent,
    },
}

impl Default for DataSpec {
    /// Random throughout.
    fn default() -> Self {
        Self::Random { random_pct: Percent::ALL, filler: Filler::Deadbeef, dedupe_pct: Percent::NONE }
    }
}

impl DataSpec {
    /// Why results on this data may be too good, if they may.
    pub fn doubt(&self) -> Option<String> {
        let what = match self {
            Self::Zero => "zeros were written",
            Self::Pattern { .. } => "the same pattern was written everywhere",
            Self::Random { .. } => return None,
        };
        Some(format!(
            "{what}: many storages store nothing of such data, and look faster than they are; --data random writes what \
             they cannot save"
        ))
    }

    /// By how much what was written falls short of the duplicates asked for, if it does.
    pub fn shortfall(&self, written: &Written) -> Option<String> {
        let Self::Random { dedupe_pct, .. } = *self else { return None };
        let found = written.duplicates as f64 * BLOCK_BYTES as f64 / written.bytes.max(1) as f64 * 100.0;
        (written.bytes > 0 && found < f64::from(dedupe_pct.get()) - 2.0).then(|| {
            format!(
                "{} of what was written is duplicates, not {dedupe_pct}: only whole blocks of 4 KiB can be, and \
                 {} of {} blocks were written in part",
                human::percent(found / 100.0),
                human::count(written.partial_blocks),
                human::count(written.partial_blocks + written.blocks)
            )
        })
    }
}

impl fmt::Display for DataSpec {
    /// For people: what is written, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zeros"),
            Self::Pattern { hex } => {
                let hex = hex.to_string();
                if hex.len() > 16 { write!(f, "the pattern {}…", &hex[..16]) } else { write!(f, "the pattern {hex}") }
            }
            Self::Random { random_pct, filler, dedupe_pct } => {
                match filler {
                    _ if *random_pct == Percent::ALL => f.write_str("random data")?,
                    Filler::Deadbeef => write!(f, "data that compresses by {}", random_pct.rest())?,
                    Filler::Zero => write!(f, "blocks that are random by {random_pct}, the rest zeros")?,
                }
                if *dedupe_pct > Percent::NONE {
                    write!(f, ", {dedupe_pct} of the blocks duplicates")?;
                }
                Ok(())
            }
        }
    }
}
