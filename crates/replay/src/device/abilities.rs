//! Which operations a target can do, beyond reading and writing: asked before the run, so that what it can't is left out
//! and named instead of failing one by one.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};

use super::{Device, Kind, sysfs};

/// What a target can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Give a range back.
    pub discard: bool,
    /// Make a range read as zeros without sending them.
    pub write_zeroes: bool,
}

impl Abilities {
    /// All of it.
    pub const ALL: Self = Self { discard: true, write_zeroes: true };
}

impl Abilities {
    /// Asks the kernel; of a file's file system by trying it on a file without a name beside it. Only before a run: one that
    /// hangs would hold who asks.
    pub(super) fn of(path: &Path, kind: Kind, rdev: u64) -> Self {
        match kind {
            Kind::None => Self::ALL,
            Kind::Block => {
                let largest = sysfs::queue(rdev, "discard_max_bytes").and_then(|text| text.parse::<u64>().ok());
                // Where a device can't write zeros by itself, the kernel sends them.
                Self { discard: largest.is_some_and(|bytes| bytes > 0), write_zeroes: true }
            }
            Kind::File => {
                let Ok(stand_in) = stand_in(path) else {
                    // Where there can't be such a file, requests show what can't be done.
                    return Self::ALL;
                };
                let can = |how| fallocate(&stand_in, how | FallocateFlags::KEEP_SIZE, 0, 1 << 16).is_ok();
                Self { discard: can(FallocateFlags::PUNCH_HOLE), write_zeroes: can(FallocateFlags::ZERO_RANGE) }
            }
        }
    }
}

impl Device {
    /// What it can't do.
    fn inability(&self) -> String {
        let Abilities { discard, write_zeroes } = self.abilities;
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
pub fn inabilities(devices: &[Device]) -> String {
    let lacking = devices.iter().filter(|device| device.abilities != Abilities::ALL);
    lacking.map(Device::inability).collect::<Vec<_>>().join("; ")
}

/// A file on the same file system that goes when it is closed.
fn stand_in(beside: &Path) -> rustix::io::Result<OwnedFd> {
    let folder = beside.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    rustix::fs::open(&folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::device::Access;

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
        assert_eq!(device.abilities, Abilities { discard: true, write_zeroes: false });
        assert!(device.inability().contains("can't do write-zeroes"));
    }
}
