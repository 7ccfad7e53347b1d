//! `iosonar convert`: converts between trace formats.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::formats::{self, Action, Format, Opened, TestedWith};
use iosonar_trace::input::Input;
use iosonar_trace::params::did_you_mean;
use iosonar_trace::{Kind, Metadata, Options, path_text};

use crate::bad_lines::source_bad_lines_of;
use crate::console::status;
use crate::{calls, human, written};

/// Convert a load, a run or a trace of calls to another format
///
/// The content of the input determines its format, the name of the output determines the other: .parquet; .load, .replay or
/// .txt for blkreplay's text; .iolog for fio; .blktrace.0 for blkparse, btt and btreplay; .blkparse; .spc. Text may be
/// compressed (.gz, .zst); Parquet compresses inside. Text of strace becomes a trace of calls, NAME.calls.parquet. `-` is standard input or output.
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

    #[command(flatten)]
    calls: calls::convert::StraceReading,

    /// The format of OUT [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: written::Replacing,
}

/// How to read a file whose content is ambiguous.
#[derive(clap::Args)]
pub struct Reading {
    /// The format of the input [default: by its content]
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    from: Option<&'static Format>,

    /// The event that gives a request its time, in event traces: Q queued, G get request, I inserted, D issued
    /// [default: the most frequent one]
    #[arg(long, value_name = "Q|G|I|D", value_parser = action_named)]
    action: Option<Action>,
}

impl Reading {
    /// Opens the files of one trace; also returns their name for messages.
    pub fn open(&self, paths: &[PathBuf]) -> Result<(iosonar_trace::OpenedFile, String)> {
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let file = iosonar_trace::open_files(&paths, self.from, &Options { action: self.action })?;
        let name = match paths[..] {
            [one] => path_text(one),
            _ => format!("{} and {} more", path_text(paths[0]), paths.len() - 1),
        };
        Ok((file, name))
    }

    /// Opens an input that is open already.
    pub fn open_input(&self, input: Input) -> Result<iosonar_trace::OpenedFile> {
        Ok(iosonar_trace::open_inputs(vec![input], self.from, &Options { action: self.action })?)
    }
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

Warnings at the end list what the output format cannot hold. A file with its final name is complete.";

/// The format of that name; otherwise an error with the known names.
pub fn format_named(name: &str) -> Result<&'static Format, String> {
    among(name, "unknown format", |_| true)
}

/// Like [`format_named`], for formats that can be written.
pub fn writable_format_named(name: &str) -> Result<&'static Format, String> {
    let can = |format: &Format| format.create_load.is_some() || format.create_run.is_some();
    among(name, "iosonar cannot write this format", can)
}

fn among(name: &str, problem: &str, is_candidate: impl Fn(&Format) -> bool) -> Result<&'static Format, String> {
    let names = || formats::FORMATS.iter().filter(|format| is_candidate(format)).map(|format| format.name);
    let found = formats::by_name(name).filter(|format| is_candidate(format));
    found.ok_or_else(|| format!("{problem}; {}", did_you_mean(name, names())))
}

fn action_named(letter: &str) -> Result<Action, String> {
    let mut letters = letter.chars();
    let action = letters.next().filter(|_| letters.next().is_none()).and_then(Action::from_letter);
    action.ok_or_else(|| "unknown event; use Q, G, I or D".to_owned())
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Self { inputs, output, .. } = self;
        for input in &inputs {
            written::refuse_same_file(input, &output)?;
        }
        self.replacing.allows(&output)?;
        let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        if let Some(kind) = calls::kind_of(&paths, Some(&output))? {
            return calls::convert::run(kind, &inputs, &output, &self.calls, None, &self.replacing);
        }
        let to = match self.to {
            Some(format) => format,
            None => iosonar_trace::format_for(&output)?,
        };
        let (input, name) = self.reading.open(&inputs)?;
        status!("{name}: {}", described(&input));
        let what = format!("converting {name}");
        let (from, format) = (self.reading.from, input.format);
        let source_bad_lines = source_bad_lines_of(&input.rows, &name);
        let accept = |metadata: &Metadata| refuse_empty(&name, from, format, metadata);
        let (metadata, loss) = match (input.rows, written::kind_by_name(&output)) {
            (Opened::Run(rows), None | Some(Kind::Replay)) => {
                let writer = self.replacing.create_run(&output, to, rows.metadata())?;
                written::copy(&what, rows, writer, accept)?
            }
            (Opened::Load(_), Some(Kind::Replay)) => {
                bail!("{name} is a load: only `iosonar replay` makes a run of it; name the output NAME.load…")
            }
            (rows, _) => {
                let rows = iosonar_trace::into_load(rows)?;
                let writer = self.replacing.create_load(&output, to, rows.metadata())?;
                written::copy(&what, rows, writer, accept)?
            }
        };
        let unreadable = source_bad_lines.map_or(0, |lines| metadata.counts.bad_lines - lines);
        if unreadable > 0 {
            status!("warning: {name} is damaged: {} unreadable, left out", human::counted(unreadable, "row"));
        }
        written::report(&output, to, &metadata, &loss);
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses an input without any request, unless it is valid and in one of iosonar's own formats, where a load may be empty.
fn refuse_empty(name: &str, from: Option<&Format>, format: &Format, metadata: &Metadata) -> Result<()> {
    if metadata.counts.requests > 0 {
        return Ok(());
    }
    let bad = metadata.counts.bad_lines;
    // Notices about the trace as a whole: which events it has, which of them to choose.
    let whole: Vec<&str> =
        metadata.notices.iter().map(String::as_str).filter(|text| !text.starts_with("line ")).collect();
    if format.has_actions && !whole.is_empty() {
        bail!("{name} has no request: {}", whole.join("; "));
    }
    match from {
        Some(format) => {
            let wrong = metadata.notices.first().map(|notice| format!(" ({notice})")).unwrap_or_default();
            bail!(
                "{name} has no request in the format {}{wrong}; without --from iosonar detects the format",
                format.name
            )
        }
        None if bad > 0 => {
            let wrong = metadata.notices.first().map_or("", String::as_str);
            bail!("{name} has no request: all of its {bad} lines are bad ({wrong})")
        }
        None if format.create_run.is_none() => {
            let why = if whole.is_empty() { "no line is a request".to_owned() } else { whole.join("; ") };
            bail!("{name} has no request: {why}")
        }
        None => Ok(()),
    }
}

/// Describes the input: kind, format, compression.
pub fn described(file: &iosonar_trace::OpenedFile) -> String {
    let kind = match file.rows {
        Opened::Load(_) => "a load",
        Opened::Run(_) => "a run",
    };
    let packed = match file.compression {
        iosonar_trace::input::Compression::None => String::new(),
        compression => format!(", {}", compression.name()),
    };
    let unverified = match file.format.tested_with {
        TestedWith::RealFiles => "",
        TestedWith::PublishedLines => {
            " (unverified: tested with published lines of such traces, not with a whole file)"
        }
        TestedWith::DescriptionOnly => " (unverified: never tested with a real file of this format)",
    };
    format!("{kind}, {} [{}]{packed}{unverified}", file.format.title, file.format.name)
}
