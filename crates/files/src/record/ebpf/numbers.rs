//! The numbers of system calls on this kind of processor.

use crate::model::kind::CallKind;

/// One more than the highest number: `NUMBERS` of the eBPF program.
pub const NUMBERS: usize = 512;

macro_rules! table {
    ($($kind:ident $number:ident,)*) => {
        &[$((CallKind::$kind, libc::$number)),*]
    };
}

/// Calls of Linux 6.13 and newer, whose numbers are the same on every processor.
const NEW: &[(CallKind, libc::c_long)] = &[
    (CallKind::Setxattrat, 463),
    (CallKind::Getxattrat, 464),
    (CallKind::Listxattrat, 465),
    (CallKind::Removexattrat, 466),
    (CallKind::OpenTreeAttr, 467),
    (CallKind::FileGetattr, 468),
    (CallKind::FileSetattr, 469),
];

/// The calls that every processor has.
#[rustfmt::skip]
const COMMON: &[(CallKind, libc::c_long)] = table! {
    Openat SYS_openat, Openat2 SYS_openat2, Close SYS_close, CloseRange SYS_close_range, Read SYS_read,
    Readv SYS_readv, Pread64 SYS_pread64, Preadv SYS_preadv, Preadv2 SYS_preadv2, Write SYS_write,
    Writev SYS_writev, Pwrite64 SYS_pwrite64, Pwritev SYS_pwritev, Pwritev2 SYS_pwritev2, Lseek SYS_lseek,
    Sendfile SYS_sendfile, CopyFileRange SYS_copy_file_range, Splice SYS_splice, Tee SYS_tee,
    Vmsplice SYS_vmsplice, Fsync SYS_fsync, Fdatasync SYS_fdatasync, SyncFileRange SYS_sync_file_range,
    Sync SYS_sync, Syncfs SYS_syncfs, Msync SYS_msync, Truncate SYS_truncate, Ftruncate SYS_ftruncate,
    Fallocate SYS_fallocate, Fadvise64 SYS_fadvise64, Readahead SYS_readahead, Flock SYS_flock,
    Fstat SYS_fstat, Newfstatat SYS_newfstatat, Statx SYS_statx, Faccessat SYS_faccessat,
    Faccessat2 SYS_faccessat2, Readlinkat SYS_readlinkat, Statfs SYS_statfs, Fstatfs SYS_fstatfs,
    Getxattr SYS_getxattr, Lgetxattr SYS_lgetxattr, Fgetxattr SYS_fgetxattr, Listxattr SYS_listxattr,
    Llistxattr SYS_llistxattr, Flistxattr SYS_flistxattr, NameToHandleAt SYS_name_to_handle_at,
    Getdents64 SYS_getdents64, Mkdirat SYS_mkdirat, Mknodat SYS_mknodat, Symlinkat SYS_symlinkat,
    Linkat SYS_linkat, Unlinkat SYS_unlinkat, Renameat SYS_renameat, Renameat2 SYS_renameat2,
    Fchmod SYS_fchmod, Fchmodat SYS_fchmodat, Fchmodat2 SYS_fchmodat2, Fchown SYS_fchown,
    Fchownat SYS_fchownat, Utimensat SYS_utimensat, Setxattr SYS_setxattr, Lsetxattr SYS_lsetxattr,
    Fsetxattr SYS_fsetxattr, Removexattr SYS_removexattr, Lremovexattr SYS_lremovexattr,
    Fremovexattr SYS_fremovexattr, Chdir SYS_chdir, Fchdir SYS_fchdir, Getcwd SYS_getcwd, Chroot SYS_chroot,
    Umask SYS_umask, Dup SYS_dup, Dup3 SYS_dup3, Fcntl SYS_fcntl, Ioctl SYS_ioctl, Clone SYS_clone,
    Clone3 SYS_clone3, Execve SYS_execve, Execveat SYS_execveat, Exit SYS_exit, ExitGroup SYS_exit_group,
    Wait4 SYS_wait4, Waitid SYS_waitid, Kill SYS_kill, Unshare SYS_unshare, Setns SYS_setns, Mmap SYS_mmap,
    Munmap SYS_munmap, Mremap SYS_mremap, Pipe2 SYS_pipe2, Socket SYS_socket, Socketpair SYS_socketpair,
    Accept SYS_accept, Accept4 SYS_accept4, Connect SYS_connect, Bind SYS_bind, Listen SYS_listen,
    Shutdown SYS_shutdown, Sendto SYS_sendto, Recvfrom SYS_recvfrom, Sendmsg SYS_sendmsg, Recvmsg SYS_recvmsg,
    Sendmmsg SYS_sendmmsg, Recvmmsg SYS_recvmmsg, Getsockname SYS_getsockname, Getpeername SYS_getpeername,
    Getsockopt SYS_getsockopt, Setsockopt SYS_setsockopt, Eventfd2 SYS_eventfd2,
    EpollCreate1 SYS_epoll_create1, TimerfdCreate SYS_timerfd_create, Signalfd4 SYS_signalfd4,
    MemfdCreate SYS_memfd_create, MemfdSecret SYS_memfd_secret, InotifyInit1 SYS_inotify_init1,
    InotifyAddWatch SYS_inotify_add_watch, FanotifyInit SYS_fanotify_init, PidfdOpen SYS_pidfd_open,
    PidfdGetfd SYS_pidfd_getfd, Userfaultfd SYS_userfaultfd, PerfEventOpen SYS_perf_event_open, Bpf SYS_bpf,
    OpenByHandleAt SYS_open_by_handle_at, OpenTree SYS_open_tree, Fsopen SYS_fsopen, Fspick SYS_fspick,
    Fsmount SYS_fsmount, MoveMount SYS_move_mount, MountSetattr SYS_mount_setattr, Mount SYS_mount, Umount2 SYS_umount2,
    PivotRoot SYS_pivot_root, IoUringSetup SYS_io_uring_setup, IoUringEnter SYS_io_uring_enter,
    IoUringRegister SYS_io_uring_register, IoSetup SYS_io_setup, IoSubmit SYS_io_submit,
    IoGetevents SYS_io_getevents, MqOpen SYS_mq_open, LandlockCreateRuleset SYS_landlock_create_ruleset,
    Swapon SYS_swapon, Quotactl SYS_quotactl,
};

