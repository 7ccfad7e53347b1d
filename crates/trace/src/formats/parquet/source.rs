//! The file as the Parquet library reads it.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::FOOTER_SIZE;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use super::shapes::{check_footer, check_page_header};

/// A file whose structures are checked before the library reads them.
pub struct CheckedFile {
    file: File,
    /// The offset of the last 8 bytes: the length of the footer, and the magic.
    tail_at: u64,
}

impl CheckedFile {
    /// Checks the footer.
    pub fn new(mut file: File) -> ParquetResult<Self> {
        let tail = FOOTER_SIZE as u64;
        let tail_at = file.seek(SeekFrom::End(0))?.saturating_sub(tail);
        file.seek(SeekFrom::Start(tail_at))?;
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let Some(start) = tail_at.checked_sub(length) else {
            return Err(ParquetError::General("its footer is longer than the file".to_owned()));
        };
        file.seek(SeekFrom::Start(start))?;
        check_footer(BufReader::new(&file), length).map_err(as_damage)?;
        Ok(Self { file, tail_at })
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for CheckedFile {
    type T = BufReader<File>;

    /// The library calls this for the headers of pages, and for the end of the file.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut read = self.file.get_read(start)?;
        if start != self.tail_at {
            check_page_header(&mut read).map_err(as_damage)?;
            let header = i64::try_from(read.stream_position()?.saturating_sub(start))?;
            read.seek_relative(-header)?;
        }
        Ok(read)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// Converts errors caused by the bytes of the file to errors of the library; others stay errors of the system.
fn as_damage(error: io::Error) -> ParquetError {
    match error.kind() {
        ErrorKind::InvalidData => ParquetError::General(error.to_string()),
        ErrorKind::UnexpectedEof => ParquetError::General("a structure is cut short".to_owned()),
        _ => error.into(),
    }
}
