//! The two ends of a stream of rows. Every format implements them; every tool speaks to them.

use crate::error::Result;
use crate::model::metadata::{Device, Metadata};

/// Hands out rows ([`crate::Request`] or [`crate::IoResult`]) one at a time.
pub trait Reader<Row>: Send {
    /// The next row; `None` at the end. After an error the reader is spent.
    fn next(&mut self) -> Result<Option<Row>>;

    /// What is known by now: source and the first devices from the start, each further device before the first row that
    /// names it (a device keeps its number: new ones stand behind the others), counts, span and completeness of what was
    /// read so far — or all of it from the start, where the format keeps it (then [`Reader::has_totals`] is true).
    fn metadata(&self) -> &Metadata;

    /// Whether [`Reader::metadata`] already describes the whole file.
    fn has_totals(&self) -> bool {
        false
    }

    /// Whether [`Reader::metadata`] knows all devices that will ever come.
    fn has_all_devices(&self) -> bool {
        self.has_totals()
    }

    /// How far it is through its file, from 0 to 1, where that can be said.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// Takes rows one at a time. Nothing stands under the file's final name until [`Writer::finish`]; without that, nothing is
/// left of it, but for [`Writer::keep`].
pub trait Writer<Row>: Send {
    /// Adds a row. Its device is one of those that were known when the file was begun, or of
    /// [`Writer::learn_devices`]; any other has no name.
    fn write(&mut self, row: &Row) -> Result<()>;

    /// Takes devices that appeared since the file was begun, behind all that are known. Formats that name devices in
    /// their rows need them before the first row on them; what has them in its footer waits for [`Writer::finish`].
    fn learn_devices(&mut self, _new: &[Device]) {}

    /// Makes what was written so far outlive this program, whatever becomes of it and of what is still to come: it stays
    /// under a hidden name beside the final one, and can be read. For what can't be made again. The footer, where the
    /// format has one, is of `so_far` as in [`Writer::finish`].
    fn keep(&mut self, so_far: &Metadata) -> Result<()>;

    /// Ends the file. The writer counts rows and span itself; everything else in the footer comes from `metadata`.
    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss>;
}

/// The part of a load or run that the format of the file cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionLoss {
    /// Number of rows left out of the file.
    pub rows: u64,
    /// One sentence for each kind of loss, to be shown to the user.
    pub warnings: Vec<String>,
}
