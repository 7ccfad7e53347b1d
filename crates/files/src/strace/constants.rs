//! The values of the names that strace prints for flags and commands, as on x86-64.

use std::sync::LazyLock;

use super::lookup::Lookup;
use super::split::skip_comment;
use super::values::unsigned;
use crate::model::ioctl::REQUESTS;

/// A sum of flags: `O_RDWR|O_CREAT|0x800000`, `0x80000 /* O_CLOEXEC */`, `MFD_HUGETLB|21<<MFD_HUGE_SHIFT`. Each name that is
/// unknown is passed to `unknown`, and adds nothing.
pub fn flags(text: &[u8], mut unknown: impl FnMut(&[u8])) -> u64 {
    let mut sum = 0;
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"/*") {
            let Some(end) = skip_comment(rest, 0) else { return sum };
            rest = rest[end + 1..].trim_ascii_start();
        }
        rest = rest.strip_prefix(b"|").unwrap_or(rest).trim_ascii_start();
        if rest.is_empty() {
            return sum;
        }
        if rest.starts_with(b"/*") {
            continue;
        }
        let length = rest.iter().position(|&byte| matches!(byte, b'|' | b' ')).unwrap_or(rest.len());
        // Every turn consumes at least one byte: a blank or bar was removed above.
        let (term, behind) = rest.split_at(length.max(1));
        match value(term) {
            Some(value) => sum |= value,
            None => unknown(term),
        }
        rest = behind;
    }
}

/// The value of a name, a number, or a shift of one by the other.
fn value(term: &[u8]) -> Option<u64> {
    if term.first().is_some_and(u8::is_ascii_digit) {
        let (value, length) = unsigned(term)?;
        return match &term[length..] {
            b"" => Some(value),
            rest => value.checked_shl(u32::try_from(constant(rest.strip_prefix(b"<<")?)?).ok()?),
        };
    }
    if let Some(rest) = term.strip_prefix(b"~") {
        return value(rest).map(|value| !value);
    }
    constant(term)
}

pub fn constant(name: &[u8]) -> Option<u64> {
    static BY_NAME: LazyLock<Lookup<u64>> = LazyLock::new(|| {
        let requests = REQUESTS.iter().map(|(name, number, _)| (*name, u64::from(*number)));
        Lookup::new(requests.chain(CONSTANTS.iter().copied()))
    });
    BY_NAME.get(name)
}

