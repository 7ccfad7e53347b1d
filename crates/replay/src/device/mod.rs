//! The storage that is replayed on: what it is, whether it may be overwritten, and what it holds.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::abilities::Abilities;
use crate::error::{Error, Result};
use crate::placement::Geometry;

pub mod abilities;
pub mod holes;
pub mod inspect;
pub mod meter;
pub mod mounts;
pub mod passes;
pub mod queue;
pub mod readable;
pub mod safety;
pub mod sample;
pub mod sweep;
pub mod sysfs;
pub mod zeroes;

/// Block device or regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// No storage at all, for engines that do no I/O.
    None,
}

/// How its I/O goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Through the page cache, instead of by direct I/O.
    pub cached: bool,
    /// Each write is durable before it is through.
    pub sync: bool,
}

/// What is to be done with a target, and so what it must allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is overwritten, if nothing on it would be missed.
    Overwrite,
    /// It is overwritten whatever it carries; but not if it is in use.
    Force,
    /// It is only read, even while others use it.
    Read,
}

/// Storage to replay on, open and claimed.
#[derive(Debug)]
pub struct Device {
    /// What the user called it.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size and blocks.
    pub geometry: Geometry,
    /// What it can do beyond reading and writing.
    pub abilities: Abilities,
    /// Open for direct I/O; a block device that is overwritten is claimed exclusively, so that nobody mounts it
    /// meanwhile.
    pub file: File,
    /// Who else uses it while it is only read, as a sentence.
    pub user: Option<String>,
}

impl Device {
    /// Why it is not what it was when it was opened, as a sentence: it was removed, or is smaller.
    pub fn loss(&self) -> Option<String> {
        let rdev = self.file.metadata().ok().filter(|_| self.kind == Kind::Block)?.rdev();
        let path = self.path.display();
        match sysfs::bytes(rdev) {
            Err(_) => Some(format!("{path} was removed meanwhile: what was asked of it after that failed")),
            Ok(bytes) if bytes / iosonar_trace::SECTOR_BYTES < self.geometry.sectors => Some(format!(
                "{path} became smaller meanwhile: it has {} sectors, and had {}",
                bytes / iosonar_trace::SECTOR_BYTES,
                self.geometry.sectors
            )),
            Ok(_) => None,
        }
    }

