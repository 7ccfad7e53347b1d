//! File formats: a module for each, and a line in [`FORMATS`].

pub mod alibaba;
pub mod biosnoop;
pub mod blkparse;
pub mod blktrace;
pub mod classic;
pub mod described;
pub mod etw;
pub mod fio_iolog;
pub mod fio_latency;
pub mod fiu;
pub(crate) mod format;
pub mod msr;
pub mod parquet;
mod perfetto;
pub mod spc;
mod support;
pub mod systor;
pub mod tencent;
pub mod tracepoints;
mod unknown;
pub mod vscsi;

use crate::error::{Error, Result};
pub use crate::events::Action;
use crate::io::input::Input;
pub use format::{CreateLoad, CreateRun, Format, OpenParts, Opened, Options, TestedWith};
pub(crate) use support::archives::unreadable;

/// All formats, in the order in which a file is checked for them: those with a magic number first.
pub const FORMATS: &[&Format] = &both::<{ BUILT_IN.len() + described::bundled::FORMATS.len() }>();

/// The formats with a reader of their own.
const BUILT_IN: &[&Format] = &[
    &parquet::FORMAT,
    &blktrace::FORMAT,
    &fio_iolog::FORMAT,
    &biosnoop::FORMAT,
    &blkparse::FORMAT,
    &blkparse::tracer::FORMAT,
    &tracepoints::FORMAT,
    &classic::FORMAT,
    &msr::FORMAT,
    &systor::FORMAT,
    &alibaba::FORMAT,
    &spc::FORMAT,
    &tencent::FORMAT,
    &fio_latency::FORMAT,
    &fiu::FORMAT,
    &etw::FORMAT,
    &vscsi::FORMAT,
    &perfetto::FORMAT,
];

/// The built-in formats, then those by description.
const fn both<const N: usize>() -> [&'static Format; N] {
    let mut all = [BUILT_IN[0]; N];
    let mut index = 1;
    while index < N {
        let built_in = BUILT_IN.len();
        all[index] = if index < built_in { BUILT_IN[index] } else { described::bundled::FORMATS[index - built_in] };
        index += 1;
    }
    all
}

/// The format with this name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

/// Recognises the format of a file by its content.
pub(crate) fn of_content(input: &Input) -> Result<&'static Format> {
    let head = input.head();
    let first = |fits: fn(&Format, &[u8]) -> bool| FORMATS.iter().copied().find(|format| fits(format, head));
    let found = first(|format, head| (format.recognise)(head));
    if let Some(format) = found.or_else(|| first(|format, head| (format.resembles)(head))) {
        return Ok(format);
    }
    Err(Error::format(input.path(), unknown::message(input, FORMATS)))
}
