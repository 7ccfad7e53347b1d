//! How a ring gives a range of a target back to it: what the kernel can do there.
#![allow(unsafe_code, reason = "the kernel is handed commands; each use says why they are sound")]

use std::io;

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};

/// `BLOCK_URING_CMD_DISCARD` of linux/blkdev.h, since Linux 6.12.
const DISCARD_COMMAND: u32 = 0x1200;

/// How a range of a target is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discards {
    /// A block device's own command.
    Command,
    /// A hole in a file.
    Hole,
    /// By a system call that blocks.
    Helper,
}

impl Discards {
    /// On that block device, which is registered as the ring's file of that number. Nothing else may be queued yet.
    ///
    /// # Errors
    /// If the ring cannot be asked.
    pub fn on_device(ring: &mut IoUring, number: u16) -> io::Result<Self> {
        Ok(if knows_discard(ring, number)? { Self::Command } else { Self::Helper })
    }
}

/// A block device's own command, always handed to one of the kernel's workers.
///
/// Left to itself, the ring first tries the command without waiting. Where that would have to wait, because more are in
/// flight than the device's queue has requests, Linux 6.12 to 6.18 and perhaps later ones repeat it from the entry in the
/// submission queue, where another request stands by then: the discard fails with EINVAL, or another range is discarded, or
/// none, and it is called done. A command with this flag is copied at its submission. Drivers without requests (zram) also
/// need it: they fail what must not wait as if they could not discard at all.
pub fn command(target: u16, offset: u64, length: u64) -> squeue::Entry {
    let mut command = [0; 16];
    command[..8].copy_from_slice(&length.to_ne_bytes());
    opcode::UringCmd16::new(Fixed(u32::from(target)), DISCARD_COMMAND)
        .cmd(command)
        .addr(Some(offset))
        .build()
        .flags(squeue::Flags::ASYNC)
}

/// Whether the kernel discards by a command of the ring on that block device: asked by discarding nothing, which is wrong
/// for who knows the command, and unknown to who doesn't.
fn knows_discard(ring: &mut IoUring, target: u16) -> io::Result<bool> {
    // SAFETY: no memory is named.
    unsafe { ring.submission().push(&command(target, 0, 0)) }.expect("nothing else is queued yet");
    loop {
        match ring.submit_and_wait(1) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(_) => {
                if let Some(answer) = ring.completion().next() {
                    return Ok(answer.result() == -libc::EINVAL);
                }
            }
        }
    }
}
