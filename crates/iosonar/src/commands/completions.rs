//! `iosonar completions`: prints shell completions.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::program::Program;

/// Print shell completions
#[derive(clap::Args)]
#[command(after_help = "Example:\n  iosonar completions bash > /etc/bash_completion.d/iosonar")]
pub struct Args {
    /// Shell
    shell: Shell,
}

impl Args {
    pub fn run(self, program: &Program) -> Result<ExitCode> {
        // Buffered, because clap panics on a closed pipe.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut (program.command_line)(), "iosonar", &mut script);
        io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
