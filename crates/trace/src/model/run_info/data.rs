//! The data that a run wrote.

use serde::{Deserialize, Serialize};

use super::field::{Field, fields};

fields! {
    /// The data of a run's writes.
    RunData {
        /// The kind of data, in words.
        what: String,
        /// The seed of its random parts.
        seed: u64,
        /// Its amount; missing in a recovered run.
        written: Written,
    }
}

/// The amount of data written, and of duplicates in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Total bytes.
    pub bytes: u64,
    /// Whole, aligned blocks of 4 KiB.
    pub blocks: u64,
    /// Blocks that duplicate an earlier one (`--dedupe`).
    pub duplicates: u64,
    /// Partial blocks at the ends of requests; these are never duplicates.
    pub partial_blocks: u64,
}
