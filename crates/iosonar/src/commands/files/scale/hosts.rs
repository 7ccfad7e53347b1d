//! `--hosts`: the Python half runs the instances, by the machinery of campaigns.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::programs::find;

/// The program; its argument is what to measure.
const MEASURES: &str = "scale-hosts";

/// Replaces this process by the program.
pub fn measure(plan: &Value) -> Result<ExitCode> {
    let Some(program) = find(OsStr::new(MEASURES)) else {
        bail!(
            "--hosts needs iosonar's Python half, which is not installed: no iosonar-{MEASURES} beside this binary or in PATH; \
             install the package iosonar-workbench, or run `pip install .` in \
             the source directory"
        );
    };
    let error = Command::new(&program).arg("--").arg(plan.to_string()).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
