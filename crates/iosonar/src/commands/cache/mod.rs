//! `iosonar cache`: how caches fill, how often they hit, and how large they must be.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod fill;
mod found;
mod load;
mod measured;
mod output;
mod picture;
mod random;
mod serving;
mod size;
mod touches;

/// Compute how a cache fills, its hit ratio, and the size it needs
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar cache fill --entries 1M --rate 5k      random reads of a working set of 1,000,000 blocks
  iosonar cache fill oltp.load.parquet           the blocks that a load touches, and LRU hit ratios
  iosonar cache size oltp.load.parquet           the smallest cache that serves a load")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Fill(fill::Args),
    Size(size::Args),
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Fill(args) => args.run(),
            Command::Size(args) => args.run(),
        }
    }
}
