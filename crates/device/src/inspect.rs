//! Inspects a device or file without changing it. `docs/devices.md` is the contract of the JSON.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iosonar_pacing::clock::wall;
use iosonar_pacing::{Error, Result};
use iosonar_trace::run_info::Queue;
use serde::Serialize;

use super::holes::{self, Holes};
use super::mounts::{self, Mount};
use super::node::Handle;
use super::queue::queue_of;
use super::readable::{self, ReadFrom, Readable};
use super::sample::{self, Bounds, ZeroSample};
use super::{Kind, safety, sysfs};

/// Properties of a device or file.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// The path as given.
    #[serde(serialize_with = "iosonar_pacing::path_text::serialize")]
    pub path: PathBuf,
    /// Device or file.
    pub kind: Kind,
    /// Size in bytes.
    pub bytes: u64,
    /// Size in sectors of 512 bytes.
    pub sectors: u64,
    /// Its disk; for a file, the disk of its file system, if it is a single one.
    pub disk: Option<Disk>,
    /// The settings of the disk's queue in sysfs.
    pub queue: Option<Queue>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its users, a sentence for each.
    pub users: Vec<String>,
    /// Signatures on it, such as `ext4 "home"`; null if unknown.
    pub signatures: Option<Vec<String>>,
    /// Why the signatures are unknown.
    pub signatures_unknown: Option<String>,
    /// The file system of a file.
    pub mount: Option<Mount>,
    /// Allocated bytes of a file.
    pub allocated_bytes: Option<u64>,
    /// The unallocated parts of a file.
    pub holes: Option<Holes>,
    /// Why its content cannot be read, if so.
    pub unreadable: Option<String>,
    /// The result of sampling; null without samples.
    pub sample: Option<ZeroSample>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Name, such as `nvme0n1`.
    pub name: String,
    /// Whether the inspected device is a partition of it.
    pub is_partition: bool,
    /// Model name.
    pub model: Option<String>,
    /// Backing file of a loop device.
    pub backing_file: Option<String>,
}

impl Disk {
    fn of(rdev: u64) -> Option<Self> {
        Some(Self {
            name: sysfs::disk_name(rdev)?,
            is_partition: sysfs::read(rdev, "partition").is_some(),
            model: sysfs::read(rdev, "device/model").filter(|model| !model.is_empty()),
            backing_file: sysfs::read(rdev, "loop/backing_file"),
        })
    }
}

/// Inspects a device or file, and reads samples within the bounds. Without permission to read it, all but the content is
/// returned.
pub fn inspect(path: &Path, bounds: Bounds) -> Result<Inspection> {
    let handle = Handle::new(path)?;
    let (meta, kind, bytes) = (&handle.meta, handle.kind, readable::bytes(&handle)?);
    let (storage, unreadable) = match Readable::of(handle.again()?, ReadFrom::Device) {
        Ok(storage) => (Some(storage), None),
        Err(Error::Unsafe { reason, .. }) => (None, Some(reason)),
        Err(error) => (None, Some(error.to_string())),
    };
    let mount = (kind == Kind::File).then(|| handle.real_path().and_then(|place| mounts::of(&place))).flatten();
    let rdev = match kind {
        Kind::Block => Some(meta.rdev()),
        Kind::File | Kind::None => mount.as_ref().and_then(Mount::device),
    };
    let (signatures, signatures_unknown) = match safety::signatures(&handle) {
        Ok(found) => (Some(found), None),
        Err(why) => (None, Some(why)),
    };
    let is_file = kind == Kind::File;
    let read_only = match kind {
        Kind::Block => sysfs::read(meta.rdev(), "ro").as_deref() == Some("1"),
        Kind::File | Kind::None => rustix::fs::access(handle.own_path(), rustix::fs::Access::WRITE_OK).is_err(),
    };
    Ok(Inspection {
        path: path.to_owned(),
        kind,
        bytes,
        sectors: bytes / iosonar_trace::SECTOR_BYTES,
        disk: rdev.and_then(Disk::of),
        queue: rdev.map(queue_of),
        read_only,
        users: safety::users(&handle),
        signatures,
        signatures_unknown,
        mount,
        allocated_bytes: is_file.then(|| meta.blocks() * 512),
        holes: storage.as_ref().filter(|_| is_file).and_then(|s| holes::find(&s.file, bytes).ok()),
        sample: storage
            .filter(|s| bounds.samples > 0 && bytes >= s.block_bytes.max(sample::SAMPLE_BYTES))
            .map(|s| sample::sample(&s.file, bytes, s.block_bytes, bounds, wall().0 as u64)),
        unreadable,
    })
}
