//! Shared by the reader and the writer of Parquet.

use ::parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::Error;
use crate::io::guarded::guarded;

pub const NAME: &str = "parquet";
/// The first and the last bytes of a Parquet file.
pub const MAGIC: &[u8] = b"PAR1";

/// The beginning of the footer's `created_by` in our own files; our version follows.
pub const CREATED_BY: &str = "iosonar ";

/// Converts an error of the library: an I/O error, or damage of the file.
pub fn wrap(path: &std::path::Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => Error::io(path, *cause),
            Err(cause) => Error::format(path, format!("damaged Parquet: {cause}")),
        },
        other => {
            let message = other.to_string();
            Error::format(path, format!("damaged Parquet: {}", message.trim_start_matches("Parquet error: ")))
        }
    }
}

/// Calls the library, and converts its panics, which some damage causes, to errors.
pub fn guard<T>(call: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    guarded(call).unwrap_or_else(|| Err(ParquetError::General("its bytes make no sense".to_owned())))
}
