//! The files of `/proc` and `/sys` that checks read: below `/`, or below another directory in tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A machine, by its files.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Whether it is the machine that this program runs on: only then system calls can be tried.
    pub fn is_own(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The file of this absolute path.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Its text without the line end; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The names in a directory, sorted.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A value of `/proc/self/status`.
    pub fn status(&self, name: &str) -> Option<String> {
        let text = self.read("/proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
        line.map(|value| value.trim().to_owned())
    }
}
