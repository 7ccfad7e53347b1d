//! Simulates a file system that loses its disk, by the shutdown ioctl of ext4.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `EXT4_IOC_SHUTDOWN`, and its flag for no further writes (`EXT4_GOING_FLAGS_NOLOGFLUSH`).
const SHUTDOWN: libc::Ioctl = libc::_IOR::<u32>(b'X' as u32, 125);
const NO_LOG_FLUSH: u32 = 2;

/// Makes all further I/O of the mounted ext4 fail, as if its disk had been removed.
pub fn shut_down(mounted: &Path) {
    let flags = NO_LOG_FLUSH;
    let root = File::open(mounted).expect("a mounted file system");
    // SAFETY: the descriptor is open, and the kernel only reads the flag.
    let result = unsafe { libc::ioctl(root.as_raw_fd(), SHUTDOWN, &raw const flags) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}
