//! Adds the file and the position of each call, for other programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use iosonar_trace::formats::parquet::TableWriter;
use iosonar_trace::{ConversionLoss, Error, Result, Writer};

use super::calls::CallRow;
use super::held::HeldFile;
use crate::state::{Options, State};
use crate::{Call, InitialProcess, Metadata, Name, Skip};

/// Stands for a working directory that the trace does not show. A path with enough `..` leaves it; such paths are unknown.
const UNKNOWN: &[u8] = b"/\x01/\x01/\x01/\x01";

/// Follows descriptors through a trace, and says which file a call uses.
pub struct Locator(State);

impl Locator {
    /// At the beginning of a trace.
    pub fn new(known: &Metadata) -> Self {
        let cwd = Some(Name::from(UNKNOWN));
        Self(State::new(known, Options { cwd, ..Options::default() }))
    }

    /// The processes that exist after the calls so far, with their descriptors.
    pub fn processes(&mut self) -> Vec<InitialProcess> {
        self.0.processes()
    }

    /// Calls so far that change files, and that no replay repeats, by what they do.
    pub fn lost(&self) -> BTreeMap<String, u64> {
        self.0.counts().unreplayable
    }

    /// The path of the file that a call uses, and where in it the call begins. The path is absolute, or relative to a working
    /// directory that the trace does not show. Calls come in the order of their start.
    pub fn next(&mut self, call: &Call) -> (Option<Name>, Option<u64>) {
        let resolved = self.0.next(call);
        if resolved.skip == Some(Skip::NotAFile) {
            return (None, None);
        }
        (resolved.path.and_then(located), resolved.position)
    }
}

/// The path as users know it.
fn located(path: Name) -> Option<Name> {
    let bytes = path.as_bytes();
    match bytes.strip_prefix(UNKNOWN) {
        Some([]) => Some(".".into()),
        Some([b'/', rest @ ..]) => Some(rest.into()),
        _ if bytes.starts_with(&UNKNOWN[..2]) || !path.is_absolute() => None,
        _ => Some(path),
    }
}

/// Writes a table of calls with their files and positions.
pub struct LocatedWriter {
    rows: TableWriter<CallRow>,
    files: Locator,
    /// After `rows`, so that it is dropped when these have their name.
    held: Option<HeldFile>,
}

impl LocatedWriter {
    pub(super) fn new(rows: TableWriter<CallRow>, known: &Metadata) -> Self {
        Self { rows, files: Locator::new(known), held: None }
    }

    /// Creates a file beside the table for calls that cannot be written yet. It is removed together with the hidden name of
    /// the table; if the program is killed, `iosonar recover` finds it.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create_held(&mut self) -> Result<Option<File>> {
        let Some(hidden) = self.rows.hidden() else { return Ok(None) };
        let (held, file) = HeldFile::create(hidden)?;
        self.held = Some(held);
        Ok(Some(file))
    }

    /// The processes that exist after the calls so far, with their descriptors.
    pub fn processes(&mut self) -> Vec<InitialProcess> {
        self.files.processes()
    }

    /// Bytes of the table so far, without rows that wait for others.
    pub fn bytes_written(&self) -> u64 {
        self.rows.bytes_written()
    }
}

impl Writer<Call> for LocatedWriter {
    fn learn(&mut self, known: &Metadata) {
        self.files = Locator::new(known);
    }

    fn write(&mut self, call: &Call) -> Result<()> {
        self.write_owned(call.clone())
    }

    fn write_owned(&mut self, call: Call) -> Result<()> {
        let (file, position) = self.files.next(&call);
        self.rows.write(&CallRow { call, file, position })
    }

    fn error(&self, source: io::Error) -> Error {
        self.rows.error(source)
    }

    fn checkpoint(&mut self, so_far: &Metadata) -> Result<()> {
        self.rows.checkpoint(so_far)
    }

    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        self.rows.finish(metadata).map(|()| ConversionLoss::default())
    }
}
