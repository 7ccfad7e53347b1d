//! `iosonar workload`: programs, which make requests instead of a recorded load.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

mod convert;
mod fit;
mod list;
mod load;
mod run;
mod show;

/// Run programs that make requests: streams, transactions, job files
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar workload list                                 the ready programs
  iosonar workload show tpcb > mine.toml                the text of one, to change it
  iosonar workload run tpcb -t /dev/sdb -o tpcb.replay.parquet --for 10m
                                                        on a device
  iosonar workload load spc1 x.load.parquet --scale 10  its open part as a load
  iosonar workload convert oltp.fio oltp.toml           a job file of fio as a program
  iosonar workload fit x.load.parquet x.toml            a program with the distributions of a load

PROGRAM is the name of a ready program, a TOML file, or a job file of fio or vdbench (NAME.fio, NAME.vdb);
docs/workloads.md describes them.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Load(load::Args),
    Run(Box<run::Args>),
    Convert(convert::Args),
    Fit(fit::Args),
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::List(args) => args.run(),
            Command::Show(args) => args.run(),
            Command::Load(args) => args.run(),
            Command::Run(args) => args.run(),
            Command::Convert(args) => args.run(),
            Command::Fit(args) => args.run(),
        }
    }
}
