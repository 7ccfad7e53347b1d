//! The arguments of each call, for the writer.

use crate::CallKind;

/// A letter for each argument.
///
/// `d` fd, `e` fd2, `x` fd or -1, `[` both in a list, `a` fd2 if there is one; `p` path, `q` path2; `l` length, `o` offset,
/// `P` offset behind a pointer, `Q` offset2; `v` a vector of buffers, `V` a message of them; `f` flags, `O` flags of opening, `A` the mode
/// among flags, `F` the others, `C` flags by name, `H` a structure of flags and mode; `m` mode, `M` mode if there is one;
/// `I` the argument of `ioctl`, `X` the protection of `mmap`; `k` the stack of `clone`, `b` data, `t` data that are path2, `s` a structure, `S` a structure with the mode, if there is one, `u` the address of a Unix socket, if it has a path, `n` a null pointer, `0` a number that is not recorded.
pub fn signature(kind: CallKind) -> &'static str {
    use CallKind as K;
    match kind {
        K::Open => "pOM",
        K::Openat => "dpOM",
        K::Openat2 => "dpH0",
        K::Creat | K::Mkdir | K::Chmod => "pm",
        K::Mknod => "pm0",
        K::Close | K::Fsync | K::Fdatasync | K::Syncfs | K::Fchdir | K::Dup | K::IoUringEnter | K::IoUringRegister => {
            "d"
        }
        K::Fstat => "dS",
        K::Fstatfs | K::Accept | K::Connect | K::Getsockname | K::Getpeername => "ds",
        K::Bind => "du0",
        K::Fremovexattr => "dq",
        K::Fchown => "d00",
        K::Listen => "d0",
        K::Sendmmsg | K::Recvmmsg => "ds00",
        K::Getsockopt | K::Setsockopt => "d00s0",
        K::CloseRange => "def",
        K::Read | K::Write | K::Getdents | K::Getdents64 | K::Flistxattr => "dbl",
        K::Pread64 | K::Pwrite64 => "dblo",
        K::Readv | K::Writev => "dv0",
        K::Vmsplice => "dv0f",
        K::Preadv | K::Pwritev => "dv0o",
        K::Preadv2 | K::Pwritev2 => "dv0of",
        K::Lseek => "dof",
        K::Sendfile => "dePl",
        K::CopyFileRange | K::Splice => "dPeQlf",
        K::Tee => "delf",
        K::SyncFileRange | K::Fadvise64 => "dolf",
        K::Msync => "nlf",
        K::Truncate => "pl",
        K::Ftruncate => "dl",
        K::Fallocate => "dfol",
        K::Readahead => "dol",
        K::Flock | K::Setns | K::Shutdown => "df",
        K::PidfdOpen => "0f",
        K::Stat | K::Lstat => "pS",
        K::Statfs | K::Utime | K::Utimes => "ps",
        K::Removexattr | K::Lremovexattr => "pq",
        K::Chown | K::Lchown => "p00",
        K::Rmdir | K::Unlink | K::Chdir | K::Chroot | K::Swapon => "p",
        K::Execve => "pss",
        K::Newfstatat => "dpSf",
        K::Utimensat => "dpsf",
        K::Statx => "dpf0S",
        K::Getxattrat | K::Setxattrat => "dpfbs0",
        K::Listxattrat => "dpfb0",
        K::Removexattrat => "dpfb",
        K::FileGetattr | K::FileSetattr => "dps0f",
        K::OpenTreeAttr | K::MountSetattr => "dpfs0",
        K::Unlinkat | K::OpenTree | K::Faccessat | K::InotifyAddWatch => "dpf",
        K::Faccessat2 => "dpAF",
        K::Access | K::Fspick | K::Umount2 => "pf",
        K::Readlink => "ptl",
        K::Listxattr | K::Llistxattr => "pbl",
        K::Readlinkat => "dptl",
        K::Getxattr | K::Lgetxattr => "pbbl",
        K::Fgetxattr => "dbbl",
        K::Setxattr | K::Lsetxattr => "pqblf",
        K::Fsetxattr => "dqblf",
        K::NameToHandleAt => "dpssf",
        K::Fchownat => "dp00f",
        K::Execveat => "dpssf",
        K::Mkdirat => "dpm",
        K::Mknodat => "dpm0",
        K::Symlink | K::Link | K::Rename | K::PivotRoot => "pq",
        K::Mount => "pqbfn",
        K::Symlinkat => "peq",
        K::Linkat | K::Renameat2 | K::MoveMount => "dpeqf",
        K::Renameat => "dpeq",
        K::Fchmod => "dm",
        K::Fchmodat => "dpm",
        K::Fchmodat2 => "dpmf",
        K::Futimesat => "dps",
        K::Getcwd => "pl",
        K::Umask => "m",
        K::Dup2 => "de",
        K::Dup3 => "def",
        K::Fcntl => "dfa",
        K::Ioctl => "dfI",
        K::Clone => "kC",
        K::Clone3 => "H0",
        K::Unshare | K::EpollCreate1 | K::InotifyInit1 | K::MemfdSecret | K::Userfaultfd => "f",
        K::Mmap => "nlXfxo",
        K::Munmap => "nl",
        K::Mremap => "n0lf",
        K::Pipe => "[",
        K::Pipe2 => "[f",
        K::Socketpair => "0f0[",
        K::Socket => "0f0",
        K::Eventfd2 | K::TimerfdCreate => "0f",
        K::MemfdCreate | K::Fsopen => "bf",
        K::Accept4 => "dssf",
        K::Sendto | K::Recvfrom => "dblfsn",
        K::Sendmsg | K::Recvmsg => "dVf",
        K::Signalfd | K::Signalfd4 => "ds0f",
        K::OpenByHandleAt => "dsf",
        K::PidfdGetfd => "d0f",
        K::Fsmount => "df",
        K::MqOpen => "pOM",
        K::Sync | K::Fork | K::Vfork | K::InotifyInit => "",
        K::Exit
        | K::ExitGroup
        | K::Eventfd
        | K::EpollCreate
        | K::IoSetup
        | K::IoSubmit
        | K::IoUringSetup
        | K::Kill
        | K::Wait4
        | K::Waitid
        | K::FanotifyInit
        | K::PerfEventOpen
        | K::Bpf
        | K::IoGetevents
        | K::LandlockCreateRuleset
        | K::Quotactl => "0",
    }
}
