//! Classic text of blkreplay: loads (`*.load.gz`) and results (`*.replay.gz`).
//!
//! The format is described in the manual of blkreplay, chapters 4 and 6. A row begins with a digit and contains a `;`.
//! Other lines are text or damage:
//!
//! - Text before the first line of column names or the first row is the preamble.
//! - Later text is pending until the next such line: column names make it another preamble (files are often
//!   concatenated), a row makes its lines bad.
//! - A line that begins like a row but is not one is a bad line. Empty lines and comments (`#`) never are.
//! - What a load lacks is in a comment; see `load_comment`.
//! - In a result, text is messages of the replayer; see `messages`. What the six columns do not hold is in a seventh and in
//!   comments; see `details` and `comments`.

mod comments;
mod details;
mod load;
mod load_comment;
mod messages;
mod preamble;
mod recognise;
mod row;
mod run;
mod write;
mod write_run;

use crate::error::Result;
use crate::formats::format::{Format, Opened, TestedWith};
use crate::io::input::Input;

use recognise::Content;
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
    recognise::content(head).is_some()
}

fn open(input: Input) -> Result<Opened> {
    open_as(recognise::content(input.head()).unwrap_or(Content::Unknown), input)
}

/// Opens what a command made of a load: rows without column names are a load, too.
pub(crate) fn open_output(input: Input) -> Result<Opened> {
    let content = recognise::content(input.head()).filter(|&content| content == Content::Result);
    open_as(content.unwrap_or(Content::Load), input)
}

fn open_as(content: Content, input: Input) -> Result<Opened> {
    Ok(match content {
        Content::Result => Opened::Run(Box::new(run::RunReader::new(input)?)),
        Content::Load | Content::Unknown => Opened::Load(Box::new(load::LoadReader::new(input, content)?)),
    })
}

#[cfg(test)]
mod changed_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;
