//! `iosonar files generate`: traces of known access patterns.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use iosonar_files::patterns::{Generated, PATTERNS, Settings, named};
use iosonar_files::table;
use iosonar_trace::params::{parse_bytes, parse_count, parse_share, whole_number};
use iosonar_trace::{Nanos, Reader as _, Writer as _};

use crate::console::status;
use crate::progress::Rows;
use crate::usage::misuse;
use crate::{human, output_files, signals};

/// Generate a trace of a known access pattern
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The access pattern
    #[arg(value_parser = PossibleValuesParser::new(PATTERNS.iter().map(|pattern| pattern.name)), hide_possible_values = true)]
    pattern: String,
    /// The trace to write: NAME.calls.parquet
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    replacing: output_files::Replacing,
    /// Multiply the size of files and the amount read by this, at most 1; postmark: the number of files
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share, allow_hyphen_values = true)]
    scale: f64,
    /// Mean number of reads per second; postmark: of transactions
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = parse_count, allow_hyphen_values = true)]
    rate: u64,
    /// Mean length of a read in bytes; postmark: of all reads and writes but the last of a file
    #[arg(long, value_name = "BYTES", default_value = "64k", value_parser = parse_bytes, allow_hyphen_values = true)]
    read_size: u64,
    /// Seed of the random generator: the same seed makes the same trace
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX))]
    #[arg(allow_hyphen_values = true)]
    seed: u64,
}

fn after_help() -> String {
    let patterns: String =
        PATTERNS.iter().map(|pattern| format!("  {:<20} {}\n", pattern.name, pattern.title)).collect();
    format!(
        "\
Patterns:
{patterns}
Examples:
  iosonar files generate atlas-old old.calls.parquet
  iosonar files generate cms-analysis small.calls.parquet --scale 0.01 --rate 5k
  iosonar files generate postmark mail.calls.parquet --scale 0.1 --read-size 4k

The first four patterns come from programs of particle physics; the sizes of their reads do not.
postmark is the benchmark PostMark for mail servers. Replay several at once with `iosonar files replay --instances`.
`iosonar files prepare` creates the files that the trace reads, and the directories it needs."
    )
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.replacing.allows(&self.output)?;
        if self.scale <= 0.0 || self.rate == 0 || self.read_size == 0 {
            misuse!("--scale, --rate and --read-size must be above 0");
        }
        let pattern = named(&self.pattern).expect("one of the possible values");
        let settings = Settings { scale: self.scale, rate: self.rate as f64, block: self.read_size, seed: self.seed };
        let mut calls = Generated::new(pattern, &settings);
        signals::remove_unfinished_files();
        let mut writer = table::create(&self.output, calls.metadata())?;
        let mut progress = Rows::new(pattern.name);
        let mut last = Nanos::ZERO;
        while let Some(call) = calls.next()? {
            last = call.end().unwrap_or(call.begin);
            writer.write(&call)?;
            progress.row(|| calls.progress());
        }
        let count = progress.finish();
        writer.finish(calls.metadata())?;
        status!(
            "{}: {} over {}, on {}",
            self.output.display(),
            human::counted(count, "call"),
            human::span(last.as_secs()),
            calls.files()
        );
        Ok(ExitCode::SUCCESS)
    }
}
