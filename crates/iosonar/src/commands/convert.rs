//! `iosonar convert`: converts between trace formats.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::formats::Format;

use crate::output_files;
use crate::tables::{self, Job, Reading, writable_format_named};

/// Convert a load, a run or a trace of calls to another format
///
/// The input's format is recognised by its content; the name of the output determines the output's: .parquet; .load, .replay or
/// .txt for blkreplay's text; .iolog for fio; .blktrace.0 for blkparse, btt and btreplay; .blkparse; .spc. Text may be
/// compressed (.gz, .zst); Parquet compresses inside. Strace text becomes a trace of calls, NAME.calls.parquet. `-` is standard input or output.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The load, trace or result of a replay to read; several files if a trace has them (blktrace, strace -ff)
    #[arg(value_name = "IN", required = true, num_args = 1..)]
    inputs: Vec<PathBuf>,

    /// The file to write; NAME.load… turns a run back into its load
    #[arg(value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    reading: Reading,

    /// The format of OUT; `iosonar formats` lists them [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: output_files::Replacing,
}

const AFTER_HELP: &str = "\
Examples:
  iosonar convert mysql.load.gz mysql.load.parquet
  iosonar convert run.replay.parquet run.replay.gz     # a result for blkreplay's tools
  iosonar convert run.replay.gz again.load.gz          # the load again, sorted by time
  iosonar convert sda.blktrace.* sda.load.parquet      # the files of all CPUs
  perf script | iosonar convert - sda.load.gz --action D
  iosonar convert tar.strace tar.calls.parquet         # what a program did to files
  zcat x.load.gz | iosonar convert - - --to parquet > x.load.parquet
  iosonar convert any.csv x.load.parquet --columns 'at=1:us op=3 offset=4:bytes size=5:bytes'

Warnings at the end list what the output format cannot hold. A file with its final name is complete.";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Self { inputs, output, .. } = self;
        for input in &inputs {
            output_files::refuse_same_file(input, &output)?;
        }
        self.reading.refuse_window()?;
        self.replacing.allows(&output)?;
        let file = tables::open(&inputs, Some(&output), &self.reading)?;
        file.convert(&Job {
            inputs: &inputs,
            output: &output,
            to: self.to,
            pipeline: None,
            replacing: &self.replacing,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
