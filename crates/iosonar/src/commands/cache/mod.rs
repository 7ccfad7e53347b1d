//! `iosonar cache`: how caches fill, and how often they hit.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod fill;
mod found;
mod load;
mod measured;
mod picture;
mod random;

/// Compute how long a cache takes to fill, and its hit ratio
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar cache fill --entries 1M --rate 5k      random reads of a working set of 1,000,000 blocks
  iosonar cache fill oltp.load.parquet           the blocks that a load touches, and LRU hit ratios")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Fill(fill::Args),
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Fill(args) => args.run(),
        }
    }
}
