//! A keyed permutation of the numbers below N, in constant memory.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Maps each number below its size to another, one to one. A Feistel network over the next even power of two, walked
/// until the result is below the size (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    size: u64,
    half_bits: u32,
    key: (u64, u64),
}

const ROUNDS: u8 = 6;

impl Permutation {
    /// A permutation of the numbers below `size`.
    pub fn new(size: u64, key: (u64, u64)) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        Self { size, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Maps a number. Numbers from `size` on stay unchanged.
    pub fn map(&self, number: u64) -> u64 {
        if number >= self.size {
            return number;
        }
        // The network's domain is at most four times the size: a few steps on average.
        let mut x = self.scramble(number);
        while x >= self.size {
            x = self.scramble(x);
        }
        x
    }

    fn scramble(&self, x: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits & mask, x & mask);
        for round in 0..ROUNDS {
            let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
            hasher.write_u8(round);
            hasher.write_u64(right);
            (left, right) = (right, left ^ hasher.finish() & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_one_to_one() {
        for size in [0, 1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097] {
            let permutation = Permutation::new(size, (7, size));
            let mut hit = vec![false; size as usize];
            for x in 0..size {
                let y = permutation.map(x) as usize;
                assert!(!std::mem::replace(&mut hit[y], true), "{size}: two numbers go to {y}");
            }
        }
    }

    #[test]
    fn the_largest_sizes_work_and_keys_differ() {
        let one = Permutation::new(u64::MAX, (1, 2));
        let other = Permutation::new(u64::MAX, (1, 3));
        assert_ne!(one.map(5), other.map(5));
        assert!(one.map(u64::MAX - 1) < u64::MAX);
    }
}
