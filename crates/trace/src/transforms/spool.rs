//! A load in a temporary file, for transforms that read it repeatedly, backwards or in pieces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::order::packed;
use crate::order::packed::{PACKED_BYTES, pack, unpack};

use super::Rows;
use super::counted::Source;

/// Writes requests to the temporary file.
pub struct SpoolWriter {
    writer: BufWriter<File>,
    count: u64,
}

/// Stored requests with random access.
pub struct Spool {
    file: File,
    count: u64,
    /// The block read last, and the number of its first request.
    block: Vec<Request>,
    block_start: u64,
}

/// Requests per read of the temporary file.
const BLOCK: u64 = 1024;

impl SpoolWriter {
    /// Creates the file. It has no name: the kernel frees it with its last descriptor, even after a crash.
    pub fn new() -> Result<Self> {
        let file = tempfile::tempfile().map_err(packed::error)?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 18, file), count: 0 })
    }

    /// Appends a request.
    pub fn push(&mut self, request: &Request) -> Result<()> {
        self.count += 1;
        self.writer.write_all(&pack(request)).map_err(packed::error)
    }

    /// Flushes the file and makes it readable.
    pub fn finish(self) -> Result<Spool> {
        let file = self.writer.into_inner().map_err(|e| packed::error(e.into_error()))?;
        Ok(Spool { file, count: self.count, block: Vec::new(), block_start: 0 })
    }
}

impl Spool {
    /// Stores a whole load: what `each` returns for every request and its number. Also returns the load's metadata at its
    /// end.
    pub fn of(mut rows: Rows, mut each: impl FnMut(u64, Request) -> Request) -> Result<(Self, Metadata)> {
        let mut writer = SpoolWriter::new()?;
        while let Some(request) = rows.next()? {
            let request = each(writer.count, request);
            writer.push(&request)?;
        }
        Ok((writer.finish()?, rows.metadata().clone()))
    }

    /// A second reader of the same file, with its own position.
    pub fn try_clone(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(packed::error)?;
        Ok(Self { file, count: self.count, block: Vec::new(), block_start: 0 })
    }

    /// Number of requests.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Reads the request of that number.
    pub fn get(&mut self, number: u64) -> Result<Request> {
        if !(self.block_start..self.block_start + self.block.len() as u64).contains(&number) {
            self.read_block(number - number % BLOCK).map_err(packed::error)?;
        }
        Ok(self.block[(number - self.block_start) as usize])
    }

    fn read_block(&mut self, start: u64) -> io::Result<()> {
        let count = BLOCK.min(self.count.saturating_sub(start));
        let mut bytes = vec![0; count as usize * PACKED_BYTES];
        self.file.read_exact_at(&mut bytes, start * PACKED_BYTES as u64)?;
        let requests: Option<Vec<Request>> = bytes.as_chunks::<PACKED_BYTES>().0.iter().map(unpack).collect();
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the data read back differs from the data written");
        self.block = requests.ok_or_else(damaged)?;
        self.block_start = start;
        Ok(())
    }
}

/// Reads a stored load from its beginning and applies `change` to each request.
pub struct SpoolReader<F> {
    spool: Spool,
    metadata: Metadata,
    next: u64,
    change: F,
}

impl<F: FnMut(Request) -> Request + Send> SpoolReader<F> {
    /// `metadata` is the metadata of the stored load.
    pub fn new(spool: Spool, metadata: Metadata, change: F) -> Self {
        Self { spool, metadata, next: 0, change }
    }
}

impl<F: FnMut(Request) -> Request + Send> Source for SpoolReader<F> {
    fn next(&mut self) -> Result<Option<Request>> {
        if self.next == self.spool.len() {
            return Ok(None);
        }
        let request = self.spool.get(self.next)?;
        self.next += 1;
        Ok(Some((self.change)(request)))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        Some(self.next as f64 / self.spool.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::Op;
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn stored_requests_can_be_read_in_any_order() {
        let request = |n: u64| Request::new(Nanos(n as i64), Op::Read, Sector(n * 8), Sectors(8));
        let mut writer = SpoolWriter::new().unwrap();
        (0..3000).for_each(|n| writer.push(&request(n)).unwrap());
        let mut spool = writer.finish().unwrap();
        assert_eq!(spool.len(), 3000);
        for n in (0..3000).chain((0..3000).rev()).chain([2999, 0, 1500, 1024, 1023]) {
            assert_eq!(spool.get(n).unwrap(), request(n));
        }
    }
}
