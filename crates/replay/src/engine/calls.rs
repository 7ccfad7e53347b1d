//! Requests as blocking system calls, for the thread pool.
#![allow(unsafe_code, reason = "passes addresses to the kernel; each use states why they stay valid")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;

use iosonar_pacing::buffers::Arena;
use iosonar_trace::{Flags, Op};

use super::Io;

/// `BLKDISCARD` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = libc::_IO(0x12, 119);

/// An open target of the calls.
#[derive(Clone, Copy, Debug)]
pub struct OpenTarget {
    descriptor: RawFd,
    is_block: bool,
}

impl OpenTarget {
    /// Targets of these files, which must stay open while the targets are used.
    pub fn of(files: &[File]) -> io::Result<Vec<Self>> {
        let target = |file: &File| {
            Ok(Self { descriptor: file.as_raw_fd(), is_block: file.metadata()?.file_type().is_block_device() })
        };
        files.iter().map(target).collect()
    }

    /// Whether it is a block device.
    pub fn is_block(self) -> bool {
        self.is_block
    }
}

/// A request to be performed by another thread, with the address of its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// See [`Io::slot`].
    pub slot: u32,
    target: u16,
    op: Op,
    flags: Flags,
    offset: u64,
    length: u64,
    address: usize,
}

impl Call {
    /// A request whose buffer is in `arena`.
    pub fn new(io: &Io<'_>, arena: &Arena) -> Self {
        let Io { slot, target, op, flags, offset, length, .. } = *io;
        let address = io.buffer.map_or(0, |buffer| {
            assert!(length <= buffer.bytes(), "the request is longer than its buffer");
            arena.address(buffer) as usize
        });
        Self { slot, target, op, flags, offset, length, address }
    }

    /// Performs it. Returns the bytes transferred, 0 if the operation transfers none, or a negated error number.
    ///
    /// # Safety
    /// Until this returns, the buffer belongs to this call alone, and the files of `targets` are open.
    pub unsafe fn perform(&self, targets: &[OpenTarget]) -> i64 {
        // SAFETY: guaranteed by the caller.
        match unsafe { self.attempt(targets[usize::from(self.target)]) } {
            Ok(bytes) => bytes,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// # Safety
    /// As [`Call::perform`].
    unsafe fn attempt(&self, target: OpenTarget) -> io::Result<i64> {
        let OpenTarget { descriptor, is_block } = target;
        let (offset, length) = (self.offset as libc::off64_t, self.length as libc::off64_t);
        let data = libc::iovec { iov_base: self.address as *mut libc::c_void, iov_len: self.length as usize };
        // SAFETY (all calls): the descriptor is open. The addresses are those of the buffer or of local variables, and the
        // kernel uses them only until the call returns.
        match self.op {
            Op::Read => retry_interrupted(|| unsafe { libc::preadv(descriptor, &raw const data, 1, offset) as i64 }),
            Op::Write => {
                if self.flags.has(Flags::PREFLUSH) {
                    retry_interrupted(|| unsafe { libc::fdatasync(descriptor).into() })?;
                }
                let durable = if self.flags.has(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
                retry_interrupted(|| unsafe { libc::pwritev2(descriptor, &raw const data, 1, offset, durable) as i64 })
            }
            Op::Flush => retry_interrupted(|| unsafe { libc::fdatasync(descriptor).into() }),
            Op::Discard if is_block => {
                let range = [self.offset, self.length];
                retry_interrupted(|| unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()).into() })
            }
            Op::Discard => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                retry_interrupted(|| unsafe { libc::fallocate64(descriptor, mode, offset, length).into() })
            }
            Op::WriteZeroes => {
                let mode = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
                retry_interrupted(|| unsafe { libc::fallocate64(descriptor, mode, offset, length).into() })
            }
        }
    }
}

/// Repeats a call that a signal interrupted.
fn retry_interrupted(mut call: impl FnMut() -> i64) -> io::Result<i64> {
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
