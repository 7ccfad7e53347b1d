//! What reading and writing Parquet share.

use ::parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::Error;
use crate::io::guarded::guarded;
use crate::model::metadata::{Kind, Metadata};

/// The format's name.
pub const NAME: &str = "parquet";
/// What every Parquet file begins with.
pub const MAGIC: &[u8] = b"PAR1";

/// What our own files say that they were written by, and the version behind it.
pub const CREATED_BY: &str = "iosonar ";

/// An error of the library, as far as it goes back to the system or to the file.
pub fn wrap(path: &std::path::Path, error: ParquetError) -> Error {
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
pub fn guard<T>(call: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    guarded(call).unwrap_or_else(|| Err(ParquetError::General("its bytes make no sense".to_owned())))
}

/// A table for rows of that kind that are counted elsewhere.
pub fn empty_metadata(kind: Kind, path: &std::path::Path) -> Metadata {
    let mut metadata = Metadata::new(kind, NAME);
    metadata.source.path = Some(crate::path_text(path));
    metadata
}
