//! Storage that is only read: also what is mounted or held, because looking harms nobody.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::node::Handle;
use super::target::direct_io_alignment;
use super::{Kind, sysfs};
use crate::error::{Error, Result};

/// A block device or regular file, open for reading.
#[derive(Debug)]
pub struct Readable {
    /// What the user called it.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: u64,
    /// What positions and lengths must be multiples of, in bytes; 1 if not `direct`.
    pub block_bytes: u64,
    /// Whether reads go past the page cache. Some file systems can't.
    pub direct: bool,
    /// Open.
    pub file: File,
    /// Stays on it, whatever the path names later.
    handle: Handle,
}

/// Whether reads may be answered by the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The device itself answers, where that is possible.
    Device,
    /// The page cache answers, and keeps what was read.
    PageCache,
}

/// The size of what a handle is on, in bytes.
pub fn bytes(handle: &Handle) -> Result<u64> {
    match handle.kind {
        Kind::Block => sysfs::bytes(handle.meta.rdev()),
        Kind::File | Kind::None => Ok(handle.meta.len()),
    }
}

impl Readable {
    /// Opens what a path names.
    pub fn open(path: &Path, through: Through) -> Result<Self> {
        Self::of(Handle::new(path)?, through)
    }

    /// Opens it.
    pub fn of(handle: Handle, through: Through) -> Result<Self> {
        let (path, kind, bytes) = (&handle.path, handle.kind, bytes(&handle)?);
        let with = |flags: i32| handle.open(OpenOptions::new().read(true).custom_flags(flags));
        let (file, direct) = match (through, with(libc::O_DIRECT)) {
            (Through::Device, Ok(file)) => (file, true),
            (Through::Device, Err(e)) if e.raw_os_error() != Some(libc::EINVAL) => return Err(not_read(path, e)),
            _ => (with(0).map_err(|e| not_read(path, e))?, false),
        };
        let block_bytes = match kind {
            _ if !direct => 1,
            Kind::Block => sysfs::logical_block_bytes(handle.meta.rdev())?,
            Kind::File | Kind::None => direct_io_alignment(&file)?,
        };
        Ok(Self { path: path.clone(), kind, bytes, block_bytes, direct, file, handle })
    }

    /// The same through the page cache, for an end that is no whole block.
    pub fn buffered(&self) -> io::Result<File> {
        self.handle.open(OpenOptions::new().read(true))
    }
}

fn not_read(path: &Path, error: io::Error) -> Error {
    if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) {
        // Root itself is refused by the rules of some containers.
        let advice = if rustix::process::geteuid().is_root() {
            "not even root may read it here; a container's rules for devices may be the reason"
        } else {
            "to read a device needs root, or the group that it belongs to (try sudo)"
        };
        let reason = format!("{error}; {advice}");
        return Error::Unsafe { path: path.to_owned(), reason };
    }
    Error::file(path, error)
}
