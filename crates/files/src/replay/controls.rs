//! Requests of `ioctl`: ranges of files that share their place.
#![allow(unsafe_code, reason = "system calls with pointers to structures, which outlive the call")]

use super::action::Action;
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};

/// `struct file_clone_range`.
#[repr(C)]
pub struct CloneRange {
    source: i64,
    source_offset: u64,
    source_length: u64,
    offset: u64,
}

/// `struct file_dedupe_range` with one destination.
#[repr(C)]
pub struct DedupeRange {
    offset: u64,
    length: u64,
    destinations: u16,
    reserved: [u16; 3],
    destination: i64,
    destination_offset: u64,
    deduplicated: u64,
    status: i32,
    reserved_of_destination: u32,
}

/// The argument of a request.
pub enum Argument {
    /// The descriptor of the source.
    Descriptor(i32),
    /// Ranges of the source and of the file.
    Clone(CloneRange),
    /// Ranges of the file and of the destination.
    Dedupe(DedupeRange),
}

impl Argument {
    /// That of a call; `fd2` is the descriptor in it. `None` for requests that are not replayed.
    pub fn of(action: &Action, fd2: i32) -> Option<Self> {
        let [offset, offset2] = [action.offset, action.offset2].map(|offset| offset.unwrap_or(0).cast_unsigned());
        match action.flags as u32 {
            FICLONE => Some(Self::Descriptor(fd2)),
            FICLONERANGE => Some(Self::Clone(CloneRange {
                source: fd2.into(),
                source_offset: offset2,
                source_length: action.length,
                offset,
            })),
            FIDEDUPERANGE => Some(Self::Dedupe(DedupeRange {
                offset,
                length: action.length,
                destinations: 1,
                reserved: [0; 3],
                destination: fd2.into(),
                destination_offset: offset2,
                deduplicated: 0,
                status: 0,
                reserved_of_destination: 0,
            })),
            _ => None,
        }
    }

    /// Issues the request on the descriptor `fd`. Sets `errno` if it returns -1.
    pub fn issue(&mut self, fd: i32) -> i64 {
        let result = match self {
            Self::Descriptor(source) => unsafe { libc::ioctl(fd, number_of(FICLONE), *source) },
            Self::Clone(range) => unsafe { libc::ioctl(fd, number_of(FICLONERANGE), &raw const *range) },
            Self::Dedupe(range) => unsafe { libc::ioctl(fd, number_of(FIDEDUPERANGE), &raw mut *range) },
        };
        result.into()
    }
}

/// The number of a request in the type of the C library: musl's is signed and has 32 bits.
#[allow(clippy::cast_lossless, clippy::cast_possible_wrap, reason = "all bits are kept in each of these types")]
const fn number_of(request: u32) -> libc::Ioctl {
    request as libc::Ioctl
}
