//! Parquet: the tables of `docs/schema.md`.
//!
//! What is written has all the columns, in row groups of bounded size, and the metadata in its footer. What is read may
//! come from any producer: columns in any order, 32 or 64 bits wide, nullable or not, optional ones missing, without
//! our metadata, or with what other programs kept of it when they changed the rows. Such a file is read once to count its rows before
//! they are handed out.

mod batch;
mod buffers;
mod codecs;
mod column;
mod common;
mod meaning;
mod pages;
mod read;
mod shapes;
mod source;
mod table;
mod write;

use crate::error::Result;
use crate::formats::format::{Format, Opened, TriedOn};
use crate::io::input::Input;
use crate::model::io_result::IoResult;
use crate::model::metadata::Kind;
use crate::model::request::Request;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "Parquet table of iosonar (docs/schema.md)",
    tried_on: TriedOn::RealFiles,
    endings: &[".parquet"],
    is_packed_inside: true,
    recognise: |head| head.starts_with(common::MAGIC),
    open: |input, _| open(input),
    create_load: Some(|output, _| Ok(Box::new(write::TableWriter::<Request>::new(output)?))),
    create_run: Some(|output, _| Ok(Box::new(write::TableWriter::<IoResult>::new(output)?))),
    ..Format::named(common::NAME)
};

fn open(input: Input) -> Result<Opened> {
    let path = input.path().to_owned();
    let file = read::TableFile::open(&path, input.into_file()?)?;
    Ok(match file.kind() {
        Kind::Load => read::open_load(file)?,
        Kind::Replay => Opened::Run(Box::new(read::TableReader::<IoResult>::new(file, |_| {})?)),
    })
}

#[cfg(test)]
mod tests;
