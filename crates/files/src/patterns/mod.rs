//! Traces of known access patterns, generated: one file for each group, and one line in [`PATTERNS`].

mod generated;
mod high_energy_physics;

pub use generated::{Generated, Settings};

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
    walk: fn(&Extent) -> Box<dyn Walk>,
}

/// The part of a file that is read, after scaling.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    file_bytes: u64,
    read_bytes: u64,
    /// Mean length of a read.
    block: u64,
}

/// The positions of the reads of one file.
trait Walk: Send {
    /// Where the next read of this length begins.
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64;
}

/// Every pattern.
pub static PATTERNS: &[&Pattern] = &[
    &high_energy_physics::ATLAS_OLD,
    &high_energy_physics::ATLAS_NEW,
    &high_energy_physics::CMS_ANALYSIS,
    &high_energy_physics::CMS_RECONSTRUCTION,
];

/// The pattern of this name.
pub fn named(name: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().copied().find(|pattern| pattern.name == name)
}
