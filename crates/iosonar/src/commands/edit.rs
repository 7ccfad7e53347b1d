//! `iosonar edit`: transforms a load.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use iosonar_trace::formats::Format;
use iosonar_trace::params::did_you_mean;
use iosonar_trace::transforms::{self, Pipeline, TRANSFORMS};

use super::convert::writable_format_named;
use crate::console::{out, status};
use crate::usage::misuse;
use crate::written;

/// Change a load: select, shift, spread, merge, anonymise, …
///
/// A pipeline is one or more transforms, separated by `|`; `--help-transform NAME` explains a transform. IN has any format;
/// of a run, its load is used. The name of OUT determines its format.
#[derive(clap::Args)]
#[command(override_usage = USAGE, after_help = after_help())]
pub struct Args {
    /// The load, or result of a replay, to read; `-` is standard input
    #[arg(value_name = "IN", required_unless_present = "help_transform")]
    input: Option<PathBuf>,

    /// The load to write: NAME.load.parquet, or NAME.load.gz for blkreplay's text
    #[arg(value_name = "OUT", required_unless_present = "help_transform")]
    output: Option<PathBuf>,

    /// The transforms, in quotes: 'select from=0 to=300 | slip every=32768 increase=256'
    #[arg(value_name = "PIPELINE", required_unless_present = "help_transform", value_parser = transforms::parse)]
    pipeline: Option<Pipeline>,

    /// The format of OUT [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: written::Replacing,

    /// Explain a transform, or `all` of them
    #[arg(long, value_name = "NAME", exclusive = true)]
    help_transform: Option<String>,
}

const USAGE: &str = "iosonar edit [OPTIONS] <IN> <OUT> <PIPELINE>\n       iosonar edit --help-transform <NAME>";

fn after_help() -> String {
    let mut text = String::from("Transforms (`iosonar edit --help-transform NAME` explains one):\n");
    for transform in TRANSFORMS {
        text += &format!("  {:<10} {}\n", transform.form.name, transform.form.about);
    }
    text + EXAMPLES
}

const EXAMPLES: &str = "
Examples:
  iosonar edit mysql.load.gz first.load.parquet 'select from=0 to=5m'
  iosonar edit day.load.parquet peak.load.parquet 'derived snippet=5m | select to=1h'
  iosonar edit a.load.gz both.load.parquet 'adjacent with=b.load.gz | dense'
  iosonar edit customer.load.parquet public.load.parquet 'anonymise'

Times are in seconds (300) or have a unit (20ms 5m 1h). Lengths are in sectors of 512 bytes (256),
or in bytes with a unit (4k 2G).";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if let Some(name) = self.help_transform {
            return explain(&name);
        }
        let (Some(input), Some(output), Some(pipeline)) = (self.input, self.output, self.pipeline) else {
            misuse!("name IN, OUT and PIPELINE; `iosonar edit --help` has examples");
        };
        if pipeline.is_endless() {
            misuse!("`{pipeline}` never ends: limit it with `repeat times=5`, or append `| select to=1h`");
        }
        for read in std::iter::once(input.as_path()).chain(pipeline.files()) {
            written::refuse_same_file(read, &output)?;
        }
        written::refuse_name_of_run(&output)?;
        self.replacing.allows(&output)?;
        let to = self.to.map_or_else(|| iosonar_trace::format_for(&output), Ok)?;
        let rows = pipeline.apply(iosonar_trace::open_load(&input)?)?;
        let writer = self.replacing.create_load(&output, to, rows.metadata())?;
        let (metadata, loss) = written::copy(&format!("editing {}", input.display()), rows, writer, |_| Ok(()))
            .with_context(|| format!("cannot write {}", output.display()))?;
        written::report(&output, to, &metadata, &loss);
        if metadata.counts.requests == 0 {
            status!("warning: the result has no requests");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn explain(name: &str) -> Result<ExitCode> {
    let named: Vec<_> = TRANSFORMS.iter().filter(|transform| name == "all" || transform.form.name == name).collect();
    if named.is_empty() {
        let names = TRANSFORMS.iter().map(|transform| transform.form.name).chain(["all"]);
        misuse!("unknown transform `{name}`; {}", did_you_mean(name, names));
    }
    let texts: Vec<String> = named.iter().map(|transform| transform.form.help()).collect();
    out!("{}", texts.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}
