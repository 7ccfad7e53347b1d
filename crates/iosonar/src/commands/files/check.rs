//! `iosonar files check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Check whether a folder has what a trace of calls needs
#[derive(clap::Args)]
pub struct Args {
    /// The trace
    trace: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        bail!("{}: files check is not built yet", self.trace.display())
    }
}
