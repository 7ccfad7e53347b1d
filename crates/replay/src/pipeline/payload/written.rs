//! What was made to be written.

use serde::Serialize;

/// How much was made, and how much of it was duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
