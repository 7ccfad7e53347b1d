//! `iosonar cache fill`: how a cache fills, by formula and simulation, or by a recorded load.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::params::{
    parse_count, parse_positive, parse_positive_duration, parse_rate, parse_sectors, whole_number,
};
use iosonar_trace::{Nanos, Sectors};

use super::output::Output;
use super::{load, measured, random};
use crate::usage::misuse;

/// Show how a cache fills: with random reads by formula and simulation, or with a recorded load
///
/// With random reads of as many blocks as the cache has entries, a share of 1 - 1/e (63 %) is filled after one read for each entry,
/// and ln N + 0.58 times as many reads fill it. Skewed reads (--zipf) take far longer. For a load, it counts the blocks that
/// requests touch for the first time, and computes the hit ratio of LRU caches.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar cache fill --entries 1M                            uniformly random reads
  iosonar cache fill --entries 1M --rate 5k                  with the time at 5000 reads per second
  iosonar cache fill --entries 1M --reads 50M --zipf 0.9     skewed reads
  iosonar cache fill oltp.load.parquet --sizes 256M,1G,4G    a load: first touches, LRU hit ratios
  iosonar cache fill --entries 1M --csv fill.csv --picture fill.png
  iosonar cache fill --entries 100k --measured reads.replay.parquet --hit-latency 500us
                                                             and how a real cache filled")]
pub struct Args {
    /// A load: any format that `iosonar info` reads
    #[arg(value_name = "LOAD", conflicts_with = "entries")]
    load: Option<PathBuf>,

    /// Entries of the cache, and blocks that are read at random
    #[arg(long, value_name = "COUNT", value_parser = parse_count, allow_hyphen_values = true)]
    entries: Option<u64>,

    /// Random reads [default: until the cache is full, at most 100 for each entry]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, conflicts_with = "load", allow_hyphen_values = true)]
    reads: Option<u64>,

    /// Skewed reads: the n-th most frequent block has a probability proportional to 1/n^EXPONENT
    #[arg(long, value_name = "EXPONENT", value_parser = parse_positive, conflicts_with = "load", allow_hyphen_values = true)]
    zipf: Option<f64>,

    /// Reads per second, for the time to fill the cache
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "load", allow_hyphen_values = true)]
    rate: Option<f64>,

    /// Also show how a cache filled in this run of single-block reads, one at a time. A read that took longer than
    /// --hit-latency missed the cache
    #[arg(long, value_name = "RUN", conflicts_with = "load", requires = "hit_latency")]
    measured: Option<PathBuf>,

    /// Reads of the run with at most this latency are hits
    #[arg(long, value_name = "TIME", requires = "measured", value_parser = parse_positive_duration)]
    hit_latency: Option<Nanos>,

    /// Seed of the simulation
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX), conflicts_with = "load", allow_hyphen_values = true)]
    seed: u64,

    /// Size of a block of the cache; a load's requests touch each block of their range
    #[arg(long, value_name = "LENGTH", default_value = "4k", value_parser = parse_sectors, allow_hyphen_values = true)]
    block: Sectors,

    /// Sizes of LRU caches for the load [default: powers of two up to all its blocks]
    #[arg(long, value_name = "LENGTH,…", value_delimiter = ',', value_parser = parse_sectors, conflicts_with = "entries", allow_hyphen_values = true)]
    sizes: Vec<Sectors>,

    #[command(flatten)]
    output: Output,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if self.block.0 == 0 {
            misuse!("the size of a block is 0; set --block to 512B or more");
        }
        if self.sizes.iter().any(|size| size.0 < self.block.0) {
            misuse!("a cache of --sizes is smaller than a block (--block); use larger sizes");
        }
        self.output.check(self.load.iter().chain(&self.measured))?;
        let found = match (&self.load, self.entries) {
            (Some(load), _) => load::fill(load, self.block, &self.sizes)?,
            (None, Some(entries)) => {
                let reads =
                    random::Reads { entries, reads: self.reads, zipf: self.zipf, rate: self.rate, seed: self.seed };
                let run = self.measured.as_deref().zip(self.hit_latency);
                let run = run.map(|(run, hit)| measured::read(run, hit, self.block)).transpose()?;
                random::fill(&reads, self.block, run.as_ref())?
            }
            (None, None) => misuse!("name a load, or set --entries"),
        };
        self.output.put(&found)?;
        Ok(ExitCode::SUCCESS)
    }
}
