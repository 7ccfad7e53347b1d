//! `iosonar files`: what programs do to files; one file and one line here for each subcommand.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod check;
mod generate;
mod needs;
mod order;
mod prepare;
mod record;
mod replay;
mod scale;

/// Record and replay what programs do to files
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar files record --output tar.calls.parquet --tree src -- tar -cf src.tar src
  iosonar files check tar.calls.parquet --root /mnt/test      what is missing below the root
  iosonar files prepare tar.calls.parquet --root /mnt/test    create it
  iosonar files replay tar.calls.parquet --root /mnt/test --output tar.calls-run.parquet
  iosonar files order tar.calls.parquet --order fs            each call with its predecessors")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// In the order of the help.
#[derive(Subcommand)]
enum Command {
    Record(record::Args),
    Check(check::Args),
    Prepare(prepare::Args),
    Replay(Box<replay::Args>),
    Scale(scale::Args),
    Order(order::Args),
    Generate(generate::Args),
}

impl Args {
    /// Whether the command issues calls, which may hang.
    pub fn may_hang(&self) -> bool {
        matches!(self.command, Command::Replay(_))
    }

    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Record(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Prepare(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Scale(args) => args.run(),
            Command::Order(args) => args.run(),
            Command::Generate(args) => args.run(),
        }
    }
}
