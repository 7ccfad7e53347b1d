//! Classic text of blkreplay: loads (`*.load.gz`) and results (`*.replay.gz`).
//!
//! The format is described in the manual of blkreplay, chapters 4 and 6. A row begins with a digit and contains a `;`.
//! Other lines are text or damage:
//!
//! - Text before the first line of column names or the first row is the preamble.
//! - Later text is pending until the next such line: column names make it another preamble (files are often
//!   concatenated), a row makes its lines bad.
//! - A line that begins like a row but is not one is a bad line. Empty lines and comments (`#`) never are.
//! - What a load lacks is in a comment; see `lost`.
//! - In a result, text is messages of the replayer; see `messages`. What the six columns do not hold is in a seventh and in
//!   comments; see `details` and `comments`.

mod comments;
mod details;
mod load;
mod load_comment;
mod messages;
mod preamble;
mod row;
mod run;
mod write;
mod write_run;

use crate::error::Result;
use crate::formats::format::{Format, Opened, TestedWith};
use crate::io::input::Input;

use row::{Columns, Kind};
pub(crate) use write::create_load;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "text of blkreplay (sec.nsec ; sector ; length ; op ; delay ; duration)",
    tested_with: TestedWith::RealFiles,
    extensions: &[".load", ".replay", ".txt"],
    recognise,
    open: |input, _| open(input),
    create_load: Some(write::create_load),
    create_run: Some(write_run::create_run),
    ..Format::named(preamble::NAME)
};

fn recognise(head: &[u8]) -> bool {
    first_decisive(head).is_some()
}

/// A file is a result if it has the column names of one, or our comments, before its first row.
fn open(input: Input) -> Result<Opened> {
    Ok(match first_decisive(input.head()) {
        Some(Kind::ResultColumns | Kind::Comment(_)) => Opened::Run(Box::new(run::RunReader::new(input)?)),
        _ => Opened::Load(Box::new(load::LoadReader::new(input)?)),
    })
}

/// The kind of the first line at the beginning of a file that shows what it is.
fn first_decisive(head: &[u8]) -> Option<Kind<'_>> {
    let mut kinds = head.split(|&b| b == b'\n').map(|line| row::classify(line, Columns::Four));
    kinds.find(|k| matches!(k, Kind::Row(_) | Kind::LoadColumns | Kind::ResultColumns | Kind::Comment(_)))
}

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
