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

mod numbers;
mod part;
mod read;
mod record;
mod write;

use crate::formats::format::{Format, TriedOn};

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
    ..Format::named(numbers::NAME)
};

#[cfg(test)]
mod tests;
