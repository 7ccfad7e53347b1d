//! Issues a call of a trace on real files.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use iosonar_files::{Call, CallKind};
use rustix::fs::{self, Access, AtFlags, Mode, OFlags, RawDir, RenameFlags, SeekFrom};
use rustix::io::Errno;

/// What a call works on. Calls on names use `at` and `at2`, other calls `fd` and `fd2`.
#[derive(Clone, Copy)]
pub struct On<'a> {
    pub fd: Option<BorrowedFd<'a>>,
    pub fd2: Option<BorrowedFd<'a>>,
    pub at: (BorrowedFd<'a>, &'a [u8]),
    pub at2: (BorrowedFd<'a>, &'a [u8]),
}

/// What a call returned.
pub enum Returned {
    Number(i64),
    Descriptor(OwnedFd),
    Failed(Errno),
}

/// Whether the call works on a name.
pub fn is_on_name(kind: CallKind) -> bool {
    use CallKind::*;
    matches!(
        kind,
        Openat
            | Mkdir
            | Mkdirat
            | Rmdir
            | Unlink
            | Unlinkat
            | Rename
            | Renameat2
            | Link
            | Symlink
            | Readlink
            | Newfstatat
            | Stat
            | Lstat
            | Access
            | Chmod
            | Chdir
    )
}

/// Issues the call.
pub fn issue(call: &Call, on: On<'_>) -> Returned {
    match try_issue(call, on) {
        Ok(returned) => returned,
        Err(errno) => Returned::Failed(errno),
    }
}

fn try_issue(call: &Call, on: On<'_>) -> Result<Returned, Errno> {
    use CallKind::*;
    let (at, path) = on.at;
    let (at2, path2) = on.at2;
    let mode = Mode::from_raw_mode(call.mode.unwrap_or(0));
    let length = call.length.unwrap_or(0);
    let offset = call.offset.unwrap_or(0);
    let flags = call.flags;
    let fd = || on.fd.expect("a call on a descriptor");
    let number = match call.kind {
        Openat => {
            let flags = OFlags::from_bits_retain(flags as u32);
            return fs::openat(at, path, flags | OFlags::CLOEXEC, mode).map(Returned::Descriptor);
        }
        Mkdir | Mkdirat => fs::mkdirat(at, path, mode).map(|()| 0),
        Rmdir => fs::unlinkat(at, path, AtFlags::REMOVEDIR).map(|()| 0),
        Unlink => fs::unlinkat(at, path, AtFlags::empty()).map(|()| 0),
        Unlinkat => fs::unlinkat(at, path, AtFlags::from_bits_retain(flags as u32)).map(|()| 0),
        Rename => fs::renameat(at, path, at2, path2).map(|()| 0),
        Renameat2 => fs::renameat_with(at, path, at2, path2, RenameFlags::from_bits_retain(flags as u32)).map(|()| 0),
        Link => fs::linkat(at, path, at2, path2, AtFlags::empty()).map(|()| 0),
        Symlink => fs::symlinkat(call.path.as_ref().unwrap().as_bytes(), at2, path2).map(|()| 0),
        Readlink => fs::readlinkat(at, path, Vec::new()).map(|target| target.as_bytes().len() as i64),
        Stat => fs::statat(at, path, AtFlags::empty()).map(|_| 0),
        Lstat => fs::statat(at, path, AtFlags::SYMLINK_NOFOLLOW).map(|_| 0),
        Newfstatat => fs::statat(at, path, AtFlags::from_bits_retain(flags as u32)).map(|_| 0),
        Access => fs::accessat(at, path, self::Access::EXISTS, AtFlags::empty()).map(|()| 0),
        Chmod => fs::chmodat(at, path, mode, AtFlags::empty()).map(|()| 0),
        Chdir => {
            return fs::openat(at, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map(Returned::Descriptor);
        }
        Read => rustix::io::read(fd(), &mut vec![0; length as usize][..]).map(|bytes| bytes as i64),
        Write => rustix::io::write(fd(), &vec![b'w'; length as usize]).map(|bytes| bytes as i64),
        Pread64 => rustix::io::pread(fd(), &mut vec![0; length as usize][..], offset as u64).map(|bytes| bytes as i64),
        Pwrite64 => rustix::io::pwrite(fd(), &vec![b'p'; length as usize], offset as u64).map(|bytes| bytes as i64),
        Lseek => {
            let to = match flags {
                0 => SeekFrom::Start(offset as u64),
                1 => SeekFrom::Current(offset),
                _ => SeekFrom::End(offset),
            };
            fs::seek(fd(), to).map(|position| position as i64)
        }
        Ftruncate => fs::ftruncate(fd(), length).map(|()| 0),
        Fstat => fs::fstat(fd()).map(|_| 0),
        Fallocate => {
            let mode = fs::FallocateFlags::from_bits_retain(flags as u32);
            fs::fallocate(fd(), mode, offset as u64, length).map(|()| 0)
        }
        CopyFileRange => {
            fs::copy_file_range(fd(), None, on.fd2.unwrap(), None, length as usize).map(|bytes| bytes as i64)
        }
        Sendfile => fs::sendfile(fd(), on.fd2.unwrap(), None, length as usize).map(|bytes| bytes as i64),
        Fsync => fs::fsync(fd()).map(|()| 0),
        Getdents64 => list(fd()),
        other => panic!("{} is not generated", other.name()),
    };
    number.map(Returned::Number)
}

/// One `getdents64` with room for all entries.
fn list(directory: BorrowedFd<'_>) -> Result<i64, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 16384];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut bytes = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        bytes += (19 + entry.file_name().to_bytes().len() as i64 + 1 + 7) / 8 * 8;
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(bytes)
}
