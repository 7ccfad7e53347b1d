//! Errors of a replay, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// The result of preparing or running a replay.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a replay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A load or result could not be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
    /// A system call failed.
    #[error("{what}: {}", iosonar_trace::system_text(source))]
    System {
        /// What was tried, or the file that it was tried on.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The target must not be overwritten.
    #[error("{}: {reason}", path.display())]
    Unsafe {
        /// The target's path.
        path: PathBuf,
        /// The reason and the remedy.
        reason: String,
    },
    /// A stop was requested before the replay began.
    #[error("stopped before the replay began: nothing was written")]
    Stopped,
    /// Options out of range or in conflict with each other, for any files.
    #[error("{0}")]
    Usage(String),
    /// Options that do not work with these files or on this machine.
    #[error("{0}")]
    Options(String),
}

impl Error {
    /// A system error during `what`.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }

    /// A system error on a file.
    pub fn file(path: &Path, source: io::Error) -> Self {
        Self::System { what: path.display().to_string(), source }
    }
}
