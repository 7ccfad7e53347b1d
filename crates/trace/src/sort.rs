//! Puts requests in the order of time, in bounded memory: sorted pieces on disk, merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use crate::error::Result;
use crate::metadata::{Kind, Metadata};
use crate::packed::{self, PACKED_BYTES, pack, unpack};
use crate::record::Record;
use crate::request::Request;
use crate::stream::Reader;
use crate::units::Nanos;

/// Requests that are sorted in memory at a time: about 100 MB of them.
const PIECE: usize = 1 << 20;

/// Takes requests in any order, hands them out in the order of time; equal times stay in the order of arrival.
pub struct Sorter {
    piece: Vec<Request>,
    piece_size: usize,
    spilled: Option<File>,
    spilled_bytes: u64,
    /// Where the pieces stand in the spilled file.
    extents: Vec<Extent>,
}

#[derive(Clone, Copy)]
struct Extent {
    from: u64,
    to: u64,
}

impl Default for Sorter {
    fn default() -> Self {
        Self::with_piece(PIECE)
    }
}

impl Sorter {
    fn with_piece(piece_size: usize) -> Self {
        Self { piece: Vec::new(), piece_size, spilled: None, spilled_bytes: 0, extents: Vec::new() }
    }

    /// Takes a request.
    ///
    /// # Errors
    /// If the folder for temporary files has no room.
    pub fn push(&mut self, request: Request) -> Result<()> {
        if self.piece.len() == self.piece_size {
            self.spill().map_err(packed::error)?;
        }
        self.piece.push(request);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match self.spilled.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        self.piece.sort_by_key(|request| request.at);
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        for request in self.piece.drain(..) {
            writer.write_all(&pack(&request))?;
        }
        writer.flush()?;
        drop(writer);
        let from = self.spilled_bytes;
        self.spilled_bytes = file.metadata()?.len();
        self.extents.push(Extent { from, to: self.spilled_bytes });
        self.spilled = Some(file);
        Ok(())
    }

    /// Ends the intake.
    ///
    /// # Errors
    /// If the temporary file can't be read back.
    pub fn finish(mut self) -> Result<Sorted> {
        self.piece.sort_by_key(|request| request.at);
        let mut pieces: Vec<Piece> = self.extents.iter().map(|&extent| Piece::on_disk(extent)).collect();
        pieces.push(Piece { extent: Extent { from: 0, to: 0 }, buffer: Vec::new(), next: self.piece.into_iter() });
        let mut sorted = Sorted { file: self.spilled, pieces, heads: BinaryHeap::new() };
        for index in 0..sorted.pieces.len() {
            sorted.advance(index).map_err(packed::error)?;
        }
        Ok(sorted)
    }
}

/// Requests in the order of time.
pub struct Sorted {
    file: Option<File>,
    pieces: Vec<Piece>,
    heads: BinaryHeap<Reverse<Head>>,
}

/// A sorted piece: what is left of it on disk, and what was read ahead.
struct Piece {
    extent: Extent,
    buffer: Vec<u8>,
    next: std::vec::IntoIter<Request>,
}

/// A request in a heap of them. The number is that of its piece or of its arrival: equal times keep that order.
pub(crate) struct Head {
    pub at: Nanos,
    pub number: u64,
    pub request: Request,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl Eq for Head {}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Piece {
    fn on_disk(extent: Extent) -> Self {
        Self { extent, buffer: Vec::new(), next: Vec::new().into_iter() }
    }

    fn next(&mut self, file: Option<&File>) -> io::Result<Option<Request>> {
        if let Some(request) = self.next.next() {
            return Ok(Some(request));
        }
        let left = self.extent.to - self.extent.from;
        let (Some(file), true) = (file, left > 0) else { return Ok(None) };
        let bytes = left.min(PACKED_BYTES as u64 * 512) as usize;
        self.buffer.resize(bytes, 0);
        file.read_exact_at(&mut self.buffer, self.extent.from)?;
        self.extent.from += bytes as u64;
        let requests: Vec<Request> =
            self.buffer.as_chunks::<PACKED_BYTES>().0.iter().map(unpack).collect::<Option<_>>().ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "what was read back is not what was written")
            })?;
        self.next = requests.into_iter();
        Ok(self.next.next())
    }
}

impl Sorted {
    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// If the temporary file can't be read back.
    #[expect(clippy::should_implement_trait, reason = "rows are handed out as every reader does")]
    pub fn next(&mut self) -> Result<Option<Request>> {
        let Some(Reverse(head)) = self.heads.pop() else { return Ok(None) };
        self.advance(head.number as usize).map_err(packed::error)?;
        Ok(Some(head.request))
    }

    fn advance(&mut self, piece: usize) -> io::Result<()> {
        if let Some(request) = self.pieces[piece].next(self.file.as_ref())? {
            self.heads.push(Reverse(Head { at: request.at, number: piece as u64, request }));
        }
        Ok(())
    }
}

/// A load that had to be read as a whole and sorted.
pub struct SortedLoad {
    sorted: Sorted,
    metadata: Metadata,
}

impl SortedLoad {
    /// Of everything that the sorter took; `metadata` describes it.
    ///
    /// # Errors
    /// If the temporary file can't be read back.
    pub fn new(sorter: Sorter, metadata: Metadata) -> Result<Self> {
        Ok(Self { sorted: sorter.finish()?, metadata })
    }

    /// The load that a run replayed: its requests at their intended times, in that order.
    ///
    /// # Errors
    /// If the run can't be read, or there is no room to sort it.
    pub fn of_run(mut run: Box<dyn Reader<Record>>) -> Result<Self> {
        let mut sorter = Sorter::default();
        let mut counted = Metadata::new(Kind::Load, "");
        while let Some(record) = run.next()? {
            let request = Request {
                device: record.device,
                flags: record.flags,
                latency: record.latency(),
                ..Request::new(record.intended, record.op, record.source_sector, record.sectors)
            };
            counted.count_request(&request);
            sorter.push(request)?;
        }
        let Metadata { counts, span, .. } = counted;
        let mut metadata = Metadata { kind: Kind::Load, counts, span, run: None, ..run.metadata().clone() };
        metadata.counts.bad_lines = run.metadata().counts.bad_lines;
        metadata.notice("this load was made from a run: its requests at their intended times");
        Self::new(sorter, metadata)
    }
}

impl Reader<Request> for SortedLoad {
    fn next(&mut self) -> Result<Option<Request>> {
        self.sorted.next()
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn is_surveyed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packed::tests::request;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(mut requests in prop::collection::vec(request(), 0..200), piece in 1_usize..70) {
            let mut sorter = Sorter::with_piece(piece);
            for &request in &requests {
                sorter.push(request).unwrap();
            }
            let mut sorted = sorter.finish().unwrap();
            let mut got = Vec::new();
            while let Some(request) = sorted.next().unwrap() {
                got.push(request);
            }
            requests.sort_by_key(|r| r.at);
            prop_assert_eq!(got, requests);
        }
    }
}
