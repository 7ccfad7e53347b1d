//! Parquet: the tables of `docs/schema.md`.
//!
//! What is written has all the columns, in row groups of bounded size, and the metadata in its footer. What is read may
//! come from any producer: columns in any order, 32 or 64 bits wide, nullable or not, optional ones missing, without
//! our metadata, or with what other programs kept of it when they changed the rows. Such a file is surveyed once before
//! its rows are handed out.

mod batch;
mod codecs;
mod meaning;
mod pages;
mod read;
mod shapes;
mod source;
mod table;
mod write;

use ::parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::{Error, Result};
use crate::formats::{Format, Opened, TriedOn};
use crate::guarded::guarded;
use crate::input::Input;
use crate::metadata::{Kind, Metadata};
use crate::record::Record;
use crate::request::Request;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "Parquet table of iosonar (docs/schema.md)",
    tried_on: TriedOn::RealFiles,
    endings: &[".parquet"],
    is_packed_inside: true,
    recognise: |head| head.starts_with(MAGIC),
    open: |input, _| open(input),
    create_load: Some(|output, _| Ok(Box::new(write::TableWriter::<Request>::new(output)?))),
    create_run: Some(|output, _| Ok(Box::new(write::TableWriter::<Record>::new(output)?))),
    ..Format::named("parquet")
};

const MAGIC: &[u8] = b"PAR1";

/// What our own files say that they were written by, and the version behind it.
const CREATED_BY: &str = "iosonar ";

fn open(input: Input) -> Result<Opened> {
    let path = input.path().to_owned();
    let file = read::TableFile::open(&path, input.into_file()?)?;
    Ok(match file.kind() {
        Kind::Load => read::open_load(file)?,
        Kind::Replay => Opened::Run(Box::new(read::TableReader::<Record>::new(file, |_| {})?)),
    })
}

/// An error of the library, as far as it goes back to the system or to the file.
fn wrap(path: &std::path::Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => Error::io(path, *cause),
            Err(cause) => Error::format(path, format!("damaged Parquet: {cause}")),
        },
        other => {
            let said = other.to_string();
            Error::format(path, format!("damaged Parquet: {}", said.trim_start_matches("Parquet error: ")))
        }
    }
}

/// A call into the library: it panics on some damage.
fn guard<T>(call: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    guarded(call).unwrap_or_else(|| Err(ParquetError::General("its bytes make no sense".to_owned())))
}

/// A table for rows of that kind that are counted elsewhere.
fn empty_metadata(kind: Kind, path: &std::path::Path) -> Metadata {
    let mut metadata = Metadata::new(kind, FORMAT.name);
    metadata.source.path = Some(path.display().to_string());
    metadata
}

#[cfg(test)]
mod tests;
