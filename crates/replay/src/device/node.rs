//! Storage under whatever name, and a handle that stays on it: everything that is asked of a target, and every opening of it,
//! is about the file or device that its path named once, whatever that path names later.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Kind;
use super::missing::missing;
use crate::error::{Error, Result};

/// A block device or a regular file, under whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The device of that number.
    Block(u64),
    /// The file of that inode, on the file system whose files show that device number.
    File {
        /// The file system.
        device: u64,
        /// The file.
        inode: u64,
    },
}

impl Node {
    /// What `stat` tells of it; `None` for what is neither.
    pub fn of(meta: &Metadata) -> Option<Self> {
        match meta.file_type() {
            t if t.is_block_device() => Some(Self::Block(meta.rdev())),
            t if t.is_file() => Some(Self::File { device: meta.dev(), inode: meta.ino() }),
            _ => None,
        }
    }

    /// What a path names now.
    pub fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }
}

/// What a path named when the handle was made.
#[derive(Debug)]
pub struct Handle {
    /// The path, as the user gave it.
    pub path: PathBuf,
    /// What `stat` says of what it named.
    pub meta: Metadata,
    /// What that is.
    pub kind: Kind,
    /// The same for comparisons.
    pub node: Node,
    /// Opened by `O_PATH`: it neither reads nor writes, and nothing notices it.
    pin: File,
}

impl Handle {
    /// Takes hold of what the path names. Anything but block devices and regular files is refused.
    pub fn new(path: &Path) -> Result<Self> {
        let pin = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).map_err(|e| missing(path, e))?;
        let meta = pin.metadata().map_err(|e| Error::file(path, e))?;
        let Some(node) = Node::of(&meta) else {
            let reason = "neither a block device nor a regular file; name one of these".into();
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        };
        let kind = if matches!(node, Node::Block(_)) { Kind::Block } else { Kind::File };
        Ok(Self { path: path.to_owned(), meta, kind, node, pin })
    }

    /// Another handle on the same.
    pub fn again(&self) -> Result<Self> {
        let pin = self.pin.try_clone().map_err(|e| Error::file(&self.path, e))?;
        Ok(Self { path: self.path.clone(), meta: self.meta.clone(), pin, ..*self })
    }

    /// A path to this very file or device, for as long as the handle lives and in this process only.
    pub fn own_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.pin.as_raw_fd()).into()
    }

    /// Where it lies, as far as that has a name.
    pub fn real_path(&self) -> Option<PathBuf> {
        fs::read_link(self.own_path()).ok()
    }

    /// Opens it.
    pub fn open(&self, options: &OpenOptions) -> io::Result<File> {
        let file = options.open(self.own_path()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(error.kind(), format!("{error}; is /proc mounted?")),
            _ => error,
        })?;
        if Node::of(&file.metadata()?) != Some(self.node) {
            return Err(io::Error::other("what was opened is not what was checked"));
        }
        Ok(file)
    }

    /// The handle's own descriptor, which a program that is started can inherit.
    pub fn pin(&self) -> &File {
        &self.pin
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_handle_stays_on_what_its_path_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
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
        assert!(Handle::new(folder.path()).is_err(), "a folder is no storage");
    }
}
