//! The file as the library gets it.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::FOOTER_SIZE;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use super::shapes::{look_at_contents, look_at_page};

/// A file whose structures are looked at before the library reads them.
pub struct LookedAt {
    file: File,
    /// Behind the table of contents: how long that is, and the end of the file.
    tail_at: u64,
}

impl LookedAt {
    /// Looks at the table of contents.
    pub fn new(mut file: File) -> ParquetResult<Self> {
        let tail = FOOTER_SIZE as u64;
        let tail_at = file.seek(SeekFrom::End(0))?.saturating_sub(tail);
        file.seek(SeekFrom::Start(tail_at))?;
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let Some(start) = tail_at.checked_sub(length) else {
            return Err(ParquetError::General("its table of contents is longer than the file".to_owned()));
        };
        file.seek(SeekFrom::Start(start))?;
        look_at_contents(BufReader::new(&file), length).map_err(as_damage)?;
        Ok(Self { file, tail_at })
    }
}

impl Length for LookedAt {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for LookedAt {
    type T = BufReader<File>;

    /// The library asks for this where the header of a page begins, and for the end of the file.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut read = self.file.get_read(start)?;
        if start != self.tail_at {
            look_at_page(&mut read).map_err(as_damage)?;
            let header = i64::try_from(read.stream_position()?.saturating_sub(start))?;
            read.seek_relative(-header)?;
        }
        Ok(read)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// An error of the system, or one that the bytes are to blame for.
fn as_damage(error: io::Error) -> ParquetError {
    match error.kind() {
        ErrorKind::InvalidData => ParquetError::General(error.to_string()),
        ErrorKind::UnexpectedEof => ParquetError::General("a structure is cut short".to_owned()),
        _ => error.into(),
    }
}
