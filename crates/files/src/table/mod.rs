//! The tables `NAME.calls.parquet` and `NAME.calls-run.parquet`. `docs/schema.md` defines their columns.

mod calls;
mod cells;
mod footer;
pub mod held;
mod located;
mod results;
pub mod scale;

use std::fs::File;
use std::path::Path;

use iosonar_trace::formats::parquet::{TableFile, TableReader, TableWriter};
use iosonar_trace::input::Input;
use iosonar_trace::output::Output;
use iosonar_trace::{Error, Nanos, Reader, Result};

use crate::{Call, CallResult, Metadata};
use calls::CallRow;
pub use located::{LocatedWriter, Locator};
use scale::JobTime;

/// Creates a table of calls. `known` is the metadata known before the first call.
///
/// # Errors
/// If the file cannot be created.
pub fn create(path: &Path, known: &Metadata) -> Result<Box<LocatedWriter>> {
    create_in(Output::create(path)?, known)
}

/// Creates a table of calls in an open file.
///
/// # Errors
/// If the name of the file has the ending of a compression.
pub fn create_in(output: Output, known: &Metadata) -> Result<Box<LocatedWriter>> {
    Ok(Box::new(LocatedWriter::new(TableWriter::new(output)?, known)))
}

/// Creates a table of results.
///
/// # Errors
/// If the file cannot be created.
pub fn create_run(path: &Path) -> Result<TableWriter<CallResult>> {
    TableWriter::new(Output::create(path)?)
}

/// Writes how long each of several concurrent instances took.
///
/// # Errors
/// If the file cannot be written.
pub fn write_scale(path: &Path, rows: &[JobTime], metadata: &Metadata) -> Result<()> {
    let mut writer = TableWriter::<JobTime>::new(Output::create(path)?)?;
    for row in rows {
        writer.write(row)?;
    }
    writer.finish(metadata)
}

/// Opens a table of calls.
///
/// # Errors
/// If the file cannot be read, or holds another table.
pub fn open(input: Input) -> Result<Box<dyn Reader<Call>>> {
    let path = input.path().to_owned();
    calls_in(&path, input.into_file()?)
}

/// Opens a table of calls that `path` names in messages.
pub(crate) fn calls_in(path: &Path, file: File) -> Result<Box<dyn Reader<Call>>> {
    let rows = TableReader::new(TableFile::open(path, file)?, |_| {})?;
    Ok(Box::new(Calls { rows, last: Nanos(i64::MIN), next: 0, path: path.to_owned() }))
}

/// Opens a table of results.
///
/// # Errors
/// If the file cannot be read, or holds another table.
pub fn open_run(path: &Path) -> Result<Box<dyn Reader<CallResult>>> {
    open_run_in(Input::open(path)?)
}

/// Opens a table of results in an open file.
///
/// # Errors
/// If the file cannot be read, or holds another table.
pub fn open_run_in(input: Input) -> Result<Box<dyn Reader<CallResult>>> {
    let path = input.path().to_owned();
    run_in(&path, input.into_file()?)
}

/// Opens a table of results that `path` names in messages.
pub(crate) fn run_in(path: &Path, file: File) -> Result<Box<dyn Reader<CallResult>>> {
    Ok(Box::new(TableReader::<CallResult>::new(TableFile::open(path, file)?, |_| {})?))
}

/// Reads a table of calls, and checks their order.
struct Calls {
    rows: TableReader<CallRow>,
    last: Nanos,
    next: u64,
    path: std::path::PathBuf,
}

impl Reader<Call> for Calls {
    fn next(&mut self) -> Result<Option<Call>> {
        let Some(row) = self.rows.advance()? else { return Ok(None) };
        if row.call.begin < self.last {
            let problem = format!("row {} begins before the row before it; sort the table by begin_ns", self.next);
            return Err(Error::format(&self.path, problem));
        }
        self.last = row.call.begin;
        self.next += 1;
        Ok(Some(row.call))
    }

    fn metadata(&self) -> &Metadata {
        self.rows.footer()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.rows.part_read())
    }
}

#[cfg(test)]
mod tests;
