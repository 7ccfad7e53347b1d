//! `iosonar clock`: tells a campaign's controller the clocks of this host. Not for people, so not in the help.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use iosonar_pacing::clock::{monotonic, wall};

/// Print `CLOCK_MONOTONIC` and `CLOCK_REALTIME` for each line read
#[derive(clap::Args)]
pub struct Args {}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
        let mut line = Vec::with_capacity(16);
        while input.read_until(b'\n', &mut line).context("cannot read standard input")? > 0 {
            let (since_boot, since_1970) = (monotonic().0, wall().0);
            // The controller may have gone.
            if writeln!(output, "{since_boot} {since_1970}").and_then(|()| output.flush()).is_err() {
                break;
            }
            line.clear();
        }
        Ok(ExitCode::SUCCESS)
    }
}
