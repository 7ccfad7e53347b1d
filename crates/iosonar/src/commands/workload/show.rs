//! `iosonar workload show`: the text of a program.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;

use crate::usage::Usage;

/// Print the text of a program, after checking it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar workload show tpcb
  iosonar workload show mine.toml     print it if it is valid, or what is wrong with it")]
pub struct Args {
    /// Name of a ready program, a TOML file, or a job file of fio or vdbench (NAME.fio, NAME.vdb)
    #[arg(value_name = "PROGRAM")]
    program: String,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let program = iosonar_jobfiles::open(&self.program).map_err(Usage)?;
        io::stdout().lock().write_all(program.source().as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
