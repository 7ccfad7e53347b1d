//! System calls that the standard library lacks: a lock on a range of a file, a shared mapping, a mount without a loop
//! device.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Locks a file for reading, for as long as it is open.
pub fn lock_for_reading(file: &File) {
    let lock =
        libc::flock { l_type: libc::F_RDLCK as i16, l_whence: libc::SEEK_SET as i16, l_start: 100, l_len: 1, l_pid: 0 };
    // SAFETY: the call only reads the given structure.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// A writable shared mapping of a page of a file; unmapped when dropped.
pub struct Mapped(*mut libc::c_void);

impl Mapped {
    pub fn new(file: &File) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, and the memory is never accessed.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        Self(address)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is the mapped range, and nothing else has an address in it.
        unsafe { libc::munmap(self.0, 4096) };
    }
}

/// Mounts an erofs image directly from the file; `mount` would create a loop device. False if the kernel cannot (before
/// 6.12).
pub fn mount_erofs(image: &Path, target: &Path) -> bool {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).expect("no zero in it");
    // SAFETY: all of these are zero-terminated strings that outlive the call.
    let done = unsafe {
        libc::mount(text(image).as_ptr(), text(target).as_ptr(), c"erofs".as_ptr(), libc::MS_RDONLY, std::ptr::null())
    };
    let error = io::Error::last_os_error();
    assert!(done == 0 || matches!(error.raw_os_error(), Some(libc::ENOTBLK | libc::ENODEV)), "{error}");
    done == 0
}

/// An erofs image with an empty root directory
/// (https://docs.kernel.org/filesystems/erofs.html, fs/erofs/erofs_fs.h).
pub fn erofs() -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(1024, &0xe0f5_e1e2_u32.to_le_bytes());
    // Blocks of 4 KiB; root inode 1, 1 inode; 3 blocks, inodes from block 1 on.
    put(1024 + 12, &[12, 0, 1, 0, 1]);
    put(1024 + 36, &3_u32.to_le_bytes());
    put(1024 + 40, &1_u32.to_le_bytes());
    // The root: mode, links, size, first block, number.
    put(4096 + 32 + 4, &0o40755_u16.to_le_bytes());
    put(4096 + 32 + 6, &2_u16.to_le_bytes());
    put(4096 + 32 + 8, &27_u32.to_le_bytes());
    put(4096 + 32 + 16, &2_u32.to_le_bytes());
    put(4096 + 32 + 20, &1_u32.to_le_bytes());
    // `.` and `..`: inode, offset of the name, type directory.
    put(8192, &[1, 0, 0, 0, 0, 0, 0, 0, 24, 0, 2, 0]);
    put(8192 + 12, &[1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 2, 0]);
    put(8192 + 24, b"...");
    image
}

/// Gives the calling thread its own file descriptor table.
pub fn own_descriptors() {
    // SAFETY: it affects only the descriptor table of this thread.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0, "{}", io::Error::last_os_error());
}

/// Takes a read lease on a file that is open for reading, as file servers do.
pub fn lease(file: &File) {
    // SAFETY: all arguments are numbers.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}
