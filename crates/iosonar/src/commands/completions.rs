//! `iosonar completions`: what the shell needs to complete its words.

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
        // Not straight to standard output: clap panics when a reader like `head` has had enough.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut (program.command_line)(), "iosonar", &mut script);
        io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
