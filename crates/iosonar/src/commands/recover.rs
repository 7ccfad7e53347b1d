//! `iosonar recover`: recovers the file of a killed replay or recording.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_files::{FileKind, OpenOptions, table};
use iosonar_replay::run;
use iosonar_trace::output::{final_name, give_name, recover};
use iosonar_trace::system_text;

use crate::console::{out, status};
use crate::human;
use crate::progress::Rows;
use crate::signals;
use crate::statistics;
use crate::usage::misuse;

/// Recover what a killed replay or recording has left
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar recover sdb.replay.parquet.journal       writes sdb.replay.parquet, marked as cut short
  iosonar recover .sda.load.parquet.Ab3xYz.partial
                                                   gives a recording its name, sda.load.parquet
  iosonar recover .tar.calls-run.parquet.Ab3xYz.partial
                                                   the same for the result of `files replay`")]
pub struct Args {
    /// The journal of a replay, RESULT.journal, or the hidden file of a recording or of `files replay`,
    /// .NAME.XXXXXX.partial
    #[arg(value_name = "LEFT")]
    left: PathBuf,
    /// The result or load to write [default: its original name]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let ends_in = |ending| self.left.extension().is_some_and(|extension| extension == ending);
        let is_recording = ends_in("partial");
        let own = if is_recording {
            final_name(&self.left)
        } else {
            ends_in("journal").then(|| self.left.with_extension(""))
        };
        let Some(output) = self.output.or(own) else {
            misuse!(
                "{}: name a replay's journal, RESULT.journal, or the hidden file of a recording, .NAME.XXXXXX.partial \
                 (`ls -A` shows it); the name of a journal must end in .journal",
                self.left.display()
            );
        };
        if output.exists() {
            bail!("{} exists; name another file with --output", output.display());
        }
        if is_recording { name_recording(&self.left, &output) } else { make_result(&self.left, &output) }
    }
}

fn make_result(journal: &Path, output: &Path) -> Result<ExitCode> {
    signals::remove_unfinished_files();
    let finished = run::recover(journal, output)?;
    for warning in &finished.warnings {
        status!("warning: {warning}");
    }
    out!("{}", statistics::for_people(&finished.statistics).trim_end());
    out!("recovered        {}", finished.output.display());
    Ok(ExitCode::SUCCESS)
}

/// The number of requests in a load, all of which can be read.
fn requests_in(hidden: &Path) -> Result<String> {
    let mut load = iosonar_trace::open_load(hidden)?;
    let mut progress = Rows::new(&format!("reading {}", hidden.display()));
    while load.next()?.is_some() {
        progress.row(|| load.progress());
    }
    progress.finish();
    Ok(human::counted(load.metadata().counts.requests, "request"))
}

/// The number of calls in a trace, all of which can be read.
fn calls_in(hidden: &Path) -> Result<String> {
    let mut calls = iosonar_files::open(hidden, &OpenOptions::default())?;
    let mut progress = Rows::of(&format!("reading {}", hidden.display()), "calls");
    while calls.next()?.is_some() {
        progress.row(|| calls.progress());
    }
    Ok(human::counted(progress.finish(), "call"))
}

/// The number of calls in the result of a replay, all of which can be read.
fn results_in(hidden: &Path) -> Result<String> {
    let mut calls = table::open_run(hidden)?;
    let mut progress = Rows::of(&format!("reading {}", hidden.display()), "calls");
    while calls.next()?.is_some() {
        progress.row(|| None);
    }
    Ok(human::counted(progress.finish(), "call"))
}

fn name_recording(hidden: &Path, output: &Path) -> Result<ExitCode> {
    recover(hidden)?;
    let rows = match iosonar_files::recognise(hidden) {
        Some(FileKind::Calls) => match iosonar_files::record::recover(hidden, output)? {
            Some(calls) => {
                out!("{}: {} before it was cut short", output.display(), human::counted(calls, "call"));
                return Ok(ExitCode::SUCCESS);
            }
            None => calls_in(hidden)?,
        },
        Some(FileKind::CallsRun) => results_in(hidden)?,
        _ => requests_in(hidden)?,
    };
    if let Err(error) = give_name(hidden, output) {
        let advice = match error.kind() {
            io::ErrorKind::CrossesDevices => {
                "; they are on different file systems: recover without --output, then move the file (mv)"
            }
            _ => "",
        };
        bail!("cannot rename {} to {}: {}{advice}", hidden.display(), output.display(), system_text(&error));
    }
    out!("{}: {rows} before it was cut short", output.display());
    Ok(ExitCode::SUCCESS)
}
