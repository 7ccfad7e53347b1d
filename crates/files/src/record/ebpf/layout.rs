//! Which argument of a system call is what.

use crate::model::call::Call;
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};
use crate::model::kind::CallKind;

/// The arguments of a call, one letter for each:
///
/// | | | | |
/// |---|---|---|---|
/// | `d` | descriptor | `D` | second descriptor |
/// | `p` | path | `P` | second path |
/// | `o` | offset | `i`, `I` | pointer to the offset, to the second offset |
/// | `l` | length | `v` | buffers, with their number in the next argument: their sum is the length |
/// | `f` | flags | `F` | more flags |
/// | `m` | mode | `c` | mode, if the flags create a file |
/// | `h` | pointer to `struct open_how` | `a` | pointer to `struct clone_args` |
/// | `x` | pointer to the two new descriptors | `r` | where the call writes the path |
/// | `n` | number of `fcntl` | `e` | path of a program |
/// | `t` | argument of `ioctl`: of those requests that are replayed, what it is or points to | | |
/// | `y` | where the call writes a `struct stat` or `statx`: its mode | | |
/// | `s` | address of a socket, with its bytes in the next argument: a Unix socket's name is the path | `_` | not recorded |
pub fn layout(kind: CallKind) -> &'static str {
    use CallKind as K;
    match kind {
        K::Open => "pfc",
        K::Openat => "dpfc",
        K::Openat2 => "dph_",
        K::Creat => "pm",
        K::CloseRange => "dDf",
        K::Read | K::Write | K::Getdents | K::Getdents64 => "d_l",
        K::Readv | K::Writev => "dv_",
        K::Pread64 | K::Pwrite64 => "d_lo",
        K::Preadv | K::Pwritev => "dv_o",
        K::Preadv2 | K::Pwritev2 => "dv_o_f",
        K::Lseek => "dof",
        K::Sendfile => "dDil",
        K::CopyFileRange | K::Splice => "diDIlf",
        K::Tee => "dDlf",
        K::Vmsplice => "dv_f",
        K::SyncFileRange => "dolf",
        K::Msync => "_lf",
        K::Truncate => "pl",
        K::Ftruncate => "dl",
        K::Fallocate => "dfol",
        K::Fadvise64 => "dolf",
        K::Readahead => "dol",
        K::Flock => "df",
        K::Access => "pf",
        K::Stat | K::Lstat => "py",
        K::Fstat => "dy",
        K::Newfstatat => "dpyf",
        K::Statx => "dpf_y",
        K::Faccessat => "dpf",
        K::Faccessat2 => "dpfF",
        K::Readlink => "p_l",
        K::Readlinkat => "dp_l",
        K::Getxattr | K::Lgetxattr => "p__l",
        K::Fgetxattr => "d__l",
        K::Listxattr | K::Llistxattr => "p_l",
        K::Flistxattr => "d_l",
        K::Setxattr | K::Lsetxattr => "pP_lf",
        K::Fsetxattr => "dP_lf",
        K::Removexattr | K::Lremovexattr => "pP",
        K::Fremovexattr => "dP",
        K::Statfs
        | K::Unlink
        | K::Rmdir
        | K::Chown
        | K::Lchown
        | K::Utime
        | K::Utimes
        | K::Chdir
        | K::Chroot
        | K::Swapon => "p",
        K::NameToHandleAt | K::FileGetattr | K::FileSetattr => "dp__f",
        K::Setxattrat | K::Getxattrat | K::Listxattrat | K::Removexattrat | K::OpenTreeAttr | K::MountSetattr => "dpf",
        K::Mkdir | K::Mknod | K::Chmod => "pm",
        K::Mkdirat | K::Mknodat | K::Fchmodat => "dpm",
        K::Fchmodat2 => "dpmf",
        K::Fchmod => "dm",
        K::Symlink | K::Link | K::Rename | K::PivotRoot => "pP",
        K::Symlinkat => "pDP",
        K::Linkat | K::Renameat2 | K::MoveMount => "dpDPf",
        K::Renameat => "dpDP",
        K::Unlinkat => "dpf",
        K::Fchownat => "dp__f",
        K::Utimensat => "dp_f",
        K::Futimesat => "dp",
        K::Getcwd => "rl",
        K::Umask => "m",
        K::Dup2 => "dD",
        K::Dup3 => "dDf",
        K::Fcntl => "dfn",
        K::Ioctl => "dft",
        K::Clone | K::Unshare => "f",
        K::Clone3 => "a",
        K::Execve => "e",
        K::Execveat => "de__f",
        K::Setns => "df",
        K::Mmap => "_lmfdo",
        K::Pipe => "x",
        K::Pipe2 => "xf",
        K::Bind => "ds_",
        K::Socket => "_f",
        K::Socketpair => "_f_x",
        K::Accept4 => "d__f",
        K::Sendto | K::Recvfrom => "d_lf",
        K::Sendmsg | K::Recvmsg => "d_f",
        K::Sendmmsg | K::Recvmmsg => "d__f",
        K::Eventfd2 | K::TimerfdCreate | K::MemfdCreate | K::PidfdOpen | K::Fsopen => "_f",
        K::EpollCreate1 | K::InotifyInit1 | K::FanotifyInit | K::Userfaultfd | K::MemfdSecret => "f",
        K::Signalfd4 => "d__f",
        K::InotifyAddWatch | K::OpenTree | K::Fspick => "dpf",
        K::PidfdGetfd => "dDf",
        K::PerfEventOpen => "___df",
        K::OpenByHandleAt => "d_f",
        K::Mount => "pP_f",
        K::Umount2 => "pf",
        K::MqOpen => "pfc",
        K::Close
        | K::Fsync
        | K::Fdatasync
        | K::Syncfs
        | K::Fstatfs
        | K::Fchown
        | K::Fchdir
        | K::Dup
        | K::Accept
        | K::Connect
        | K::Listen
        | K::Shutdown
        | K::Getsockname
        | K::Getpeername
        | K::Getsockopt
        | K::Setsockopt
        | K::Signalfd
        | K::Fsmount
        | K::IoUringEnter
        | K::IoUringRegister => "d",
        K::Sync
        | K::Fork
        | K::Vfork
        | K::Exit
        | K::ExitGroup
        | K::Wait4
        | K::Waitid
        | K::Kill
        | K::Munmap
        | K::Mremap
        | K::Eventfd
        | K::EpollCreate
        | K::InotifyInit
        | K::Bpf
        | K::IoUringSetup
        | K::IoSetup
        | K::IoSubmit
        | K::IoGetevents
        | K::LandlockCreateRuleset
        | K::Quotactl => "",
    }
}

