//! `iosonar convert` of calls.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_files::{FileKind, OpenOptions, transforms};
use iosonar_trace::path_text;

use super::copy::{copy, create, footer_of, report};
use crate::console::status;
use crate::written::Replacing;

/// How text of strace is read.
#[derive(clap::Args, Clone, Default)]
pub struct StraceReading {
    /// For text of strace: the working directory in which the command was started [default: the paths stay relative]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// Converts a trace of calls, and edits it if there is a pipeline.
pub fn run(
    kind: FileKind,
    inputs: &[PathBuf],
    output: &Path,
    reading: &StraceReading,
    pipeline: Option<&transforms::Pipeline>,
    replacing: &Replacing,
) -> Result<ExitCode> {
    let input = inputs[0].as_path();
    let name = path_text(input);
    if kind == FileKind::CallsRun {
        bail!("{name} is a run of calls, which no other format can hold; convert or edit the trace that it replayed");
    }
    let mut calls = iosonar_files::open_several(inputs, &OpenOptions { cwd: reading.cwd.clone() })?;
    let is = match kind {
        FileKind::Strace => ", text of strace",
        FileKind::Calls if input.is_file() => ", a table",
        // A pipe, whose content was not looked at.
        _ => "",
    };
    let doing = if pipeline.is_some() {
        format!("editing {name}")
    } else {
        status!("{name}: a trace of calls{is}");
        format!("converting {name}")
    };
    if let Some(pipeline) = pipeline {
        calls = pipeline.apply(calls)?;
    }
    let writer = create(output, replacing, calls.metadata())?;
    let metadata = copy(&doing, calls, writer)?;
    report(output, &footer_of(output, metadata))?;
    Ok(ExitCode::SUCCESS)
}
