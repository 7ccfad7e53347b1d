//! What only system calls can do to a file: a lock on a range of it, a shared mapping, a mount without a loop device.

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
    // SAFETY: the call reads the one structure that it is given.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// A page of a file, mapped so that it could be written, until this goes.
pub struct Mapped(*mut libc::c_void);

impl Mapped {
    pub fn new(file: &File) -> Self {
        let may = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, and nothing looks at it.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), 4096, may, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(place, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        Self(place)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is what was mapped, and no other code has an address in it.
        unsafe { libc::munmap(self.0, 4096) };
    }
}

/// Mounts an erofs from a file as such; `mount` would make a loop device of it. False where the kernel cannot (before 6.12).
pub fn mount_erofs(image: &Path, place: &Path) -> bool {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).expect("no zero in it");
    // SAFETY: all of these are strings that end in a zero, and outlive the call.
    let done = unsafe {
        libc::mount(text(image).as_ptr(), text(place).as_ptr(), c"erofs".as_ptr(), libc::MS_RDONLY, std::ptr::null())
    };
    let error = io::Error::last_os_error();
    assert!(done == 0 || matches!(error.raw_os_error(), Some(libc::ENOTBLK | libc::ENODEV)), "{error}");
    done == 0
}

/// An erofs with an empty folder, as its on-disk format has it.
pub fn erofs() -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(1024, &0xe0f5_e1e2_u32.to_le_bytes());
    // Blocks of 4 KiB; inode 1 is the root, of 1 inode; 3 blocks, inodes from block 1 on.
    put(1024 + 12, &[12, 0, 1, 0, 1]);
    put(1024 + 36, &3_u32.to_le_bytes());
    put(1024 + 40, &1_u32.to_le_bytes());
    // The root: mode, links, size, first block, number.
    put(4096 + 32 + 4, &0o40755_u16.to_le_bytes());
    put(4096 + 32 + 6, &2_u16.to_le_bytes());
    put(4096 + 32 + 8, &27_u32.to_le_bytes());
    put(4096 + 32 + 16, &2_u32.to_le_bytes());
    put(4096 + 32 + 20, &1_u32.to_le_bytes());
    // `.` and `..`: inode, where the name is, that it is a folder.
    put(8192, &[1, 0, 0, 0, 0, 0, 0, 0, 24, 0, 2, 0]);
    put(8192 + 12, &[1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 2, 0]);
    put(8192 + 24, b"...");
    image
}

/// Gives the calling thread a table of descriptors of its own.
pub fn own_descriptors() {
    // SAFETY: it changes nothing but which table this thread uses.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0, "{}", io::Error::last_os_error());
}

/// Takes a lease for reading on a file that is open for reading, as servers of files do.
pub fn lease(file: &File) {
    // SAFETY: it takes numbers.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}
