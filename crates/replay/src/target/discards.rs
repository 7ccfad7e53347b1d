//! How a ring gives a range of a target back to it: what the kernel can do there.
#![allow(unsafe_code, reason = "the kernel is handed commands; each use says why they are sound")]

use std::fs::File;
use std::io::{self, IoSliceMut};

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// `BLOCK_URING_CMD_DISCARD` of linux/blkdev.h, since Linux 6.12.
const DISCARD_COMMAND: u32 = 0x1200;
/// Behind the end of any device.
const BEHIND_ALL: u64 = 1 << 62;

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
    /// If the ring can't be asked.
    pub fn on_device(ring: &mut IoUring, device: &File, number: u16) -> io::Result<Self> {
        Ok(if can_refuse_to_wait(device) && knows_discard(ring, number)? { Self::Command } else { Self::Helper })
    }
}

/// A block device's own command.
pub fn command(target: u16, offset: u64, length: u64) -> squeue::Entry {
    let mut command = [0; 16];
    command[..8].copy_from_slice(&length.to_ne_bytes());
    opcode::UringCmd16::new(Fixed(u32::from(target)), DISCARD_COMMAND).cmd(command).addr(Some(offset)).build()
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

/// Whether a device refuses what it would have to wait for. The ring tries a discard that way first, and drivers without
/// requests (zram) fail it then as if they could not discard at all. Asked by reading where there is nothing.
fn can_refuse_to_wait(device: &File) -> bool {
    let mut byte = [0];
    let read = preadv2(device, &mut [IoSliceMut::new(&mut byte)], BEHIND_ALL, ReadWriteFlags::NOWAIT);
    read != Err(Errno::OPNOTSUPP)
}
