//! Errors of reading and writing traces.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of reading or writing a trace.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading or writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An I/O error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The content has an unknown format, or violates its format.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// An option or setting cannot be applied to this load.
    #[error("{0}")]
    Request(String),
    /// The command line is wrong, whatever the content of the files.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// An I/O error on a file.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A wrong name or option.
    pub fn usage(path: &Path, problem: impl fmt::Display) -> Self {
        Self::Usage(format!("{}: {problem}", path.display()))
    }

    /// A file with wrong content.
    pub fn format(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Format { path: path.into(), problem: problem.into() }
    }
}
