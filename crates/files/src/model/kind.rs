//! Which system calls are recorded: name, number, family and arguments of each, in one table.

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

/// The number of a call: `SYS_read` on every processor, `[SYS_open]` on x86-64 alone, 463 of newer kernels on every one, `-` if it is no
/// system call.
macro_rules! number {
    ([$number:ident]) => {{
        #[cfg(target_arch = "x86_64")]
        let number = Some(libc::$number as usize);
        #[cfg(not(target_arch = "x86_64"))]
        let number = None;
        number
    }};
    (-) => {
        None
    };
    ($number:ident) => {
        Some(libc::$number as usize)
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! calls {
    ($($variant:ident $name:literal $number:tt $family:ident $arguments:literal,)*) => {
        /// A system call that concerns files, descriptors or processes, with the kernel's name; or a page fault in a mapped
        /// file.
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

            /// Its number in the kernel; `None` if this kind of processor does not have it, or if it is no system call.
            pub fn number(self) -> Option<usize> {
                match self { $(Self::$variant => number!($number),)* }
            }

            /// What it does.
            pub fn family(self) -> Family {
                match self { $(Self::$variant => Family::$family,)* }
            }

            /// Its arguments, a letter for each: what the reader and the writer of strace text and the eBPF recorder make of
            /// them.
            ///
            /// | | | | |
            /// |---|---|---|---|
            /// | `d` | descriptor | `x` | descriptor, or -1 without a file |
            /// | `e` | second descriptor | `E` | second descriptor, often the largest number |
            /// | `a` | argument of `fcntl`: the second descriptor, if it is a number | `[` | pointer to two new descriptors |
            /// | `p`, `q` | path, second path | `N` | name of an extended attribute, as second path |
            /// | `t` | in text, target of a link, as second path | | |
            /// | `r` | path of a program | `R` | path that the call writes |
            /// | `u` | address of a socket, with its size: a Unix socket's name is the path | | |
            /// | `o` | offset | `P`, `Q` | pointer to the offset, to the second offset |
            /// | `l` | length | `v` | buffers, with their number in the next argument: their sum is the length |
            /// | `V` | message of buffers: in text, their sum is the length | | |
            /// | `f`, `O` | flags; those of opening | `A`, `F` | the mode among flags, and the others |
            /// | `m`, `X` | mode, protection of memory | `M` | mode, if the flags create a file |
            /// | `S` | structure that the call writes, with the mode | `H` | pointer to `struct open_how` |
            /// | `C` | flags of `clone`; in text, the stack comes first | `c` | pointer to `struct clone_args` |
            /// | `i` | request of `ioctl` | `I` | its argument: of requests that are replayed, what it points to |
            /// | `b`, `s`, `n`, `0` | not recorded: data, a structure, a null pointer, a number | `-` | not recorded, nor in text |
            pub fn arguments(self) -> &'static str {
                match self { $(Self::$variant => $arguments,)* }
            }

            /// The call of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

#[rustfmt::skip]
calls! {
    Open "open" [SYS_open] Open "pOM",
    Openat "openat" SYS_openat Open "dpOM",
    Openat2 "openat2" SYS_openat2 Open "dpH0",
    Creat "creat" [SYS_creat] Open "pm",
    Close "close" SYS_close Close "d",
    CloseRange "close_range" SYS_close_range Close "dEf",
    Read "read" SYS_read Read "dbl",
    Readv "readv" SYS_readv Read "dv0",
    Pread64 "pread64" SYS_pread64 Read "dblo",
    Preadv "preadv" SYS_preadv Read "dv0o",
    Preadv2 "preadv2" SYS_preadv2 Read "dv0o-f",
    Write "write" SYS_write Write "dbl",
    Writev "writev" SYS_writev Write "dv0",
    Pwrite64 "pwrite64" SYS_pwrite64 Write "dblo",
    Pwritev "pwritev" SYS_pwritev Write "dv0o",
    Pwritev2 "pwritev2" SYS_pwritev2 Write "dv0o-f",
    Lseek "lseek" SYS_lseek Seek "dof",
    Sendfile "sendfile" SYS_sendfile Copy "dePl",
    CopyFileRange "copy_file_range" SYS_copy_file_range Copy "dPeQlf",
    Splice "splice" SYS_splice Copy "dPeQlf",
    Tee "tee" SYS_tee Copy "delf",
    Vmsplice "vmsplice" SYS_vmsplice Copy "dv0f",
    Fsync "fsync" SYS_fsync Sync "d",
    Fdatasync "fdatasync" SYS_fdatasync Sync "d",
    SyncFileRange "sync_file_range" SYS_sync_file_range Sync "dolf",
    Sync "sync" SYS_sync Sync "",
    Syncfs "syncfs" SYS_syncfs Sync "d",
    Msync "msync" SYS_msync Sync "nlf",
    Truncate "truncate" SYS_truncate Resize "pl",
    Ftruncate "ftruncate" SYS_ftruncate Resize "dl",
    Fallocate "fallocate" SYS_fallocate Resize "dfol",
    Fadvise64 "fadvise64" SYS_fadvise64 Advise "dolf",
    Readahead "readahead" SYS_readahead Advise "dol",
    Flock "flock" SYS_flock Advise "df",
    Stat "stat" [SYS_stat] Stat "pS",
    Lstat "lstat" [SYS_lstat] Stat "pS",
    Fstat "fstat" SYS_fstat Stat "dS",
    Newfstatat "newfstatat" SYS_newfstatat Stat "dpSf",
    Statx "statx" SYS_statx Stat "dpf0S",
    Access "access" [SYS_access] Stat "pf",
    Faccessat "faccessat" SYS_faccessat Stat "dpf",
    Faccessat2 "faccessat2" SYS_faccessat2 Stat "dpAF",
    Readlink "readlink" [SYS_readlink] Stat "ptl",
    Readlinkat "readlinkat" SYS_readlinkat Stat "dptl",
    Statfs "statfs" SYS_statfs Stat "ps",
    Fstatfs "fstatfs" SYS_fstatfs Stat "ds",
    Getxattr "getxattr" SYS_getxattr Stat "pbbl",
    Lgetxattr "lgetxattr" SYS_lgetxattr Stat "pbbl",
    Fgetxattr "fgetxattr" SYS_fgetxattr Stat "dbbl",
    Listxattr "listxattr" SYS_listxattr Stat "pbl",
    Llistxattr "llistxattr" SYS_llistxattr Stat "pbl",
    Flistxattr "flistxattr" SYS_flistxattr Stat "dbl",
    Getxattrat "getxattrat" 464 Stat "dpfbs0",
    Listxattrat "listxattrat" 465 Stat "dpfb0",
    FileGetattr "file_getattr" 468 Stat "dps0f",
    NameToHandleAt "name_to_handle_at" SYS_name_to_handle_at Stat "dpssf",
    Getdents "getdents" [SYS_getdents] List "dbl",
    Getdents64 "getdents64" SYS_getdents64 List "dbl",
    Mkdir "mkdir" [SYS_mkdir] Create "pm",
    Mkdirat "mkdirat" SYS_mkdirat Create "dpm",
    Mknod "mknod" [SYS_mknod] Create "pm0",
    Mknodat "mknodat" SYS_mknodat Create "dpm0",
    Symlink "symlink" [SYS_symlink] Create "pq",
    Symlinkat "symlinkat" SYS_symlinkat Create "peq",
    Link "link" [SYS_link] Create "pq",
    Linkat "linkat" SYS_linkat Create "dpeqf",
    Unlink "unlink" [SYS_unlink] Remove "p",
    Unlinkat "unlinkat" SYS_unlinkat Remove "dpf",
    Rmdir "rmdir" [SYS_rmdir] Remove "p",
    Rename "rename" [SYS_rename] Rename "pq",
    Renameat "renameat" SYS_renameat Rename "dpeq",
    Renameat2 "renameat2" SYS_renameat2 Rename "dpeqf",
    Chmod "chmod" [SYS_chmod] Attribute "pm",
    Fchmod "fchmod" SYS_fchmod Attribute "dm",
    Fchmodat "fchmodat" SYS_fchmodat Attribute "dpm",
    // On every architecture; not every C library has its name.
    Fchmodat2 "fchmodat2" 452 Attribute "dpmf",
    Chown "chown" [SYS_chown] Attribute "p00",
    Lchown "lchown" [SYS_lchown] Attribute "p00",
    Fchown "fchown" SYS_fchown Attribute "d00",
    Fchownat "fchownat" SYS_fchownat Attribute "dp00f",
    Utime "utime" [SYS_utime] Attribute "ps",
    Utimes "utimes" [SYS_utimes] Attribute "ps",
    Utimensat "utimensat" SYS_utimensat Attribute "dpsf",
    Futimesat "futimesat" [SYS_futimesat] Attribute "dps",
    Setxattr "setxattr" SYS_setxattr Attribute "pNblf",
    Lsetxattr "lsetxattr" SYS_lsetxattr Attribute "pNblf",
    Fsetxattr "fsetxattr" SYS_fsetxattr Attribute "dNblf",
    Removexattr "removexattr" SYS_removexattr Attribute "pN",
    Lremovexattr "lremovexattr" SYS_lremovexattr Attribute "pN",
    Fremovexattr "fremovexattr" SYS_fremovexattr Attribute "dN",
    Setxattrat "setxattrat" 463 Attribute "dpfbs0",
    Removexattrat "removexattrat" 466 Attribute "dpfb",
    FileSetattr "file_setattr" 469 Attribute "dps0f",
    Chdir "chdir" SYS_chdir Directory "p",
    Fchdir "fchdir" SYS_fchdir Directory "d",
    Getcwd "getcwd" SYS_getcwd Directory "Rl",
    Chroot "chroot" SYS_chroot Directory "p",
    Umask "umask" SYS_umask Directory "m",
    Dup "dup" SYS_dup Descriptor "d",
    Dup2 "dup2" [SYS_dup2] Descriptor "de",
    Dup3 "dup3" SYS_dup3 Descriptor "def",
    Fcntl "fcntl" SYS_fcntl Descriptor "dfa",
    Ioctl "ioctl" SYS_ioctl Descriptor "diI",
    Clone "clone" SYS_clone Process "C",
    Clone3 "clone3" SYS_clone3 Process "c0",
    Fork "fork" [SYS_fork] Process "",
    Vfork "vfork" [SYS_vfork] Process "",
    Execve "execve" SYS_execve Process "rss",
    Execveat "execveat" SYS_execveat Process "drssf",
    Exit "exit" SYS_exit Process "0",
    ExitGroup "exit_group" SYS_exit_group Process "0",
    Wait4 "wait4" SYS_wait4 Process "0",
    Waitid "waitid" SYS_waitid Process "0",
    Kill "kill" SYS_kill Process "0",
    Unshare "unshare" SYS_unshare Process "f",
    Setns "setns" SYS_setns Process "df",
    Mmap "mmap" SYS_mmap Map "nlXfxo",
    Munmap "munmap" SYS_munmap Map "nl",
    Mremap "mremap" SYS_mremap Map "n0lf",
    PageFault "page_fault" - Map "polf",
    Pipe "pipe" [SYS_pipe] Other "[",
    Pipe2 "pipe2" SYS_pipe2 Other "[f",
    Socket "socket" SYS_socket Other "0f0",
    Socketpair "socketpair" SYS_socketpair Other "0f0[",
    Accept "accept" SYS_accept Other "ds",
    Accept4 "accept4" SYS_accept4 Other "dssf",
    Connect "connect" SYS_connect Other "ds",
    Bind "bind" SYS_bind Other "du0",
    Listen "listen" SYS_listen Other "d0",
    Shutdown "shutdown" SYS_shutdown Other "df",
    Sendto "sendto" SYS_sendto Other "dblfsn",
    Recvfrom "recvfrom" SYS_recvfrom Other "dblfsn",
    Sendmsg "sendmsg" SYS_sendmsg Other "dVf",
    Recvmsg "recvmsg" SYS_recvmsg Other "dVf",
    Sendmmsg "sendmmsg" SYS_sendmmsg Other "ds0f",
    Recvmmsg "recvmmsg" SYS_recvmmsg Other "ds0fn",
    Getsockname "getsockname" SYS_getsockname Other "ds",
    Getpeername "getpeername" SYS_getpeername Other "ds",
    Getsockopt "getsockopt" SYS_getsockopt Other "d00s0",
    Setsockopt "setsockopt" SYS_setsockopt Other "d00s0",
    Eventfd "eventfd" [SYS_eventfd] Other "0",
    Eventfd2 "eventfd2" SYS_eventfd2 Other "0f",
    EpollCreate "epoll_create" [SYS_epoll_create] Other "0",
    EpollCreate1 "epoll_create1" SYS_epoll_create1 Other "f",
    TimerfdCreate "timerfd_create" SYS_timerfd_create Other "0f",
    Signalfd "signalfd" [SYS_signalfd] Other "ds0",
    Signalfd4 "signalfd4" SYS_signalfd4 Other "ds0f",
    MemfdCreate "memfd_create" SYS_memfd_create Other "bf",
    MemfdSecret "memfd_secret" SYS_memfd_secret Other "f",
    InotifyInit "inotify_init" [SYS_inotify_init] Other "",
    InotifyInit1 "inotify_init1" SYS_inotify_init1 Other "f",
    InotifyAddWatch "inotify_add_watch" SYS_inotify_add_watch Other "dpf",
    FanotifyInit "fanotify_init" SYS_fanotify_init Other "0",
    PidfdOpen "pidfd_open" SYS_pidfd_open Other "0f",
    PidfdGetfd "pidfd_getfd" SYS_pidfd_getfd Other "def",
    Userfaultfd "userfaultfd" SYS_userfaultfd Other "f",
    PerfEventOpen "perf_event_open" SYS_perf_event_open Other "0",
    Bpf "bpf" SYS_bpf Other "0",
    OpenByHandleAt "open_by_handle_at" SYS_open_by_handle_at Other "dsf",
    OpenTree "open_tree" SYS_open_tree Other "dpf",
    OpenTreeAttr "open_tree_attr" 467 Other "dpfs0",
    Fsopen "fsopen" SYS_fsopen Other "bf",
    Fspick "fspick" SYS_fspick Other "dpf",
    Fsmount "fsmount" SYS_fsmount Other "df",
    MoveMount "move_mount" SYS_move_mount Other "dpeqf",
    MountSetattr "mount_setattr" SYS_mount_setattr Other "dpfs0",
    Mount "mount" SYS_mount Other "pqbfn",
    Umount2 "umount2" SYS_umount2 Other "pf",
    PivotRoot "pivot_root" SYS_pivot_root Other "pq",
    IoUringSetup "io_uring_setup" SYS_io_uring_setup Other "0",
    IoUringEnter "io_uring_enter" SYS_io_uring_enter Other "d",
    IoUringRegister "io_uring_register" SYS_io_uring_register Other "d",
    IoSetup "io_setup" SYS_io_setup Other "0",
    IoSubmit "io_submit" SYS_io_submit Other "0",
    IoGetevents "io_getevents" SYS_io_getevents Other "0",
    MqOpen "mq_open" SYS_mq_open Other "pOM",
    LandlockCreateRuleset "landlock_create_ruleset" SYS_landlock_create_ruleset Other "0",
    Swapon "swapon" SYS_swapon Other "p",
    Quotactl "quotactl" SYS_quotactl Other "0",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_half_has_the_families() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/iosonar/table/call_families.json");
        let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
        for kind in CallKind::ALL {
            match families.iter_mut().find(|(family, _)| *family == kind.family().name()) {
                Some((_, names)) => names.push(kind.name()),
                None => families.push((kind.family().name(), vec![kind.name()])),
            }
        }
        let lines = families.iter().map(|(family, names)| format!("  {family:?}: {names:?}"));
        let text = format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        let found = std::fs::read_to_string(file).unwrap_or_default();
        assert!(found == text, "call_families.json is out of date: run this test with UPDATE_DOCS=1");
    }

    #[test]
    fn names_are_found_again() {
        for &kind in CallKind::ALL {
            assert_eq!(CallKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(CallKind::from_name("brk"), None);
    }
}
