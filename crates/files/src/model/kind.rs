//! Which system calls are recorded.

/// What a call does, roughly: for tables and pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Calls of the kind of `open`.
    Open,
    /// Calls of the kind of `close`.
    Close,
    /// Calls of the kind of `read`.
    Read,
    /// Calls of the kind of `write`.
    Write,
    /// Calls of the kind of `lseek`.
    Seek,
    /// Calls of the kind of `sendfile`.
    Copy,
    /// Calls of the kind of `fsync`.
    Sync,
    /// Calls of the kind of `truncate`.
    Resize,
    /// Calls of the kind of `fadvise64`.
    Advise,
    /// Calls of the kind of `stat`.
    Stat,
    /// Calls of the kind of `getdents`.
    List,
    /// Calls of the kind of `mkdir`.
    Create,
    /// Calls of the kind of `unlink`.
    Remove,
    /// Calls of the kind of `rename`.
    Rename,
    /// Calls of the kind of `chmod`.
    Attribute,
    /// Calls of the kind of `chdir`.
    Directory,
    /// Calls of the kind of `dup`.
    Descriptor,
    /// Calls of the kind of `clone`.
    Process,
    /// Calls of the kind of `mmap`.
    Map,
    /// Calls of the kind of `pipe`.
    Other,
}

impl Family {
    /// The name of the family in options and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Seek => "seek",
            Self::Copy => "copy",
            Self::Sync => "sync",
            Self::Resize => "resize",
            Self::Advise => "advise",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Attribute => "attribute",
            Self::Directory => "directory",
            Self::Descriptor => "descriptor",
            Self::Process => "process",
            Self::Map => "map",
            Self::Other => "other",
        }
    }
}

