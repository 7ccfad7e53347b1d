//! Issues one call, and takes the times right before and after it.
#![allow(unsafe_code, reason = "system calls with pointers to paths and buffers, which outlive the call")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use iosonar_pacing::buffers::Arena;

use super::action::{Action, MAX_BYTES};
use super::controls::Argument;
use super::devices::Devices;
use super::locks::Locks;
use super::root::{Confinement, Last, Root};
use super::scratch::{PathBuffer, Scratch};
use super::timed::{IssueClock, Issued, failed, timed};
use crate::CallKind;

/// Real descriptors of an action; -1 for none, or for a description whose making failed.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// Of its first description.
    pub fd: i32,
    /// Of its second description.
    pub fd2: i32,
}

/// What a thread needs to issue calls.
pub struct Executor<'a> {
    /// The root, which the thread has entered.
    pub root: &'a Root,
    pub clock: IssueClock<'a>,
    /// Memory of the data of writes.
    pub arena: &'a Arena,
    /// Memory of the thread for what calls return.
    pub scratch: Scratch,
    /// Memory of the thread for a first path.
    pub path: PathBuffer,
    /// Memory of the thread for a second path.
    pub path2: PathBuffer,
    /// Threads that wait for locks.
    pub locks: &'a Locks,
    /// Decides which devices are opened; without it, no device node, socket or FIFO is.
    pub devices: Option<&'a Devices>,
}

