//! A family of kinds of rows, and a file of one of them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosonar_trace::input::Input;
use iosonar_trace::{Reader, Row};

use super::Reading;
use super::convert::Job;
use super::edit::Edits;
use super::told::{Info, Told};
use super::{info, recover};

/// Kinds of rows that are opened alike, such as requests and their results.
pub struct Family {
    /// Opens the files of one trace; `None` if they are of another family.
    pub open: fn(&[PathBuf], Option<&Path>, &Reading) -> Result<Option<Box<dyn AnyFile>>>,
    /// Opens an input, which is given back if it is of another family.
    pub open_input: fn(Input, &Reading) -> Result<Result<Box<dyn AnyFile>, Input>>,
    /// The transforms of its rows.
    pub edits: Edits,
}

/// An open file of any kind of rows.
pub trait AnyFile {
    /// Reads all rows, and says what is in the file.
    fn info(self: Box<Self>, paths: &[PathBuf]) -> Result<Info>;

    /// Writes the rows to another file.
    fn convert(self: Box<Self>, job: &Job<'_>) -> Result<()>;

    /// Gives a recording that was cut short its name, and says what is in it.
    fn recover(self: Box<Self>, hidden: &Path, output: &Path) -> Result<()>;
}

/// An open file.
pub struct Opened<R: Row> {
    /// Its name in messages.
    pub name: String,
    /// What it is, in words.
    pub described: String,
    /// Its format, for `info --json`.
    pub format: serde_json::Value,
    /// The rows.
    pub rows: Box<dyn Reader<R>>,
    /// Refuses what must not be converted, by the metadata at its end.
    pub accept: Accept<R>,
}

/// A check of the metadata at the end of a file.
pub type Accept<R> = Box<dyn FnOnce(&<R as Row>::Metadata) -> Result<()>>;

impl<R: Told> AnyFile for Opened<R> {
    fn info(self: Box<Self>, paths: &[PathBuf]) -> Result<Info> {
        info::of(*self, paths)
    }

    fn convert(self: Box<Self>, job: &Job<'_>) -> Result<()> {
        R::convert(*self, job)
    }

    fn recover(self: Box<Self>, hidden: &Path, output: &Path) -> Result<()> {
        recover::name(*self, hidden, output)
    }
}

/// The name of the files of one trace in messages.
pub fn name_of(paths: &[PathBuf]) -> String {
    let first = iosonar_trace::path_text(&paths[0]);
    if paths.len() == 1 { first } else { format!("{first} and {} more", paths.len() - 1) }
}
