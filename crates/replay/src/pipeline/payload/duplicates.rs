//! Which blocks repeat an earlier one.
//!
//! The share is exact in every hundred blocks: a hundred is dealt out like a deck of cards, in an order left to chance.
//!
//! What is repeated are the blocks of the older half of what was written so far, one after the other, 4 MiB of them at
//! most. So a copy lies as far as possible from its like in the order of writing, and a compressor that looks back over
//! a few MiB does not find it: finding duplicates stays the work of the deduplicator. And since few contents are repeated
//! often, their share stays what it is while blocks are overwritten.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::percent::Percent;

/// The most contents that are repeated: 4 MiB, which is more than zstd at its common levels looks back.
const MOST_REPEATED: u64 = 1024;

/// Where the content of a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is new, the so-many-th of its kind.
    Fresh(u64),
    /// It repeats that one.
    Copy(u64),
}

/// Deals out fresh blocks and copies.
#[derive(Debug)]
pub struct Duplicates {
    percent: Percent,
    chance: Xoshiro256PlusPlus,
    /// Fresh blocks so far.
    fresh: u64,
    /// What is repeated next, if it is among what may be repeated.
    next: u64,
    /// Blocks of this hundred that are still to come, and copies among them.
    left: u64,
    copies_left: u64,
}

impl Duplicates {
    /// That share of all blocks.
    pub fn new(percent: Percent, seed: u64) -> Self {
        let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { percent, chance, fresh: 0, next: 0, left: 0, copies_left: 0 }
    }

    /// Of the next block.
    pub fn deal(&mut self) -> Origin {
        if self.percent == Percent::NONE {
            return self.make();
        }
        if self.left == 0 {
            (self.left, self.copies_left) = (100, u64::from(self.percent.get()));
        }
        let is_copy = self.fresh > 0 && self.chance.next_u64() % self.left < self.copies_left;
        self.left -= 1;
        if !is_copy {
            return self.make();
        }
        self.copies_left -= 1;
        let repeated = self.fresh.div_ceil(2).min(MOST_REPEATED);
        let copied = if self.next < repeated { self.next } else { 0 };
        self.next = copied + 1;
        Origin::Copy(copied)
    }

    fn make(&mut self) -> Origin {
        self.fresh += 1;
        Origin::Fresh(self.fresh - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn dealt(percent: u8, blocks: usize, seed: u64) -> Vec<Origin> {
        let mut duplicates = Duplicates::new(Percent::new(percent).unwrap(), seed);
        (0..blocks).map(|_| duplicates.deal()).collect()
    }

    proptest! {
        /// Fresh blocks are numbered through, a copy has its like before it, and the share is never off by more than what
        /// a hundred blocks can be off.
        #[test]
        fn the_share_is_exact_in_every_hundred(percent in 0u8..=99, blocks in 1usize..3000, seed: u64) {
            let (mut fresh, mut copies) = (0, 0);
            for (i, origin) in dealt(percent, blocks, seed).into_iter().enumerate() {
                match origin {
                    Origin::Fresh(number) => { prop_assert_eq!(number, fresh); fresh += 1; }
                    Origin::Copy(number) => { prop_assert!(number < fresh); copies += 1; }
                }
                if (i + 1) % 100 == 0 {
                    prop_assert_eq!(copies, (i as u64 + 1) / 100 * u64::from(percent));
                }
            }
        }
    }

    #[test]
    fn a_copy_lies_far_from_its_like() {
        for percent in [10, 50, 90] {
            let (mut last, mut nearest) = (HashMap::new(), usize::MAX);
            for (i, origin) in dealt(percent, 200_000, 7).into_iter().enumerate() {
                let (Origin::Fresh(number) | Origin::Copy(number)) = origin;
                if let Some(before) = last.insert(number, i)
                    && i >= 100_000
                {
                    nearest = nearest.min(i - before);
                }
            }
            assert!(nearest >= MOST_REPEATED as usize, "{percent} %: {nearest} blocks");
        }
    }
}
