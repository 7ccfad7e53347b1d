//! Discards by io_uring, depending on the kernel and the target.
#![allow(unsafe_code, reason = "passes commands to the kernel; each use states why they are sound")]

use std::io;

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};

/// `BLOCK_URING_CMD_DISCARD` of linux/blkdev.h, since Linux 6.12.
const DISCARD_COMMAND: u32 = 0x1200;

/// How a target is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardMethod {
    /// The block device's io_uring command.
    Command,
    /// `fallocate` that punches a hole in a file.
    PunchHole,
    /// A blocking system call in a helper thread.
    Helper,
}

impl DiscardMethod {
    /// The method for a block device that is registered as this file of the ring. The submission queue must be empty.
    ///
    /// # Errors
    /// If the submission fails.
    pub fn on_device(ring: &mut IoUring, file: u16) -> io::Result<Self> {
        Ok(if supports_discard_command(ring, file)? { Self::Command } else { Self::Helper })
    }
}

/// The discard command of a block device, always executed by a kernel worker (`IOSQE_ASYNC`).
///
/// Without this flag, the ring first tries the command without blocking. If this would block, because more requests are
/// in flight than the device's queue holds, Linux 6.12 to 6.18 and perhaps later repeat the command from its entry in the
/// submission queue, which by then contains another request: the discard fails with EINVAL, or discards another range or
/// nothing and reports success. With this flag, the command is copied at submission. Drivers without requests (zram) need
/// it too: for a non-blocking discard they report that they do not support discards.
pub fn command(target: u16, offset: u64, length: u64) -> squeue::Entry {
    let mut command = [0; 16];
    command[..8].copy_from_slice(&length.to_ne_bytes());
    opcode::UringCmd16::new(Fixed(u32::from(target)), DISCARD_COMMAND)
        .cmd(command)
        .addr(Some(offset))
        .build()
        .flags(squeue::Flags::ASYNC)
}

/// Whether the kernel supports the discard command on this block device. An empty discard fails with EINVAL if the command
/// is known, else with another error.
fn supports_discard_command(ring: &mut IoUring, file: u16) -> io::Result<bool> {
    // SAFETY: the command refers to no memory.
    unsafe { ring.submission().push(&command(file, 0, 0)) }.expect("nothing else is queued yet");
    loop {
        match ring.submit_and_wait(1) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(_) => {
                if let Some(cqe) = ring.completion().next() {
                    return Ok(cqe.result() == -libc::EINVAL);
                }
            }
        }
    }
}
