//! `iosonar edit`: transforms a load.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use iosonar_trace::formats::Format;
use iosonar_trace::params::Definition;
use iosonar_trace::params::did_you_mean;
use iosonar_trace::transforms::TRANSFORMS;

use super::convert::writable_format_named;
use crate::calls::{self, edit::EitherPipeline};
use crate::console::{out, status};
use crate::usage::misuse;
use crate::written;

/// Change a load or a trace: select, shift, spread, merge, …
///
/// A pipeline is one or more transforms, separated by `|`; `--help-transform NAME` explains a transform. IN has any format;
/// of a run, its load is used. A trace of calls has transforms of its own. The name of OUT determines its format.
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
    #[arg(value_name = "PIPELINE", required_unless_present = "help_transform", value_parser = calls::edit::parse)]
    pipeline: Option<EitherPipeline>,

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
    text += "\nTransforms of traces of calls:\n";
    for transform in iosonar_files::transforms::TRANSFORMS {
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
        if let Some(kind) = calls::kind_of(&[&input], Some(&output))? {
            let pipeline = match pipeline.calls {
                Ok(pipeline) => pipeline,
                Err(problem) => misuse!("{} is a trace of calls: {problem}", input.display()),
            };
            written::refuse_same_file(&input, &output)?;
            self.replacing.allows(&output)?;
            let reading = calls::convert::StraceReading::default();
            return calls::convert::run(
                kind,
                std::slice::from_ref(&input),
                &output,
                &reading,
                Some(&pipeline),
                &self.replacing,
            );
        }
        let pipeline = match pipeline.load {
            Ok(pipeline) => pipeline,
            Err(problem) => misuse!("{} is a load or a run: {problem}", input.display()),
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
    let of_loads = TRANSFORMS.iter().map(|transform| (&transform.form, ""));
    let of_calls = iosonar_files::transforms::TRANSFORMS.iter().map(|transform| (&transform.form, "Of calls: "));
    let all: Vec<(&Definition, &str)> = of_loads.chain(of_calls).collect();
    let named: Vec<_> = all.iter().filter(|(form, _)| name == "all" || form.name == name).collect();
    if named.is_empty() {
        let names = all.iter().map(|(form, _)| form.name).chain(["all"]);
        misuse!("unknown transform `{name}`; {}", did_you_mean(name, names));
    }
    let texts: Vec<String> = named.iter().map(|(form, of)| format!("{of}{}", form.help())).collect();
    out!("{}", texts.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}
