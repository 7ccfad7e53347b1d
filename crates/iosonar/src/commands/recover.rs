//! `iosonar recover`: makes a file of what a killed replay or recording left.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_replay::run;
use iosonar_trace::output::{final_name, give_name, recover};

use crate::progress::Rows;
use crate::statistics;
use crate::told::{answer, tell};

/// Make a result or a load of what a killed replay or recording left behind
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar recover sdb.replay.parquet.journal       writes sdb.replay.parquet, marked as cut short
  iosonar recover .sda.load.parquet.Ab3xYz.partial
                                                   gives a recording its name, sda.load.parquet")]
pub struct Args {
    /// The journal of a replay, RESULT.journal, or the hidden file of a recording, .NAME.XXXXXX.partial
    #[arg(value_name = "LEFT")]
    left: PathBuf,
    /// The result or the load [default: the name that it would have got]
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
            bail!(
                "{}: by its name this is neither a replay's journal, RESULT.journal, nor the hidden file of a recording, \
                 .NAME.XXXXXX.partial (`ls -A` shows it); if it is a journal that was renamed, end its name in \
                 .journal again",
                self.left.display()
            );
        };
        if output.exists() {
            bail!("{} exists; name another result with --output", output.display());
        }
        if is_recording { name_recording(&self.left, &output) } else { make_result(&self.left, &output) }
    }
}

fn make_result(journal: &Path, output: &Path) -> Result<ExitCode> {
    let finished = run::recover(journal, output)?;
    for warning in &finished.warnings {
        tell!("warning: {warning}");
    }
    answer!("{}", statistics::for_people(&finished.statistics).trim_end());
    answer!("recovered        {}", finished.output.display());
    Ok(ExitCode::SUCCESS)
}

fn name_recording(hidden: &Path, output: &Path) -> Result<ExitCode> {
    recover(hidden)?;
    let mut load = iosonar_trace::open_load(hidden)?;
    let mut progress = Rows::new(&format!("reading {}", hidden.display()));
    while load.next()?.is_some() {
        progress.row(|| load.progress());
    }
    progress.finish();
    if let Err(error) = give_name(hidden, output) {
        let advice = match error.kind() {
            io::ErrorKind::CrossesDevices => {
                "; that is another file system: recover it without --output, then move it there (mv)"
            }
            _ => "",
        };
        bail!("{} can't become {}: {error}{advice}", hidden.display(), output.display());
    }
    answer!("{}: {} requests until it was cut short", output.display(), load.metadata().counts.requests);
    Ok(ExitCode::SUCCESS)
}
