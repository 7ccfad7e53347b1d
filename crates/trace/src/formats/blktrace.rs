//! Binary files of blktrace, one for each CPU: `NAME.blktrace.0`, `NAME.blktrace.1` and so on.
//!
//! ```text
//! version 7, 48 bytes:  u32 magic sequence  u64 time sector  u32 bytes action pid device cpu  u16 error pdu_len
//! version 8, 64 bytes:  u32 magic sequence  u64 time sector  u32 bytes pid  u64 action  u32 device cpu
//!                       u16 error pdu_len  12 bytes of padding
//! ```
//! in the byte order of the machine that wrote them, each followed by `pdu_len` bytes. Sources:
//! `include/uapi/linux/blktrace_api.h` and `kernel/trace/blktrace.c`; for version 7 also files of Linux 6.1.
//!
//! **Merge.** Each file is roughly in time order, because the kernel writes records under different locks. The next
//! `READ_AHEAD` (1024) records of each file are kept sorted, and the earliest record of all files is taken
//! first; the next record of its file is then read. So a record may be up to that many places late in its file. `blktrace
//! -o -` writes one file of all CPUs, a buffer of one CPU after that of another: see [`crate::events::Window`].
//!
//! **Losses.** Records other than notifications are numbered for each device and CPU, in the order of their file. A gap in
//! the numbers is the number of lost events. Kernels before the end of 2025 number a record only if it fits into the
//! buffer: a dropped one leaves no gap, and only blktrace itself reports it.

mod numbers;
mod part;
mod read;
mod record;
mod write;

use crate::formats::format::{Format, TestedWith};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "binary trace of blktrace",
    tested_with: TestedWith::RealFiles,
    extensions: &[".blktrace.0"],
    recognise: |head| record::layout(head).is_some(),
    has_actions: true,
    open: read::open_one,
    open_parts: Some(read::open),
    create_load: Some(write::create_load),
    ..Format::named(numbers::NAME)
};

#[cfg(test)]
mod tests;
