//! What an access pattern is.

use iosonar_workload::Rng;

/// An access pattern of one program.
pub struct Pattern {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, for people.
    pub title: &'static str,
    /// How many files the program reads, one after the other.
    pub files: u32,
    /// The size of each file in bytes.
    pub file_bytes: u64,
    /// Bytes read from each file.
    pub read_bytes: u64,
    /// Creates the positions for one file.
    pub walk: fn(&Extent) -> Box<dyn Walk>,
}

/// The part of a file that is read, after scaling.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Mean length of a read.
    pub block: u64,
}

/// The positions of the reads of one file.
pub trait Walk: Send {
    /// Where the next read of this length begins.
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64;
}
