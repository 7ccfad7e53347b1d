//! A target: storage to replay on, open and claimed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use iosonar_trace::run_info::RunTarget;

use super::capabilities::Capabilities;
use super::missing;
use super::node::{Handle, Node};
use super::queue::queue_of;
use super::{Kind, content, locks, mounts, safety, sysfs};
use crate::address::placement::Geometry;
use crate::error::{Error, Result};

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
    pub capabilities: Capabilities,
    /// Open for direct I/O. A block device that is overwritten is claimed exclusively, so that nobody mounts it meanwhile; a
    /// file is locked, so that no other replay overwrites it.
    pub file: File,
    /// Who else uses it while it is only read, as a sentence.
    pub user: Option<String>,
    /// Who reads it while it is overwritten, as a sentence.
    pub reader: Option<String>,
    /// Stays on what was checked; none where there is no storage.
    handle: Option<Handle>,
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
        let (kind, capabilities) = (Kind::None, Capabilities::ALL);
        Ok(Self { path: path.to_owned(), kind, geometry, capabilities, user: None, reader: None, handle: None, file })
    }

    /// The same in another mode.
    pub fn open_with(path: &Path, access: Access, mode: Mode) -> Result<Self> {
        let writes = access != Access::Read;
        // The path is looked at once. A link that leads elsewhere a moment later changes nothing.
        let handle = Handle::new(path).map_err(|error| match error {
            Error::Unsafe { path, reason } if writes && !path.exists() => {
                Error::Unsafe { reason: reason + &missing::advice(&path), path }
            }
            other => other,
        })?;
        let (kind, rdev) = (handle.kind, handle.meta.rdev());
        if writes && kind == Kind::Block && sysfs::read(rdev, "ro").as_deref() == Some("1") {
            let reason =
                "read-only, and a replay writes; replay its reads with --reads-only, or change it with `blockdev \
                          --setrw` where the device can"
                    .into();
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        let mut reader = None;
        if writes {
            reader = safety::refuse_used(&handle)?;
            safety::refuse_precious(&handle, access == Access::Force)?;
        }
        let user = if writes { None } else { safety::users(&handle).into_iter().next() };
        let claim = if kind == Kind::Block && writes { libc::O_EXCL } else { 0 };
        let file = handle
            .open(OpenOptions::new().read(true).write(writes).custom_flags(
                if mode.cached { 0 } else { libc::O_DIRECT } | if mode.sync { libc::O_SYNC } else { 0 } | claim,
            ))
            .map_err(|e| not_opened(path, kind, e))?;
        if writes {
            if kind == Kind::File {
                locks::take(&file).map_err(|who| safety::in_use(&handle, &who))?;
            }
            // No other program can claim it from now on; one may have claimed it just before.
            safety::refuse_occupied(&handle)?;
        }
        let (bytes, block) = match kind {
            Kind::Block => (sysfs::bytes(rdev)?, sysfs::logical_block_bytes(rdev)?),
            Kind::File | Kind::None => (handle.meta.len(), direct_io_alignment(&file)?),
        };
        let geometry = Geometry::new(bytes, block);
        if geometry.sectors == 0 {
            let reason = match kind {
                Kind::Block => "has no size: no medium is in it, or nothing is attached to it".to_owned(),
                _ => format!(
                    "has no room for a single block of {block} bytes; give it a size first{}",
                    if bytes == 0 { missing::advice(path) } else { String::new() }
                ),
            };
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        let capabilities = Capabilities::of(&handle.real_path().unwrap_or_else(|| path.to_owned()), kind, rdev);
        Ok(Self { path: path.to_owned(), kind, geometry, capabilities, file, user, reader, handle: Some(handle) })
    }

    /// The same file or device once more, opened otherwise.
    pub fn open_again(&self, options: &OpenOptions) -> io::Result<File> {
        match &self.handle {
            Some(handle) => handle.open(options),
            None => options.open(&self.path),
        }
    }

    /// What it carries, such as `ext4 "home"`, as far as that can be known.
    pub fn signatures(&self) -> Vec<String> {
        self.handle.as_ref().and_then(|handle| safety::signatures(handle).ok()).unwrap_or_default()
    }

    /// What it is, itself.
    pub fn node(&self) -> Option<Node> {
        self.handle.as_ref().map(|handle| handle.node)
    }

    /// Says for later that what it holds was made to be overwritten. Called when that begins.
    pub fn mark(&self) {
        if self.kind == Kind::File {
            content::mark(&self.file);
        }
    }

    /// Whether it is a file that has less storage than its size.
    pub fn has_holes(&self) -> bool {
        self.kind == Kind::File && self.file.metadata().is_ok_and(|meta| meta.blocks() * 512 < meta.len())
    }

    /// The number of the block device that is asked in the end: for a file the one below its file system, where that is a
    /// single one.
    pub fn disk(&self) -> Option<u64> {
        match self.kind {
            Kind::Block => self.file.metadata().ok().map(|meta| meta.rdev()),
            Kind::File => self.mount()?.device(),
            Kind::None => None,
        }
    }

    /// The file system that a file lies on.
    fn mount(&self) -> Option<mounts::Mount> {
        let place = self.handle.as_ref().and_then(Handle::real_path);
        mounts::of(place.as_deref().unwrap_or(&self.path))
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
    pub fn describe(&self) -> RunTarget {
        let rdev = self.file.metadata().map(|m| m.rdev()).unwrap_or(0);
        let block = self.kind == Kind::Block;
        RunTarget {
            path: iosonar_trace::path_text(&self.path).into(),
            kind: self.kind.into(),
            sectors: self.geometry.sectors.into(),
            logical_block_bytes: (self.geometry.block_sectors * iosonar_trace::SECTOR_BYTES).into(),
            scheduler: block.then(|| sysfs::scheduler(rdev)).flatten().into(),
            write_cache: block.then(|| sysfs::queue(rdev, "write_cache")).flatten().into(),
            disk: self.disk().and_then(sysfs::disk_name).into(),
            // Other programs record devices by their numbers.
            number: self.disk().map(sysfs::numbers).into(),
            disk_number: self.disk().and_then(sysfs::disk_numbers).into(),
            queue: self.disk().map(queue_of).into(),
            mount: (self.kind == Kind::File).then(|| self.mount()).flatten().map(|mount| mount.describe()).into(),
            ..RunTarget::default()
        }
    }
}

fn not_opened(path: &Path, kind: Kind, error: io::Error) -> Error {
    let reason = match error.raw_os_error() {
        Some(libc::EBUSY) => "in use: mounted, or held by LVM, RAID, swap or another program".into(),
        Some(libc::EACCES | libc::EPERM) if kind == Kind::Block => format!("{error}; a device needs root (try sudo)"),
        Some(libc::ETXTBSY) => "a program that runs, or a swap file".into(),
        Some(libc::EINVAL) => "its file system can't do direct I/O; choose another place".into(),
        Some(libc::EROFS) => "read-only".into(),
        _ => error.to_string(),
    };
    Error::Unsafe { path: path.to_owned(), reason }
}

/// What direct I/O on a file must be aligned to, in bytes: asked of the kernel (6.1 or newer), else 4096, which serves
/// every device.
pub(super) fn direct_io_alignment(file: &File) -> Result<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    // STATX_DIOALIGN, which rustix has no name for yet.
    const DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);
    match statx(file, c"", AtFlags::EMPTY_PATH, DIOALIGN) {
        Ok(x) if x.stx_mask & 0x2000 != 0 && x.stx_dio_offset_align > 0 => Ok(u64::from(x.stx_dio_offset_align)),
        _ => Ok(4096),
    }
}

