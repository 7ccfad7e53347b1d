//! A target, open and claimed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use iosonar_pacing::{Error, Result};
use iosonar_trace::MAX_END_SECTOR;
use iosonar_trace::run_info::RunTarget;

use super::capabilities::Capabilities;
use super::missing;
use super::node::{Handle, Node};
use super::queue::queue_of;
use super::{Kind, content, locks, mounts, safety, sysfs};
use crate::geometry::Geometry;

/// Flags of the open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Reads from the page cache, instead of by direct I/O.
    pub cached: bool,
    /// `O_SYNC`: writes complete when durable.
    pub sync: bool,
}

/// Permitted access to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Overwrite, unless it has content of value or is in use.
    Overwrite,
    /// Overwrite, unless it is in use.
    Force,
    /// Read, even if it is in use.
    Read,
}

/// A target, open and claimed.
#[derive(Debug)]
pub struct Device {
    /// The path as given.
    pub path: PathBuf,
    /// Device or file.
    pub kind: Kind,
    /// Size and block size.
    pub geometry: Geometry,
    /// Supported operations besides reads and writes.
    pub capabilities: Capabilities,
    /// Open for direct I/O. To overwrite it, a block device is claimed exclusively, which prevents mounting; a file is locked
    /// against other replays.
    pub file: File,
    /// Another user, if it is only read.
    pub user: Option<String>,
    /// A program that reads it, if it is overwritten.
    pub reader: Option<String>,
    /// Identity of what was checked; `None` without storage.
    handle: Option<Handle>,
    /// Bytes of a file without storage, when it was opened.
    hole_bytes: u64,
}

impl Device {
    /// A warning if the target was removed or shrank since it was opened.
    pub fn loss(&self) -> Option<String> {
        let rdev = self.file.metadata().ok().filter(|_| self.kind == Kind::Block)?.rdev();
        let path = self.path.display();
        match sysfs::bytes(rdev) {
            Err(_) => Some(format!("{path} was removed during the run: requests after that failed")),
            Ok(bytes) if bytes / iosonar_trace::SECTOR_BYTES < self.geometry.sectors => Some(format!(
                "{path} shrank during the run: it has {} sectors, and had {}",
                bytes / iosonar_trace::SECTOR_BYTES,
                self.geometry.sectors
            )),
            Ok(_) => None,
        }
    }

