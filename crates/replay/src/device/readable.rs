//! Storage that is only read: also what is mounted or held, because looking harms nobody.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Kind, direct_io_alignment, missing, sysfs};
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
    /// What `stat` says of it.
    pub meta: Metadata,
}

/// Whether reads may be answered by the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The device itself answers, where that is possible.
    Device,
    /// The page cache answers, and keeps what was read.
    PageCache,
}

/// What a path names: what `stat` says, what it is, and its size in bytes.
pub fn identify(path: &Path) -> Result<(Metadata, Kind, u64)> {
    let meta = path.metadata().map_err(|e| missing(path, e))?;
    match meta.file_type() {
        t if t.is_block_device() => {
            let bytes = sysfs::bytes(meta.rdev())?;
            Ok((meta, Kind::Block, bytes))
        }
        t if t.is_file() => {
            let bytes = meta.len();
            Ok((meta, Kind::File, bytes))
        }
        _ => {
            let reason = "neither a block device nor a regular file; name one of these".into();
            Err(Error::Unsafe { path: path.to_owned(), reason })
        }
    }
}

impl Readable {
    /// Opens it.
    pub fn open(path: &Path, through: Through) -> Result<Self> {
        let (meta, kind, bytes) = identify(path)?;
        let with = |flags: i32| OpenOptions::new().read(true).custom_flags(flags | libc::O_CLOEXEC).open(path);
        let (file, direct) = match (through, with(libc::O_DIRECT)) {
            (Through::Device, Ok(file)) => (file, true),
            (Through::Device, Err(e)) if e.raw_os_error() != Some(libc::EINVAL) => return Err(not_read(path, e)),
            _ => (with(0).map_err(|e| not_read(path, e))?, false),
        };
        let block_bytes = match kind {
            _ if !direct => 1,
            Kind::Block => sysfs::logical_block_bytes(meta.rdev())?,
            Kind::File | Kind::None => direct_io_alignment(&file)?,
        };
        Ok(Self { path: path.to_owned(), kind, bytes, block_bytes, direct, file, meta })
    }

    /// The same through the page cache, for an end that is no whole block.
    pub fn buffered(&self) -> io::Result<File> {
        File::open(&self.path)
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
