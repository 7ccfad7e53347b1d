//! Formats by description: TOML describes the rows of a trace (see [`keys`]), written by a user or in `bundled/`.
//!
//! Text is split into columns, or matched by a pattern; binary files have records. A trace with a line for the issue of a
//! request and another for its completion needs a reader of its own, as [`blkparse`](super::blkparse) has, which pairs them;
//! a description takes one of the two kinds of lines (`only`).

pub mod bundled;
mod columns;
mod request;
mod rows;

use std::sync::Arc;

pub use crate::description::command_line::{ColumnOptions, from_columns, toml_of};
use crate::description::values::Origin;
pub use crate::description::{Description, keys};
use crate::description::{Layout, Recognise};
use crate::error::{Error, Result};
use crate::formats::format::{Format, Opened};
use crate::io::input::Input;
use crate::model::request::Request;
use crate::model::units::Nanos;
use crate::rows::{InOrder, LineSource, Zero, first_row, metadata_of, recognise_rows, records};
use rows::Rows;

/// The format of files that are read by the description in [`Options`](super::Options); it has no name for `--from`.
pub const FORMAT: Format = Format {
    title: "described trace",
    open: |input, options| match &options.description {
        Some(description) => open(input, "described", description),
        None => Err(Error::format(input.path(), "it has no description; give --columns or --description")),
    },
    ..Format::named("described")
};

/// 1990 in nanoseconds since 1970. Times from here on count from 1970: no trace lasts twenty years.
const FROM_1970: Nanos = Nanos(631_152_000_000_000_000);

/// Lines in front of a heading by which a file is recognised.
const BEFORE_HEADING: usize = 5;

/// Opens a trace by its description.
pub(super) fn open(input: Input, name: &str, description: &Arc<Description>) -> Result<Opened> {
    let zero = match description.units.origin {
        Origin::Start | Origin::Before => Zero::TraceStart,
        Origin::Boot => Zero::Arbitrary,
        Origin::Since1970 | Origin::Since1601 => Zero::Unix,
        Origin::ByMagnitude => match first(input.head(), description) {
            Some(first) if first.at >= FROM_1970 => Zero::Unix,
            _ => Zero::TraceStart,
        },
    };
    let metadata = metadata_of(&input, name);
    let rows = Rows::new(description);
    let source = match description.layout {
        Layout::Records(bytes) => LineSource::of_records(input, bytes, rows),
        _ => LineSource::new(input, rows),
    };
    Ok(Opened::Load(Box::new(InOrder::new(source, metadata, zero)?)))
}

/// The first request of a file that begins with `head`.
fn first(head: &[u8], description: &Arc<Description>) -> Option<Request> {
    match description.layout {
        Layout::Records(bytes) => first_row(records(head, bytes), Rows::new(description)),
        _ => first_row(lines(head), Rows::new(description)),
    }
}

/// Whether a file that begins with `head` is of this format.
pub(super) fn recognises(head: &[u8], description: &Arc<Description>) -> bool {
    match (description.recognise, &description.layout) {
        (Recognise::Never, _) => false,
        (Recognise::Rows, Layout::Records(bytes)) => recognise_rows(records(head, *bytes), Rows::new(description)),
        (Recognise::Rows, _) => recognise_rows(lines(head), Rows::new(description)),
        (Recognise::Heading, _) => {
            let mut rows = Rows::new(description);
            lines(head).take(BEFORE_HEADING + 1).any(|line| rows.finds_heading(line))
        }
    }
}

/// The whole lines at the beginning of a file that are not blank, with the blanks at their ends.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memrchr(b'\n', head).unwrap_or(0);
    let lines = head[..end].split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests;
