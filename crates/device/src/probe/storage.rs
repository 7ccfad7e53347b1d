//! A device or file as the storage of a probe.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use rustix::fs::{Advice, fadvise};

use super::{Space, Storage};

/// Bytes of a request.
const REQUEST: usize = 256 << 10;

/// A device or file.
#[derive(Debug)]
pub struct Real<'a> {
    /// It is open for writing.
    pub file: &'a File,
    /// What tells the space that it uses.
    pub space: Option<Space>,
}

impl Storage for Real<'_> {
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<f64> {
        let begun = Instant::now();
        for (number, piece) in data.chunks(REQUEST).enumerate() {
            self.file.write_all_at(piece, at + (number * REQUEST) as u64)?;
        }
        self.file.sync_data()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn read(&mut self, at: u64, memory: &mut [u8]) -> io::Result<f64> {
        // Of a file that was written through the page cache.
        let _ = fadvise(self.file, at, std::num::NonZeroU64::new(memory.len() as u64), Advice::DontNeed);
        let begun = Instant::now();
        for (number, piece) in memory.chunks_mut(REQUEST).enumerate() {
            self.file.read_exact_at(piece, at + (number * REQUEST) as u64)?;
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn used(&mut self) -> Option<u64> {
        self.space.as_ref()?.used()
    }
}
