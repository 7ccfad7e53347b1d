//! `iosonar info`: summarizes a file of any rows.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use iosonar_trace::Nanos;
use iosonar_trace::params::parse_duration;

use crate::console;
use crate::tables::{self, Info, Reading};

/// Summarize a load, a run or a trace of calls
///
/// Shows duration, requests, sizes, latencies, origin and completeness.
///
/// Reads the whole file.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("from", |from| from.value_name("TIME").allow_hyphen_values(true).help(FROM_HELP)))]
pub struct Args {
    /// The file, or the files of one trace (blktrace, strace -ff); `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Only requests or calls due before this time: 600, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    to: Option<Nanos>,

    /// Print a JSON object (see docs/info.md)
    #[arg(long)]
    json: bool,
}

const FROM_HELP: &str = "Only requests or calls due at this time or later: 90, 2m. Or the name of a format: that of the input [default: by its \
     content]";

const AFTER_HELP: &str = "\
Examples:
  iosonar info mysql.load.gz
  iosonar info sda.blktrace.* --action D         # at the device, from the files of all CPUs
  iosonar info tar.calls.parquet                # calls to files
  iosonar info run.replay.parquet --from 2m --to 10m
  iosonar info run.replay.parquet --json | jq .latency_us.p99";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let window = self.reading.window(self.to)?;
        let Info { object, text } = tables::open_by_content(&self.files, &self.reading)?.info(&self.files, window)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", console::json(&object)?)?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
