//! `iosonar files prepare`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Create what a trace of calls needs below a folder
#[derive(clap::Args)]
pub struct Args {
    /// The trace
    trace: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        bail!("{}: files prepare is not built yet", self.trace.display())
    }
}
