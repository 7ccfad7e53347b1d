//! Requests as plain, blocking system calls: what a thread of a pool does with one.
#![allow(unsafe_code, reason = "the kernel is handed addresses; each use says why they stay valid")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;

use iosonar_trace::{Flags, Op};

use super::Io;
use crate::pipeline::buffers::Arena;

/// `BLKDISCARD` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);

/// What the kernel takes: where to work, and on what it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    descriptor: RawFd,
    is_block: bool,
}

impl Place {
    /// Of each of these files, which must stay open as long as it is used.
    pub fn of(files: &[File]) -> io::Result<Vec<Self>> {
        let place = |file: &File| {
            Ok(Self { descriptor: file.as_raw_fd(), is_block: file.metadata()?.file_type().is_block_device() })
        };
        files.iter().map(place).collect()
    }

    /// Whether it is a block device.
    pub fn is_block(self) -> bool {
        self.is_block
    }
}

/// A request that can be given to another thread: its buffer as an address.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// As in [`Io`].
    pub slot: u32,
    target: u16,
    op: Op,
    flags: Flags,
    offset: u64,
    length: u64,
    address: usize,
}

impl Call {
    /// Of a request whose buffer lies in `arena`.
    pub fn new(io: &Io<'_>, arena: &Arena) -> Self {
        let Io { slot, target, op, flags, offset, length, .. } = *io;
        let address = io.buffer.map_or(0, |buffer| {
            assert!(length <= buffer.bytes(), "the request is longer than its buffer");
            arena.address(buffer) as usize
        });
        Self { slot, target, op, flags, offset, length, address }
    }

    /// Does it. Returns the bytes that were moved, 0 where none are, or a negated error number.
    ///
    /// # Safety
    /// The buffer that it was made with belongs to this call alone until it returns, and `places` are open.
    pub unsafe fn perform(&self, places: &[Place]) -> i64 {
        // SAFETY: the caller's promise.
        match unsafe { self.attempt(places[usize::from(self.target)]) } {
            Ok(bytes) => bytes,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// # Safety
    /// As [`Call::perform`].
    unsafe fn attempt(&self, on: Place) -> io::Result<i64> {
        let Place { descriptor, is_block } = on;
        let (offset, length) = (self.offset as libc::off64_t, self.length as libc::off64_t);
        let data = libc::iovec { iov_base: self.address as *mut libc::c_void, iov_len: self.length as usize };
        // SAFETY (all calls): the descriptor is open; addresses are those of the buffer or of locals, and the kernel uses
        // them only until the call returns.
        match self.op {
            Op::Read => again(|| unsafe { libc::preadv(descriptor, &raw const data, 1, offset) as i64 }),
            Op::Write => {
                if self.flags.has(Flags::PREFLUSH) {
                    again(|| unsafe { libc::fdatasync(descriptor).into() })?;
                }
                let durable = if self.flags.has(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
                again(|| unsafe { libc::pwritev2(descriptor, &raw const data, 1, offset, durable) as i64 })
            }
            Op::Flush => again(|| unsafe { libc::fdatasync(descriptor).into() }),
            Op::Discard if is_block => {
                let range = [self.offset, self.length];
                again(|| unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()).into() })
            }
            Op::Discard => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                again(|| unsafe { libc::fallocate64(descriptor, mode, offset, length).into() })
            }
            Op::WriteZeroes => {
                let mode = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
                again(|| unsafe { libc::fallocate64(descriptor, mode, offset, length).into() })
            }
        }
    }
}

/// Repeats what a signal interrupted.
fn again(mut call: impl FnMut() -> i64) -> io::Result<i64> {
    loop {
        match call() {
            result @ 0.. => return Ok(result),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