/// Whether calls of this kind are recorded. Mapped memory is a blind spot: what unmaps it says nothing about files.
pub fn is_recorded(kind: CallKind) -> bool {
    !matches!(kind, CallKind::Munmap | CallKind::Mremap)
}

/// What the eBPF program does for a call beyond its arguments: an element of its `what_of`.
#[cfg_attr(not(has_bpf), allow(dead_code, reason = "only the eBPF program reads them"))]
pub fn instructions(kind: CallKind) -> u16 {
    if !is_recorded(kind) {
        return 0;
    }
    let mut instructions = 1;
    for (index, letter) in layout(kind).bytes().enumerate() {
        let position = index as u16 + 1;
        let extra = match (letter, index) {
            (b'v', _) => 1,
            (b'h', _) => 2,
            (b'a', _) => 3,
            (b'i', 1) => 4,
            (b'i', 2) => 5,
            (b'x', 0) => 6,
            (b'x', 3) => 7,
            (b'e', _) => 9,
            (b'r', _) => 10,
            (b's', _) => 11,
            (b't', _) => 12,
            (b'y', 1) => 13,
            (b'y', 2) => 14,
            (b'y', 4) => 15,
            _ => 0,
        };
        match letter {
            b'p' | b'e' => instructions |= position << 4,
            b'P' => instructions |= position << 8,
            _ => {}
        }
        instructions |= extra << 12;
    }
    if kind == CallKind::Mmap {
        instructions |= 8 << 12;
    }
    instructions
}

