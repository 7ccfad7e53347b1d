//! Loop devices and their backing files, identified by device and inode: the path in sysfs may be removed, renamed or covered
//! by another mount.

#![allow(unsafe_code, reason = "one ioctl fills a structure of plain numbers")]

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::makedev;

use super::node::Node;
use super::sysfs;

/// A configured loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Device number.
    pub rdev: u64,
    /// Name, such as `loop0`.
    pub name: String,
    /// Backing file or device; `None` if unknown.
    pub backing: Option<Node>,
    /// Path of the backing file when it was attached.
    pub backing_path: String,
    /// Offset in the backing file, in bytes.
    pub offset: u64,
    /// Size of the loop device in bytes.
    pub bytes: u64,
}

/// All configured loop devices.
pub fn all() -> Vec<Loop> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries.filter_map(|entry| one(&entry.path())).collect()
}

fn one(directory: &Path) -> Option<Loop> {
    let read = |attribute: &str| fs::read_to_string(directory.join(attribute)).ok();
    // Only configured devices have this.
    let backing_path = read("loop/backing_file")?.trim_end_matches('\n').to_owned();
    let rdev = sysfs::number(&read("dev")?)?;
    let name = directory.file_name()?.to_string_lossy().into_owned();
    let number = |attribute: &str| read(attribute).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    let device = Path::new("/dev").join(&name);
    let backing = retry(|| loop_status(&device, rdev)).or_else(|| Node::at(Path::new(&backing_path)));
    Some(Loop {
        rdev,
        name,
        backing,
        backing_path,
        offset: number("loop/offset"),
        bytes: number("size") * iosonar_trace::SECTOR_BYTES,
    })
}

/// Retries, because a query may fail while another program configures the device.
fn retry<T>(ask: impl Fn() -> Option<T>) -> Option<T> {
    for _ in 1..TRIES {
        if let found @ Some(_) = ask() {
            return found;
        }
        thread::sleep(PAUSE);
    }
    ask()
}

/// Queries of a loop device, and the pause between them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(25);

/// The kernel's `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 64 + 64 + 32],
    init: [u64; 2],
}

/// From `linux/loop.h`.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;

/// Asks the driver; needs permission to read the device.
fn loop_status(device: &Path, rdev: u64) -> Option<Node> {
    let file = File::open(device).ok()?;
    if file.metadata().ok()?.rdev() != rdev {
        return None;
    }
    let mut info = MaybeUninit::<LoopInfo>::zeroed();
    // SAFETY: the call fills at most a `loop_info64`, which `LoopInfo` mirrors; every bit pattern is valid.
    let info = unsafe {
        if libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, info.as_mut_ptr()) != 0 {
            return None;
        }
        info.assume_init()
    };
    Some(match info.rdevice {
        0 => Node::File { device: decoded(info.device), inode: info.inode },
        rdevice => Node::Block(decoded(rdevice)),
    })
}

/// Decodes a device number (`huge_encode_dev` of the kernel).
fn decoded(number: u64) -> u64 {
    makedev(((number >> 8) & 0xfff) as u32, ((number & 0xff) | ((number >> 12) & 0xf_ff00)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_huge_encode_dev() {
        assert_eq!(std::mem::size_of::<LoopInfo>(), 232);
        for (major, minor) in [(7, 0), (254, 3), (259, 0x1_2345), (0, 27), (4095, 0xf_ffff)] {
            let encoded = (u64::from(minor) & 0xff) | (major << 8) | ((u64::from(minor) & !0xff) << 12);
            assert_eq!(decoded(encoded), makedev(major as u32, minor));
        }
    }
}
