//! `iosonar completions`: what the shell needs to complete its words.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print the completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example:\n  iosonar completions bash > /etc/bash_completion.d/iosonar")]
pub struct Args {
    /// The shell to complete for
    shell: Shell,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "iosonar", &mut io::stdout());
        Ok(ExitCode::SUCCESS)
    }
}
