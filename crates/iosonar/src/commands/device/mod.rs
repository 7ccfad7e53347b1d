//! `iosonar device`: looks after the devices and files that are replayed on.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod inspect;
mod scheduler;
mod slurp;
mod sweeping;
mod wipe;

/// Look after a target: what it is and holds, filling it with data, reading all of it, its scheduler
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar device inspect /dev/sdb             what it is, who uses it, how much of it is zero
  iosonar device wipe /dev/sdb                fill it with data that can't be compressed
  iosonar device slurp /dev/sdb               read all of it: errors, throughput, zeroes
  iosonar device scheduler /dev/sdb none      let the device itself be measured")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Inspect(inspect::Args),
    Wipe(wipe::Args),
    Slurp(slurp::Args),
    Scheduler(scheduler::Args),
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Inspect(args) => args.run(),
            Command::Wipe(args) => args.run(),
            Command::Slurp(args) => args.run(),
            Command::Scheduler(args) => args.run(),
        }
    }
}
