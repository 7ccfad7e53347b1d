//! Requests of `ioctl`: ranges of files that share their place.
#![allow(unsafe_code, reason = "system calls with pointers to structures, which outlive the call")]

use std::io;

use super::action::Action;
use super::timed::{IssueClock, Issued, failed, timed};
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};

/// `struct file_clone_range`.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    source_length: u64,
    offset: u64,
}

/// `struct file_dedupe_range` with one destination.
#[repr(C)]
struct DedupeRange {
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

/// Issues a request on the descriptor `fd`; `fd2` is the one in its argument.
pub fn request(clock: IssueClock<'_>, action: &Action, fd: i32, fd2: i32) -> Issued {
    let [offset, offset2] = [action.offset, action.offset2].map(|offset| offset.unwrap_or(0).cast_unsigned());
    let request = action.flags as u32;
    let number = libc::c_ulong::from(request);
    match request {
        FICLONE => timed(clock, || unsafe { libc::ioctl(fd, number, fd2) }.into()),
        FICLONERANGE => {
            let range = CloneRange { source: fd2.into(), source_offset: offset2, source_length: action.length, offset };
            timed(clock, || unsafe { libc::ioctl(fd, number, &raw const range) }.into())
        }
        FIDEDUPERANGE => {
            let mut range = DedupeRange {
                offset,
                length: action.length,
                destinations: 1,
                reserved: [0; 3],
                destination: fd2.into(),
                destination_offset: offset2,
                deduplicated: 0,
                status: 0,
                reserved_of_destination: 0,
            };
            timed(clock, || unsafe { libc::ioctl(fd, number, &raw mut range) }.into())
        }
        // The plan has left it out.
        _ => failed(clock, &io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}
