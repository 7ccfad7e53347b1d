//! What an access pattern is.

use super::calls::Calls;

/// How a trace of a pattern is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sizes or numbers of files, and amounts, are multiplied by this.
    pub scale: f64,
    /// Mean number of reads, or of transactions, per second.
    pub rate: f64,
    /// Length of a read or write in bytes.
    pub block: u64,
    /// The same seed makes the same trace.
    pub seed: u64,
}

/// An access pattern of one program.
pub struct Pattern {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, for people.
    pub title: &'static str,
    /// Starts the program.
    pub start: fn(&Settings) -> Box<dyn Program>,
}

/// A program that makes calls.
pub trait Program: Send {
    /// Makes the next calls; none if it has ended.
    fn advance(&mut self, calls: &mut Calls);

    /// The share that it has done.
    fn progress(&self) -> f64;

    /// The files it uses: `9 files of 1.0 GB`.
    fn files(&self) -> String;
}
