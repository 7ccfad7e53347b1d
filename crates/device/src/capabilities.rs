//! Which operations a target supports besides reads and writes. Known before the run, so that unsupported requests are left
//! out and counted instead of failing.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};

use super::Kind;
use super::sysfs;

/// Supported operations of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Discard a range.
    pub discard: bool,
    /// Zero a range without sending data.
    pub write_zeroes: bool,
}

impl Capabilities {
    /// Everything is supported.
    pub const ALL: Self = Self { discard: true, write_zeroes: true };
}

impl Capabilities {
    /// Asks the kernel; for a file, by trying on a nameless file in the same directory. Only before a run, because a hung file
    /// system would block the caller.
    pub(super) fn of(path: &Path, kind: Kind, rdev: u64) -> Self {
        match kind {
            Kind::None => Self::ALL,
            Kind::Block => {
                let largest = sysfs::queue(rdev, "discard_max_bytes").and_then(|text| text.parse::<u64>().ok());
                // The kernel sends zeros to devices that do not support write zeroes.
                Self { discard: largest.is_some_and(|bytes| bytes > 0), write_zeroes: true }
            }
            Kind::File => {
                let Ok(probe) = probe_file(path) else {
                    // Unknown: unsupported requests will fail.
                    return Self::ALL;
                };
                let can = |how| fallocate(&probe, how | FallocateFlags::KEEP_SIZE, 0, 1 << 16).is_ok();
                Self { discard: can(FallocateFlags::PUNCH_HOLE), write_zeroes: can(FallocateFlags::ZERO_RANGE) }
            }
        }
    }
}

/// A nameless file on the same file system.
fn probe_file(beside: &Path) -> rustix::io::Result<OwnedFd> {
    let directory = beside.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    rustix::fs::open(&directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
}
