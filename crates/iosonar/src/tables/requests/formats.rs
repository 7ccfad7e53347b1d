//! The formats of loads and runs: how a file is read, and what is said about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use iosonar_trace::formats::described::{self, ColumnOptions, Description};
use iosonar_trace::formats::{self, self as trace, Action, Format, TestedWith};
use iosonar_trace::input::Compression;
use iosonar_trace::params::{did_you_mean, parse_duration, whole_number};
use iosonar_trace::{Kind, Metadata, Nanos, OpenedFile, Options, path_text, small_file};
use serde_json::{Value, json};

use crate::human;
use crate::usage::{Usage, misuse};

/// How to read a file whose content is ambiguous.
#[derive(clap::Args, Default)]
pub struct FormatReading {
    /// The format of the input [default: by its content]
    #[arg(long, value_name = "FORMAT", value_parser = format_or_time)]
    pub(super) from: Option<From>,

    /// The event that gives a request its time, in event traces: Q queued, G get request, I inserted, D issued
    /// [default: the most frequent one]
    #[arg(long, value_name = "Q|G|I|D", value_parser = action_named)]
    pub(super) action: Option<Action>,

    /// For text in an unknown format: the column of each field of a request, by number or name,
    /// `at=1:us op=3(R=read,W=write) offset=4:bytes size=5:bytes latency=7:us device=2` (`iosonar formats --keys`)
    #[arg(long, value_name = "FIELD=COLUMN…", conflicts_with_all = ["action", "description"])]
    columns: Option<String>,

    /// What separates these columns: a character, tab or blanks [default: the first of , ; tab | that gives enough columns]
    #[arg(long, value_name = "CHARACTER", requires = "columns", allow_hyphen_values = true)]
    separator: Option<String>,

    /// Non-empty lines to skip before the rows; a heading is found without it
    #[arg(long, value_name = "LINES", requires = "columns", value_parser = whole_number::<u64>(0..=1_000_000_000),
          allow_hyphen_values = true)]
    skip: Option<u64>,

    /// A description of the format in TOML: columns, a pattern, or binary records (`iosonar formats --keys`)
    #[arg(long, value_name = "FILE.toml", conflicts_with = "action")]
    description: Option<PathBuf>,
}

/// What `--from` names: the format of the input, or in `info` the start of a window of time.
#[derive(Clone, Copy)]
pub(super) enum From {
    Format(&'static Format),
    Time(Nanos),
}

impl FormatReading {
    /// Whether the user describes the format.
    pub fn is_described(&self) -> bool {
        self.columns.is_some() || self.description.is_some()
    }

    /// The start of the window of time.
    pub fn window_start(&self) -> Option<Nanos> {
        match self.from {
            Some(From::Time(at)) => Some(at),
            _ => None,
        }
    }

    /// The format, if it is not to be recognised, and the options of its reader.
    pub(super) fn how(&self) -> Result<(Option<&'static Format>, Options)> {
        if self.is_described() && matches!(self.from, Some(From::Format(_))) {
            misuse!("--from FORMAT cannot be used with --columns or --description, which say how the text is read");
        }
        let options = Options { action: self.action, description: self.described()? };
        let from = match self.from {
            _ if options.description.is_some() => Some(&described::FORMAT),
            Some(From::Format(format)) => Some(format),
            Some(From::Time(_)) | None => None,
        };
        Ok((from, options))
    }

    fn described(&self) -> Result<Option<Arc<Description>>> {
        let described = match (&self.columns, &self.description) {
            (Some(columns), _) => described::from_columns(&self.column_options(columns)),
            (None, Some(file)) => Description::parse(&path_text(file), &read(file)?),
            (None, None) => return Ok(None),
        };
        Ok(Some(described.map_err(Usage)?))
    }

    fn column_options(&self, columns: &str) -> ColumnOptions {
        ColumnOptions { columns: columns.to_owned(), separator: self.separator.clone(), skip: self.skip }
    }
}

fn read(file: &Path) -> Result<String> {
    Ok(small_file::read_text(file).map_err(|why| iosonar_trace::Error::io(file, why))?)
}

/// The format of that name, or a time; otherwise an error with the known names.
fn format_or_time(text: &str) -> Result<From, String> {
    if text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && formats::by_name(text).is_none()
    {
        return parse_duration(text).map(From::Time);
    }
    among(text, "unknown format", |_| true).map(From::Format)
}

/// The format of that name, if it can be written; otherwise an error with the known names.
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

/// Refuses an input without any request, unless it is valid and in one of iosonar's own formats, where a load may be empty.
pub(super) fn refuse_empty(name: &str, from: Option<&Format>, format: &Format, metadata: &Metadata) -> Result<()> {
    if metadata.counts.requests > 0 {
        return Ok(());
    }
    // Those of a table are its own rows, not lines of its source.
    let is_table = format.name == "parquet" || metadata.kind == Kind::Replay;
    let bad = if is_table { metadata.counts.unreadable_rows } else { metadata.counts.bad_lines };
    // Warnings about the trace as a whole: which events it has, which of them to choose.
    let whole: Vec<&str> =
        metadata.warnings.iter().map(String::as_str).filter(|text| !text.starts_with("line ")).collect();
    if format.has_actions && !whole.is_empty() {
        bail!("{name} has no request: {}", whole.join("; "));
    }
    match from {
        Some(format) if format.name == described::FORMAT.name => {
            let why = metadata.warnings.first().map_or("it is empty", String::as_str);
            let rows = if bad > 0 { format!(", only {}", human::counted(bad, "bad line")) } else { String::new() };
            bail!("{name}: the description finds no request{rows}: {why}")
        }
        Some(format) => {
            let wrong = metadata.warnings.first().map(|warning| format!(" ({warning})")).unwrap_or_default();
            bail!(
                "{name} has no request in the format {}{wrong}; without --from iosonar detects the format",
                format.name
            )
        }
        None if bad > 0 => {
            let wrong = metadata.warnings.first().map_or("", String::as_str);
            let rows = human::counted(bad, if is_table { "bad row" } else { "bad line" });
            bail!("{name} has no request, only {rows} ({wrong})")
        }
        None if format.create_run.is_none() => {
            let why = if whole.is_empty() { "no line is a request".to_owned() } else { whole.join("; ") };
            bail!("{name} has no request: {why}")
        }
        None => Ok(()),
    }
}

/// Describes the input: kind, format, compression.
pub(super) fn described(file: &OpenedFile) -> String {
    let kind = match file.rows {
        trace::Opened::Load(_) => "a load",
        trace::Opened::Run(_) => "a run",
    };
    let packed = match file.compression {
        Compression::None => String::new(),
        compression => format!(", {}", compression.name()),
    };
    if file.format.name == described::FORMAT.name {
        return format!("{kind}, read by your description{packed}");
    }
    let unverified = match file.format.tested_with {
        TestedWith::RealFiles => "",
        TestedWith::PublishedLines => {
            " (unverified: tested with published lines of such traces, not with a whole file)"
        }
        TestedWith::DescriptionOnly => " (unverified: never tested with a real file of this format)",
    };
    format!("{kind}, {} [{}]{packed}{unverified}", file.format.title, file.format.name)
}

/// The format, for `info --json`.
pub(super) fn about(file: &OpenedFile) -> Value {
    let tested_with = match file.format.tested_with {
        TestedWith::RealFiles => "real_files",
        TestedWith::PublishedLines => "published_lines",
        TestedWith::DescriptionOnly => "description_only",
    };
    json!({"name": file.format.name, "title": file.format.title, "tried_on": tested_with,
           "compression": file.compression.name()})
}
