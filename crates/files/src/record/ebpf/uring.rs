//! Requests of io_uring as calls.

use iosonar_trace::Nanos;

use super::event::RawCall;
use crate::model::call::Call;
use crate::model::kind::{CallKind, Family};

/// An offset that means the position of the file.
const AT_POSITION: u64 = u64::MAX;

/// The call that does what a request does; `None` for requests that do not concern files.
fn kind(opcode: u16, is_at_position: bool) -> Option<CallKind> {
    use CallKind as K;
    Some(match (opcode, is_at_position) {
        (1 | 60, true) => K::Readv,
        (1 | 60, false) => K::Preadv,
        (2 | 61, true) => K::Writev,
        (2 | 61, false) => K::Pwritev,
        (4 | 22, true) => K::Read,
        (4 | 22, false) => K::Pread64,
        (5 | 23, true) => K::Write,
        (5 | 23, false) => K::Pwrite64,
        (3, _) => K::Fsync,
        (8, _) => K::SyncFileRange,
        (17, _) => K::Fallocate,
        (18, _) => K::Openat,
        (19, _) => K::Close,
        (21, _) => K::Statx,
        (24, _) => K::Fadvise64,
        (28, _) => K::Openat2,
        (30, _) => K::Splice,
        (35, _) => K::Renameat2,
        (36, _) => K::Unlinkat,
        (37, _) => K::Mkdirat,
        (38, _) => K::Symlinkat,
        (39, _) => K::Linkat,
        (41, _) => K::Fsetxattr,
        (42, _) => K::Setxattr,
        (55, _) => K::Ftruncate,
        _ => return None,
    })
}

/// The input of a splice is an index of registered files.
const SPLICE_F_FD_IN_FIXED: u64 = 1 << 31;

/// `IORING_FSYNC_DATASYNC`.
const DATASYNC: u64 = 1;

/// The request as a call with its arguments. [`RawCall::arguments`] are: descriptor, second descriptor, offset, length,
/// flags, mode; the first of [`RawCall::extra`] is not 0 if the descriptor is an index of registered files.
pub fn call(raw: &RawCall, opcode: u16) -> Option<Call> {
    let [fd, fd2, offset, length, flags, mode] = raw.arguments;
    let is_at_position = offset == AT_POSITION;
    let mut call = Call::new(Nanos::ZERO, raw.thread, kind(opcode, is_at_position)?);
    let is_registered = raw.extra[0] != 0;
    call.is_uring = true;
    call.fd = (!is_registered).then_some(fd as i32);
    call.flags = flags & 0xffff_ffff;
    let is_write = call.kind.family() == Family::Write;
    match call.kind {
        // Of the flags of reads and writes, those that say where a write goes make a difference.
        _ if (is_write || call.kind.family() == Family::Read) && call.flags != 0 => {
            call.kind = if is_write { CallKind::Pwritev2 } else { CallKind::Preadv2 };
            call.offset = Some(offset.cast_signed());
            call.length = known(length);
        }
        CallKind::Splice => {
            call.fd = (flags & SPLICE_F_FD_IN_FIXED == 0).then_some(fd as i32);
            call.fd2 = (!is_registered).then_some(fd2 as i32);
            call.offset = (!is_at_position).then_some(offset.cast_signed());
            call.offset2 = (mode != AT_POSITION).then_some(mode.cast_signed());
            call.length = Some(length);
        }
        CallKind::Read | CallKind::Readv | CallKind::Write | CallKind::Writev => call.length = known(length),
        CallKind::Pread64 | CallKind::Preadv | CallKind::Pwrite64 | CallKind::Pwritev => {
            call.offset = Some(offset.cast_signed());
            call.length = known(length);
        }
        CallKind::Fsync if flags & DATASYNC != 0 => {
            call.kind = CallKind::Fdatasync;
            call.flags = 0;
        }
        CallKind::SyncFileRange | CallKind::Fallocate | CallKind::Fadvise64 => {
            call.offset = Some(offset.cast_signed());
            call.length = Some(length);
        }
        CallKind::Ftruncate => call.length = Some(length),
        CallKind::Openat | CallKind::Openat2 => call.mode = (flags & libc::O_CREAT as u64 != 0).then_some(mode as u32),
        CallKind::Mkdirat => call.mode = Some(mode as u32),
        CallKind::Renameat2 | CallKind::Linkat => call.fd2 = Some(fd2 as i32),
        CallKind::Symlinkat => (call.fd, call.fd2) = (None, Some(fd2 as i32)),
        _ => {}
    }
    Some(call)
}

/// A length; the sum of buffers may be unknown.
fn known(length: u64) -> Option<u64> {
    (length != u64::MAX).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(arguments: [u64; 6]) -> RawCall {
        RawCall { arguments, ..RawCall::default() }
    }

    #[test]
    fn a_read_at_the_position_of_the_file_has_no_offset() {
        let at = call(&raw([3, 0, 4096, 512, 0, 0]), 22).unwrap();
        assert_eq!((at.kind, at.fd, at.offset, at.length), (CallKind::Pread64, Some(3), Some(4096), Some(512)));
        let next = call(&raw([3, 0, AT_POSITION, 512, 0, 0]), 22).unwrap();
        assert_eq!((next.kind, next.offset, next.length), (CallKind::Read, None, Some(512)));
        assert!(at.is_uring && next.is_uring);
    }

    #[test]
    fn an_index_of_registered_files_is_no_descriptor() {
        let registered = RawCall { extra: [1, 0], ..raw([0, 0, 0, 512, 0, 0]) };
        assert_eq!(call(&registered, 23).unwrap().fd, None);
    }

    #[test]
    fn requests_on_other_things_are_left_out() {
        assert_eq!(call(&raw([0; 6]), 11), None);
        assert_eq!(call(&raw([3, 0, 0, 0, DATASYNC, 0]), 3).unwrap().kind, CallKind::Fdatasync);
    }
}
