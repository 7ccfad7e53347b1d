//! Chooses which blocks repeat an earlier one.
//!
//! The share is exact in every hundred blocks, whose order is random.
//!
//! Repeated blocks are taken in turn from the older half of the blocks written so far, at most 1024 of them (4 MiB, at the usual size). A copy is
//! therefore far from its original in the order of writing, so that a compressor with a window of a few MiB does not find
//! it: only deduplication does. Because few blocks are repeated often, the share stays the same when blocks are
//! overwritten.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::percent::Percent;

/// Maximum number of different blocks that are repeated: of 4 KiB, more than zstd's window at common levels.
const MAX_REPEATED: u64 = 1024;

/// The origin of a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// New content with this number.
    New(u64),
    /// A copy of the content with this number.
    Copy(u64),
}

/// Chooses the origin of each block.
#[derive(Debug)]
pub struct Duplicates {
    percent: Percent,
    random: Xoshiro256PlusPlus,
    /// New blocks so far.
    new_blocks: u64,
    /// The next block to repeat.
    next: u64,
    /// Blocks remaining in this hundred, and copies among them.
    remaining: u64,
    remaining_copies: u64,
}

impl Duplicates {
    /// Duplicates with this share of all blocks.
    pub fn new(percent: Percent, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { percent, random, new_blocks: 0, next: 0, remaining: 0, remaining_copies: 0 }
    }

    /// The origin of the next block.
    pub fn next_origin(&mut self) -> Origin {
        if self.percent == Percent::NONE {
            return self.new_block();
        }
        if self.remaining == 0 {
            (self.remaining, self.remaining_copies) = (100, u64::from(self.percent.get()));
        }
        let is_copy = self.new_blocks > 0 && self.random.next_u64() % self.remaining < self.remaining_copies;
        self.remaining -= 1;
        if !is_copy {
            return self.new_block();
        }
        self.remaining_copies -= 1;
        let repeated = self.new_blocks.div_ceil(2).min(MAX_REPEATED);
        let copied = if self.next < repeated { self.next } else { 0 };
        self.next = copied + 1;
        Origin::Copy(copied)
    }

    fn new_block(&mut self) -> Origin {
        self.new_blocks += 1;
        Origin::New(self.new_blocks - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn origins(percent: u8, blocks: usize, seed: u64) -> Vec<Origin> {
        let mut duplicates = Duplicates::new(Percent::new(percent).unwrap(), seed);
        (0..blocks).map(|_| duplicates.next_origin()).collect()
    }

    proptest! {
        /// New blocks are numbered consecutively, a copy follows its original, and the share is exact after each hundred
        /// blocks.
        #[test]
        fn the_share_is_exact_in_every_hundred(percent in 0u8..=99, blocks in 1usize..3000, seed: u64) {
            let (mut new_blocks, mut copies) = (0, 0);
            for (i, origin) in origins(percent, blocks, seed).into_iter().enumerate() {
                match origin {
                    Origin::New(number) => { prop_assert_eq!(number, new_blocks); new_blocks += 1; }
                    Origin::Copy(number) => { prop_assert!(number < new_blocks); copies += 1; }
                }
                if (i + 1) % 100 == 0 {
                    prop_assert_eq!(copies, (i as u64 + 1) / 100 * u64::from(percent));
                }
            }
        }
    }

    #[test]
    fn a_copy_is_far_from_its_original() {
        for percent in [10, 50, 90] {
            let (mut last, mut nearest) = (HashMap::new(), usize::MAX);
            for (i, origin) in origins(percent, 200_000, 7).into_iter().enumerate() {
                let (Origin::New(number) | Origin::Copy(number)) = origin;
                if let Some(before) = last.insert(number, i)
                    && i >= 100_000
                {
                    nearest = nearest.min(i - before);
                }
            }
            assert!(nearest >= MAX_REPEATED as usize, "{percent} %: {nearest} blocks");
        }
    }
}
