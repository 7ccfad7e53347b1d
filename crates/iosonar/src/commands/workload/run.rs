//! `iosonar workload run`: a program on a device.

use std::process::ExitCode;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use iosonar_pacing::options::{Changes, PacingOptions};
use iosonar_replay::config::options::Options;

use crate::commands::replay::{self, repeat};
use crate::live::ProgressOptions;

/// Options of `iosonar replay` that are for loads alone, beside those of pacing that change times of a load.
const OF_LOADS: [&str; 10] =
    ["edit", "fit", "start", "end", "duration", "loops", "calibrate", "closed", "verify", "verify_memory"];

/// All options that are for loads alone, by their names in clap.
fn of_loads() -> impl Iterator<Item = String> {
    let changes = [Changes::Load, Changes::IssueTimes].into_iter();
    let of_pacing = changes.flat_map(PacingOptions::that_change).map(|option| option.id);
    OF_LOADS.into_iter().map(str::to_owned).chain(of_pacing)
}

/// Run a program on a device, a file or a simulated device
///
/// DESTROYS DATA on the targets if the program writes. Refuses a target that is mounted or otherwise in use. Needs --force
/// for one with a file system, LVM, RAID or partitions, and for a file with data.
#[derive(clap::Args)]
#[command(override_usage = "iosonar workload run [OPTIONS] --output <FILE> <PROGRAM>")]
#[command(after_help = "\
Examples:
  iosonar workload run random-mix --target /dev/sdb --output mix.replay.parquet --for 5m --set rate=2k
  iosonar workload run tpcb -t /dev/sdb -o tpcb.replay.parquet --for 10m --scale 100
  iosonar workload run log-and-data -t log=/dev/sdb -t data=/dev/sdc -o two.replay.parquet --for 5m
                                          a target for each device of the program
  iosonar workload run oltp.toml --simulate hdd --virtual-time -o hdd.replay.parquet --for 1h
                                          an hour on a simulated disk, in seconds
  iosonar workload run oltp.fio -t /dev/sdb -o fio.replay.parquet
                                          a job file of fio
To see the result: iosonar report mix.replay.parquet

The options are those of `iosonar replay`, without those that change the times of a load.
`iosonar replay LOAD --program PROGRAM` runs a program beside a recorded load.

Exit codes: 0 success, 1 failure, 2 wrong command line, 4 requests failed or were short,
5 the run was cut short (the result has all requests until then).")]
pub struct Args {
    #[command(flatten)]
    program: ProgramAndOptions,
    /// Print the closing statistics as a JSON object
    #[arg(long, help_heading = "Result")]
    json: bool,
    #[command(flatten)]
    progress: ProgressOptions,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        replay::replay(repeat::each(self.program.0)?, self.json, &self.progress)
    }
}

/// The options of a replay, with a program in the place of the load.
struct ProgramAndOptions(Options);

impl FromArgMatches for ProgramAndOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |id: &String| matches.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(id) = of_loads().find(is_given) {
            let option = if id == "loops" { "loop".to_owned() } else { id.replace('_', "-") };
            let why = format!("--{option} is for loads: a program makes its requests while it runs; omit it\n");
            return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, why));
        }
        Ok(Self(Options::from_arg_matches(matches)?.with_program_instead_of_load()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for ProgramAndOptions {
    fn augment_args(command: Command) -> Command {
        let command = Options::augment_args(command)
            .mut_arg("load", |load| {
                load.value_name("PROGRAM").help("Name of a ready program (`iosonar workload list`), a TOML file, or a job file of fio or vdbench (NAME.fio, NAME.vdb)")
            })
            .mut_arg("program", |program| program.hide(true))
            .mut_arg("run_for", |run_for| {
                run_for.help(
                    "Submit new requests for this time: 90, 10m, 2h; required if the program does not end by itself",
                )
            })
            .mut_arg("seed", |seed| seed.help("Random seed of the program and of --simulate"));
        of_loads().fold(command, |command, id| command.mut_arg(id, |option| option.hide(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
