//! Errors of reading and writing traces.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of reading or writing a trace.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading or writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An I/O error.
    #[error("{}: {}", path.display(), system_text(source))]
    Io {
        /// The file that could not be read or written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The content has an unknown format, or violates its format.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file with this content.
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
    /// The thread that writes a file panicked.
    #[error("the thread that writes the recording ended unexpectedly")]
    WriterGone,
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

/// The name of a temporary file in messages.
pub(crate) fn temporary_file() -> PathBuf {
    std::env::temp_dir().join("(temporary file; TMPDIR names its directory)")
}

/// The words of a system's error, without its number: "No such file or directory".
pub fn system_text(error: &io::Error) -> String {
    const NUMBER: &str = " (os error ";
    const HIDDEN: &str = " at path \"";
    let mut text = error.to_string();
    // The library of temporary files adds their name, which is hidden, in quotes.
    if let Some(start) = text.find(HIDDEN) {
        let name = start + HIDDEN.len();
        let mut is_escaped = false;
        let end = text[name..].find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        if let Some(end) = end {
            text.replace_range(start..=name + end, "");
        }
    }
    // Errors that wrap another one have its number within their text.
    while let Some(start) = text.find(NUMBER)
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_worded_without_their_numbers() {
        let missing = || io::Error::from_raw_os_error(2);
        assert_eq!(system_text(&missing()), "No such file or directory");
        let wrapped = io::Error::other(format!("{}; mount it", missing()));
        assert_eq!(system_text(&wrapped), "No such file or directory; mount it");
        assert_eq!(Error::io("a (os error", missing()).to_string(), "a (os error: No such file or directory");
        assert_eq!(system_text(&io::Error::other("a (os error")), "a (os error");
        let hidden = tempfile::Builder::new().tempfile_in("/none").unwrap_err();
        assert_eq!(system_text(&hidden), "No such file or directory");
        let kept = io::Error::other("no space (os error 28) at path \"/a \\\"b\\\"/.c\"; the data is kept");
        assert_eq!(system_text(&kept), "no space; the data is kept");
    }
}
