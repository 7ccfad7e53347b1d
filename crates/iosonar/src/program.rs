//! The whole program, for the commands that need it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

/// Access to the whole program for commands that need it.
pub struct Program {
    /// Its command line: all subcommands with their options.
    pub command_line: fn() -> clap::Command,
    /// Runs a command line, which begins with the program's name.
    pub run: fn(Vec<OsString>) -> Result<ExitCode>,
}
