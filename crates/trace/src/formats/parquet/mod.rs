//! Parquet: the tables of `docs/schema.md`.
//!
//! The writer writes all columns, in row groups of bounded size, and the metadata in the footer. The reader accepts files
//! of any producer: columns in any order, with 32 or 64 bits, nullable or not, optional ones missing; without our metadata,
//! or with metadata that another program copied although it changed the rows. The rows of such a file are counted when it
//! is opened.

mod batch;
mod buffers;
mod codecs;
mod column;
mod common;
mod conversion;
mod pages;
mod read;
mod shapes;
mod source;
mod table;
mod write;

use crate::error::Result;
use crate::formats::format::{Format, Opened, TestedWith};
use crate::io::input::Input;
use crate::model::io_result::IoResult;
use crate::model::metadata::Kind;
use crate::model::request::Request;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "Parquet table of iosonar (docs/schema.md)",
    tested_with: TestedWith::RealFiles,
    extensions: &[".parquet"],
    compresses_itself: true,
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
