//! `iosonar files order`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Print the calls of a trace with their predecessors
#[derive(clap::Args)]
pub struct Args {
    /// The trace
    trace: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        bail!("{}: files order is not built yet", self.trace.display())
    }
}
