//! `iosonar device`: inspects and prepares targets.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::signals;

mod inspect;
mod probe;
mod scheduler;
mod slurp;
mod sweeping;
mod wipe;

/// Inspect, fill, probe or read a target, or set its I/O scheduler
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar device inspect /dev/sdb             properties, users, share of zeros
  iosonar device wipe /dev/sdb                fill it with incompressible data
  iosonar device probe /dev/sdb               whether it suppresses zeros, compresses, deduplicates
  iosonar device slurp /dev/sdb               read all of it: errors, throughput, zeros
  iosonar device scheduler /dev/sdb none      no scheduler: measure the device itself")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Inspect(inspect::Args),
    Wipe(wipe::Args),
    Probe(probe::Args),
    Slurp(slurp::Args),
    Scheduler(scheduler::Args),
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        // Subcommands without a handler of their own end at once on a signal.
        signals::remove_unfinished_files();
        match self.command {
            Command::Inspect(args) => args.run(),
            Command::Wipe(args) => args.run(),
            Command::Probe(args) => args.run(),
            Command::Slurp(args) => args.run(),
            Command::Scheduler(args) => args.run(),
        }
    }
}