    /// Opens a target if [`safety`] allows it.
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        Self::open_with(path, access, Mode::default())
    }

    /// A placeholder without storage; without `sectors`, its size has no limit.
    pub fn none(path: &Path, sectors: Option<u64>) -> Result<Self> {
        let file = File::open("/dev/null").map_err(|e| Error::file(Path::new("/dev/null"), e))?;
        let geometry = Geometry { sectors: sectors.unwrap_or(MAX_END_SECTOR), block_sectors: 1 };
        let (kind, capabilities) = (Kind::None, Capabilities::ALL);
        let (path, user, reader, handle, hole_bytes) = (path.to_owned(), None, None, None, 0);
        Ok(Self { path, kind, geometry, capabilities, user, reader, handle, file, hole_bytes })
    }

    /// Opens a target with other flags.
    pub fn open_with(path: &Path, access: Access, mode: Mode) -> Result<Self> {
        let writes = access != Access::Read;
        // The path is resolved once, so that later changes of links have no effect.
        let handle = Handle::new(path).map_err(|error| match error {
            Error::Unsafe { path, reason } if writes && !path.exists() => {
                Error::Unsafe { reason: reason + &missing::advice(&path), path }
            }
            other => other,
        })?;
        let (kind, rdev) = (handle.kind, handle.meta.rdev());
        if writes && kind == Kind::Block && sysfs::read(rdev, "ro").as_deref() == Some("1") {
            let reason =
                "read-only; use --reads-only, or make it writable with `blockdev --setrw` if the device allows it"
                    .into();
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        let mut reader = None;
        if writes {
            reader = safety::refuse_used(&handle)?;
            safety::refuse_content(&handle, access == Access::Force)?;
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
            // Checked again, as another program may have claimed it before the open.
            safety::refuse_occupied(&handle)?;
        }
        let (bytes, block) = match kind {
            Kind::Block => (sysfs::bytes(rdev)?, sysfs::logical_block_bytes(rdev)?),
            Kind::File | Kind::None => (handle.meta.len(), direct_io_alignment(&file)?),
        };
        let geometry = Geometry::new(bytes, block);
        if geometry.sectors == 0 {
            let reason = match kind {
                Kind::Block => "has no size: it has no medium, or nothing is attached".to_owned(),
                _ => format!(
                    "too small for a block of {block} bytes{}",
                    if bytes == 0 { missing::advice(path) } else { String::new() }
                ),
            };
            return Err(Error::Unsafe { path: path.to_owned(), reason });
        }
        let capabilities = Capabilities::of(&handle.real_path().unwrap_or_else(|| path.to_owned()), kind, rdev);
        let is_file = kind == Kind::File;
        let hole_bytes = if is_file { handle.meta.len().saturating_sub(handle.meta.blocks() * 512) } else { 0 };
        let (path, handle) = (path.to_owned(), Some(handle));
        Ok(Self { path, kind, geometry, capabilities, file, user, reader, handle, hole_bytes })
    }

    /// Opens the same file or device again.
    pub fn open_again(&self, options: &OpenOptions) -> io::Result<File> {
        match &self.handle {
            Some(handle) => handle.open(options),
            None => options.open(&self.path),
        }
    }

    /// Signatures on it, such as `ext4 "home"`; empty if unknown.
    pub fn signatures(&self) -> Vec<String> {
        self.handle.as_ref().and_then(|handle| safety::signatures(handle).ok()).unwrap_or_default()
    }

    /// What identifies it among all devices and files, if it was opened.
    pub fn node(&self) -> Option<Node> {
        self.handle.as_ref().map(|handle| handle.node)
    }

    /// Marks a file as a target, which later runs may overwrite. Called when overwriting begins.
    pub fn mark(&self) {
        if self.kind == Kind::File {
            content::mark(&self.file);
        }
    }

    /// Whether it was a sparse file when it was opened, with more holes than an earlier run made that discarded `own_bytes`,
    /// as this one did.
    pub fn had_holes(&self, own_bytes: u64) -> bool {
        self.hole_bytes > own_bytes
    }

    /// Device number; for a file, of its file system's device, if it is a single one.
    pub fn disk(&self) -> Option<u64> {
        match self.kind {
            Kind::Block => self.file.metadata().ok().map(|meta| meta.rdev()),
            Kind::File => self.mount()?.device(),
            Kind::None => None,
        }
    }

    /// The file system of a file.
    fn mount(&self) -> Option<mounts::Mount> {
        let place = self.handle.as_ref().and_then(Handle::real_path);
        mounts::of(place.as_deref().unwrap_or(&self.path))
    }

    /// Checks that completions can be polled.
    pub fn check_poll(&self) -> Result<()> {
        let rdev = self.file.metadata().map(|m| m.rdev()).unwrap_or(0);
        let reason = match self.kind {
            Kind::Block if sysfs::queue(rdev, "io_poll").as_deref() == Some("1") => return Ok(()),
            Kind::Block => {
                "cannot be polled (its queue/io_poll is not 1): leave out --poll. NVMe devices can be polled if the driver was \
                 loaded with nvme.poll_queues=N"
            }
            _ => "not a block device, so it cannot be polled: leave out --poll",
        };
        Err(Error::Unsafe { path: self.path.clone(), reason: reason.into() })
    }

    /// The target for the run's footer.
    pub fn describe(&self) -> RunTarget {
        let rdev = self.file.metadata().map(|m| m.rdev()).unwrap_or(0);
        let block = self.kind == Kind::Block;
        RunTarget {
            path: iosonar_trace::path_text(&self.path).into(),
            kind: self.kind.into(),
            sectors: Some(self.geometry.sectors).filter(|&sectors| sectors < MAX_END_SECTOR).into(),
            logical_block_bytes: (self.geometry.block_sectors * iosonar_trace::SECTOR_BYTES).into(),
            scheduler: block.then(|| sysfs::scheduler(rdev)).flatten().into(),
            write_cache: block.then(|| sysfs::queue(rdev, "write_cache")).flatten().into(),
            disk: self.disk().and_then(sysfs::disk_name).into(),
            // Recordings of other programs name devices by number.
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
        Some(libc::EBUSY) => "in use: mounted, or claimed by LVM, RAID, swap or another program".into(),
        Some(libc::EACCES | libc::EPERM) if kind == Kind::Block => {
            format!("{error}; {}", missing::permission_remedy())
        }
        Some(libc::ETXTBSY) => "a running program, or a swap file".into(),
        Some(libc::EINVAL) => "its file system has no direct I/O; use another one".into(),
        Some(libc::EROFS) => "read-only".into(),
        _ => error.to_string(),
    };
    Error::Unsafe { path: path.to_owned(), reason }
}

/// Alignment of direct I/O on a file in bytes, from the kernel (6.1 or newer), else 4096, which suits every device.
pub(super) fn direct_io_alignment(file: &File) -> Result<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    // STATX_DIOALIGN, which rustix lacks.
    const DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);
    match statx(file, c"", AtFlags::EMPTY_PATH, DIOALIGN) {
        Ok(x) if x.stx_mask & 0x2000 != 0 && x.stx_dio_offset_align > 0 => Ok(u64::from(x.stx_dio_offset_align)),
        _ => Ok(4096),
    }
}

