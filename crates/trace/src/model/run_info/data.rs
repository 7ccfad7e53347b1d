//! The data that a run wrote.

use serde::{Deserialize, Serialize};

use super::stated::stated;

stated! {
    /// The data of a run's writes.
    RunData {
        /// What it is, in words.
        what: String,
        /// What its random parts depend on.
        seed: u64,
        /// How much of it there was; missing in a recovered run.
        written: Written,
    }
}

/// How much was made, and how much of it was duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Bytes in all.
    pub bytes: u64,
    /// Whole blocks of 4 KiB among them, at positions that are multiples of 4 KiB.
    pub blocks: u64,
    /// Blocks that repeat one before, as `--dedupe` asked for.
    pub duplicates: u64,
    /// Parts of blocks, at the ends of requests: never duplicates.
    pub partial_blocks: u64,
}
