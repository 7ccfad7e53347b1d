//! The program as a whole, for the commands that are about it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

/// What some commands need of the whole program.
pub struct Program {
    /// Its command line: all subcommands with their options.
    pub command_line: fn() -> clap::Command,
    /// Runs a command line, the program's name in front.
    pub run: fn(Vec<OsString>) -> Result<ExitCode>,
}
