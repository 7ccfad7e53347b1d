//! A file system that loses its disk: the kernel's own way to try that out.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `EXT4_IOC_SHUTDOWN`, and its flag to write nothing more.
const SHUTDOWN: libc::Ioctl = libc::_IOR::<u32>(b'X' as u32, 125);
const AT_ONCE: u32 = 2;

/// From here on everything on the ext4 that is mounted there fails, as if its disk had been pulled out.
pub fn shut_down(mounted: &Path) {
    let how = AT_ONCE;
    let place = File::open(mounted).expect("a mounted file system");
    // SAFETY: the descriptor is open, and the kernel only reads the flag.
    let result = unsafe { libc::ioctl(place.as_raw_fd(), SHUTDOWN, &raw const how) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}
