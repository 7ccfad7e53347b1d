//! `iosonar files record`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// Record the calls of a command to files
#[derive(clap::Args)]
pub struct Args {
    /// The trace
    trace: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        bail!("{}: files record is not built yet", self.trace.display())
    }
}
