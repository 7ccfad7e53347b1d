//! Opens files of calls, which are recognised by content.

use std::path::{Path, PathBuf};

use iosonar_trace::formats::parquet::{self, TableFile};
use iosonar_trace::input::Input;
use iosonar_trace::{Error, Result};

use crate::{CallReader, Metadata, table};

/// The files of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A table of calls.
    Calls,
    /// A table of the results of a run.
    CallsRun,
    /// Text of strace.
    Strace,
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The working directory of the first process, where the file does not tell it.
    pub cwd: Option<PathBuf>,
}

/// Opens a file of calls; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or is not of a known format.
pub fn open(path: &Path, _options: &OpenOptions) -> Result<Box<dyn CallReader>> {
    let input = Input::open(path)?;
    if (parquet::FORMAT.recognise)(input.head()) {
        return table::open(input);
    }
    if crate::strace::recognise(input.head()) {
        return Ok(Box::new(crate::strace::Reader::open(input, &crate::strace::Options::default())?));
    }
    Err(Error::format(path, "neither a table of calls nor text of strace"))
}

/// Which of the files of this crate it is; `None` if it is none of them, or cannot be read.
pub fn recognise(path: &Path) -> Option<FileKind> {
    let input = Input::open(path).ok()?;
    if !(parquet::FORMAT.recognise)(input.head()) {
        return None;
    }
    let file = TableFile::<Metadata>::open(path, input.into_file().ok()?).ok()?;
    let has = |names: &[&str]| names.iter().all(|name| file.has_column(name));
    match file.kind() {
        Some("calls") => Some(FileKind::Calls),
        Some("calls_run") => Some(FileKind::CallsRun),
        Some(_) => None,
        None if has(&["begin_ns", "thread", "call"]) => Some(FileKind::Calls),
        None if has(&["call_number", "scheduled_ns"]) => Some(FileKind::CallsRun),
        None => None,
    }
}
