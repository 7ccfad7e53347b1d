//! The identity of a file or device, and a handle to it. All checks and opens of a target use the handle, so that a path that
//! is replaced in the meantime has no effect.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use iosonar_pacing::{Error, Result};

use super::Kind;
use super::missing::missing;

/// Identity of a block device or a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A block device by number.
    Block(u64),
    /// A file by file system and inode.
    File {
        /// `st_dev` of the file system.
        device: u64,
        /// Inode number.
        inode: u64,
    },
}

impl Node {
    /// From the result of `stat`; `None` for other types.
    pub fn of(meta: &Metadata) -> Option<Self> {
        match meta.file_type() {
            t if t.is_block_device() => Some(Self::Block(meta.rdev())),
            t if t.is_file() => Some(Self::File { device: meta.dev(), inode: meta.ino() }),
            _ => None,
        }
    }

    /// What a path refers to now.
    pub fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }
}

/// A handle to what a path referred to when it was created.
#[derive(Debug)]
pub struct Handle {
    /// The path as given.
    pub path: PathBuf,
    /// What `stat` returned, following symbolic links.
    pub meta: Metadata,
    /// Device or file.
    pub kind: Kind,
    /// The identity, for comparisons.
    pub node: Node,
    /// Opened with `O_PATH`, which has no side effects.
    pin: File,
}

impl Handle {
    /// Opens a handle. Refuses anything but block devices and regular files.
    pub fn new(path: &Path) -> Result<Self> {
        let pin = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).map_err(|e| missing(path, e))?;
        let meta = pin.metadata().map_err(|e| Error::file(path, e))?;
        let Some(node) = Node::of(&meta) else {
            let reason = "neither a block device nor a regular file".into();
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        };
        let kind = if matches!(node, Node::Block(_)) { Kind::Block } else { Kind::File };
        Ok(Self { path: path.to_owned(), meta, kind, node, pin })
    }

    /// Duplicates the handle.
    pub fn again(&self) -> Result<Self> {
        let pin = self.pin.try_clone().map_err(|e| Error::file(&self.path, e))?;
        Ok(Self { path: self.path.clone(), meta: self.meta.clone(), pin, ..*self })
    }

    /// A path to the file or device, valid in this process while the handle exists.
    pub fn own_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.pin.as_raw_fd()).into()
    }

    /// Its current path, if it has one.
    pub fn real_path(&self) -> Option<PathBuf> {
        fs::read_link(self.own_path()).ok()
    }

    /// Opens the file or device.
    pub fn open(&self, options: &OpenOptions) -> io::Result<File> {
        let file = options.open(self.own_path()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(error.kind(), format!("{error}; is /proc mounted?")),
            _ => error,
        })?;
        if Node::of(&file.metadata()?) != Some(self.node) {
            return Err(io::Error::other("replaced by another file while it was opened"));
        }
        Ok(file)
    }

    /// The handle's descriptor, for child processes.
    pub fn pin(&self) -> &File {
        &self.pin
    }
}

/// Whether two paths name the same file or device.
pub fn is_same_file(first: &Path, second: &Path) -> bool {
    let metadata = (fs::metadata(first), fs::metadata(second));
    matches!(metadata, (Ok(first), Ok(second)) if identity(&first) == identity(&second))
}

fn identity(metadata: &Metadata) -> (bool, u64, u64) {
    match metadata.file_type().is_block_device() {
        true => (true, metadata.rdev(), 0),
        false => (false, metadata.dev(), metadata.ino()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_handle_ignores_later_changes_of_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("one"), "one").unwrap();
        fs::write(path("other"), "other").unwrap();
        symlink(path("one"), path("link")).unwrap();
        let handle = Handle::new(&path("link")).unwrap();
        fs::remove_file(path("link")).unwrap();
        symlink(path("other"), path("link")).unwrap();
        let mut text = String::new();
        handle.open(OpenOptions::new().read(true)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one");
        assert_eq!(handle.real_path().unwrap(), path("one").canonicalize().unwrap());
        assert_eq!(Some(handle.node), Node::at(&path("one")));
        assert!(Handle::new(directory.path()).is_err(), "a directory is refused");
    }
}
