//! The subcommands: one file and one line here for each.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::external;
use crate::program::Program;

mod cache;
mod check;
mod clock;
mod completions;
mod config;
mod convert;
mod demo;
mod device;
mod doctor;
mod edit;
mod files;
mod formats;
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
Tutorials: iosonar help choose-storage, find-a-stall, size-a-cache, gate-in-ci, read-diagrams

`iosonar NAME` runs any other program iosonar-NAME beside this binary or in PATH, as git does.

Exit codes: 0 success, 1 failure, 2 wrong command line, 3 a check failed (check, --fail-if), 4
requests of a replay (or parts of a wipe or slurp) failed, or --fail-if is undecided, 5 cut
short.";

/// In the order of the help.
#[derive(Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Doctor(doctor::Args),
    Info(info::Args),
    Convert(convert::Args),
    Formats(formats::Args),
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
    #[command(hide = true)]
    Clock(clock::Args),
    Config(config::Args),
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
            Self::Doctor(args) => args.run(),
            Self::Info(args) => args.run(),
            Self::Convert(args) => args.run(),
            Self::Formats(args) => args.run(),
            Self::Edit(args) => args.run(),
            Self::Files(args) => args.run(),
            Self::Generate(args) => args.run(),
            Self::Workload(args) => args.run(),
            Self::Cache(args) => args.run(),
            Self::Record(args) => args.run(),
            Self::Device(args) => args.run(),
            Self::Replay(args) => args.run(),
            Self::Recover(args) => args.run(),
            Self::Limit(args) => args.run(program),
            Self::Check(args) => args.run(),
            Self::Clock(args) => args.run(),
            Self::Config(args) => args.run(program),
            Self::Completions(args) => args.run(program),
            Self::Man(args) => args.run(program),
            Self::External(words) => external::run(&words, program),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use clap::{Arg, Command, CommandFactory};

    /// The options with numbers as values, of a command and those below it, with the command's name.
    fn numeric(command: &Command, path: &str) -> Vec<(String, Arg)> {
        macro_rules! ids {
            ($($number:ty)*) => { [$(TypeId::of::<$number>()),*] };
        }
        let numbers = ids!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);
        let path = format!("{path} {}", command.get_name());
        let is_numeric = |arg: &&Arg| {
            arg.get_action().takes_values() && numbers.iter().any(|number| arg.get_value_parser().type_id() == *number)
        };
        let own = command.get_arguments().filter(is_numeric).map(|arg| (path.clone(), arg.clone()));
        own.chain(command.get_subcommands().flat_map(|below| numeric(below, &path))).collect()
    }

    #[test]
    fn a_wrong_number_is_refused_with_what_is_expected() {
        let all = numeric(&crate::Cli::command(), "");
        assert!(all.len() > 40, "{}", all.len());
        for (command, option) in all {
            let name = format!("{command} --{}", option.get_long().unwrap_or_default());
            assert!(option.is_allow_hyphen_values_set(), "{name} -1 is taken for an option");
            let value = Arg::new("value").value_parser(option.get_value_parser().clone()).allow_hyphen_values(true);
            let parser = Command::new("x").arg(value);
            for wrong in ["", "x", "-1x", "1.2.3"] {
                let error = parser.clone().try_get_matches_from(["x", wrong]).expect_err(&name).to_string();
                assert!(error.contains(&format!("`{wrong}`")), "{name}: {error}");
            }
        }
    }

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
