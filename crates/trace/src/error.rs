//! What can go wrong with a trace's file, each with what to do about it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of anything that reads or writes a trace.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content is none of the known formats, or not what its beginning promises.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// What was asked for is unknown, or makes no sense.
    #[error("{0}")]
    Request(String),
    /// The same, and no file had to be read to know it: the command line is wrong.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// An error of the system on that file.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A name or an option that asks for what there is not, whatever is in that file.
    pub fn usage(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Usage(format!("{}: {problem}", path.display()))
    }

    /// A file whose content is wrong.
    pub fn format(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Format { path: path.into(), problem: problem.into() }
    }
}
