//! Storage opened for reading, even if it is in use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use iosonar_pacing::{Error, Result};

use super::node::Handle;
use super::target::direct_io_alignment;
use super::{Kind, missing, sysfs};

/// A block device or regular file, open for reading.
#[derive(Debug)]
pub struct Readable {
    /// The path as given.
    pub path: PathBuf,
    /// Device or file.
    pub kind: Kind,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment of positions and lengths in bytes; 1 without direct I/O.
    pub block_bytes: u64,
    /// Whether reads bypass the page cache; some file systems have no direct I/O.
    pub direct: bool,
    /// The file, open for reading.
    pub file: File,
    /// For opening it again.
    handle: Handle,
}

/// Whether reads use the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// Direct I/O, if possible.
    Device,
    /// Reads from the page cache, which keeps the data.
    PageCache,
}

/// The size of the storage in bytes.
pub fn bytes(handle: &Handle) -> Result<u64> {
    match handle.kind {
        Kind::Block => sysfs::bytes(handle.meta.rdev()),
        Kind::File | Kind::None => Ok(handle.meta.len()),
    }
}

impl Readable {
    /// Opens a path.
    pub fn open(path: &Path, through: ReadFrom) -> Result<Self> {
        Self::of(Handle::new(path)?, through)
    }

    /// Opens a handle.
    pub fn of(handle: Handle, through: ReadFrom) -> Result<Self> {
        let (path, kind, bytes) = (&handle.path, handle.kind, bytes(&handle)?);
        let with = |flags: i32| handle.open(OpenOptions::new().read(true).custom_flags(flags));
        let (file, direct) = match (through, with(libc::O_DIRECT)) {
            (ReadFrom::Device, Ok(file)) => (file, true),
            (ReadFrom::Device, Err(e)) if e.raw_os_error() != Some(libc::EINVAL) => return Err(not_read(path, e)),
            _ => (with(0).map_err(|e| not_read(path, e))?, false),
        };
        let block_bytes = match kind {
            _ if !direct => 1,
            Kind::Block => sysfs::logical_block_bytes(handle.meta.rdev())?,
            Kind::File | Kind::None => direct_io_alignment(&file)?,
        };
        Ok(Self { path: path.clone(), kind, bytes, block_bytes, direct, file, handle })
    }

    /// Opens it through the page cache, for the partial last block.
    pub fn buffered(&self) -> io::Result<File> {
        self.handle.open(OpenOptions::new().read(true))
    }
}

fn not_read(path: &Path, error: io::Error) -> Error {
    if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) {
        let reason = format!("{error}; {}", missing::permission_remedy());
        return Error::Unsafe { path: path.to_owned(), reason };
    }
    Error::file(path, error)
}
