//! The binary files of blktrace, one for each CPU: `NAME.blktrace.0`, `NAME.blktrace.1` and so on.
//!
//! ```text
//! version 7, 48 bytes:  u32 magic sequence  u64 time sector  u32 bytes action pid device cpu  u16 error pdu_len
//! version 8, 64 bytes:  u32 magic sequence  u64 time sector  u32 bytes pid  u64 action  u32 device cpu
//!                       u16 error pdu_len  12 bytes of padding
//! ```
//! in the byte order of the machine that wrote them, each followed by `pdu_len` bytes. From
//! `include/uapi/linux/blktrace_api.h` and `kernel/trace/blktrace.c`; version 7 was seen from Linux 6.1.
//!
//! **The merge.** Each file is roughly in the order of time: records are written under different locks. Of each file the
//! next [`AHEAD`] records are kept in order, and the earliest record of all files goes first; a file is read on whenever
//! one of its records has gone. So a record may stand up to that many places too late in its file. What `blktrace -o -`
//! writes is one file of all CPUs, a buffer of one behind that of another: see [`crate::events::Window`].
//!
//! **Losses.** Records other than notifications are numbered for each device and CPU, in the order in which they stand in
//! their file; a gap in the numbers is that many lost events. Kernels before the end of 2025 number only what finds room, so
//! that what they drop leaves no gap; only blktrace itself tells of it.

mod part;
mod read;
mod record;
mod write;

use crate::formats::{Format, TriedOn};
use crate::request::Flags;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "binary trace of blktrace",
    tried_on: TriedOn::RealFiles,
    endings: &[".blktrace.0"],
    recognise: |head| record::layout(head).is_some(),
    has_actions: true,
    open: read::open_one,
    open_parts: Some(read::open),
    create_load: Some(write::create_load),
    ..Format::named("blktrace")
};

/// Records of a file that are put in order before one of them goes.
const AHEAD: usize = 1024;

/// What all records begin with; the lowest byte is the version.
const MAGIC: u32 = 0x6561_7400;

/// The categories of an action, in the bits above the event's number.
mod category {
    pub const SHIFT: u32 = 16;
    pub const READ: u64 = 1;
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const QUEUE: u64 = 1 << 4;
    pub const ISSUE: u64 = 1 << 6;
    pub const COMPLETE: u64 = 1 << 7;
    pub const DRIVER_COMMAND: u64 = 1 << 9;
    pub const NOTIFY: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// Data, unlike what else is done to zones; these categories are known to version 8 only.
    pub const ZONE_APPEND: u64 = 1 << 16;
    /// Reset, reset of all, finish, open, close.
    pub const ZONE_MANAGEMENT: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;
    pub const WRITE_ZEROES: u64 = 1 << 22;
}

/// Which category says which flag.
const FLAGS: [(u64, Flags); 5] = [
    (category::SYNC, Flags::SYNC),
    (category::AHEAD, Flags::READAHEAD),
    (category::META, Flags::META),
    (category::FUA, Flags::FUA),
    (category::FLUSH, Flags::PREFLUSH),
];

/// The numbers of the events.
mod event {
    pub const QUEUE: u16 = 1;
    pub const GET_REQUEST: u16 = 4;
    pub const REQUEUE: u16 = 6;
    pub const ISSUE: u16 = 7;
    pub const COMPLETE: u16 = 8;
    pub const SPLIT: u16 = 11;
    pub const INSERT: u16 = 12;
    pub const REMAP: u16 = 15;
    /// Set beside the number if the record carries a control group.
    pub const CGROUP: u16 = 1 << 8;
}

/// The numbers of the notifications.
mod notification {
    pub const PROCESS: u16 = 0;
    pub const TIMESTAMP: u16 = 1;
    #[cfg(test)]
    pub const MESSAGE: u16 = 2;
}

/// A device's major and minor number share 32 bits.
const MINOR_BITS: u32 = 20;

#[cfg(test)]
mod tests;
