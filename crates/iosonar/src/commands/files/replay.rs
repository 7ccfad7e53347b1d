//! `iosonar files replay`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Replay a trace of calls below a folder
#[derive(clap::Args)]
pub struct Args {
    /// The trace
    trace: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        bail!("{}: files replay is not built yet", self.trace.display())
    }
}
