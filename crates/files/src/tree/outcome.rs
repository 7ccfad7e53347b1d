//! How a root is prepared, what was done, and why it was not.

use std::fmt;
use std::io;
use std::path::Path;

use iosonar_pacing::payload::DataSpec;
use iosonar_trace::human;

use super::check::Problem;

/// How to prepare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The bytes that fill files.
    pub data: DataSpec,
    /// The seed of these bytes: the same gives the same.
    pub seed: u64,
    /// Files get their size, but no data.
    pub is_sparse: bool,
    /// Bring the root back: remove what the plan does not have, and change what differs.
    pub reset: bool,
    /// Make device nodes, sockets and FIFOs.
    pub special_files: bool,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PreparedCounts {
    /// Directories that were made.
    pub directories: u64,
    /// Files that were made.
    pub files: u64,
    /// Files that got longer.
    pub extended: u64,
    /// Files that got shorter.
    pub shortened: u64,
    /// Symbolic links that were made.
    pub symlinks: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Device nodes, sockets and FIFOs that were made.
    pub special: u64,
    /// Device nodes, sockets and FIFOs that were left out.
    pub special_left_out: u64,
    /// Paths that were removed.
    pub removed: u64,
    /// Paths whose permissions, owner or time were set although they existed.
    pub attributes: u64,
    /// Paths whose owner could not be set without privileges.
    pub owners_refused: u64,
    /// Bytes of data that were written.
    pub bytes: u64,
}

impl std::ops::AddAssign for PreparedCounts {
    fn add_assign(&mut self, other: Self) {
        let Self { directories, files, extended, shortened, symlinks, hard_links, special, .. } = other;
        let Self { special_left_out, removed, attributes, owners_refused, bytes, .. } = other;
        self.directories += directories;
        self.files += files;
        self.extended += extended;
        self.shortened += shortened;
        self.symlinks += symlinks;
        self.hard_links += hard_links;
        self.special += special;
        self.special_left_out += special_left_out;
        self.removed += removed;
        self.attributes += attributes;
        self.owners_refused += owners_refused;
        self.bytes += bytes;
    }
}

impl PreparedCounts {
    /// Whether everything was there already.
    pub fn is_nothing(&self) -> bool {
        let left =
            Self { special_left_out: self.special_left_out, owners_refused: self.owners_refused, ..Self::default() };
        *self == left
    }
}

/// Why a root was not prepared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {}", iosonar_trace::system_text(source))]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// Not enough space.
    #[error("{0}")]
    NoSpace(String),
    /// The root must not be used.
    #[error("{0}")]
    BadRoot(String),
    /// Paths exist that differ. Nothing was changed.
    #[error("{0}")]
    Differs(Conflicts),
}

/// Paths that exist and differ.
#[derive(Debug)]
pub struct Conflicts {
    /// All of them, with their paths.
    pub all: Vec<(Box<[u8]>, Problem)>,
}

/// How many conflicts a message lists.
const LISTED: usize = 10;

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} exist and differ; nothing was changed. --reset brings the root back:",
            human::count(self.all.len() as u64)
        )?;
        for (path, problem) in self.all.iter().take(LISTED) {
            write!(f, "\n  {}: {problem}", show(path))?;
        }
        if self.all.len() > LISTED {
            write!(f, "\n  … and {} more", self.all.len() - LISTED)?;
        }
        Ok(())
    }
}

/// A path for messages.
pub fn show(path: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    iosonar_trace::path_text(Path::new(std::ffi::OsStr::from_bytes(path)))
}

pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    move |source| Error::System { what, source }
}
