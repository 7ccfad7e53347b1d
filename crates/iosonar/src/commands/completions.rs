//! `iosonar completions`: what the shell needs to complete its words.

use std::io::{self, Write};
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
        // Not straight to standard output: clap panics when a reader like `head` has had enough.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "iosonar", &mut script);
        io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
