//! `iosonar info`: summarizes a file of any rows.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::console;
use crate::tables::{self, Info, Reading};

/// Summarize a load, a run or a trace of calls
///
/// Shows duration, requests, sizes, latencies, origin and completeness.
///
/// Reads the whole file.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The file, or the files of one trace (blktrace, strace -ff); `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Print a JSON object (see docs/info.md)
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  iosonar info mysql.load.gz
  iosonar info sda.blktrace.* --action D         # at the device, from the files of all CPUs
  iosonar info tar.calls.parquet                # calls to files
  iosonar info run.replay.parquet --json | jq .latency_us.p99";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Info { object, text } = tables::open_by_content(&self.files, &self.reading)?.info(&self.files)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", console::json(&object)?)?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
