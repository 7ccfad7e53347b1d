//! A load in a temporary file, for what needs all of it: read again, backwards, or in pieces.

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

/// Requests that are being put aside.
pub struct Holder {
    writer: BufWriter<File>,
    count: u64,
}

/// Requests that were put aside: any of them can be read again, in any order.
pub struct Held {
    file: File,
    count: u64,
    /// Some of them in memory, and the number of the first.
    block: Vec<Request>,
    block_start: u64,
}

/// Requests that are read from the temporary file at once.
const BLOCK: u64 = 1024;

impl Holder {
    /// Puts nothing aside yet. The file has no name: it is gone with the last that holds it, however that ends.
    pub fn new() -> Result<Self> {
        let file = tempfile::tempfile().map_err(packed::error)?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 18, file), count: 0 })
    }

    /// Puts a request aside.
    pub fn push(&mut self, request: &Request) -> Result<()> {
        self.count += 1;
        self.writer.write_all(&pack(request)).map_err(packed::error)
    }

    /// Ends the intake.
    pub fn finish(self) -> Result<Held> {
        let file = self.writer.into_inner().map_err(|e| packed::error(e.into_error()))?;
        Ok(Held { file, count: self.count, block: Vec::new(), block_start: 0 })
    }
}

impl Held {
    /// Puts a whole load aside. `each` sees every request with its number; what it returns is put aside in its place.
    /// Returns what is known of the load at its end as well.
    pub fn of(mut rows: Rows, mut each: impl FnMut(u64, Request) -> Request) -> Result<(Self, Metadata)> {
        let mut holder = Holder::new()?;
        while let Some(request) = rows.next()? {
            let request = each(holder.count, request);
            holder.push(&request)?;
        }
        Ok((holder.finish()?, rows.metadata().clone()))
    }

    /// The same again, to be read at another place at the same time.
    pub fn twin(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(packed::error)?;
        Ok(Self { file, count: self.count, block: Vec::new(), block_start: 0 })
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// The one of that number.
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
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what was read back is not what was written");
        self.block = requests.ok_or_else(damaged)?;
        self.block_start = start;
        Ok(())
    }
}

/// A load that was put aside, from its beginning, each request with a last change.
pub struct Again<F> {
    held: Held,
    metadata: Metadata,
    next: u64,
    change: F,
}

impl<F: FnMut(Request) -> Request + Send> Again<F> {
    /// `metadata` is what is known of the load.
    pub fn new(held: Held, metadata: Metadata, change: F) -> Self {
        Self { held, metadata, next: 0, change }
    }
}

impl<F: FnMut(Request) -> Request + Send> Source for Again<F> {
    fn next(&mut self) -> Result<Option<Request>> {
        if self.next == self.held.len() {
            return Ok(None);
        }
        let request = self.held.get(self.next)?;
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
        Some(self.next as f64 / self.held.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::Op;
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn any_request_can_be_read_again() {
        let request = |n: u64| Request::new(Nanos(n as i64), Op::Read, Sector(n * 8), Sectors(8));
        let mut holder = Holder::new().unwrap();
        (0..3000).for_each(|n| holder.push(&request(n)).unwrap());
        let mut held = holder.finish().unwrap();
        assert_eq!(held.len(), 3000);
        for n in (0..3000).chain((0..3000).rev()).chain([2999, 0, 1500, 1024, 1023]) {
            assert_eq!(held.get(n).unwrap(), request(n));
        }
    }
}