impl Device {
    /// Unsupported operations.
    fn unsupported(&self) -> String {
        let Capabilities { discard, write_zeroes } = self.capabilities;
        let what = match (discard, write_zeroes) {
            (false, true) => "discards",
            (true, false) => "write-zeroes",
            _ => "discards and write-zeroes",
        };
        let why = match self.kind {
            Kind::Block => "its queue/discard_max_bytes is 0",
            _ => "its file system does not support it",
        };
        format!("{} does not support {what} ({why})", self.path.display())
    }
}

/// Unsupported operations of all targets, for a warning about left-out requests.
pub fn unsupported_operations(devices: &[Device]) -> String {
    let lacking = devices.iter().filter(|device| device.capabilities != Capabilities::ALL);
    lacking.map(Device::unsupported).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn opening_does_not_change_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(100_000).unwrap();
        let before = file.as_file().metadata().unwrap();
        let _ = Device::open(file.path(), Access::Force).unwrap();
        let after = file.as_file().metadata().unwrap();
        assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()));
    }

    #[test]
    fn holes_are_those_from_before_the_run_and_not_its_own() {
        use rustix::fs::{FallocateFlags, fallocate};

        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        fallocate(file.as_file(), FallocateFlags::empty(), 0, 1 << 20).unwrap();
        let holes_after = |own_bytes| Device::open(file.path(), Access::Force).unwrap().had_holes(own_bytes);
        let filled = Device::open(file.path(), Access::Force).unwrap();
        fallocate(file.as_file(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 1 << 19).unwrap();
        assert!(!filled.had_holes(0), "made during the run");
        drop(filled);
        assert!(holes_after(0), "made before it");
        assert!(!holes_after(1 << 19), "made by an earlier run of the same load");
        assert!(holes_after(1 << 18), "more than such a run makes");
    }

    #[test]
    fn tmpfs_supports_discard_but_not_write_zeroes() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let device = Device::open(file.path(), Access::Force).unwrap();
        assert_eq!(device.capabilities, Capabilities { discard: true, write_zeroes: false });
        assert!(device.unsupported().contains("does not support write-zeroes"));
    }
}
