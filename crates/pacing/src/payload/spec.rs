//! Specification of the data of writes.

use std::fmt;

use iosonar_trace::human;
use serde::Serialize;

use super::Written;
use super::blocks::{BLOCK_BYTES, Filler};
use super::pattern::Pattern;
use super::percent::Percent;

/// The data of writes, as serialized in the run's footer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DataSpec {
    /// Zeros.
    Zero,
    /// A repeated pattern.
    Pattern {
        /// The bytes that are repeated, in hexadecimal digits.
        hex: Pattern,
    },
    /// Random bytes, or blocks that are partly random.
    Random {
        /// Share of random bytes in each block.
        random_pct: Percent,
        /// Content of the rest of each block.
        filler: Filler,
        /// Share of blocks that repeat an earlier one.
        dedupe_pct: Percent,
        /// Bytes of a block, if it is not the usual one.
        #[serde(skip_serializing_if = "is_usual")]
        block_bytes: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_usual(block_bytes: &u64) -> bool {
    *block_bytes == BLOCK_BYTES as u64
}

impl DataSpec {
    /// Random bytes, without duplicates.
    pub const RANDOM: Self = Self::compressible(Percent::NONE);

    /// Compressible by this share.
    pub const fn compressible(share: Percent) -> Self {
        Self::Random {
            random_pct: share.rest(),
            filler: Filler::Deadbeef,
            dedupe_pct: Percent::NONE,
            block_bytes: BLOCK_BYTES as u64,
        }
    }

    /// Whether all data is random, without duplicates.
    pub fn is_fresh_random(&self) -> bool {
        matches!(self, Self::Random { random_pct: Percent::ALL, dedupe_pct: Percent::NONE, .. })
    }

    /// A warning if this data can make storage look faster.
    pub fn warning(&self) -> Option<String> {
        let what = match self {
            Self::Zero => "zeros were written",
            Self::Pattern { .. } => "the same pattern was written everywhere",
            Self::Random { .. } => return None,
        };
        Some(format!(
            "{what}: many storage systems do not store such data, and therefore look faster than they are; use --data \
             random"
        ))
    }

    /// A warning if fewer duplicates were written than requested.
    pub fn duplicate_shortfall(&self, written: &Written) -> Option<String> {
        let Self::Random { dedupe_pct, block_bytes, .. } = *self else { return None };
        let actual = written.duplicates as f64 * block_bytes as f64 / written.bytes.max(1) as f64 * 100.0;
        (written.bytes > 0 && actual < f64::from(dedupe_pct.get()) - 2.0).then(|| {
            format!(
                "{} of the written data is duplicates, not {dedupe_pct}: only whole blocks of {} can be duplicates, and \
                 {} of {} blocks were written partially",
                human::percent(actual / 100.0),
                human::block(block_bytes),
                human::count(written.partial_blocks),
                human::count(written.partial_blocks + written.blocks)
            )
        })
    }
}

impl fmt::Display for DataSpec {
    /// A short description for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zeros"),
            Self::Pattern { hex } => {
                let hex = hex.to_string();
                if hex.len() > 16 { write!(f, "the pattern {}…", &hex[..16]) } else { write!(f, "the pattern {hex}") }
            }
            Self::Random { random_pct, filler, dedupe_pct, block_bytes } => {
                match filler {
                    _ if *random_pct == Percent::ALL => f.write_str("random data")?,
                    Filler::Deadbeef => write!(f, "data that compresses by {}", random_pct.rest())?,
                    Filler::Zero => write!(f, "blocks that are random by {random_pct}, the rest zeros")?,
                }
                if *dedupe_pct > Percent::NONE {
                    write!(f, ", {dedupe_pct} of the blocks duplicates")?;
                }
                if !is_usual(block_bytes) {
                    write!(f, ", in blocks of {}", human::block(*block_bytes))?;
                }
                Ok(())
            }
        }
    }
}
