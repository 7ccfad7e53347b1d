//! What can go wrong with a trace's file, each with what to do about it.

use std::io;
use std::path::PathBuf;

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
}

impl Error {
    /// An error of the system on that file.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A file whose content is wrong.
    pub fn format(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Format { path: path.into(), problem: problem.into() }
    }
}
