//! What the eBPF program and its reader make of the arguments of a system call ([`CallKind::arguments`]).

use crate::model::call::Call;
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};
use crate::model::kind::CallKind;

/// Whether calls of this kind are recorded: what unmaps memory says nothing about files, and a page fault is no call.
pub fn is_recorded(kind: CallKind) -> bool {
    !matches!(kind, CallKind::Munmap | CallKind::Mremap | CallKind::PageFault)
}

/// What the eBPF program does for a call beyond its arguments: an element of its `what_of`.
#[cfg_attr(not(has_bpf), allow(dead_code, reason = "only the eBPF program reads them"))]
pub fn instructions(kind: CallKind) -> u16 {
    if !is_recorded(kind) {
        return 0;
    }
    let mut instructions = 1;
    for (index, letter) in kind.arguments().bytes().enumerate() {
        let position = index as u16 + 1;
        let extra = match (letter, index) {
            (b'v', _) => 1,
            (b'H', _) => 2,
            (b'c', _) => 3,
            (b'P', 1) => 4,
            (b'P', 2) => 5,
            (b'[', 0) => 6,
            (b'[', 3) => 7,
            (b'r', _) => 9,
            (b'R', _) => 10,
            (b'u', _) => 11,
            (b'I', _) => 12,
            (b'S', 1) => 13,
            (b'S', 2) => 14,
            (b'S', 4) => 15,
            _ => 0,
        };
        match letter {
            b'p' | b'r' => instructions |= position << 4,
            b'q' | b'N' => instructions |= position << 8,
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
    for (letter, &value) in call.kind.arguments().bytes().zip(arguments) {
        let number = value as i32;
        match letter {
            b'd' | b'x' => call.fd = Some(number),
            b'e' => call.fd2 = Some(number),
            b'E' => call.fd2 = Some(i32::try_from(value as u32).unwrap_or(i32::MAX)),
            b'o' => call.offset = Some(value.cast_signed()),
            b'P' => call.offset = known.map(u64::cast_signed),
            b'Q' => call.offset2 = (extra[1] != UNKNOWN).then_some(extra[1].cast_signed()),
            b'l' => call.length = Some(value),
            b'v' => call.length = known,
            b'f' | b'O' | b'A' | b'C' | b'i' => call.flags = flags(call.kind, value),
            b'F' => call.flags |= u64::from(value as u32),
            b'm' | b'X' => call.mode = Some(value as u32),
            b'M' if creates(call.flags) => call.mode = Some(value as u32),
            b'H' => {
                call.flags = known.unwrap_or(0);
                call.mode = (known.is_some() && creates(call.flags)).then_some(extra[1] as u32);
                call.offset = known.map(|_| arguments[2].cast_signed());
            }
            b'S' if call.succeeded() => call.mode = known.map(|mode| mode as u32),
            b'I' => set_ioctl_argument(call, arguments, extra),
            b'c' => call.flags = known.unwrap_or(0),
            b'a' if takes_number(call.flags) => call.fd2 = Some(number),
            b'[' if call.succeeded() => {
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
            let letters = kind.arguments();
            assert!(letters.len() <= 6, "{}", kind.name());
            assert!(
                letters.bytes().all(|letter| b"dxeEa[pqNtrRuoPQlvVfOAFmXMSHCciIbsn0-".contains(&letter)),
                "{}",
                kind.name()
            );
            // The eBPF program reads paths from the first five.
            assert!(letters.bytes().take(5).filter(|letter| b"pqNr".contains(letter)).count() <= 2);
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
