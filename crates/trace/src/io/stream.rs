//! Readers and writers of rows. Every format implements them.

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::model::row::Row;
use crate::text::human;

/// Reads rows one at a time: [`crate::Request`], [`crate::IoResult`], or those of another crate.
pub trait Reader<R: Row>: Send {
    /// The next row; `None` at the end. After an error, the reader must not be used again.
    fn next(&mut self) -> Result<Option<R>>;

    /// The metadata known so far. Source and first devices are known from the start; each further device is appended
    /// before the first row that names it, so that device numbers never change. Counts, span and completeness describe
    /// the rows read so far, or the whole file if [`Reader::has_totals`].
    fn metadata(&self) -> &R::Metadata;

    /// Whether counts, span and completeness in [`Reader::metadata`] describe the whole file from the start.
    fn has_totals(&self) -> bool {
        false
    }

    /// Whether [`Reader::metadata`] has all devices of the file.
    fn has_all_devices(&self) -> bool {
        self.has_totals()
    }

    /// The part of the file that has been read, from 0 to 1, if it is known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// Reads rows from memory.
pub struct InMemory<R: Row> {
    rows: std::vec::IntoIter<R>,
    metadata: R::Metadata,
}

impl<R: Row> InMemory<R> {
    /// Reads these rows.
    pub fn new(rows: Vec<R>, metadata: R::Metadata) -> Self {
        Self { rows: rows.into_iter(), metadata }
    }
}

impl<R: Row> Reader<R> for InMemory<R> {
    fn next(&mut self) -> Result<Option<R>> {
        Ok(self.rows.next())
    }

    fn metadata(&self) -> &R::Metadata {
        &self.metadata
    }
}

/// Writes rows one at a time. The file gets its final name in [`Writer::finish`]. A writer that is dropped before removes
/// the file, unless [`Writer::checkpoint`] was called.
pub trait Writer<R: Row>: Send {
    /// Writes a row. What it names by index in the metadata, such as its device, must be known from the creation of the file
    /// or from [`Writer::learn`]; any other has no name.
    fn write(&mut self, row: &R) -> Result<()>;

    /// Writes a row that the caller does not need afterwards.
    ///
    /// # Errors
    /// As [`Writer::write`].
    fn write_owned(&mut self, row: R) -> Result<()> {
        self.write(&row)
    }

    /// Adds what was learned since the file was created: more devices, more processes. Formats that name them in their
    /// rows need them before the first row on them; formats that list them in a footer take them from [`Writer::finish`].
    fn learn(&mut self, _known: &R::Metadata) {}

    /// An error of another file that belongs to this one. It names what is kept.
    fn error(&self, source: io::Error) -> Error {
        Error::io("the output", source)
    }

    /// Makes the rows written so far survive the end of this program: they stay in a readable file under a hidden name
    /// beside the final one. For recordings, which cannot be repeated. The footer, if the format has one, is made of `so_far`
    /// as in [`Writer::finish`].
    fn checkpoint(&mut self, so_far: &R::Metadata) -> Result<()>;

    /// Finishes the file. The writer counts rows and span itself; all other metadata in the footer comes from `metadata`.
    fn finish(self: Box<Self>, metadata: &R::Metadata) -> Result<ConversionLoss>;
}

/// Rows that a writer leaves out, because a reader would refuse them.
#[derive(Default)]
pub struct Impossible {
    rows: u64,
    problem: &'static str,
}

impl Impossible {
    /// Counts a row, with the reason.
    pub fn add(&mut self, problem: &'static str) {
        self.rows += 1;
        self.problem = problem;
    }

    /// What is said at the end.
    ///
    /// # Errors
    /// If there were rows, and none was `written`.
    pub fn conversion_loss(&self, path: &Path, noun: &str, written: u64) -> Result<ConversionLoss> {
        let said = format!("left out: {}: {}", human::counted(self.rows, noun), self.problem);
        match (self.rows, written) {
            (0, _) => Ok(ConversionLoss::default()),
            (_, 0) => Err(Error::format(path, format!("no {noun} can be written; {said}"))),
            (rows, _) => Ok(ConversionLoss { rows, warnings: vec![said] }),
        }
    }
}

/// The part of the rows that the format of the file cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionLoss {
    /// Number of rows left out of the file.
    pub rows: u64,
    /// One sentence for each kind of loss, to be shown to the user.
    pub warnings: Vec<String>,
}