/// The calls that newer processors do not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[(CallKind, libc::c_long)] = table! {
    Open SYS_open, Creat SYS_creat, Stat SYS_stat, Lstat SYS_lstat, Access SYS_access, Readlink SYS_readlink,
    Getdents SYS_getdents, Mkdir SYS_mkdir, Mknod SYS_mknod, Symlink SYS_symlink, Link SYS_link,
    Unlink SYS_unlink, Rmdir SYS_rmdir, Rename SYS_rename, Chmod SYS_chmod, Chown SYS_chown,
    Lchown SYS_lchown, Utime SYS_utime, Utimes SYS_utimes, Futimesat SYS_futimesat, Dup2 SYS_dup2,
    Fork SYS_fork, Vfork SYS_vfork, Pipe SYS_pipe, Eventfd SYS_eventfd, EpollCreate SYS_epoll_create,
    Signalfd SYS_signalfd, InotifyInit SYS_inotify_init,
};
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[(CallKind, libc::c_long)] = &[];

/// All calls with their numbers.
pub fn numbers() -> impl Iterator<Item = (CallKind, usize)> {
    COMMON.iter().chain(NEW).chain(OLD).map(|&(kind, number)| (kind, usize::try_from(number).expect("a system call")))
}

pub fn kinds() -> [Option<CallKind>; NUMBERS] {
    let mut kinds = [None; NUMBERS];
    for (kind, number) in numbers() {
        kinds[number] = Some(kind);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_one_number() {
        assert_eq!(kinds().iter().flatten().count(), COMMON.len() + NEW.len() + OLD.len());
        #[cfg(target_arch = "x86_64")]
        assert_eq!(COMMON.len() + NEW.len() + OLD.len(), CallKind::ALL.len());
        assert_eq!(kinds()[libc::SYS_openat as usize], Some(CallKind::Openat));
    }
}
