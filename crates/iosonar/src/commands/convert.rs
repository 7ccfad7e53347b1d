//! `iosonar convert`: any trace in, any trace out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::Kind;
use iosonar_trace::formats::{self, Format, Opened, TriedOn};
use iosonar_trace::output::split_compression;

use crate::written;

/// Turn a load or a run into another format
///
/// What the input is, is told by its content. What the output is to be, is told by its name: .parquet, or the classic
/// text of blkreplay as .load, .replay or .txt, which may be compressed (.gz, .zst). `-` is standard input or output.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// What to read: a load, or the result of a replay
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// What to write; a run becomes the load that it replayed if this is called NAME.load…
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of IN, if its content is not to be asked
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    from: Option<&'static Format>,

    /// The format of OUT, if its name does not tell
    #[arg(long, value_name = "FORMAT", value_parser = format_named)]
    to: Option<&'static Format>,
}

const AFTER_HELP: &str = "\
Examples:
  iosonar convert mysql.load.gz mysql.load.parquet
  iosonar convert run.replay.parquet run.replay.gz     # a result for the tools of blkreplay
  iosonar convert run.replay.gz again.load.gz          # sorted by time: a load again
  zcat x.load.gz | iosonar convert - - --to parquet > x.load.parquet

What the output's format has no place for is said at the end. A file under its final name is always whole.";

/// The format of that name; else what there is.
pub fn format_named(name: &str) -> Result<&'static Format, String> {
    formats::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = formats::FORMATS.iter().map(|format| format.name).collect();
        format!("no such format; there are: {}", names.join(" "))
    })
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        written::refuse_same_file(&self.input, &self.output)?;
        let to = match self.to {
            Some(format) => format,
            None => iosonar_trace::format_for(&self.output)?,
        };
        let input = iosonar_trace::open_file(&self.input, self.from)?;
        eprintln!("{}: {}", self.input.display(), described(&input));
        let what = format!("converting {}", self.input.display());
        let (metadata, losses) = match (input.rows, kind_by_name(&self.output)) {
            (Opened::Run(rows), None | Some(Kind::Replay)) => {
                let writer = iosonar_trace::create_run_as(&self.output, to, rows.metadata())?;
                written::copy(&what, rows, writer)?
            }
            (Opened::Load(_), Some(Kind::Replay)) => bail!(
                "{} is a load: it becomes a run by replaying it (`iosonar replay`); call the output NAME.load…",
                self.input.display()
            ),
            (rows, _) => {
                let rows = iosonar_trace::into_load(rows)?;
                let writer = iosonar_trace::create_load_as(&self.output, to, rows.metadata())?;
                written::copy(&what, rows, writer)?
            }
        };
        written::say(&self.output, &metadata, &losses);
        Ok(ExitCode::SUCCESS)
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
        TriedOn::DescriptionOnly => " (unverified: no real file of this format was at hand when its reader was made)",
    };
    format!("{kind}, {} [{}]{packed}{unverified}", file.format.title, file.format.name)
}

/// What a name like `x.load.parquet` or `x.replay.gz` says that the file holds.
fn kind_by_name(path: &Path) -> Option<Kind> {
    let name = split_compression(path).0.to_string_lossy();
    let name = name.strip_suffix(".parquet").unwrap_or(&name);
    if name.ends_with(".load") {
        Some(Kind::Load)
    } else if name.ends_with(".replay") {
        Some(Kind::Replay)
    } else {
        None
    }
}