/// The `extra` of something that could not be read.
const UNKNOWN: u64 = u64::MAX;

/// Sets the arguments of a call from the registers, and from what they point to.
pub fn set_arguments(call: &mut Call, arguments: &[u64; 6], extra: [u64; 2]) {
    let known = (extra[0] != UNKNOWN).then_some(extra[0]);
    for (letter, &value) in layout(call.kind).bytes().zip(arguments) {
        let number = value as i32;
        match letter {
            b'd' => call.fd = Some(number),
            b'D' if call.kind == CallKind::CloseRange => {
                call.fd2 = Some(i32::try_from(value as u32).unwrap_or(i32::MAX));
            }
            b'D' => call.fd2 = Some(number),
            b'o' => call.offset = Some(value.cast_signed()),
            b'i' => call.offset = known.map(u64::cast_signed),
            b'I' => call.offset2 = (extra[1] != UNKNOWN).then_some(extra[1].cast_signed()),
            b'l' => call.length = Some(value),
            b'v' => call.length = known,
            b'f' => call.flags = flags(call.kind, value),
            b'F' => call.flags |= u64::from(value as u32),
            b'm' => call.mode = Some(value as u32),
            b'c' if creates(call.flags) => call.mode = Some(value as u32),
            b'h' => {
                call.flags = known.unwrap_or(0);
                call.mode = (known.is_some() && creates(call.flags)).then_some(extra[1] as u32);
                call.offset = known.map(|_| arguments[2].cast_signed());
            }
            b'y' if call.succeeded() => call.mode = known.map(|mode| mode as u32),
            b't' => set_ioctl_argument(call, arguments, extra),
            b'a' => call.flags = known.unwrap_or(0),
            b'n' if takes_number(call.flags) => call.fd2 = Some(number),
            b'x' if call.succeeded() => {
                call.fd = Some(extra[0] as i32);
                call.fd2 = Some((extra[0] >> 32) as i32);
            }
            _ => {}
        }
    }
}

/// The argument of a request that is replayed. The recorder puts what it points to into the arguments from it on; of
/// `FIDEDUPERANGE` the numbers, of which only one has a meaning, are left out.
fn set_ioctl_argument(call: &mut Call, arguments: &[u64; 6], extra: [u64; 2]) {
    let [_, _, first, second, third, fourth] = *arguments;
    let is_known = extra[1] != UNKNOWN;
    match call.flags as u32 {
        FICLONE => call.fd2 = Some(first as i32),
        FICLONERANGE if is_known => {
            call.fd2 = Some(first as i32);
            call.offset2 = Some(second.cast_signed());
            call.length = Some(third);
            call.offset = Some(fourth.cast_signed());
        }
        FIDEDUPERANGE if is_known => {
            call.offset = Some(first.cast_signed());
            call.length = Some(second);
            call.fd2 = Some(fourth as i32);
            call.offset2 = Some(extra[0].cast_signed());
        }
        _ => {}
    }
}

/// Flags are 32 bits wide, apart from those of `clone`.
fn flags(kind: CallKind, value: u64) -> u64 {
    match kind {
        CallKind::Clone | CallKind::Unshare => value,
        _ => u64::from(value as u32),
    }
}

/// Whether opening with these flags may create a file, and so uses its mode.
fn creates(flags: u64) -> bool {
    let tmpfile = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;
    flags & (libc::O_CREAT as u64 | tmpfile) != 0
}

