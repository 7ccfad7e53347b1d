//! What a format is: how its files are recognised, read and written.

use std::path::Path;

use crate::error::{Error, Result};
use crate::events::Action;
use crate::io::input::{Compression, Input};
use crate::io::output::{Output, split_compression};
use crate::io::stream::{Reader, Writer};
use crate::model::io_result::IoResult;
use crate::model::metadata::Metadata;
use crate::model::request::Request;

/// A format: how its files are told from others, read and written.
pub struct Format {
    /// Its name on the command line and in [`crate::Source::format`].
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// What its reader was tried on.
    pub tried_on: TriedOn,
    /// The endings (without that of a compression) of names that ask for this format when a file is written.
    pub endings: &'static [&'static str],
    /// Whether its files are compressed inside. Packed as a whole, no other program would read them.
    pub is_packed_inside: bool,
    /// Whether a file that begins like this is of this format.
    pub recognise: fn(head: &[u8]) -> bool,
    /// Whether a file that begins like this is of this format but for a unit or a column that can't be done without, if no
    /// other format recognises it: read, it says what is wrong.
    pub resembles: fn(head: &[u8]) -> bool,
    /// Whether it holds the events of a request's life, of which [`Options::action`] is one.
    pub has_actions: bool,
    /// Reads a file.
    pub open: fn(Input, &Options) -> Result<Opened>,
    /// Reads several files that are one trace, as the per-CPU files of blktrace, if the format has such.
    pub open_parts: Option<OpenParts>,
    /// Writes a load, if the format can be written; the metadata is what is known of it before its first row.
    pub create_load: Option<CreateLoad>,
    /// Writes a run, if the format holds runs.
    pub create_run: Option<CreateRun>,
}

impl Format {
    /// What most formats have in common: one file, not written. It recognises nothing and reads nothing by itself.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self {
            name,
            title: name,
            tried_on: TriedOn::DescriptionOnly,
            endings: &[],
            is_packed_inside: false,
            recognise: |_| false,
            resembles: |_| false,
            has_actions: false,
            open: |input, _| Err(Error::format(input.path(), "the format has no reader")),
            open_parts: None,
            create_load: None,
            create_run: None,
        }
    }

    /// Refuses a name that asks for a compression which a file of this format must not have.
    ///
    /// # Errors
    /// If it ends in `.gz` or `.zst`, and the format is compressed inside.
    pub fn refuse_packing(&self, path: &Path) -> Result<()> {
        if self.is_packed_inside { refuse_packing(self.name, path) } else { Ok(()) }
    }
}

/// Refuses a name that asks for a compression, for the file of a format that is compressed inside.
pub(super) fn refuse_packing(format: &str, path: &Path) -> Result<()> {
    let (bare, compression) = split_compression(path);
    if compression == Compression::None {
        return Ok(());
    }
    let kind = compression.name();
    let problem = format!(
        "a {format} file is compressed inside, and packed with {kind} no other program reads it: call it {}",
        path.with_file_name(bare).display()
    );
    Err(Error::usage(path, problem))
}

/// What the caller wants of a reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which event of a request's life its time is taken from, in traces of events; else the most frequent one.
    pub action: Option<Action>,
}

/// Reads several files as one.
pub type OpenParts = fn(Vec<Input>, &Options) -> Result<Opened>;
/// Begins a load.
pub type CreateLoad = fn(Output, &Metadata) -> Result<Box<dyn Writer<Request>>>;
/// Begins a run.
pub type CreateRun = fn(Output, &Metadata) -> Result<Box<dyn Writer<IoResult>>>;

/// What the reader of a format was tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriedOn {
    /// Files that the format's own programs made.
    RealFiles,
    /// Lines of real traces as they were published, but no whole file.
    PublishedLines,
    /// Only files made after its description: treat what it reads with care.
    DescriptionOnly,
}

/// The rows of a file that was opened.
pub enum Opened {
    /// Requests to be issued.
    Load(Box<dyn Reader<Request>>),
    /// Requests that were replayed, with what happened.
    Run(Box<dyn Reader<IoResult>>),
}

impl Opened {
    /// What is known of it by now, load or run.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Load(rows) => rows.metadata(),
            Self::Run(rows) => rows.metadata(),
        }
    }
}
