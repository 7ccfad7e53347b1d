//! `iosonar edit`: transforms a load.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::formats::Format;
use iosonar_trace::params::{Definition, did_you_mean};

use crate::console::out;
use crate::output_files;
use crate::tables::{self, Job, Reading, edits, writable_format_named};
use crate::usage::misuse;

/// Change a load or a trace: select, shift, spread, merge, …
///
/// A pipeline is one or more transforms, separated by `|`; `--help-transform NAME` explains a transform. IN has any format;
/// for a run, its load is used. Traces of calls have their own transforms. The name of OUT determines its format.
#[derive(clap::Args)]
#[command(override_usage = USAGE, after_help = after_help())]
pub struct Args {
    /// The load, or result of a replay, to read; `-` is standard input
    #[arg(value_name = "IN", required_unless_present = "help_transform")]
    input: Option<PathBuf>,

    /// The load to write: NAME.load.parquet, or NAME.load.gz for blkreplay's text
    #[arg(value_name = "OUT", required_unless_present = "help_transform")]
    output: Option<PathBuf>,

    /// The transforms, in quotes: 'select from=0 to=300 | slip every=32768 increase=128k'
    #[arg(value_name = "PIPELINE", required_unless_present = "help_transform", value_parser = tables::checked)]
    pipeline: Option<String>,

    /// The format of OUT; `iosonar formats` lists them [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: output_files::Replacing,

    /// Explain a transform, or `all` of them
    #[arg(long, value_name = "NAME", exclusive = true)]
    help_transform: Option<String>,
}

const USAGE: &str = "iosonar edit [OPTIONS] <IN> <OUT> <PIPELINE>\n       iosonar edit --help-transform <NAME>";

fn after_help() -> String {
    let mut text = String::new();
    for edits in edits() {
        text += edits.heading;
        for form in edits.forms() {
            text += &format!("  {:<10} {}\n", form.name, form.about);
        }
    }
    text + EXAMPLES
}

const EXAMPLES: &str = "
Examples:
  iosonar edit mysql.load.gz first.load.parquet 'select from=0 to=5m'
  iosonar edit day.load.parquet peak.load.parquet 'derived snippet=5m | select to=1h'
  iosonar edit a.load.gz both.load.parquet 'adjacent with=b.load.gz | dense'
  iosonar edit customer.load.parquet public.load.parquet 'anonymise'
  iosonar edit tar.calls.parquet reads.calls.parquet 'select family=read path=/home/*'

Times are in seconds (300) or have a unit (20ms 5m 1h). Lengths are in bytes (4096 4k 2G),
or in sectors of 512 bytes (8s).";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if let Some(name) = self.help_transform {
            return explain(&name);
        }
        let (Some(input), Some(output), Some(pipeline)) = (self.input, self.output, self.pipeline) else {
            misuse!("name IN, OUT and PIPELINE; `iosonar edit --help` has examples");
        };
        output_files::refuse_same_file(&input, &output)?;
        self.replacing.allows(&output)?;
        let inputs = [input];
        let file = tables::open(&inputs, Some(&output), &Reading::default())?;
        let pipeline = Some(pipeline.as_str());
        file.convert(&Job { inputs: &inputs, output: &output, to: self.to, pipeline, replacing: &self.replacing })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn explain(name: &str) -> Result<ExitCode> {
    let all: Vec<(&Definition, &str)> =
        edits().flat_map(|edits| edits.forms().into_iter().map(|form| (form, edits.prefix))).collect();
    let named: Vec<_> = all.iter().filter(|(form, _)| name == "all" || form.name == name).collect();
    if named.is_empty() {
        let names = all.iter().map(|(form, _)| form.name).chain(["all"]);
        misuse!("unknown transform `{name}`; {}", did_you_mean(name, names));
    }
    let texts: Vec<String> = named.iter().map(|(form, of)| format!("{of}{}", form.help())).collect();
    out!("{}", texts.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}
