//! The classic text of blkreplay: `*.load.gz`, and its results, `*.replay.gz`.
//!
//! The format is described in the manual of blkreplay, chapters 4 and 6. What is a row is told by its beginning with a
//! digit and holding a `;`. Everything else is either text that belongs there or damage:
//!
//! - Text up to the first line of columns, or the first row, is the preamble.
//! - Later text is held back until it is known what follows: a line of columns makes it another preamble (files are
//!   often concatenated), a row makes it so many bad lines.
//! - A line that begins like a row and is none is always a bad line. Empty lines and comments (`#`) never are.
//! - In a result, text is what the replayer said; see `run`.

mod load;
mod preamble;
mod row;
mod run;
mod write;

use crate::error::Result;
use crate::formats::format::{Format, Opened, TriedOn};
use crate::io::input::Input;

use row::{Columns, Kind};
pub(crate) use write::create_load;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "text of blkreplay (sec.nsec ; sector ; length ; op ; delay ; duration)",
    tried_on: TriedOn::RealFiles,
    endings: &[".load", ".replay", ".txt"],
    recognise,
    open: |input, _| open(input),
    create_load: Some(write::create_load),
    create_run: Some(write::create_run),
    ..Format::named(preamble::NAME)
};

fn recognise(head: &[u8]) -> bool {
    lines(head).any(|kind| matches!(kind, Kind::Row(_) | Kind::LoadColumns | Kind::ResultColumns))
}

/// Whichever comes first, a row or a line of columns, decides what the file is.
fn open(input: Input) -> Result<Opened> {
    let first = lines(input.head()).find(|k| matches!(k, Kind::Row(_) | Kind::LoadColumns | Kind::ResultColumns));
    Ok(match first {
        Some(Kind::ResultColumns) => Opened::Run(Box::new(run::RunReader::new(input)?)),
        _ => Opened::Load(Box::new(load::LoadReader::new(input)?)),
    })
}

fn lines(head: &[u8]) -> impl Iterator<Item = Kind> {
    head.split(|&b| b == b'\n').map(|line| row::classify(line, Columns::Four))
}

#[cfg(test)]
mod tests;
