//! `iosonar workload list`: the ready programs.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use iosonar_workload::library::{self, PROGRAMS};

use crate::usage::Usage;

/// List the ready programs
#[derive(clap::Args)]
#[command(after_help = "Example:\n  iosonar workload list")]
pub struct Args {}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let width = PROGRAMS.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let mut out = io::stdout().lock();
        for (name, _) in PROGRAMS {
            let program = library::open(name).map_err(Usage)?;
            writeln!(out, "{name:width$}  {}", program.about())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
