//! `iosonar cache size`: the smallest cache that serves a load, alone or below another one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::Sectors;
use iosonar_trace::params::{parse_sectors, parse_speed};

use super::output::Output;
use super::serving::{self, CachedOps};
use crate::usage::{misuse, refuse_pipe};

/// Show how large a cache must be to serve a load, alone or below another cache
///
/// A cache serves a load if all blocks touched within its fill time fit into it, at any time of the load. The fill time is
/// its size divided by --fill-rate. An inclusive lower cache also holds what is in the upper one, and is useless unless it
/// is larger; an exclusive one holds other blocks, so that both sizes add up.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar cache size oltp.load.parquet --fill-rate 500M/s     the smallest cache, and powers of two
  iosonar cache size oltp.load.parquet --sizes 1G,4G          whether these serve it
  iosonar cache size oltp.load.parquet --upper 16G            the smallest cache below one of 16 GiB
  iosonar cache size oltp.load.parquet --op read --picture size.png")]
pub struct Args {
    /// A load: any format that `iosonar info` reads
    #[arg(value_name = "LOAD")]
    load: PathBuf,

    /// Bytes per second at which the storage below fills the cache
    #[arg(long, value_name = "SPEED", default_value = "200M/s", value_parser = parse_speed, allow_hyphen_values = true)]
    fill_rate: u64,

    /// Size of a cache above: the sizes are those of the lower one
    #[arg(long, value_name = "LENGTH", value_parser = parse_sectors, allow_hyphen_values = true)]
    upper: Option<Sectors>,

    /// Operations that use the cache
    #[arg(long, value_name = "OP", value_enum, default_value_t)]
    op: CachedOps,

    /// Sizes of caches that are judged [default: powers of two up to all blocks of the load]
    #[arg(long, value_name = "LENGTH,…", value_delimiter = ',', value_parser = parse_sectors, allow_hyphen_values = true)]
    sizes: Vec<Sectors>,

    /// Size of a block of the cache; a request touches each block of its range
    #[arg(long, value_name = "LENGTH", default_value = "4k", value_parser = parse_sectors, allow_hyphen_values = true)]
    block: Sectors,

    #[command(flatten)]
    output: Output,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.output.check(std::iter::once(&self.load))?;
        refuse_pipe(&self.load, "cache size reads the load")?;
        if self.block.0 == 0 {
            misuse!("the size of a block is 0; set --block to 512B or more");
        }
        if self.sizes.iter().chain(&self.upper).any(|size| size.0 < self.block.0) {
            misuse!("a cache of --sizes or --upper is smaller than a block (--block); use larger sizes");
        }
        let asked = serving::Asked {
            block: self.block,
            bytes_per_s: self.fill_rate,
            op: self.op,
            upper: self.upper,
            sizes: &self.sizes,
        };
        self.output.put(&serving::size(&self.load, &asked)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
