//! Which operations a target can do, beyond reading and writing: asked before the run, so that what it can't is left out
//! and named instead of failing one by one.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};

use super::Kind;
use super::sysfs;

/// What a target can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Give a range back.
    pub discard: bool,
    /// Make a range read as zeros without sending them.
    pub write_zeroes: bool,
}

impl Capabilities {
    /// All of it.
    pub const ALL: Self = Self { discard: true, write_zeroes: true };
}

impl Capabilities {
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

/// A file on the same file system that goes when it is closed.
fn stand_in(beside: &Path) -> rustix::io::Result<OwnedFd> {
    let folder = beside.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    rustix::fs::open(&folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
}
