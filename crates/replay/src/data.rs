//! What is written: fresh, incompressible bytes for each request, so that no device saves itself the work.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Makes the data of writes.
#[derive(Debug)]
pub struct Content {
    random: Xoshiro256PlusPlus,
}

impl Content {
    /// The same seed makes the same data.
    pub fn new(seed: u64) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.random.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_incompressible_and_differs_from_block_to_block() {
        let mut data = vec![0; 8 << 20];
        Content::new(1).fill(&mut data);
        let blocks: std::collections::HashSet<&[u8]> = data.chunks(4096).collect();
        assert_eq!(blocks.len(), 2048);
        let ones: u64 = data.iter().map(|b| u64::from(b.count_ones())).sum();
        let expected = data.len() as u64 * 4;
        assert!(ones.abs_diff(expected) < expected / 1000, "{ones} of {expected} bits are set");
    }
}
