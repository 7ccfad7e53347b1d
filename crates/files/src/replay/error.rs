//! Errors of a replay of calls, each with its remedy.

use std::io;
use std::path::PathBuf;

/// The result of preparing or running a replay of calls.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a replay of calls.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace or result could not be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
    /// The machinery that is shared with the replay of requests failed.
    #[error(transparent)]
    Replay(#[from] iosonar_pacing::Error),
    /// A system call failed.
    #[error("{what}: {}", iosonar_trace::system_text(source))]
    System {
        /// What was tried, or the file that it was tried on.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Options that are wrong whatever the files are.
    #[error("{0}")]
    Usage(String),
    /// Options that do not work with these files or on this machine.
    #[error("{0}")]
    Options(String),
    /// The replay ended early.
    #[error("{error}; {} has the calls until then", output.display())]
    CutShort {
        /// Why it ended.
        error: Box<Error>,
        /// The file that has the calls until then.
        output: PathBuf,
    },
    /// A stop was requested before the replay began.
    #[error("stopped before the replay began: nothing was written")]
    Stopped,
}

impl Error {
    /// A system error during `what`.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }
}
