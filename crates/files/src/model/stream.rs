//! Readers and writers of calls and their results. Every format implements them.

use std::fs::File;
use std::io;

use iosonar_trace::{Error, Result};

use super::call::Call;
use super::metadata::{InitialProcess, Metadata};
use super::result_row::CallResult;

/// Reads calls one at a time, in the order of their begin.
pub trait CallReader: Send {
    /// The next call; `None` at the end. After an error, the reader must not be used again.
    fn next(&mut self) -> Result<Option<Call>>;

    /// The metadata so far: counts, span and completeness describe the whole trace at its end, or from the start if the file
    /// is a table.
    fn metadata(&self) -> &Metadata;

    /// The part of the file that has been read, from 0 to 1, if it is known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// Writes calls. The file gets its final name in [`CallWriter::finish`]; a writer that is dropped before removes it.
pub trait CallWriter: Send {
    /// Names processes that existed when the recording began, before the first call, unless the metadata with which the
    /// file was created has them. Only the columns `file` and `position` depend on them.
    fn learn_processes(&mut self, _processes: &[InitialProcess]) {}

    /// Creates a file beside the table for calls that cannot be written yet. It is removed together with the hidden name of
    /// the table; if the program is killed, `iosonar recover` finds it.
    ///
    /// # Errors
    /// If the file cannot be created.
    fn create_held(&mut self) -> Result<Option<File>> {
        Ok(None)
    }

    /// An error of a file that belongs to the table. It names what is kept.
    fn error(&self, source: io::Error) -> Error {
        Error::io("the trace", source)
    }

    /// Writes a call.
    fn write(&mut self, call: &Call) -> Result<()>;

    /// Writes a call, and takes it: the caller does not need it afterwards.
    ///
    /// # Errors
    /// As `write`.
    fn write_owned(&mut self, call: Call) -> Result<()> {
        self.write(&call)
    }

    /// Makes the calls written so far survive the end of this program: they stay in a readable file under a hidden name
    /// beside the final one, which `iosonar recover` gives its name. For recordings, which cannot be repeated.
    fn checkpoint(&mut self, so_far: &Metadata) -> Result<()>;

    /// Finishes the file. The writer counts rows and span itself; the rest of the footer comes from `metadata`.
    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<()>;
}

/// Reads the results of a run, in the order of completion.
pub trait ResultReader: Send {
    /// The next result; `None` at the end.
    fn next(&mut self) -> Result<Option<CallResult>>;

    /// The footer of the run.
    fn metadata(&self) -> &Metadata;
}

/// Writes the results of a run.
pub trait ResultWriter: Send {
    /// Writes a result.
    fn write(&mut self, result: &CallResult) -> Result<()>;

    /// As [`CallWriter::checkpoint`].
    fn checkpoint(&mut self, so_far: &Metadata) -> Result<()>;

    /// Makes a checkpoint, and opens the results written so far.
    fn read_back(&mut self, so_far: &Metadata) -> Result<Box<dyn ResultReader>>;

    /// Finishes the file.
    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<()>;
}