#[rustfmt::skip]
const CONSTANTS: &[(&str, u64)] = &[
    ("AT_EACCESS", 0x200), ("AT_EMPTY_PATH", 0x1000), ("AT_HANDLE_FID", 0x200), ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_RECURSIVE", 0x8000), ("AT_REMOVEDIR", 0x200), ("AT_STATX_DONT_SYNC", 0x4000), ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_SYNC_AS_STAT", 0), ("AT_SYMLINK_FOLLOW", 0x400), ("AT_SYMLINK_NOFOLLOW", 0x100), ("BLKDISCARD", 0x1277),
    ("BLKFLSBUF", 0x1261), ("BLKGETSIZE", 0x1260), ("BLKGETSIZE64", 0x80081272), ("BLKPBSZGET", 0x127b),
    ("BLKSSZGET", 0x1268), ("BLKZEROOUT", 0x127f), ("BTRFS_IOC_CLONE", 0x40049409), ("BTRFS_IOC_CLONE_RANGE", 0x4020940d),
    ("CLONE_CHILD_CLEARTID", 0x200000), ("CLONE_CHILD_SETTID", 0x1000000), ("CLONE_CLEAR_SIGHAND", 0x100000000),
    ("CLONE_DETACHED", 0x400000), ("CLONE_FILES", 0x400), ("CLONE_FS", 0x200), ("CLONE_INTO_CGROUP", 0x200000000),
    ("CLONE_IO", 0x80000000), ("CLONE_NEWCGROUP", 0x2000000), ("CLONE_NEWIPC", 0x8000000), ("CLONE_NEWNET", 0x40000000),
    ("CLONE_NEWNS", 0x20000), ("CLONE_NEWPID", 0x20000000), ("CLONE_NEWTIME", 0x80), ("CLONE_NEWUSER", 0x10000000),
    ("CLONE_NEWUTS", 0x4000000), ("CLONE_PARENT", 0x8000), ("CLONE_PARENT_SETTID", 0x100000), ("CLONE_PIDFD", 0x1000),
    ("CLONE_PTRACE", 0x2000), ("CLONE_SETTLS", 0x80000), ("CLONE_SIGHAND", 0x800), ("CLONE_SYSVSEM", 0x40000),
    ("CLONE_THREAD", 0x10000), ("CLONE_UNTRACED", 0x800000), ("CLONE_VFORK", 0x4000), ("CLONE_VM", 0x100),
    ("CLOSE_RANGE_CLOEXEC", 4), ("CLOSE_RANGE_UNSHARE", 2), ("CSIGNAL", 0xff), ("EFD_CLOEXEC", 0x80000),
    ("EFD_NONBLOCK", 0x800), ("EFD_SEMAPHORE", 1), ("EPOLL_CLOEXEC", 0x80000), ("FALLOC_FL_COLLAPSE_RANGE", 8),
    ("FALLOC_FL_INSERT_RANGE", 0x20), ("FALLOC_FL_KEEP_SIZE", 1), ("FALLOC_FL_NO_HIDE_STALE", 4),
    ("FALLOC_FL_PUNCH_HOLE", 2), ("FALLOC_FL_UNSHARE_RANGE", 0x40), ("FALLOC_FL_WRITE_ZEROES", 0x80),
    ("FALLOC_FL_ZERO_RANGE", 0x10), ("FASYNC", 0x2000), ("FD_CLOEXEC", 1), ("FIDEDUPERANGE", 0xc0189436),
    ("FIFREEZE", 0xc0045877), ("FIOASYNC", 0x5452), ("FIOCLEX", 0x5451), ("FIONBIO", 0x5421), ("FIONCLEX", 0x5450),
    ("FIONREAD", 0x541b), ("FIOQSIZE", 0x5460), ("FITHAW", 0xc0045878), ("FITRIM", 0xc0185879), ("FSMOUNT_CLOEXEC", 1),
    ("FSOPEN_CLOEXEC", 1), ("FSPICK_CLOEXEC", 1), ("FSPICK_EMPTY_PATH", 8), ("FSPICK_NO_AUTOMOUNT", 4),
    ("FSPICK_SYMLINK_NOFOLLOW", 2), ("FS_IOC_FSGETXATTR", 0x801c581f), ("FS_IOC_GETFLAGS", 0x80086601),
    ("F_ADD_SEALS", 0x409), ("F_CANCELLK", 0x405), ("F_CREATED_QUERY", 0x404), ("F_DUPFD", 0), ("F_DUPFD_CLOEXEC", 0x406),
    ("F_DUPFD_QUERY", 0x403), ("F_GETFD", 1), ("F_GETFL", 3), ("F_GETLEASE", 0x401), ("F_GETLK", 5), ("F_GETLK64", 0xc),
    ("F_GETOWN", 9), ("F_GETOWNER_UIDS", 0x11), ("F_GETOWN_EX", 0x10), ("F_GETPIPE_SZ", 0x408), ("F_GETSIG", 0xb),
    ("F_GET_FILE_RW_HINT", 0x40d), ("F_GET_RW_HINT", 0x40b), ("F_GET_SEALS", 0x40a), ("F_NOTIFY", 0x402),
    ("F_OFD_GETLK", 0x24), ("F_OFD_SETLK", 0x25), ("F_OFD_SETLKW", 0x26), ("F_OK", 0), ("F_RDLCK", 0),
    ("F_SEAL_FUTURE_WRITE", 0x10), ("F_SEAL_GROW", 4), ("F_SEAL_SEAL", 1), ("F_SEAL_SHRINK", 2), ("F_SEAL_WRITE", 8),
    ("F_SETFD", 2), ("F_SETFL", 4), ("F_SETLEASE", 0x400), ("F_SETLK", 6), ("F_SETLK64", 0xd), ("F_SETLKW", 7),
    ("F_SETLKW64", 0xe), ("F_SETOWN", 8), ("F_SETOWN_EX", 0xf), ("F_SETPIPE_SZ", 0x407), ("F_SETSIG", 0xa),
    ("F_SET_FILE_RW_HINT", 0x40e), ("F_SET_RW_HINT", 0x40c), ("F_UNLCK", 2), ("F_WRLCK", 1), ("IN_ACCESS", 1),
    ("IN_ALL_EVENTS", 0xfff), ("IN_ATTRIB", 4), ("IN_CLOEXEC", 0x80000), ("IN_CLOSE", 0x18), ("IN_CLOSE_NOWRITE", 0x10),
    ("IN_CLOSE_WRITE", 8), ("IN_CREATE", 0x100), ("IN_DELETE", 0x200), ("IN_DELETE_SELF", 0x400),
    ("IN_DONT_FOLLOW", 0x2000000), ("IN_EXCL_UNLINK", 0x4000000), ("IN_ISDIR", 0x40000000), ("IN_MASK_ADD", 0x20000000),
    ("IN_MASK_CREATE", 0x10000000), ("IN_MODIFY", 2), ("IN_MOVE", 0xc0), ("IN_MOVED_FROM", 0x40), ("IN_MOVED_TO", 0x80),
    ("IN_MOVE_SELF", 0x800), ("IN_NONBLOCK", 0x800), ("IN_ONESHOT", 0x80000000), ("IN_ONLYDIR", 0x1000000),
    ("IN_OPEN", 0x20), ("LOCK_EX", 2), ("LOCK_MAND", 0x20), ("LOCK_NB", 4), ("LOCK_READ", 0x40), ("LOCK_RW", 0xc0),
    ("LOCK_SH", 1), ("LOCK_UN", 8), ("LOCK_WRITE", 0x80), ("MAP_32BIT", 0x40), ("MAP_ABOVE4G", 0x80), ("MAP_ANON", 0x20),
    ("MAP_ANONYMOUS", 0x20), ("MAP_DENYWRITE", 0x800), ("MAP_DROPPABLE", 8), ("MAP_EXECUTABLE", 0x1000), ("MAP_FILE", 0),
    ("MAP_FIXED", 0x10), ("MAP_FIXED_NOREPLACE", 0x100000), ("MAP_GROWSDOWN", 0x100), ("MAP_HUGETLB", 0x40000),
    ("MAP_HUGE_SHIFT", 0x1a), ("MAP_LOCKED", 0x2000), ("MAP_NONBLOCK", 0x10000), ("MAP_NORESERVE", 0x4000),
    ("MAP_POPULATE", 0x8000), ("MAP_PRIVATE", 2), ("MAP_SHARED", 1), ("MAP_SHARED_VALIDATE", 3), ("MAP_STACK", 0x20000),
    ("MAP_SYNC", 0x80000), ("MAP_UNINITIALIZED", 0x4000000), ("MFD_ALLOW_SEALING", 2), ("MFD_CLOEXEC", 1),
    ("MFD_EXEC", 0x10), ("MFD_HUGETLB", 4), ("MFD_HUGE_SHIFT", 0x1a), ("MFD_NOEXEC_SEAL", 8), ("MNT_DETACH", 2),
    ("MNT_EXPIRE", 4), ("MNT_FORCE", 1), ("MREMAP_DONTUNMAP", 4), ("MREMAP_FIXED", 2), ("MREMAP_MAYMOVE", 1),
    ("MSG_BATCH", 0x40000), ("MSG_CMSG_CLOEXEC", 0x40000000), ("MSG_CONFIRM", 0x800), ("MSG_CTRUNC", 8),
    ("MSG_DONTROUTE", 4), ("MSG_DONTWAIT", 0x40), ("MSG_EOR", 0x80), ("MSG_ERRQUEUE", 0x2000), ("MSG_FASTOPEN", 0x20000000),
    ("MSG_FIN", 0x200), ("MSG_MORE", 0x8000), ("MSG_NOSIGNAL", 0x4000), ("MSG_OOB", 1), ("MSG_PEEK", 2),
    ("MSG_PROBE", 0x10), ("MSG_RST", 0x1000), ("MSG_SENDPAGE_NOPOLICY", 0x10000), ("MSG_SYN", 0x400), ("MSG_TRUNC", 0x20),
    ("MSG_WAITALL", 0x100), ("MSG_WAITFORONE", 0x10000), ("MSG_ZEROCOPY", 0x4000000), ("MS_ASYNC", 1), ("MS_BIND", 0x1000),
    ("MS_DIRSYNC", 0x80), ("MS_INVALIDATE", 2), ("MS_I_VERSION", 0x800000), ("MS_KERNMOUNT", 0x400000),
    ("MS_LAZYTIME", 0x2000000), ("MS_MANDLOCK", 0x40), ("MS_MGC_VAL", 0xc0ed0000), ("MS_MOVE", 0x2000),
    ("MS_NOATIME", 0x400), ("MS_NODEV", 4), ("MS_NODIRATIME", 0x800), ("MS_NOEXEC", 8), ("MS_NOSUID", 2),
    ("MS_NOSYMFOLLOW", 0x100), ("MS_POSIXACL", 0x10000), ("MS_PRIVATE", 0x40000), ("MS_RDONLY", 1), ("MS_REC", 0x4000),
    ("MS_RELATIME", 0x200000), ("MS_REMOUNT", 0x20), ("MS_SHARED", 0x100000), ("MS_SILENT", 0x8000), ("MS_SLAVE", 0x80000),
    ("MS_STRICTATIME", 0x1000000), ("MS_SYNC", 4), ("MS_SYNCHRONOUS", 0x10), ("MS_UNBINDABLE", 0x20000),
    ("OPEN_TREE_CLOEXEC", 0x80000), ("OPEN_TREE_CLONE", 1), ("O_ACCMODE", 3), ("O_APPEND", 0x400), ("O_ASYNC", 0x2000),
    ("O_CLOEXEC", 0x80000), ("O_CREAT", 0x40), ("O_DIRECT", 0x4000), ("O_DIRECTORY", 0x10000), ("O_DSYNC", 0x1000),
    ("O_EXCL", 0x80), ("O_LARGEFILE", 0x8000), ("O_NDELAY", 0x800), ("O_NOATIME", 0x40000), ("O_NOCTTY", 0x100),
    ("O_NOFOLLOW", 0x20000), ("O_NONBLOCK", 0x800), ("O_PATH", 0x200000), ("O_RDONLY", 0), ("O_RDWR", 2),
    ("O_RSYNC", 0x101000), ("O_SYNC", 0x101000), ("O_TMPFILE", 0x410000), ("O_TRUNC", 0x200), ("O_WRONLY", 1),
    ("PIDFD_NONBLOCK", 0x800), ("PIDFD_THREAD", 0x80), ("POSIX_FADV_DONTNEED", 4), ("POSIX_FADV_NOREUSE", 5),
    ("POSIX_FADV_NORMAL", 0), ("POSIX_FADV_RANDOM", 1), ("POSIX_FADV_SEQUENTIAL", 2), ("POSIX_FADV_WILLNEED", 3),
    ("PROT_EXEC", 4), ("PROT_GROWSDOWN", 0x1000000), ("PROT_GROWSUP", 0x2000000), ("PROT_NONE", 0), ("PROT_READ", 1),
    ("PROT_SEM", 8), ("PROT_WRITE", 2), ("RENAME_EXCHANGE", 2), ("RENAME_NOREPLACE", 1), ("RENAME_WHITEOUT", 4),
    ("RESOLVE_BENEATH", 8), ("RESOLVE_CACHED", 0x20), ("RESOLVE_IN_ROOT", 0x10), ("RESOLVE_NO_MAGICLINKS", 2),
    ("RESOLVE_NO_SYMLINKS", 4), ("RESOLVE_NO_XDEV", 1), ("RWF_APPEND", 0x10), ("RWF_ATOMIC", 0x40), ("RWF_DONTCACHE", 0x80),
    ("RWF_DSYNC", 2), ("RWF_HIPRI", 1), ("RWF_NOAPPEND", 0x20), ("RWF_NOWAIT", 8), ("RWF_NOSIGNAL", 0x100), ("RWF_SYNC", 4),
    ("RWH_WRITE_LIFE_EXTREME", 5), ("RWH_WRITE_LIFE_LONG", 4), ("RWH_WRITE_LIFE_MEDIUM", 3), ("RWH_WRITE_LIFE_NONE", 1),
    ("RWH_WRITE_LIFE_NOT_SET", 0), ("RWH_WRITE_LIFE_SHORT", 2), ("R_OK", 4), ("SEEK_CUR", 1), ("SEEK_DATA", 3),
    ("SEEK_END", 2), ("SEEK_HOLE", 4), ("SEEK_SET", 0), ("SFD_CLOEXEC", 0x80000), ("SFD_NONBLOCK", 0x800), ("SHUT_RD", 0),
    ("SHUT_RDWR", 2), ("SHUT_WR", 1), ("SIGABRT", 6), ("SIGALRM", 0xe), ("SIGBUS", 7), ("SIGCHLD", 0x11), ("SIGCLD", 0x11),
    ("SIGCONT", 0x12), ("SIGFPE", 8), ("SIGHUP", 1), ("SIGILL", 4), ("SIGINT", 2), ("SIGIO", 0x1d), ("SIGKILL", 9),
    ("SIGPIPE", 0xd), ("SIGPOLL", 0x1d), ("SIGPROF", 0x1b), ("SIGPWR", 0x1e), ("SIGQUIT", 3), ("SIGSEGV", 0xb),
    ("SIGSTKFLT", 0x10), ("SIGSTOP", 0x13), ("SIGSYS", 0x1f), ("SIGTERM", 0xf), ("SIGTRAP", 5), ("SIGTSTP", 0x14),
    ("SIGTTIN", 0x15), ("SIGTTOU", 0x16), ("SIGURG", 0x17), ("SIGUSR1", 0xa), ("SIGUSR2", 0xc), ("SIGVTALRM", 0x1a),
    ("SIGWINCH", 0x1c), ("SIGXCPU", 0x18), ("SIGXFSZ", 0x19), ("SOCK_CLOEXEC", 0x80000), ("SOCK_DCCP", 6),
    ("SOCK_DGRAM", 2), ("SOCK_NONBLOCK", 0x800), ("SOCK_PACKET", 0xa), ("SOCK_RAW", 3), ("SOCK_RDM", 4),
    ("SOCK_SEQPACKET", 5), ("SOCK_STREAM", 1), ("SPLICE_F_GIFT", 8), ("SPLICE_F_MORE", 4), ("SPLICE_F_MOVE", 1),
    ("SPLICE_F_NONBLOCK", 2), ("SYNC_FILE_RANGE_WAIT_AFTER", 4), ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2), ("SYNC_FILE_RANGE_WRITE_AND_WAIT", 7), ("S_IFBLK", 0x6000), ("S_IFCHR", 0x2000),
    ("S_IFDIR", 0x4000), ("S_IFIFO", 0x1000), ("S_IFLNK", 0xa000), ("S_IFMT", 0xf000), ("S_IFREG", 0x8000),
    ("S_IFSOCK", 0xc000), ("S_IRGRP", 0x20), ("S_IROTH", 4), ("S_IRUSR", 0x100), ("S_IRWXG", 0x38), ("S_IRWXO", 7),
    ("S_IRWXU", 0x1c0), ("S_ISGID", 0x400), ("S_ISUID", 0x800), ("S_ISVTX", 0x200), ("S_IWGRP", 0x10), ("S_IWOTH", 2),
    ("S_IWUSR", 0x80), ("S_IXGRP", 8), ("S_IXOTH", 1), ("S_IXUSR", 0x40), ("TCGETS", 0x5401), ("TCSETS", 0x5402),
    ("TCSETSF", 0x5404), ("TCSETSW", 0x5403), ("TFD_CLOEXEC", 0x80000), ("TFD_NONBLOCK", 0x800), ("TIOCGPGRP", 0x540f),
    ("TIOCGWINSZ", 0x5413), ("TIOCSPGRP", 0x5410), ("TIOCSWINSZ", 0x5414), ("UFFD_USER_MODE_ONLY", 1),
    ("UMOUNT_NOFOLLOW", 8), ("W_OK", 2), ("XATTR_CREATE", 1), ("XATTR_REPLACE", 2), ("X_OK", 1), ("_IOC_NONE", 0),
    ("_IOC_READ", 2), ("_IOC_WRITE", 1), ("__O_SYNC", 0x100000), ("__O_TMPFILE", 0x400000),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str) -> (u64, Vec<String>) {
        let mut unknown = Vec::new();
        let sum = flags(text.as_bytes(), |name| unknown.push(String::from_utf8_lossy(name).into_owned()));
        (sum, unknown)
    }

    #[test]
    fn flags_are_added_up() {
        for (text, expected) in [
            ("O_RDONLY", 0),
            ("O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC", 0o2_001_102),
            ("O_RDWR|O_CREAT|0x800000", 0x80_0042),
            ("0x80000 /* O_RDONLY|O_CLOEXEC */", 0x8_0000),
            ("0x1200000 /* CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID */|17 /* SIGCHLD */", 0x120_0011),
            ("0", 0),
            ("0x8000", 0x8000),
            ("MFD_HUGETLB|21<<MFD_HUGE_SHIFT", 4 | 21 << 26),
            ("S_IFCHR|0666", 0o20666),
            ("0666", 0o666),
            ("", 0),
            ("SEEK_END", 2),
            ("0x10 /* FALLOC_FL_??? */", 0x10),
        ] {
            assert_eq!(sum(text), (expected, vec![]), "{text}");
        }
    }

    #[test]
    fn unknown_names_are_passed_on() {
        assert_eq!(sum("O_RDWR|O_NEW|0x"), (2, vec!["O_NEW".to_owned(), "0x".to_owned()]));
    }

    #[test]
    fn values_are_those_of_the_system() {
        if cfg!(target_arch = "x86_64") {
            assert_eq!(constant(b"O_DIRECT"), Some(libc::O_DIRECT as u64));
            assert_eq!(constant(b"O_TMPFILE"), Some(libc::O_TMPFILE as u64));
            assert_eq!(constant(b"CLONE_THREAD"), Some(libc::CLONE_THREAD as u64));
            assert_eq!(constant(b"F_DUPFD_CLOEXEC"), Some(libc::F_DUPFD_CLOEXEC as u64));
        }
    }
}