impl Executor<'_> {
    /// Issues a call.
    pub fn execute(&mut self, action: &Action, to: Descriptors) -> Issued {
        use CallKind as K;
        let clock = self.clock;
        let Descriptors { fd, fd2 } = to;
        let (flags, length) = (action.flags as i32, action.length);
        match action.kind {
            K::Open | K::Openat | K::Openat2 => self.open(action, action.flags),
            K::Creat => self.open(action, (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64),
            K::Close => timed(clock, || unsafe { libc::close(fd) }.into()),
            K::Read | K::Readv => self.read(action, fd, None, 0),
            K::Pread64 | K::Preadv => self.read(action, fd, action.offset, 0),
            K::Preadv2 => self.read(action, fd, action.offset, flags),
            K::Write | K::Writev => self.write(action, fd, None, 0),
            K::Pwrite64 | K::Pwritev => self.write(action, fd, action.offset, 0),
            K::Pwritev2 => self.write(action, fd, action.offset, flags),
            K::Lseek => timed(clock, || unsafe { libc::lseek(fd, action.offset.unwrap_or(0), flags) }),
            K::Sendfile => {
                let mut offset = action.offset;
                let at = offset.as_mut().map_or(std::ptr::null_mut(), |offset| &raw mut *offset);
                timed(clock, || unsafe { libc::sendfile(fd, fd2, at, length as usize) } as i64)
            }
            K::CopyFileRange => {
                let [mut from, mut to] = [action.offset, action.offset2];
                let [from, to] = [&mut from, &mut to]
                    .map(|offset| offset.as_mut().map_or(std::ptr::null_mut(), |offset| &raw mut *offset));
                timed(clock, || unsafe { libc::copy_file_range(fd, from, fd2, to, length as usize, 0) } as i64)
            }
            K::Splice => {
                let none = std::ptr::null_mut();
                timed(clock, || unsafe { libc::splice(fd, none, fd2, none, length as usize, action.flags as u32) }
                    as i64)
            }
            K::Fsync => timed(clock, || unsafe { libc::fsync(fd) }.into()),
            K::Fdatasync => timed(clock, || unsafe { libc::fdatasync(fd) }.into()),
            K::SyncFileRange => {
                let offset = action.offset.unwrap_or(0);
                timed(clock, || unsafe { libc::sync_file_range(fd, offset, length as i64, action.flags as u32) }.into())
            }
            // Only the file system of the root: the others are no part of the replay.
            K::Sync => {
                let root = self.root.directory().as_raw_fd();
                timed(clock, || unsafe { libc::syncfs(root) }.into())
            }
            K::Syncfs => timed(clock, || unsafe { libc::syncfs(fd) }.into()),
            K::Ftruncate => timed(clock, || unsafe { libc::ftruncate(fd, length as i64) }.into()),
            K::Fallocate => {
                let offset = action.offset.unwrap_or(0);
                timed(clock, || unsafe { libc::fallocate(fd, flags, offset, length as i64) }.into())
            }
            K::Fadvise64 => {
                let offset = action.offset.unwrap_or(0);
                // It returns the error instead of setting it.
                timed(clock, || unsafe {
                    i64::from(libc::syscall(libc::SYS_fadvise64, fd, offset, length as i64, flags) as i32)
                })
            }
            K::Readahead => {
                let offset = action.offset.unwrap_or(0);
                timed(clock, || unsafe { libc::readahead(fd, offset, length as usize) } as i64)
            }
            K::Flock => timed(clock, || self.locks.lock(fd, flags).into()),
            K::Fchmod => timed(clock, || unsafe { libc::fchmod(fd, action.mode & 0o7777) }.into()),
            K::Fchown => timed(clock, || unsafe { libc::fchown(fd, KEEP, KEEP) }.into()),
            K::Fcntl => {
                let flags = flags & CHANGEABLE | libc::O_NONBLOCK;
                timed(clock, || unsafe { libc::fcntl(fd, libc::F_SETFL, flags) }.into())
            }
            K::Ioctl => match Argument::of(action, fd2) {
                Some(mut argument) => timed(clock, || argument.issue(fd)),
                // The plan has left it out.
                None => failed(clock, &io::Error::from_raw_os_error(libc::ENOSYS)),
            },
            K::Getdents | K::Getdents64 => {
                let (to, bytes) = self.scratch.bytes(length);
                timed(clock, || unsafe { libc::syscall(libc::SYS_getdents64, fd, to, bytes) })
            }
            K::Fstat => self.fstat(fd),
            K::Fstatfs => {
                let (to, _) = self.scratch.bytes(4096);
                timed(clock, || unsafe { libc::fstatfs(fd, to.cast()) }.into())
            }
            K::Flistxattr => {
                let (to, bytes) = self.scratch.sized(length);
                timed(clock, || unsafe { libc::flistxattr(fd, to.cast(), bytes) } as i64)
            }
            K::Fgetxattr | K::Fsetxattr | K::Fremovexattr => self.attribute_of(action, fd),
            _ => self.on_path(action, to),
        }
    }

    fn read(&mut self, action: &Action, fd: i32, offset: Option<i64>, flags: i32) -> Issued {
        let clock = self.clock;
        let bytes = action.length.min(MAX_BYTES);
        if let Some((to, bytes)) = self.scratch.whole(bytes).filter(|_| flags == 0) {
            return match offset {
                None => timed(clock, || unsafe { libc::read(fd, to.cast(), bytes) } as i64),
                Some(offset) => timed(clock, || unsafe { libc::pread(fd, to.cast(), bytes, offset) } as i64),
            };
        }
        let pieces = self.scratch.pieces(bytes);
        let (first, count) = (pieces.as_ptr(), pieces.len() as i32);
        let at = offset.unwrap_or(-1);
        // SAFETY: the pieces are memory of the thread; they overlap, because the data that is read is not used.
        timed(clock, || unsafe { libc::preadv2(fd, first, count, at, flags) } as i64)
    }

    fn write(&mut self, action: &Action, fd: i32, offset: Option<i64>, flags: i32) -> Issued {
        let clock = self.clock;
        let bytes = action.data_bytes();
        let (from, held) = match &action.buffer {
            Some(buffer) => (self.arena.address(buffer), buffer.bytes()),
            None => {
                let (from, held) = self.scratch.bytes(bytes.min(1 << 20));
                (from, held as u64)
            }
        };
        if bytes <= held && flags == 0 {
            let bytes = bytes as usize;
            return match offset {
                None => timed(clock, || unsafe { libc::write(fd, from.cast(), bytes) } as i64),
                Some(offset) => timed(clock, || unsafe { libc::pwrite(fd, from.cast(), bytes, offset) } as i64),
            };
        }
        let pieces = self.scratch.pieces_of(from, held, bytes);
        let (first, count) = (pieces.as_ptr(), pieces.len() as i32);
        let at = offset.unwrap_or(-1);
        timed(clock, || unsafe { libc::pwritev2(fd, first, count, at, flags) } as i64)
    }

    /// An open. Device nodes, sockets and FIFOs in the root are refused with ENXIO, and never waited for; with
    /// `--special-files`, only devices that [`Devices`] refuses.
    fn open(&mut self, action: &Action, flags: u64) -> Issued {
        let clock = self.clock;
        let path = self.path.set(action.path.as_ref());
        let flags = flags as i32 | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
        let allowed = match self.devices.map(|devices| devices.look(self.root, path, flags)).transpose() {
            Ok(allowed) => allowed,
            Err(errno) => return failed(clock, &io::Error::from_raw_os_error(errno)),
        };
        let mut done = match self.root.confinement() {
            Confinement::Chroot => timed(clock, || {
                unsafe { libc::openat(libc::AT_FDCWD, path.as_ptr(), flags, action.mode & 0o7777) }.into()
            }),
            Confinement::Openat2 => {
                let mut errno = 0;
                let mut done = timed(clock, || match self.root.open_beneath(path, flags as u64, action.mode) {
                    Ok(file) => i64::from(file.into_raw_fd()),
                    Err(error) => {
                        errno = error.raw_os_error().unwrap_or(libc::EIO);
                        -1
                    }
                });
                if done.result < 0 {
                    done.errno = errno;
                }
                done
            }
        };
        let is_refused = match (allowed, done.result as i32) {
            // The kernel refuses nodes of devices in the replay's own view of the root.
            (None, _) if done.result < 0 => done.errno == libc::EACCES && self.root.leads_to_node(path),
            (None, fd) => flags & libc::O_PATH == 0 && is_special(fd),
            (Some(allowed), fd) => done.result >= 0 && !Devices::is_as_seen(fd, allowed),
        };
        if is_refused {
            if done.result >= 0 {
                unsafe { libc::close(done.result as i32) };
            }
            (done.result, done.errno) = (-1, libc::ENXIO);
        }
        done
    }

    fn fstat(&mut self, fd: i32) -> Issued {
        let clock = self.clock;
        let (to, _) = self.scratch.bytes(4096);
        timed(clock, || unsafe { libc::fstat(fd, to.cast()) }.into())
    }

    fn attribute_of(&mut self, action: &Action, fd: i32) -> Issued {
        let clock = self.clock;
        let name = self.path2.set(action.path2.as_ref()).as_ptr();
        let (memory, bytes) = self.scratch.sized(action.length);
        match action.kind {
            CallKind::Fgetxattr => timed(clock, || unsafe { libc::fgetxattr(fd, name, memory.cast(), bytes) } as i64),
            CallKind::Fsetxattr => {
                let flags = action.flags as i32;
                timed(clock, || unsafe { libc::fsetxattr(fd, name, memory.cast(), bytes, flags) }.into())
            }
            _ => timed(clock, || unsafe { libc::fremovexattr(fd, name) }.into()),
        }
    }

    /// Calls on one or two paths, and those of the `*at` kind on the descriptor alone.
    fn on_path(&mut self, action: &Action, Descriptors { fd, .. }: Descriptors) -> Issued {
        use CallKind as K;
        let clock = self.clock;
        let (flags, mode) = (action.flags as i32, action.mode);
        let is_on_descriptor = action.is_on_descriptor;
        match action.kind {
            K::Newfstatat | K::Statx if is_on_descriptor => return self.fstat(fd),
            K::Fchownat if is_on_descriptor => return timed(clock, || unsafe { libc::fchown(fd, KEEP, KEEP) }.into()),
            K::Utimensat | K::Futimesat if is_on_descriptor => {
                return timed(clock, || unsafe { libc::futimens(fd, std::ptr::null()) }.into());
            }
            _ => {}
        }
        let Self { root, scratch, path, path2, .. } = self;
        let path = path.set(action.path.as_ref());
        let path2 = path2.set(action.path2.as_ref());
        let no_follow = flags & libc::AT_SYMLINK_NOFOLLOW != 0;
        let last = match action.kind {
            K::Stat | K::Access | K::Statfs | K::Truncate | K::Chmod | K::Chown | K::Utime | K::Utimes => {
                Last::Followed
            }
            K::Getxattr | K::Listxattr | K::Setxattr | K::Removexattr | K::Futimesat | K::Fchmodat | K::Faccessat => {
                Last::Followed
            }
            K::Newfstatat | K::Statx | K::Faccessat2 | K::Fchmodat2 | K::Fchownat | K::Utimensat if !no_follow => {
                Last::Followed
            }
            K::Linkat if flags & libc::AT_SYMLINK_FOLLOW != 0 => Last::Followed,
            _ => Last::Kept,
        };
        match action.kind {
            K::Symlink | K::Symlinkat => {
                return match root.place(path2, Last::Kept) {
                    Ok(to) => {
                        timed(clock, || unsafe { libc::symlinkat(path.as_ptr(), to.directory(), to.name()) }.into())
                    }
                    Err(error) => failed(clock, &error),
                };
            }
            K::Link | K::Linkat if is_on_descriptor => {
                return match root.place(path2, Last::Kept) {
                    Ok(to) => link_descriptor(clock, fd, to.directory(), to.name()),
                    Err(error) => failed(clock, &error),
                };
            }
            K::Link | K::Linkat | K::Rename | K::Renameat | K::Renameat2 => {
                let (from, to) = match (root.place(path, last), root.place(path2, Last::Kept)) {
                    (Ok(from), Ok(to)) => (from, to),
                    (Err(error), _) | (_, Err(error)) => return failed(clock, &error),
                };
                let (a, b, c, d) = (from.directory(), from.name(), to.directory(), to.name());
                return match action.kind {
                    K::Link => timed(clock, || unsafe { libc::linkat(a, b, c, d, 0) }.into()),
                    K::Linkat => timed(clock, || unsafe { libc::linkat(a, b, c, d, flags) }.into()),
                    // Not in each C library.
                    K::Renameat2 => timed(clock, || unsafe { libc::syscall(libc::SYS_renameat2, a, b, c, d, flags) }),
                    _ => timed(clock, || unsafe { libc::renameat(a, b, c, d) }.into()),
                };
            }
            _ => {}
        }
        let at = match root.place(path, last) {
            Ok(at) => at,
            Err(error) => return failed(clock, &error),
        };
        let (directory, name) = (at.directory(), at.name());
        // A link in /proc leads to what the path was resolved to: it must be followed.
        let keep = if no_follow && last == Last::Kept { libc::AT_SYMLINK_NOFOLLOW } else { 0 };
        let attribute = path2.as_ptr();
        let (memory, bytes) = scratch.sized(action.length);
        let none: *const libc::timespec = std::ptr::null();
        match action.kind {
            K::Stat => timed(clock, || unsafe { libc::fstatat(directory, name, memory.cast(), 0) }.into()),
            K::Lstat => timed(clock, || {
                unsafe { libc::fstatat(directory, name, memory.cast(), libc::AT_SYMLINK_NOFOLLOW) }.into()
            }),
            K::Newfstatat => timed(clock, || unsafe { libc::fstatat(directory, name, memory.cast(), keep) }.into()),
            K::Statx => timed(clock, || unsafe {
                libc::statx(directory, name, keep, libc::STATX_BASIC_STATS, memory.cast()).into()
            }),
            K::Access | K::Faccessat | K::Faccessat2 => {
                let (asked, options) = (flags & 7, flags & libc::AT_EACCESS | keep);
                timed(clock, || unsafe { libc::faccessat(directory, name, asked, options) }.into())
            }
            K::Readlink | K::Readlinkat => {
                timed(clock, || unsafe { libc::readlinkat(directory, name, memory.cast(), bytes) } as i64)
            }
            K::Statfs => timed(clock, || unsafe { libc::statfs(name, memory.cast()) }.into()),
            K::NameToHandleAt => {
                let handle: *mut u32 = memory.cast();
                // SAFETY: room for the header, the largest handle (128 bytes) and the mount's number.
                let mount = unsafe {
                    handle.write(128);
                    handle.add(64)
                };
                timed(clock, || unsafe {
                    libc::syscall(libc::SYS_name_to_handle_at, directory, name, handle, mount, 0)
                })
            }
            K::Getxattr => timed(clock, || unsafe { libc::getxattr(name, attribute, memory.cast(), bytes) } as i64),
            K::Listxattr => timed(clock, || unsafe { libc::listxattr(name, memory.cast(), bytes) } as i64),
            K::Setxattr => {
                timed(clock, || unsafe { libc::setxattr(name, attribute, memory.cast(), bytes, flags) }.into())
            }
            K::Removexattr => timed(clock, || unsafe { libc::removexattr(name, attribute) }.into()),
            K::Lgetxattr | K::Llistxattr | K::Lsetxattr | K::Lremovexattr => {
                let own = at.path_by_descriptor();
                let name = own.as_ref().map_or(name, |own| own.as_ptr());
                match action.kind {
                    K::Lgetxattr => {
                        timed(clock, || unsafe { libc::lgetxattr(name, attribute, memory.cast(), bytes) } as i64)
                    }
                    K::Llistxattr => timed(clock, || unsafe { libc::llistxattr(name, memory.cast(), bytes) } as i64),
                    K::Lsetxattr => {
                        timed(clock, || unsafe { libc::lsetxattr(name, attribute, memory.cast(), bytes, flags) }.into())
                    }
                    _ => timed(clock, || unsafe { libc::lremovexattr(name, attribute) }.into()),
                }
            }
            K::Mkdir | K::Mkdirat => timed(clock, || unsafe { libc::mkdirat(directory, name, mode & 0o7777) }.into()),
            K::Mknod | K::Mknodat => timed(clock, || unsafe { libc::mknodat(directory, name, mode, 0) }.into()),
            // The name of a Unix socket, without a process that listens.
            K::Bind => {
                let made = timed(clock, || unsafe { libc::mknodat(directory, name, mode, 0) }.into());
                let errno = if made.errno == libc::EEXIST { libc::EADDRINUSE } else { made.errno };
                Issued { errno, ..made }
            }
            K::Unlink => timed(clock, || unsafe { libc::unlinkat(directory, name, 0) }.into()),
            K::Unlinkat => {
                timed(clock, || unsafe { libc::unlinkat(directory, name, flags & libc::AT_REMOVEDIR) }.into())
            }
            K::Rmdir => timed(clock, || unsafe { libc::unlinkat(directory, name, libc::AT_REMOVEDIR) }.into()),
            K::Truncate => timed(clock, || unsafe { libc::truncate(name, action.length as i64) }.into()),
            K::Chmod | K::Fchmodat => {
                timed(clock, || unsafe { libc::fchmodat(directory, name, mode & 0o7777, 0) }.into())
            }
            K::Fchmodat2 => timed(clock, || unsafe { libc::fchmodat(directory, name, mode & 0o7777, keep) }.into()),
            K::Chown => timed(clock, || unsafe { libc::fchownat(directory, name, KEEP, KEEP, 0) }.into()),
            K::Lchown => timed(clock, || {
                unsafe { libc::fchownat(directory, name, KEEP, KEEP, libc::AT_SYMLINK_NOFOLLOW) }.into()
            }),
            K::Fchownat => timed(clock, || unsafe { libc::fchownat(directory, name, KEEP, KEEP, keep) }.into()),
            K::Utime | K::Utimes | K::Futimesat => {
                timed(clock, || unsafe { libc::utimensat(directory, name, none, 0) }.into())
            }
            K::Utimensat => timed(clock, || unsafe { libc::utimensat(directory, name, none, keep) }.into()),
            // The plan has left it out.
            _ => failed(clock, &io::Error::from_raw_os_error(libc::ENOSYS)),
        }
    }
}

