//! What can keep a replay from being done, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// The result of anything that prepares or runs a replay.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace's file could not be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The target must not be overwritten.
    #[error("{}: {reason}", path.display())]
    Unsafe {
        /// The target.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Someone asked for an end before it began.
    #[error("stopped before the replay began: nothing was written")]
    Stopped,
    /// Options that are out of their range or contradict each other, whatever the files are.
    #[error("{0}")]
    Usage(String),
    /// Options that cannot be met with these files on this machine.
    #[error("{0}")]
    Options(String),
    /// A journal that cannot be understood.
    #[error("{}: {problem}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    /// An error of the system while doing `what`.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }

    /// An error of the system on a file.
    pub fn file(path: &Path, source: io::Error) -> Self {
        Self::System { what: path.display().to_string(), source }
    }
}
