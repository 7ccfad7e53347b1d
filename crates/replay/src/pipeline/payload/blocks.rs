//! Blocks that are random in part: first random bytes, then a run of the filler, which is what a compressor saves.
//!
//! One run for each block, because each run costs a compressor some bytes to describe: with zstd and lz4 up to 2 % of what
//! it compresses at once. So the run of a compressible block is 1 % longer than what shall be saved, which is the middle.
//! Some bytes are random whatever was asked for, so that no two blocks are equal but by `--dedupe`.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::duplicates::{Duplicates, Origin};
use super::percent::Percent;

/// The unit in which storages compress and look for duplicates, and the one in which the shares asked for hold.
pub const BLOCK_BYTES: usize = 4096;

/// What follows the random part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// 0xdeadbeef: storages that leave out runs of zeros must compress it all the same.
    Deadbeef,
    /// Zeros, as the reference replayer leaves them.
    Zero,
}

impl Filler {
    /// Fills a run with it.
    pub fn fill(self, bytes: &mut [u8]) {
        match self {
            Self::Zero => bytes.fill(0),
            Self::Deadbeef => {
                for word in bytes.chunks_mut(8) {
                    word.copy_from_slice(&[0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef][..word.len()]);
                }
            }
        }
    }
}

/// Enough that no two of billions of blocks are likely to be equal by chance.
const LEAST_RANDOM: usize = 8;

/// Marks the numbers of parts of blocks, which are numbered apart: a whole block never repeats a part.
const PART: u64 = 1 << 63;

/// Spreads numbers over all 64 bits; odd, so that no two become one.
const SPREAD: u64 = 0xd134_2543_de82_ef95;

/// Makes blocks and parts of blocks.
#[derive(Debug)]
pub struct Blocks {
    random: Percent,
    filler: Filler,
    duplicates: Duplicates,
    seed: u64,
    parts: u64,
}

impl Blocks {
    /// With `random` of each block random and the rest `filler`; `dedupe` of all blocks repeat one before.
    pub fn new(random: Percent, filler: Filler, dedupe: Percent, seed: u64) -> Self {
        Self { random, filler, duplicates: Duplicates::new(dedupe, seed), seed, parts: 0 }
    }

    /// Fills a whole block. Whether it is a duplicate.
    pub fn fill_block(&mut self, block: &mut [u8]) -> bool {
        let origin = self.duplicates.deal();
        let (Origin::Fresh(number) | Origin::Copy(number)) = origin;
        self.fill(number, block);
        matches!(origin, Origin::Copy(_))
    }

    /// Fills a part of a block, which is never a duplicate.
    pub fn fill_part(&mut self, part: &mut [u8]) {
        self.parts += 1;
        self.fill(PART | self.parts, part);
    }

    /// The same number makes the same bytes: what is repeated need not be remembered.
    fn fill(&self, number: u64, bytes: &mut [u8]) {
        let (random, rest) = bytes.split_at_mut(self.random_bytes(bytes.len()));
        let key = self.seed.wrapping_add(number.wrapping_mul(SPREAD));
        Xoshiro256PlusPlus::seed_from_u64(key).fill_bytes(random);
        self.filler.fill(rest);
    }

    /// How many of so many bytes are random.
    fn random_bytes(&self, length: usize) -> usize {
        let asked = self.random.of(length);
        let cost = if self.filler == Filler::Deadbeef && self.random < Percent::ALL { length / 100 } else { 0 };
        asked.saturating_sub(cost).max(LEAST_RANDOM).min(length)
    }
}
