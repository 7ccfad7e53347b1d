//! The passes of a sweep: wipe and slurp.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use super::sweep::Pass;
use super::zeroes::all_zero;

/// Block size for counting zeros, in bytes.
pub const ZERO_UNIT_BYTES: u64 = 4096;

/// Writes incompressible data without duplicate blocks, even across wipes.
#[derive(Debug)]
pub struct Wipe<'a> {
    file: &'a File,
    key: u64,
}

impl<'a> Wipe<'a> {
    /// Each seed has other data.
    pub fn new(file: &'a File, seed: u64) -> Self {
        // Nearby seeds, such as two times of day, must not shift the same data.
        Self { file, key: SplitMix64::seed_from_u64(seed).next_u64() }
    }
}

impl Pass for Wipe<'_> {
    fn prepare(&mut self, at: u64, memory: &mut [u8]) {
        // A generator for each chunk, independent of threads. Distinct seeds have distinct states.
        Xoshiro256PlusPlus::seed_from_u64(self.key.wrapping_add(at)).fill_bytes(memory);
    }

    fn transfer(&mut self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        self.file.write_all_at(memory, at)
    }

    fn done(&mut self, _: u64, _: &[u8]) {}
}

/// Reads, and counts blocks that are all zero.
#[derive(Debug)]
pub struct Slurp<'a> {
    file: &'a File,
    /// Blocks read; the last one may be shorter.
    pub units: u64,
    /// Blocks that are all zero.
    pub zero_units: u64,
}

impl<'a> Slurp<'a> {
    /// A pass without data.
    pub fn new(file: &'a File) -> Self {
        Self { file, units: 0, zero_units: 0 }
    }
}

impl Pass for Slurp<'_> {
    fn prepare(&mut self, _: u64, _: &mut [u8]) {}

    fn transfer(&mut self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(memory, at)
    }

    fn done(&mut self, _: u64, memory: &[u8]) {
        for unit in memory.chunks(ZERO_UNIT_BYTES as usize) {
            self.units += 1;
            self.zero_units += u64::from(all_zero(unit));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::sweep::{CHUNK_BYTES, Progress, sweep};

    fn wiped(bytes: u64, seed: u64) -> Vec<u8> {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        let swept = sweep(0..bytes, 512, 4, &Progress::default(), || Wipe::new(&file, seed));
        assert_eq!((swept.bytes, swept.failed_bytes), (bytes, 0));
        let mut data = vec![0; bytes as usize];
        file.read_exact_at(&mut data, 0).unwrap();
        data
    }

    #[test]
    fn wipes_have_no_duplicate_blocks() {
        // Seeds at the distance of a chunk.
        let (one, other) = (wiped(9 * CHUNK_BYTES + 4096, 1), wiped(9 * CHUNK_BYTES + 4096, 1 + CHUNK_BYTES));
        let blocks: HashSet<&[u8]> = one.chunks(4096).chain(other.chunks(4096)).collect();
        assert_eq!(blocks.len(), 2 * (9 * 256 + 1));
    }

    #[test]
    fn slurp_counts_zero_blocks() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(3 * CHUNK_BYTES).unwrap();
        file.write_all_at(&[1], CHUNK_BYTES + 5000).unwrap();
        let swept = sweep(0..3 * CHUNK_BYTES, 512, 2, &Progress::default(), || Slurp::new(&file));
        let count = |of: fn(&Slurp<'_>) -> u64| swept.passes.iter().map(of).sum::<u64>();
        assert_eq!((count(|p| p.units), count(|p| p.zero_units)), (768, 767));
    }
}
