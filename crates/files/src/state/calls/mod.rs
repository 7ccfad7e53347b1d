//! What each call uses and changes: one file for each kind of calls.

mod attributes;
mod controls;
mod copying;
mod descriptors;
mod io;
mod making;
mod opening;
mod other;
mod processes;
mod renaming;

pub(crate) use making::own_descriptor;

use super::State;
use super::evidence::fails_elsewhere;
use super::step::Step;
use crate::{Call, CallKind, Family, Skip, Unreplayable};

/// Errors that say nothing about files: wrong arguments, interruptions, too many descriptors, calls that the kernel did not
/// have. Numbers from 512 are the kernel's own: the call was to be restarted.
fn is_not_replayable(errno: i32) -> bool {
    matches!(errno, libc::EBADF | libc::EFAULT | libc::EINTR | libc::EMFILE | libc::ENFILE | libc::ENOSYS | 512..)
}

/// Whether the call changed files, if it was on files.
fn changes_files(call: &Call) -> bool {
    const MAKING: u64 = (libc::O_CREAT | libc::O_TRUNC) as u64;
    call.succeeded()
        && match call.kind.family() {
            Family::Write | Family::Copy => call.result != Some(0),
            Family::Open => call.kind == CallKind::Creat || call.flags & MAKING != 0,
            Family::Resize | Family::Create | Family::Remove | Family::Rename | Family::Attribute => true,
            _ => false,
        }
}

impl State {
    pub(super) fn call(&mut self, step: &mut Step) {
        self.follow(step);
        if changes_files(step.call) && step.resolved.skip == Some(Skip::NotReplayable) {
            step.mark_unreplayable(Unreplayable::Call(step.call.kind));
        }
        if fails_elsewhere(step.call) {
            step.skip(Skip::NotReplayable);
        }
    }

    fn follow(&mut self, step: &mut Step) {
        let call = step.call;
        let ends_process = matches!(call.kind, CallKind::Exit | CallKind::ExitGroup);
        if call.result.is_none() && !ends_process {
            step.skip(Skip::Unfinished);
            self.unfinished(step);
            return;
        }
        if is_not_replayable(call.errno) {
            step.skip(Skip::NotReplayable);
            if call.kind == CallKind::Close && call.errno == libc::EINTR {
                self.close(step);
            }
            return;
        }
        use CallKind::*;
        match call.kind {
            Open | Openat | Openat2 | Creat => self.open(step),
            Close => self.close(step),
            CloseRange => self.close_range(step),
            Dup | Dup2 | Dup3 => self.duplicate(step),
            Fcntl => self.fcntl(step),
            Read | Readv | Pread64 | Preadv | Preadv2 => self.read(step),
            Write | Writev | Pwrite64 | Pwritev | Pwritev2 => self.write(step),
            Lseek => self.seek(step),
            Sendfile | CopyFileRange | Splice | Tee | Vmsplice => self.copy(step),
            Fsync | Fdatasync | SyncFileRange | Syncfs | Fadvise64 | Readahead | Flock | Fstatfs => {
                self.sync_or_advise(step)
            }
            Sync => {}
            Ftruncate | Fallocate => self.resize(step),
            Truncate => self.truncate(step),
            Stat | Lstat | Newfstatat | Statx | Access | Faccessat | Faccessat2 | Readlink | Readlinkat | Statfs
            | Getxattr | Lgetxattr | Listxattr | Llistxattr | Getxattrat | Listxattrat | FileGetattr
            | NameToHandleAt => self.query(step),
            Fstat | Fgetxattr | Flistxattr => self.query_descriptor(step),
            Getdents | Getdents64 => self.list(step),
            Mkdir | Mkdirat | Mknod | Mknodat => self.make(step),
            Bind => self.bind_socket(step),
            Symlink | Symlinkat => self.symlink(step),
            Link | Linkat => self.link(step),
            Unlink | Unlinkat | Rmdir => self.remove(step),
            Rename | Renameat | Renameat2 => self.rename(step),
            Chmod | Fchmodat | Fchmodat2 | Chown | Lchown | Fchownat | Utime | Utimes | Utimensat | Futimesat
            | Setxattr | Lsetxattr | Removexattr | Lremovexattr | Setxattrat | Removexattrat | FileSetattr => {
                self.change_attributes(step);
                self.lose_attribute(step);
            }
            Fchmod | Fchown | Fsetxattr | Fremovexattr => {
                self.change_attributes_of_descriptor(step);
                self.lose_attribute(step);
            }
            Chdir | Fchdir | Chroot => self.change_directory(step),
            Getcwd => self.show_directory(step),
            Umask => self.change_mask(step),
            Wait4 | Waitid | Kill => step.skip(Skip::Bookkeeping),
            Clone | Clone3 | Fork | Vfork => self.fork(step),
            Execve | Execveat => self.exec(step),
            Exit | ExitGroup => self.exit(step),
            Unshare => self.unshare(step),
            Mmap | Munmap | Mremap | Msync => self.map(step),
            PageFault => step.skip(Skip::Mapped),
            Ioctl => self.ioctl(step),
            Pipe | Pipe2 | Socketpair => self.make_pair(step),
            Socket
            | Accept
            | Accept4
            | Eventfd
            | Eventfd2
            | EpollCreate
            | EpollCreate1
            | TimerfdCreate
            | Signalfd
            | Signalfd4
            | MemfdCreate
            | MemfdSecret
            | InotifyInit
            | InotifyInit1
            | FanotifyInit
            | PidfdOpen
            | Userfaultfd
            | PerfEventOpen
            | Fsopen
            | Fspick
            | Fsmount
            | IoUringSetup
            | MqOpen
            | LandlockCreateRuleset => self.make_other(step),
            Recvmsg | Recvmmsg => {
                self.counts.messages += 1;
                step.skip(Skip::NotAFile);
            }
            Connect | Listen | Shutdown | Sendto | Recvfrom | Sendmsg | Sendmmsg | Getsockname | Getpeername
            | Getsockopt | Setsockopt | InotifyAddWatch | IoUringRegister => step.skip(Skip::NotAFile),
            IoUringEnter => self.enter_ring(step),
            PidfdGetfd | OpenByHandleAt | OpenTree | OpenTreeAttr => self.make_unknown(step),
            Setns | Mount | Umount2 | MoveMount | MountSetattr | PivotRoot | IoSubmit | Swapon => {
                self.not_followed(step)
            }
            IoSetup | IoGetevents | Bpf | Quotactl => {
                *self.counts.not_followed.entry(call.kind).or_default() += 1;
                step.skip(Skip::NotReplayable);
            }
        }
    }
}