/// What `F_SETFL` changes; files are open with `O_NONBLOCK` all the time.
const CHANGEABLE: i32 = libc::O_APPEND | libc::O_DIRECT | libc::O_NOATIME;

/// Gives the file of a descriptor a name.
fn link_descriptor(clock: IssueClock<'_>, fd: i32, directory: i32, name: *const libc::c_char) -> Issued {
    let linked =
        timed(clock, || unsafe { libc::linkat(fd, c"".as_ptr(), directory, name, libc::AT_EMPTY_PATH).into() });
    // ENOENT: the caller lacks CAP_DAC_READ_SEARCH. It has not changed its root directory either, so /proc is there.
    let Some(own) = CString::new(format!("/proc/self/fd/{fd}")).ok().filter(|_| linked.errno == libc::ENOENT) else {
        return linked;
    };
    timed(clock, || unsafe {
        libc::linkat(libc::AT_FDCWD, own.as_ptr(), directory, name, libc::AT_SYMLINK_FOLLOW).into()
    })
}

/// An owner that `chown` leaves as it is. The trace does not have owners.
const KEEP: u32 = u32::MAX;

fn is_special(fd: i32) -> bool {
    // SAFETY: all zeros is a valid `stat`, which the kernel fills in.
    let kind = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut status) != 0 {
            return false;
        }
        status.st_mode & libc::S_IFMT
    };
    matches!(kind, libc::S_IFCHR | libc::S_IFBLK | libc::S_IFIFO | libc::S_IFSOCK)
}
