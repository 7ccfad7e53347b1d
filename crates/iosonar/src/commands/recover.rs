//! `iosonar recover`: makes a result of the journal that a killed replay left.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_replay::run;

use crate::statistics;
use crate::told::{answer, tell};

/// Make a result of the journal that a killed replay left behind
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  iosonar recover sdb.replay.parquet.journal     writes sdb.replay.parquet, marked as cut short")]
pub struct Args {
    /// The journal: RESULT.journal, beside where the result would have been
    journal: PathBuf,
    /// The result [default: the journal's name without .journal]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let own = self.journal.extension().is_some_and(|e| e == "journal").then(|| self.journal.with_extension(""));
        let Some(output) = self.output.or(own) else {
            bail!("{}: name the result with --output", self.journal.display());
        };
        if output.exists() {
            bail!("{} exists; name another result with --output", output.display());
        }
        let finished = run::recover(&self.journal, &output)?;
        for warning in &finished.warnings {
            tell!("warning: {warning}");
        }
        answer!("{}", statistics::for_people(&finished.statistics).trim_end());
        answer!("recovered        {}", finished.output.display());
        Ok(ExitCode::SUCCESS)
    }
}
