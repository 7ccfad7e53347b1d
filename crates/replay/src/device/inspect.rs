//! What can be known of a device or file without changing it. `docs/devices.md` is the contract of the JSON.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iosonar_trace::run_info::Queue;
use serde::Serialize;

use super::holes::{self, Holes};
use super::mounts::{self, Mount};
use super::node::Handle;
use super::queue::queue_of;
use super::readable::{self, Readable, Through};
use super::sample::{self, Bounds, Sampled};
use super::{Kind, safety, sysfs};
use crate::error::{Error, Result};
use crate::schedule::clock::wall;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// What the user called it.
    #[serde(serialize_with = "crate::config::path_text::serialize")]
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size.
    pub bytes: u64,
    /// The same in sectors of 512 bytes.
    pub sectors: u64,
    /// Its disk; for a file the one that its file system lies on, where that is a single one.
    pub disk: Option<Disk>,
    /// How that is queued.
    pub queue: Option<Queue>,
    /// Whether it can't be written.
    pub read_only: bool,
    /// Who uses it, a sentence for each.
    pub users: Vec<String>,
    /// What is found on it, such as `ext4 "home"`; null if that can't be known.
    pub signatures: Option<Vec<String>>,
    /// Why not.
    pub signatures_unknown: Option<String>,
    /// Where a file lies.
    pub mount: Option<Mount>,
    /// Bytes of a file that its file system has set aside.
    pub allocated_bytes: Option<u64>,
    /// The holes of a file.
    pub holes: Option<Holes>,
    /// Why its content could not be read, if it could not.
    pub unreadable: Option<String>,
    /// What a sample showed; null if none was read.
    pub sample: Option<Sampled>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Such as `nvme0n1`.
    pub name: String,
    /// Whether the device that was asked about is a partition of it.
    pub is_partition: bool,
    /// What its maker calls it.
    pub model: Option<String>,
    /// For a loop device: what stands behind it.
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

/// Looks at it. Reads samples within the bounds; none, if they allow none. Who may not read it is told the rest.
pub fn inspect(path: &Path, bounds: Bounds) -> Result<Inspection> {
    let handle = Handle::new(path)?;
    let (meta, kind, bytes) = (&handle.meta, handle.kind, readable::bytes(&handle)?);
    let (storage, unreadable) = match Readable::of(handle.again()?, Through::Device) {
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
