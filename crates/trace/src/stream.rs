//! The two ends of a stream of rows. Every format implements them; every tool speaks to them.

use crate::error::Result;
use crate::metadata::Metadata;

/// Hands out rows ([`crate::Request`] or [`crate::Record`]) one at a time.
pub trait Reader<Row>: Send {
    /// The next row; `None` at the end. After an error the reader is spent.
    fn next(&mut self) -> Result<Option<Row>>;

    /// What is known by now: devices and source from the start, counts, span and completeness of what was read so
    /// far — or of all of it from the start, where the format keeps them (then [`Reader::is_surveyed`] is true).
    fn metadata(&self) -> &Metadata;

    /// Whether [`Reader::metadata`] already describes the whole file.
    fn is_surveyed(&self) -> bool {
        false
    }

    /// How far it is through its file, from 0 to 1, where that can be said.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// Takes rows one at a time. Nothing stands under the file's final name until [`Writer::finish`].
pub trait Writer<Row>: Send {
    /// Adds a row.
    fn write(&mut self, row: &Row) -> Result<()>;

    /// Ends the file. The writer counts rows and span itself; everything else in the footer comes from `metadata`.
    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<Unheld>;
}

/// What a format could not hold of the rows that it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unheld {
    /// Rows that are not in the file at all.
    pub rows: u64,
    /// Everything that is missing, one sentence each, to be said to the user.
    pub said: Vec<String>,
}