    /// Opens what may be overwritten or read; see [`safety`] for what may not.
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        Self::open_with(path, access, Mode::default())
    }

    /// What stands in for storage where there is none: nothing is opened, and no position lies beyond its end.
    pub fn none(path: &Path) -> Result<Self> {
        let file = File::open("/dev/null").map_err(|e| Error::file(Path::new("/dev/null"), e))?;
        let geometry = Geometry { sectors: iosonar_trace::MAX_END_SECTOR, block_sectors: 1 };
        let (kind, abilities) = (Kind::None, Abilities::ALL);
        Ok(Self { path: path.to_owned(), kind, geometry, abilities, user: None, file })
    }

    /// The same in another mode.
    pub fn open_with(path: &Path, access: Access, mode: Mode) -> Result<Self> {
        let writes = access != Access::Read;
        let meta = path.metadata().map_err(|e| missing(path, e))?;
        let kind = match meta.file_type() {
            t if t.is_block_device() => Kind::Block,
            t if t.is_file() => Kind::File,
            _ => {
                let reason = "neither a block device nor a regular file; name one of these".into();
                return Err(Error::Unsafe { path: path.to_owned(), reason });
            }
        };
        if writes && kind == Kind::Block && sysfs::read(meta.rdev(), "ro").as_deref() == Some("1") {
            let reason =
                "read-only, and a replay writes; replay its reads with --reads-only, or change it with `blockdev \
                          --setrw` where the device can"
                    .into();
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        if writes {
            safety::check(path, kind, &meta, access == Access::Force)?;
        }
        let user = if writes { None } else { safety::users(kind, &meta).into_iter().next() };
        let claim = if kind == Kind::Block && writes { libc::O_EXCL } else { 0 };
        let file = OpenOptions::new()
            .read(true)
            .write(writes)
            .custom_flags(
                if mode.cached { 0 } else { libc::O_DIRECT }
                    | if mode.sync { libc::O_SYNC } else { 0 }
                    | claim
                    | libc::O_CLOEXEC,
            )
            .open(path)
            .map_err(|e| not_opened(path, e))?;
        let (bytes, block) = match kind {
            Kind::Block => (sysfs::bytes(meta.rdev())?, sysfs::logical_block_bytes(meta.rdev())?),
            Kind::File | Kind::None => (meta.len(), direct_io_alignment(&file)?),
        };
        let geometry = Geometry::new(bytes, block);
        if geometry.sectors == 0 {
            let reason = format!(
                "has no room for a single block of {block} bytes; give it a size first (for a file: fallocate -l 10G {})",
                path.display()
            );
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        let abilities = Abilities::of(path, kind, meta.rdev());
        Ok(Self { path: path.to_owned(), kind, geometry, abilities, file, user })
    }

    /// The number of the block device that is asked in the end: for a file the one below its file system, where that is a
    /// single one.
    pub fn disk(&self) -> Option<u64> {
        match self.kind {
            Kind::Block => self.file.metadata().ok().map(|meta| meta.rdev()),
            Kind::File => mounts::of(&self.path)?.device(),
            Kind::None => None,
        }
    }

    /// Whether its completions can be polled for; an error says why not.
    pub fn check_poll(&self) -> Result<()> {
        let rdev = self.file.metadata().map(|m| m.rdev()).unwrap_or(0);
        let reason = match self.kind {
            Kind::Block if sysfs::queue(rdev, "io_poll").as_deref() == Some("1") => return Ok(()),
            Kind::Block => {
                "can't be polled (its queue/io_poll is not 1): leave out --poll. An NVMe device can if its driver was \
                 loaded with nvme.poll_queues=N"
            }
            _ => "no block device, and only such can be polled: leave out --poll",
        };
        Err(Error::Unsafe { path: self.path.clone(), reason: reason.into() })
    }

    /// As the run's footer holds it.
    pub fn describe(&self) -> serde_json::Value {
        let rdev = self.file.metadata().map(|m| m.rdev()).unwrap_or(0);
        let block = self.kind == Kind::Block;
        serde_json::json!({
            "path": self.path,
            "kind": self.kind,
            "sectors": self.geometry.sectors,
            "logical_block_bytes": self.geometry.block_sectors * iosonar_trace::SECTOR_BYTES,
            "scheduler": block.then(|| sysfs::scheduler(rdev)).flatten(),
            "write_cache": block.then(|| sysfs::queue(rdev, "write_cache")).flatten(),
            "disk": self.disk().and_then(sysfs::disk_name),
            // Other programs record devices by their numbers.
            "number": self.disk().map(sysfs::numbers),
            "disk_number": self.disk().and_then(sysfs::disk_numbers),
            "queue": self.disk().map(queue::Queue::of),
            "mount": (self.kind == Kind::File).then(|| mounts::of(&self.path)).flatten(),
        })
    }
}

fn missing(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        let reason = format!(
            "there is no such device or file; `lsblk` lists devices, and `fallocate -l 10G {}` makes a file",
            path.display()
        );
        return Error::Unsafe { path: path.to_owned(), reason };
    }
    Error::file(path, error)
}

fn not_opened(path: &Path, error: io::Error) -> Error {
    let reason = match error.raw_os_error() {
        Some(libc::EBUSY) => "in use: mounted, or held by LVM, RAID, swap or another program".into(),
        Some(libc::EACCES | libc::EPERM) => format!("{error}; a device needs root (try sudo)"),
        Some(libc::EINVAL) => "its file system can't do direct I/O; choose another place".into(),
        Some(libc::EROFS) => "read-only".into(),
        _ => error.to_string(),
    };
    Error::Unsafe { path: path.to_owned(), reason }
}

/// What direct I/O on a file must be aligned to, in bytes: asked of the kernel (6.1 or newer), else 4096, which serves
/// every device.
fn direct_io_alignment(file: &File) -> Result<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    // STATX_DIOALIGN, which rustix has no name for yet.
    const DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);
    match statx(file, c"", AtFlags::EMPTY_PATH, DIOALIGN) {
        Ok(x) if x.stx_mask & 0x2000 != 0 && x.stx_dio_offset_align > 0 => Ok(u64::from(x.stx_dio_offset_align)),
        _ => Ok(4096),
    }
}
