//! The formats of files: one file for each, and one line in [`FORMATS`].

use crate::error::{Error, Result};
use crate::input::Input;
use crate::metadata::Metadata;
use crate::output::Output;
use crate::record::Record;
use crate::request::Request;
use crate::stream::{Reader, Writer};

pub mod classic;
pub mod parquet;

/// Every format, in the order in which they are asked whether a file is theirs: those with a magic number first.
pub const FORMATS: &[&Format] = &[&parquet::FORMAT, &classic::FORMAT];

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
    /// Whether a file that begins like this is of this format.
    pub recognise: fn(head: &[u8]) -> bool,
    /// Reads a file.
    pub open: fn(Input) -> Result<Opened>,
    /// Writes a load, if the format can be written; the metadata is what is known of it before its first row.
    pub create_load: Option<CreateLoad>,
    /// Writes a run, if the format holds runs.
    pub create_run: Option<CreateRun>,
}

/// Begins a load.
pub type CreateLoad = fn(Output, &Metadata) -> Result<Box<dyn Writer<Request>>>;
/// Begins a run.
pub type CreateRun = fn(Output, &Metadata) -> Result<Box<dyn Writer<Record>>>;

/// What the reader of a format was tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriedOn {
    /// Files that the format's own programs made.
    RealFiles,
    /// Only files made after its description: treat what it reads with care.
    DescriptionOnly,
}

/// The rows of a file that was opened.
pub enum Opened {
    /// Requests to be issued.
    Load(Box<dyn Reader<Request>>),
    /// Requests that were replayed, with what happened.
    Run(Box<dyn Reader<Record>>),
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

/// The format of that name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

/// The format that a file of this content has.
pub(crate) fn of_content(input: &Input) -> Result<&'static Format> {
    let head = input.head();
    if let Some(format) = FORMATS.iter().copied().find(|format| (format.recognise)(head)) {
        return Ok(format);
    }
    let problem = match head {
        [] if input.damage().is_some() => input.damage().unwrap_or_default().to_owned(),
        [] => "empty".to_owned(),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => piped("xz", "xz -dc"),
        [b'B', b'Z', b'h', ..] => piped("bzip2", "bzip2 -dc"),
        [b'P', b'K', 3, 4, ..] => piped("zip", "unzip -p"),
        _ => {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("not recognised as a trace of any known format ({})", names.join(", "))
        }
    };
    Err(Error::format(input.path(), problem))
}

fn piped(packer: &str, unpack: &str) -> String {
    format!("packed with {packer}, which iosonar does not read; unpack it on the way: {unpack} FILE | iosonar … -")
}