impl Device {
    /// What it can't do.
    fn unsupported(&self) -> String {
        let Capabilities { discard, write_zeroes } = self.capabilities;
        let what = match (discard, write_zeroes) {
            (false, true) => "discards",
            (true, false) => "write-zeroes",
            _ => "discards and write-zeroes",
        };
        let why = match self.kind {
            Kind::Block => "the device says so by a queue/discard_max_bytes of 0",
            _ => "its file system has no such call",
        };
        format!("{} can't do {what} ({why})", self.path.display())
    }
}

/// What targets can't do, as a sentence about requests that were left out for it.
pub fn unsupported_operations(devices: &[Device]) -> String {
    let lacking = devices.iter().filter(|device| device.capabilities != Capabilities::ALL);
    lacking.map(Device::unsupported).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn asking_a_file_does_not_change_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(100_000).unwrap();
        let before = file.as_file().metadata().unwrap();
        let _ = Device::open(file.path(), Access::Force).unwrap();
        let after = file.as_file().metadata().unwrap();
        assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()));
    }

    #[test]
    fn memory_knows_holes_but_no_ranges_of_zeros() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let device = Device::open(file.path(), Access::Force).unwrap();
        assert_eq!(device.capabilities, Capabilities { discard: true, write_zeroes: false });
        assert!(device.unsupported().contains("can't do write-zeroes"));
    }
}
