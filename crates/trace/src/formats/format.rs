//! The description of a format: how its files are recognised, read and written.

use std::path::Path;
use std::sync::Arc;

use crate::description::Description;
use crate::error::{Error, Result};
use crate::events::Action;
use crate::io::input::{Compression, Input};
use crate::io::output::{Output, split_compression};
use crate::io::stream::{Reader, Writer};
use crate::model::io_result::IoResult;
use crate::model::metadata::Metadata;
use crate::model::request::Request;

/// A format: how its files are recognised, read and written.
pub struct Format {
    /// Its name on the command line and in [`crate::Source::format`].
    pub name: &'static str,
    /// A short description for people.
    pub title: &'static str,
    /// The files that its reader was tested with.
    pub tested_with: TestedWith,
    /// The extensions of output files that select this format, without the extension of a compression.
    pub extensions: &'static [&'static str],
    /// Whether the format compresses its own data. No other program reads such a file if it is compressed as a whole.
    pub compresses_itself: bool,
    /// Whether its files are only for viewers: no file of this format is ever recognised, and it holds no result or recording.
    pub is_for_viewers: bool,
    /// Whether a file that begins with `head` has this format.
    pub recognise: fn(head: &[u8]) -> bool,
    /// Whether a file that begins with `head`, and that no format recognises, has this format except that a unit is wrong
    /// or a required column is missing. The reader then reports that.
    pub resembles: fn(head: &[u8]) -> bool,
    /// Whether the format has several events per request, of which [`Options::action`] selects one.
    pub has_actions: bool,
    /// Opens a file for reading.
    pub open: fn(Input, &Options) -> Result<Opened>,
    /// Opens several files that are one trace, such as the per-CPU files of blktrace; `None` if a trace is one file.
    pub open_parts: Option<OpenParts>,
    /// Creates a load; `None` if the format cannot be written.
    pub create_load: Option<CreateLoad>,
    /// Creates a run; `None` if the format cannot hold runs.
    pub create_run: Option<CreateRun>,
}

impl Format {
    /// Defaults for a format: one file per trace, read-only. `recognise` and `open` must be set.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self {
            name,
            title: name,
            tested_with: TestedWith::DescriptionOnly,
            extensions: &[],
            compresses_itself: false,
            is_for_viewers: false,
            recognise: |_| false,
            resembles: |_| false,
            has_actions: false,
            open: |input, _| Err(Error::format(input.path(), "the format has no reader")),
            open_parts: None,
            create_load: None,
            create_run: None,
        }
    }

    /// Refuses a file name with the extension of a compression if the format compresses its own data.
    ///
    /// # Errors
    /// If the name ends in `.gz` or `.zst`, and [`Format::compresses_itself`].
    pub fn refuse_compression(&self, path: &Path) -> Result<()> {
        if self.compresses_itself { refuse_compression(self.name, path) } else { Ok(()) }
    }
}

/// Refuses a file name with the extension of a compression, for a format that compresses its own data.
pub(super) fn refuse_compression(format: &str, path: &Path) -> Result<()> {
    let (bare, compression) = split_compression(path);
    if compression == Compression::None {
        return Ok(());
    }
    let kind = compression.name();
    let problem = format!(
        "a {format} file is compressed inside, and no other program reads it if it is compressed with {kind} again; name \
         it {}",
        path.with_file_name(bare).display()
    );
    Err(Error::usage(path, problem))
}

/// Options of a reader.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// In traces of events, the event that a request and its time are taken from; `None` for the most frequent one.
    pub action: Option<Action>,
    /// What the rows of a file in no known format are; see [`Description`].
    pub description: Option<Arc<Description>>,
}

/// Opens several files as one trace.
pub type OpenParts = fn(Vec<Input>, &Options) -> Result<Opened>;
/// Creates a load. The metadata is as known before the first row.
pub type CreateLoad = fn(Output, &Metadata) -> Result<Box<dyn Writer<Request>>>;
/// Creates a run. The metadata is as known before the first row.
pub type CreateRun = fn(Output, &Metadata) -> Result<Box<dyn Writer<IoResult>>>;

/// The files that the reader of a format was tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedWith {
    /// Files written by the format's own programs.
    RealFiles,
    /// Published lines of real traces, but no whole file.
    PublishedLines,
    /// Only files written according to its description: it may misread real ones.
    DescriptionOnly,
}

/// An opened file.
pub enum Opened {
    /// Requests to be issued.
    Load(Box<dyn Reader<Request>>),
    /// Requests that were replayed, with what happened.
    Run(Box<dyn Reader<IoResult>>),
}

impl Opened {
    /// The metadata so far; see [`Reader::metadata`].
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Load(rows) => rows.metadata(),
            Self::Run(rows) => rows.metadata(),
        }
    }
}
