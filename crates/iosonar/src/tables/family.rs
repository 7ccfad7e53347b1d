//! A family of kinds of rows, and a file of one of them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosonar_trace::input::Input;

use super::described::{Described, Info};
use super::edit::Edits;
use super::info;
use super::opened::{Job, Opened};
use super::reading::Reading;
use super::recover::{self, Recovered};
use super::window::Window;

/// See [`Family::open`].
type Open = fn(&[PathBuf], Option<&Path>, &Reading) -> Result<Option<Box<dyn AnyFile>>>;
/// See [`Family::open_input`].
type OpenInput = fn(Input, &Reading) -> Result<Result<Box<dyn AnyFile>, Input>>;

/// See [`Family::recover`].
type Recover = fn(&Path, &Path) -> Result<Option<Recovered>>;

/// Kinds of rows that are opened alike, such as requests and their results.
pub struct Family {
    /// Opens the files of one trace; `None` if they are of another family.
    pub open: Open,
    /// Opens an input, which is given back if it is of another family.
    pub open_input: OpenInput,
    /// The transforms of its rows.
    pub edits: Edits,
    /// Makes the result of a killed replay from its journal; `None` if that is of another family.
    pub recover: Recover,
}

/// An open file of any kind of rows.
pub trait AnyFile {
    /// Reads all rows, and says what is in the file, or in a window of it.
    fn info(self: Box<Self>, paths: &[PathBuf], window: Option<Window>) -> Result<Info>;

    /// Writes the rows to another file.
    fn convert(self: Box<Self>, job: &Job<'_>) -> Result<()>;

    /// Gives a recording that was cut short its name, and says what is in it.
    fn recover(self: Box<Self>, hidden: &Path, output: &Path) -> Result<()>;
}

impl<R: Described> AnyFile for Opened<R> {
    fn info(self: Box<Self>, paths: &[PathBuf], window: Option<Window>) -> Result<Info> {
        info::of(*self, paths, window)
    }

    fn convert(self: Box<Self>, job: &Job<'_>) -> Result<()> {
        R::convert(*self, job)
    }

    fn recover(self: Box<Self>, hidden: &Path, output: &Path) -> Result<()> {
        recover::name(*self, hidden, output)
    }
}