macro_rules! calls {
    ($($variant:ident $name:literal $family:ident,)*) => {
        /// A system call that concerns files, descriptors or processes. It has the kernel's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum CallKind {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl CallKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, as in the kernel.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it does.
            pub fn family(self) -> Family {
                match self { $(Self::$variant => Family::$family,)* }
            }

            /// The call of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

calls! {
    Open "open" Open,
    Openat "openat" Open,
    Openat2 "openat2" Open,
    Creat "creat" Open,
    Close "close" Close,
    CloseRange "close_range" Close,
    Read "read" Read,
    Readv "readv" Read,
    Pread64 "pread64" Read,
    Preadv "preadv" Read,
    Preadv2 "preadv2" Read,
    Write "write" Write,
    Writev "writev" Write,
    Pwrite64 "pwrite64" Write,
    Pwritev "pwritev" Write,
    Pwritev2 "pwritev2" Write,
    Lseek "lseek" Seek,
    Sendfile "sendfile" Copy,
    CopyFileRange "copy_file_range" Copy,
    Splice "splice" Copy,
    Tee "tee" Copy,
    Vmsplice "vmsplice" Copy,
    Fsync "fsync" Sync,
    Fdatasync "fdatasync" Sync,
    SyncFileRange "sync_file_range" Sync,
    Sync "sync" Sync,
    Syncfs "syncfs" Sync,
    Msync "msync" Sync,
    Truncate "truncate" Resize,
    Ftruncate "ftruncate" Resize,
    Fallocate "fallocate" Resize,
    Fadvise64 "fadvise64" Advise,
    Readahead "readahead" Advise,
    Flock "flock" Advise,
    Stat "stat" Stat,
    Lstat "lstat" Stat,
    Fstat "fstat" Stat,
    Newfstatat "newfstatat" Stat,
    Statx "statx" Stat,
    Access "access" Stat,
    Faccessat "faccessat" Stat,
    Faccessat2 "faccessat2" Stat,
    Readlink "readlink" Stat,
    Readlinkat "readlinkat" Stat,
    Statfs "statfs" Stat,
    Fstatfs "fstatfs" Stat,
    Getxattr "getxattr" Stat,
    Lgetxattr "lgetxattr" Stat,
    Fgetxattr "fgetxattr" Stat,
    Listxattr "listxattr" Stat,
    Llistxattr "llistxattr" Stat,
    Flistxattr "flistxattr" Stat,
    Getxattrat "getxattrat" Stat,
    Listxattrat "listxattrat" Stat,
    FileGetattr "file_getattr" Stat,
    NameToHandleAt "name_to_handle_at" Stat,
    Getdents "getdents" List,
    Getdents64 "getdents64" List,
    Mkdir "mkdir" Create,
    Mkdirat "mkdirat" Create,
    Mknod "mknod" Create,
    Mknodat "mknodat" Create,
    Symlink "symlink" Create,
    Symlinkat "symlinkat" Create,
    Link "link" Create,
    Linkat "linkat" Create,
    Unlink "unlink" Remove,
    Unlinkat "unlinkat" Remove,
    Rmdir "rmdir" Remove,
    Rename "rename" Rename,
    Renameat "renameat" Rename,
    Renameat2 "renameat2" Rename,
    Chmod "chmod" Attribute,
    Fchmod "fchmod" Attribute,
    Fchmodat "fchmodat" Attribute,
    Fchmodat2 "fchmodat2" Attribute,
    Chown "chown" Attribute,
    Lchown "lchown" Attribute,
    Fchown "fchown" Attribute,
    Fchownat "fchownat" Attribute,
    Utime "utime" Attribute,
    Utimes "utimes" Attribute,
    Utimensat "utimensat" Attribute,
    Futimesat "futimesat" Attribute,
    Setxattr "setxattr" Attribute,
    Lsetxattr "lsetxattr" Attribute,
    Fsetxattr "fsetxattr" Attribute,
    Removexattr "removexattr" Attribute,
    Lremovexattr "lremovexattr" Attribute,
    Fremovexattr "fremovexattr" Attribute,
    Setxattrat "setxattrat" Attribute,
    Removexattrat "removexattrat" Attribute,
    FileSetattr "file_setattr" Attribute,
    Chdir "chdir" Directory,
    Fchdir "fchdir" Directory,
    Getcwd "getcwd" Directory,
    Chroot "chroot" Directory,
    Umask "umask" Directory,
    Dup "dup" Descriptor,
    Dup2 "dup2" Descriptor,
    Dup3 "dup3" Descriptor,
    Fcntl "fcntl" Descriptor,
    Ioctl "ioctl" Descriptor,
    Clone "clone" Process,
    Clone3 "clone3" Process,
    Fork "fork" Process,
    Vfork "vfork" Process,
    Execve "execve" Process,
    Execveat "execveat" Process,
    Exit "exit" Process,
    ExitGroup "exit_group" Process,
    Wait4 "wait4" Process,
    Waitid "waitid" Process,
    Kill "kill" Process,
    Unshare "unshare" Process,
    Setns "setns" Process,
    Mmap "mmap" Map,
    Munmap "munmap" Map,
    Mremap "mremap" Map,
    Pipe "pipe" Other,
    Pipe2 "pipe2" Other,
    Socket "socket" Other,
    Socketpair "socketpair" Other,
    Accept "accept" Other,
    Accept4 "accept4" Other,
    Connect "connect" Other,
    Bind "bind" Other,
    Listen "listen" Other,
    Shutdown "shutdown" Other,
    Sendto "sendto" Other,
    Recvfrom "recvfrom" Other,
    Sendmsg "sendmsg" Other,
    Recvmsg "recvmsg" Other,
    Sendmmsg "sendmmsg" Other,
    Recvmmsg "recvmmsg" Other,
    Getsockname "getsockname" Other,
    Getpeername "getpeername" Other,
    Getsockopt "getsockopt" Other,
    Setsockopt "setsockopt" Other,
    Eventfd "eventfd" Other,
    Eventfd2 "eventfd2" Other,
    EpollCreate "epoll_create" Other,
    EpollCreate1 "epoll_create1" Other,
    TimerfdCreate "timerfd_create" Other,
    Signalfd "signalfd" Other,
    Signalfd4 "signalfd4" Other,
    MemfdCreate "memfd_create" Other,
    MemfdSecret "memfd_secret" Other,
    InotifyInit "inotify_init" Other,
    InotifyInit1 "inotify_init1" Other,
    InotifyAddWatch "inotify_add_watch" Other,
    FanotifyInit "fanotify_init" Other,
    PidfdOpen "pidfd_open" Other,
    PidfdGetfd "pidfd_getfd" Other,
    Userfaultfd "userfaultfd" Other,
    PerfEventOpen "perf_event_open" Other,
    Bpf "bpf" Other,
    OpenByHandleAt "open_by_handle_at" Other,
    OpenTree "open_tree" Other,
    OpenTreeAttr "open_tree_attr" Other,
    Fsopen "fsopen" Other,
    Fspick "fspick" Other,
    Fsmount "fsmount" Other,
    MoveMount "move_mount" Other,
    MountSetattr "mount_setattr" Other,
    Mount "mount" Other,
    Umount2 "umount2" Other,
    PivotRoot "pivot_root" Other,
    IoUringSetup "io_uring_setup" Other,
    IoUringEnter "io_uring_enter" Other,
    IoUringRegister "io_uring_register" Other,
    IoSetup "io_setup" Other,
    IoSubmit "io_submit" Other,
    IoGetevents "io_getevents" Other,
    MqOpen "mq_open" Other,
    LandlockCreateRuleset "landlock_create_ruleset" Other,
    Swapon "swapon" Other,
    Quotactl "quotactl" Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        for &kind in CallKind::ALL {
            assert_eq!(CallKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(CallKind::from_name("brk"), None);
    }
}
