//! Blocks of random bytes followed by a compressible run of filler.
//!
//! There is one run per block, because a compressor needs some bytes to describe each run: with zstd and lz4 up to 2 % of
//! its input. To centre this error, the run is 1 % longer than the requested savings. Some bytes are always random, so
//! that blocks are equal only through `--dedupe`.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::duplicates::{Duplicates, Origin};
use super::percent::Percent;

/// The usual unit in which storage systems compress and deduplicate, and for which the requested shares hold.
pub const BLOCK_BYTES: usize = 4096;

/// The content of a block after its random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// 0xdeadbeef: compressible, but not skipped as a run of zeros.
    Deadbeef,
    /// Zeros, as the reference replayer writes.
    Zero,
}

impl Filler {
    /// Fills these bytes.
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

/// Enough that among billions of blocks no two are likely to be equal by chance.
const MIN_RANDOM_BYTES: usize = 8;

/// Set in the numbers of partial blocks, so that a whole block never equals a part.
const PARTIAL_BLOCK: u64 = 1 << 63;

/// Spreads numbers over 64 bits; odd, so that different numbers stay different.
const SPREAD: u64 = 0xd134_2543_de82_ef95;

/// Generates whole and partial blocks.
#[derive(Debug)]
pub struct Blocks {
    random: Percent,
    filler: Filler,
    duplicates: Duplicates,
    seed: u64,
    parts: u64,
}

impl Blocks {
    /// Blocks with this share of `random` bytes and the rest `filler`; the share `dedupe` of them repeats an earlier
    /// block.
    pub fn new(random: Percent, filler: Filler, dedupe: Percent, seed: u64) -> Self {
        Self { random, filler, duplicates: Duplicates::new(dedupe, seed), seed, parts: 0 }
    }

    /// Fills a whole block. Returns whether it is a duplicate.
    pub fn fill_block(&mut self, block: &mut [u8]) -> bool {
        let origin = self.duplicates.next_origin();
        let (Origin::New(number) | Origin::Copy(number)) = origin;
        self.fill(number, block);
        matches!(origin, Origin::Copy(_))
    }

    /// Fills a partial block, which is never a duplicate.
    pub fn fill_part(&mut self, part: &mut [u8]) {
        self.parts += 1;
        self.fill(PARTIAL_BLOCK | self.parts, part);
    }

    /// A number always gives the same bytes, so that repeated blocks need not be stored.
    fn fill(&self, number: u64, bytes: &mut [u8]) {
        let (random, rest) = bytes.split_at_mut(self.random_bytes(bytes.len()));
        let key = self.seed.wrapping_add(number.wrapping_mul(SPREAD));
        Xoshiro256PlusPlus::seed_from_u64(key).fill_bytes(random);
        self.filler.fill(rest);
    }

    /// Number of random bytes among `length` bytes.
    fn random_bytes(&self, length: usize) -> usize {
        let requested = self.random.of(length);
        let cost = if self.filler == Filler::Deadbeef && self.random < Percent::ALL { length / 100 } else { 0 };
        requested.saturating_sub(cost).max(MIN_RANDOM_BYTES).min(length)
    }
}
