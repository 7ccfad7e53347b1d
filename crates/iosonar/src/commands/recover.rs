//! `iosonar recover`: recovers the file of a killed replay or recording.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::output::{final_name, recover};

use crate::console::{out, status};
use crate::signals;
use crate::tables::{self, Reading, Recovered};
use crate::usage::misuse;

/// Recover the result of a killed replay or recording
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar recover sdb.replay.parquet.journal       writes sdb.replay.parquet, marked as cut short
  iosonar recover tar.calls-run.parquet.journal    the same for calls to files
  iosonar recover .sda.load.parquet.Ab3xYz.partial
                                                   gives a recording its name, sda.load.parquet")]
pub struct Args {
    /// The journal of a replay, RESULT.journal, or the hidden file of a recording, .NAME.XXXXXX.partial
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
        if !is_recording {
            return make_result(&self.left, &output);
        }
        recover(&self.left)?;
        tables::open(std::slice::from_ref(&self.left), None, &Reading::default())?.recover(&self.left, &output)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn make_result(journal: &Path, output: &Path) -> Result<ExitCode> {
    signals::remove_unfinished_files();
    let Recovered { warnings, statistics } = tables::recover_journal(journal, output)?;
    warnings.iter().for_each(|warning| status!("warning: {warning}"));
    out!("{}", statistics.trim_end());
    out!("recovered        {}", output.display());
    Ok(ExitCode::SUCCESS)
}
