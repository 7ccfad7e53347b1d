//! Shared by the reader and the writer of Parquet.

use std::io;
use std::path::Path;

use ::parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::Error;
use crate::io::guarded::guarded;
use crate::model::metadata::FOOTER_KEY;
use crate::model::versions::FooterError;
use crate::text::human;

pub const NAME: &str = "parquet";
/// The first and the last bytes of a Parquet file.
pub const MAGIC: &[u8] = b"PAR1";

/// The beginning of the footer's `created_by` in our own files; our version follows.
pub const CREATED_BY: &str = "iosonar ";

/// What to do about a file that cannot be read.
const ADVICE: &str = "copy the file again from its source, or record again";

/// What cannot be read of a damaged file.
#[derive(Clone, Copy)]
pub enum Part {
    /// Its footer, and so all of it.
    Footer,
    /// The rows from this number on.
    RowsFrom(u64),
}

/// That a part of a file is damaged, in words of our own: the library's are about its own structures.
pub fn damaged(path: &Path, part: Part) -> Error {
    let what = match part {
        Part::Footer => "its footer, without which no row can be found,".to_owned(),
        Part::RowsFrom(0) => "its rows".to_owned(),
        Part::RowsFrom(row) => format!("what follows its first {}", human::counted(row, "row")),
    };
    Error::format(path, format!("damaged Parquet: {what} cannot be read; {ADVICE}"))
}

/// That the JSON in the footer cannot be used.
pub fn wrong_footer(path: &Path, error: &FooterError) -> Error {
    let problem = match error {
        FooterError::TooNew(_) => error.to_string(),
        FooterError::Invalid(_) => {
            format!("the `{FOOTER_KEY}` object in its footer does not conform to docs/schema.md: {error}; {ADVICE}")
        }
    };
    Error::format(path, problem)
}

/// Converts an error of the library while it reads: an error of the system, or damage of that part.
pub fn read_error(path: &Path, part: Part, error: ParquetError) -> Error {
    match as_io(error) {
        // Only the system's errors have a number; the library's decompressors have none.
        Ok(error) if error.raw_os_error().is_some() => Error::io(path, error),
        _ => damaged(path, part),
    }
}

/// Converts an error of the library while it writes.
pub fn write_error(path: &Path, error: ParquetError) -> Error {
    match as_io(error) {
        Ok(error) => Error::io(path, error),
        Err(other) => Error::format(path, format!("cannot be written ({other})")),
    }
}

/// The I/O error within an error of the library, if it has one.
fn as_io(error: ParquetError) -> Result<io::Error, String> {
    match error {
        ParquetError::External(cause) => cause.downcast().map_or_else(|cause| Err(cause.to_string()), |io| Ok(*io)),
        other => Err(other.to_string()),
    }
}

/// Calls the library, and converts its panics, which some damage causes, to errors.
pub fn guard<T>(call: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    guarded(call).unwrap_or_else(|| Err(ParquetError::General("its bytes make no sense".to_owned())))
}
