//! `iosonar convert`: any trace in, any trace out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::formats::{self, Action, Format, Opened, TriedOn};
use iosonar_trace::words::did_you_mean;
use iosonar_trace::{Kind, Metadata, Options};

use crate::told::tell;
use crate::written;

/// Turn a load or a run into another format
///
/// What the input is, is told by its content. What the output is to be, is told by its name: .parquet, the classic text of
/// blkreplay as .load, .replay or .txt, .iolog for fio, .blktrace.0 for blkparse, btt and btreplay, .blkparse, .spc; text
/// may be compressed (.gz, .zst), Parquet is so inside. `-` is standard input or output.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// What to read: a load, a trace, the result of a replay; several files only if they are one trace (blktrace)
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,

    /// What to write; a run becomes the load that it replayed if this is called NAME.load…
    #[arg(value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    reading: Reading,

    /// The format of OUT, if its name does not tell
    #[arg(long, value_name = "FORMAT", value_parser = writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: written::Replacing,
}

/// How a file is to be read, where its content leaves that open.
#[derive(clap::Args)]
pub struct Reading {
    /// The format that is read, if its content is not to be asked
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    from: Option<&'static Format>,

    /// The event that a request's time is taken from, in traces of events: Q asked for, G, I queued, D given to the
    /// device; the most frequent one if it is not said
    #[arg(long, value_name = "Q|G|I|D", value_parser = action_named)]
    action: Option<Action>,
}

impl Reading {
    /// Opens the files that together are one trace; returns what they are called as well.
    pub fn open(&self, paths: &[PathBuf]) -> Result<(iosonar_trace::OpenedFile, String)> {
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let file = iosonar_trace::open_files(&paths, self.from, &Options { action: self.action })?;
        let name = match paths[..] {
            [one] => one.display().to_string(),
            _ => format!("{} and {} more", paths[0].display(), paths.len() - 1),
        };
        Ok((file, name))
    }
}

const AFTER_HELP: &str = "\
Examples:
  iosonar convert mysql.load.gz mysql.load.parquet
  iosonar convert run.replay.parquet run.replay.gz     # a result for the tools of blkreplay
  iosonar convert run.replay.gz again.load.gz          # sorted by time: a load again
  iosonar convert sda.blktrace.* sda.load.parquet      # the files of all CPUs
  perf script | iosonar convert - sda.load.gz --action D
  zcat x.load.gz | iosonar convert - - --to parquet > x.load.parquet

What the output's format has no place for is said at the end. A file under its final name is always whole.";

/// The format of that name; else what there is.
pub fn format_named(name: &str) -> Result<&'static Format, String> {
    among(name, "there is no such format", |_| true)
}

/// The same, if it can be written.
pub fn writable_format_named(name: &str) -> Result<&'static Format, String> {
    let can = |format: &Format| format.create_load.is_some() || format.create_run.is_some();
    among(name, "no such format can be written", can)
}

fn among(name: &str, problem: &str, is_meant: impl Fn(&Format) -> bool) -> Result<&'static Format, String> {
    let names = || formats::FORMATS.iter().filter(|format| is_meant(format)).map(|format| format.name);
    let found = formats::by_name(name).filter(|format| is_meant(format));
    found.ok_or_else(|| format!("{problem}; {}", did_you_mean(name, names())))
}

fn action_named(letter: &str) -> Result<Action, String> {
    let mut letters = letter.chars();
    let action = letters.next().filter(|_| letters.next().is_none()).and_then(Action::from_letter);
    action.ok_or_else(|| "an action is one of Q G I D".to_owned())
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        for input in &self.inputs {
            written::refuse_same_file(input, &self.output)?;
        }
        self.replacing.allows(&self.output)?;
        let to = match self.to {
            Some(format) => format,
            None => iosonar_trace::format_for(&self.output)?,
        };
        let (input, name) = self.reading.open(&self.inputs)?;
        tell!("{name}: {}", described(&input));
        let what = format!("converting {name}");
        let (from, format) = (self.reading.from, input.format);
        let accept = |metadata: &Metadata| refuse_nothing(&name, from, format, metadata);
        let (metadata, unheld) = match (input.rows, written::kind_by_name(&self.output)) {
            (Opened::Run(rows), None | Some(Kind::Replay)) => {
                let writer = self.replacing.create_run(&self.output, to, rows.metadata())?;
                written::copy(&what, rows, writer, accept)?
            }
            (Opened::Load(_), Some(Kind::Replay)) => bail!(
                "{name} is a load: it becomes a run by replaying it (`iosonar replay`); call the output NAME.load…"
            ),
            (rows, _) => {
                let rows = iosonar_trace::into_load(rows)?;
                let writer = self.replacing.create_load(&self.output, to, rows.metadata())?;
                written::copy(&what, rows, writer, accept)?
            }
        };
        written::say(&self.output, &metadata, &unheld);
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses an input that turned out to hold nothing but what is wrong, or is not of the format that was named, or a trace
/// in which no request was found. (In iosonar's own formats there are loads without any.)
fn refuse_nothing(name: &str, from: Option<&Format>, format: &Format, metadata: &Metadata) -> Result<()> {
    if metadata.counts.requests > 0 {
        return Ok(());
    }
    let bad = metadata.counts.bad_lines;
    // What is said of the trace as a whole: which events there are, which of them to choose.
    let whole: Vec<&str> =
        metadata.notices.iter().map(String::as_str).filter(|said| !said.starts_with("line ")).collect();
    if format.has_actions && !whole.is_empty() {
        bail!("{name} holds no request: {}", whole.join("; "));
    }
    match from {
        Some(format) => {
            let wrong = metadata.notices.first().map(|notice| format!(" ({notice})")).unwrap_or_default();
            bail!(
                "{name} holds no request of the format {}{wrong}; without --from its content tells what it is",
                format.name
            )
        }
        None if bad > 0 => {
            let wrong = metadata.notices.first().map_or("", String::as_str);
            bail!("{name} holds no request: all of its {bad} lines are bad ({wrong})")
        }
        None if format.create_run.is_none() => {
            let said = if whole.is_empty() { "nothing in it is one".to_owned() } else { whole.join("; ") };
            bail!("{name} holds no request: {said}")
        }
        None => Ok(()),
    }
}

/// What was found in the input.
pub fn described(file: &iosonar_trace::OpenedFile) -> String {
    let kind = match file.rows {
        Opened::Load(_) => "a load",
        Opened::Run(_) => "a run",
    };
    let packed = match file.compression {
        iosonar_trace::input::Compression::None => String::new(),
        compression => format!(", {}", compression.name()),
    };
    let unverified = match file.format.tried_on {
        TriedOn::RealFiles => "",
        TriedOn::PublishedLines => " (unverified: tried on published lines of such traces, not on a whole file)",
        TriedOn::DescriptionOnly => " (unverified: no real file of this format was at hand when its reader was made)",
    };
    format!("{kind}, {} [{}]{packed}{unverified}", file.format.title, file.format.name)
}
