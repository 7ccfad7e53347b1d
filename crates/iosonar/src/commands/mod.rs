//! The subcommands: one file and one line here for each.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::external;
use crate::program::Program;

mod cache;
mod check;
mod completions;
mod convert;
mod demo;
mod device;
mod edit;
mod files;
mod generate;
mod info;
mod limit;
mod man;
mod record;
mod recover;
mod replay;
mod workload;

/// The end of `iosonar --help`.
pub const AFTER_HELP: &str = "\
`iosonar NAME` runs any other program iosonar-NAME beside this binary or in PATH, as git does.

Exit codes: 0 success, 1 failure, 2 wrong command line, 3 a check failed (check, report
--fail-on, compare --fail-if), 4 requests of a replay (or parts of a wipe or slurp) failed, or runs
cannot decide --fail-if, 5 cut short.";

/// In the order of the help.
#[derive(Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Info(info::Args),
    Convert(convert::Args),
    Edit(edit::Args),
    Files(files::Args),
    Generate(generate::Args),
    Workload(workload::Args),
    Cache(cache::Args),
    Record(record::Args),
    Device(device::Args),
    Replay(Box<replay::Args>),
    Recover(recover::Args),
    Limit(limit::Args),
    Check(check::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

impl Command {
    /// Whether the command does I/O on a target, which may hang.
    pub fn may_hang(&self) -> bool {
        match self {
            Self::Replay(_) | Self::Device(_) => true,
            Self::Files(args) => args.may_hang(),
            _ => false,
        }
    }

    pub fn run(self, program: &Program) -> Result<ExitCode> {
        match self {
            Self::Demo(args) => args.run(program),
            Self::Info(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Edit(args) => args.run(),
            Self::Files(args) => args.run(),
            Self::Generate(args) => args.run(),
            Self::Workload(args) => args.run(),
            Self::Cache(args) => args.run(),
            Self::Record(args) => args.run(),
            Self::Device(args) => args.run(),
            Self::Replay(args) => args.run(),
            Self::Recover(args) => args.run(),
            Self::Limit(args) => args.run(),
            Self::Check(args) => args.run(),
            Self::Completions(args) => args.run(program),
            Self::Man(args) => args.run(program),
            Self::External(words) => external::run(&words, program),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// clap wraps longer lines even on a wide terminal.
    #[test]
    fn examples_are_at_most_100_characters_wide() {
        for command in crate::Cli::command().get_subcommands() {
            let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in below.lines().filter(|line| line.starts_with("  iosonar")) {
                assert!(line.chars().count() <= 100, "iosonar {} --help: {line}", command.get_name());
            }
        }
    }
}