/// Whether the argument of this command of `fcntl` is a number.
fn takes_number(command: u64) -> bool {
    use libc::{F_ADD_SEALS, F_DUPFD, F_DUPFD_CLOEXEC, F_NOTIFY, F_SETFD, F_SETFL, F_SETLEASE, F_SETOWN, F_SETPIPE_SZ};
    const F_SETSIG: i32 = 10;
    let commands = [
        F_DUPFD,
        F_DUPFD_CLOEXEC,
        F_SETFD,
        F_SETFL,
        F_SETOWN,
        F_SETSIG,
        F_SETLEASE,
        F_NOTIFY,
        F_SETPIPE_SZ,
        F_ADD_SEALS,
    ];
    commands.contains(&(command as i32))
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::*;

    fn call(kind: CallKind, arguments: [u64; 6], extra: [u64; 2]) -> Call {
        let mut call = Call::new(Nanos::ZERO, 1, kind);
        set_arguments(&mut call, &arguments, extra);
        call
    }

    #[test]
    fn no_call_has_over_six_arguments_and_each_letter_is_known() {
        for &kind in CallKind::ALL {
            let letters = layout(kind);
            assert!(letters.len() <= 6, "{}", kind.name());
            assert!(letters.bytes().all(|letter| b"dDpPoiIlvfFmchaxrnesty_".contains(&letter)), "{}", kind.name());
            // The eBPF program reads paths from the first five.
            assert!(letters.bytes().take(5).filter(|letter| b"pPe".contains(letter)).count() <= 2);
        }
    }

    #[test]
    fn the_mode_of_open_counts_only_if_it_creates() {
        let with = |flags: i32| call(CallKind::Openat, [AT_FDCWD, 0, flags as u64, 0o644, 0, 0], [0; 2]);
        const AT_FDCWD: u64 = -100_i64 as u64;
        assert_eq!((with(libc::O_RDONLY).fd, with(libc::O_RDONLY).mode), (Some(-100), None));
        assert_eq!(with(libc::O_CREAT | libc::O_WRONLY).mode, Some(0o644));
        assert_eq!(with(libc::O_DIRECTORY).mode, None);
        assert_eq!(with(libc::O_TMPFILE | libc::O_RDWR).mode, Some(0o644));
    }

    #[test]
    fn what_arguments_point_to_is_in_the_extra_numbers() {
        assert_eq!(call(CallKind::Writev, [3, 0, 2, 0, 0, 0], [8192, 0]).length, Some(8192));
        assert_eq!(call(CallKind::Writev, [3, 0, 2, 0, 0, 0], [UNKNOWN, UNKNOWN]).length, None);
        let pipe = call(CallKind::Pipe2, [0, 0o2000000, 0, 0, 0, 0], [4 << 32 | 3, 0]);
        assert_eq!((pipe.fd, pipe.fd2, pipe.flags), (Some(3), Some(4), 0o2000000));
        let copy = call(CallKind::CopyFileRange, [3, 1, 4, 1, 100, 0], [512, UNKNOWN]);
        assert_eq!((copy.fd, copy.fd2, copy.offset, copy.length), (Some(3), Some(4), Some(512), Some(100)));
        assert_eq!(copy.offset2, None);
        let copy = call(CallKind::CopyFileRange, [3, 0, 4, 1, 100, 0], [UNKNOWN, 4096]);
        assert_eq!((copy.offset, copy.offset2), (None, Some(4096)));
        let all = call(CallKind::CloseRange, [3, u64::from(u32::MAX), 0, 0, 0, 0], [0; 2]);
        assert_eq!((all.fd, all.fd2), (Some(3), Some(i32::MAX)));
        let dup = call(CallKind::Fcntl, [3, libc::F_DUPFD as u64, 10, 0, 0, 0], [0; 2]);
        assert_eq!((dup.flags, dup.fd2), (0, Some(10)));
        assert_eq!(call(CallKind::Fcntl, [3, libc::F_GETFL as u64, 77, 0, 0, 0], [0; 2]).fd2, None);
    }
}
