//! Puts requests in the order of time, in bounded memory: sorted pieces on disk, merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::io_result::IoResult;
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::Request;
use crate::model::units::{Nanos, SECTOR_BYTES, Sector};
use crate::order::packed;
use crate::order::packed::{PACKED_BYTES, pack, unpack};
use crate::text::human;

/// Requests that are sorted in memory at a time: about 100 MB of them.
const PIECE: usize = 1 << 20;

/// A request and its place among those of equal times in the file of pieces.
const PLACED_BYTES: usize = 8 + PACKED_BYTES;

/// Takes requests in any order, hands them out in the order of time; equal times stay in the order of arrival.
pub struct Sorter {
    piece: Vec<Placed>,
    arrived: u64,
    piece_size: usize,
    spilled: Option<File>,
    spilled_bytes: u64,
    /// Where the pieces stand in the spilled file.
    extents: Vec<Extent>,
}

/// A request, and its place among those of equal times.
type Placed = (u64, Request);

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
        Self { piece: Vec::new(), arrived: 0, piece_size, spilled: None, spilled_bytes: 0, extents: Vec::new() }
    }

    /// Takes a request.
    ///
    /// # Errors
    /// If the folder for temporary files has no room.
    pub fn push(&mut self, request: Request) -> Result<()> {
        self.arrived += 1;
        self.push_at(self.arrived, request)
    }

    /// Takes a request that is to have this place among those of equal times.
    fn push_at(&mut self, place: u64, request: Request) -> Result<()> {
        if self.piece.len() == self.piece_size {
            self.spill().map_err(packed::error)?;
        }
        self.piece.push((place, request));
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match self.spilled.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        self.piece.sort_by_key(|(place, request)| (request.at, *place));
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        for (place, request) in self.piece.drain(..) {
            writer.write_all(&place.to_le_bytes())?;
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
        self.piece.sort_by_key(|(place, request)| (request.at, *place));
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
    /// The next request of each piece, and which that is.
    heads: BinaryHeap<Reverse<(Head, usize)>>,
}

/// A sorted piece: what is left of it on disk, and what was read ahead.
struct Piece {
    extent: Extent,
    buffer: Vec<u8>,
    next: std::vec::IntoIter<Placed>,
}

/// A request in a heap of them. The number is that of its arrival or its place: equal times keep that order.
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

    fn next(&mut self, file: Option<&File>) -> io::Result<Option<Placed>> {
        if let Some(placed) = self.next.next() {
            return Ok(Some(placed));
        }
        let left = self.extent.to - self.extent.from;
        let (Some(file), true) = (file, left > 0) else { return Ok(None) };
        let bytes = left.min(PLACED_BYTES as u64 * 512) as usize;
        self.buffer.resize(bytes, 0);
        file.read_exact_at(&mut self.buffer, self.extent.from)?;
        self.extent.from += bytes as u64;
        let placed = |bytes: &[u8; PLACED_BYTES]| {
            let (place, request) = bytes.split_first_chunk()?;
            Some((u64::from_le_bytes(*place), unpack(request.first_chunk()?)?))
        };
        let placed: Option<Vec<Placed>> = self.buffer.as_chunks().0.iter().map(placed).collect();
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "what was read back is not what was written");
        self.next = placed.ok_or_else(damaged)?.into_iter();
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
        let Some(Reverse((head, piece))) = self.heads.pop() else { return Ok(None) };
        self.advance(piece).map_err(packed::error)?;
        Ok(Some(head.request))
    }

    fn advance(&mut self, piece: usize) -> io::Result<()> {
        if let Some((number, request)) = self.pieces[piece].next(self.file.as_ref())? {
            self.heads.push(Reverse((Head { at: request.at, number, request }, piece)));
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

    /// The load that a run replayed: its requests at their scheduled times, in that order and that of the load. What was widened to the target's
    /// blocks stays so: a run does not tell how long it had been.
    ///
    /// # Errors
    /// If the run can't be read, or there is no room to sort it.
    pub fn of_run(mut run: Box<dyn Reader<IoResult>>) -> Result<Self> {
        let mut sorter = Sorter::default();
        let mut counted = Metadata::new(Kind::Load, "");
        let (block, mut widened) = (block_sectors(run.metadata()), 0_u64);
        while let Some(record) = run.next()? {
            let request = Request {
                device: record.device,
                flags: record.flags,
                latency: record.latency(),
                ..Request::new(record.scheduled, record.op, place_in_load(&record, block), record.sectors)
            };
            widened += u64::from(record.widened);
            counted.count_request(&request);
            // Rows are in the order of completion. A load of more requests than that there is none.
            sorter.push_at(u64::from(record.iteration) << 40 | record.request, request)?;
        }
        let Metadata { counts, span, .. } = counted;
        let mut metadata = Metadata { kind: Kind::Load, counts, span, run: None, ..run.metadata().clone() };
        metadata.counts.bad_lines = run.metadata().counts.bad_lines;
        let run = run.metadata().run.as_deref();
        let times = if run.is_some_and(|run| run.has("asap")) {
            "the times of their issue, as it had no others (--asap)"
        } else {
            "their scheduled times"
        };
        metadata.notice(format!("this load was made from a run: its requests at {times}"));
        if let Some(fake) = run.and_then(|run| run.fake.text()) {
            metadata.notice(format!("its latencies are those of that run: {fake}"));
        }
        if widened > 0 {
            metadata.notice(format!(
                "{} requests stay as they were widened to the blocks of the run's target",
                human::count(widened)
            ));
        }
        Self::new(sorter, metadata)
    }
}

/// The largest block of a run's targets.
fn block_sectors(run: &Metadata) -> u64 {
    let targets = run.run.as_ref().map_or(&[][..], |run| run.targets.list());
    let blocks = targets.iter().filter_map(|target| target.logical_block_bytes.value());
    blocks.max().map_or(1, |bytes| (bytes / SECTOR_BYTES).max(1))
}

/// Where in the load that begins which was asked of the target. What was widened begins earlier than the load's request,
/// and its length is that from there.
fn place_in_load(record: &IoResult, block_sectors: u64) -> Sector {
    let (from, of_load) = (record.sector, record.source_sector);
    if !record.widened {
        of_load
    } else if from <= of_load && of_load < from + record.sectors {
        // The target's places are the load's.
        from
    } else {
        Sector(of_load.0 / block_sectors * block_sectors)
    }
}

impl Reader<Request> for SortedLoad {
    fn next(&mut self) -> Result<Option<Request>> {
        self.sorted.next()
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_totals(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::request::Op;
    use crate::model::run_info::{OpenMap, RunInfo, RunTarget};
    use crate::model::units::Sectors;
    use crate::order::packed::tests::request;

    struct Run(std::vec::IntoIter<IoResult>, Metadata);

    impl Reader<IoResult> for Run {
        fn next(&mut self) -> Result<Option<IoResult>> {
            Ok(self.0.next())
        }
        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    #[test]
    fn what_a_run_widened_stays_where_it_was_asked() {
        let of =
            |at, sector, sectors| IoResult::of(&Request::new(Nanos(at), Op::Read, Sector(sector), Sectors(sectors)), 0);
        let records = vec![
            of(0, 16, 8),
            IoResult { sector: Sector(8), sectors: Sectors(16), widened: true, ..of(1, 9, 8) },
            // Wrapped around as well.
            IoResult { sector: Sector(16), sectors: Sectors(8), widened: true, ..of(2, 1_000_003, 1) },
        ];
        let mut metadata = Metadata::new(Kind::Replay, "test");
        let of = |bytes: u64| RunTarget { logical_block_bytes: bytes.into(), ..RunTarget::default() };
        metadata.run = Some(Box::new(RunInfo { targets: vec![of(512), of(4096)].into(), ..RunInfo::default() }));
        let mut load = SortedLoad::of_run(Box::new(Run(records.into_iter(), metadata))).unwrap();
        let mut places = Vec::new();
        while let Some(request) = load.next().unwrap() {
            places.push((request.sector.0, request.sectors.0));
        }
        assert_eq!(places, [(16, 8), (8, 16), (1_000_000, 8)]);
        assert!(load.metadata().notices.iter().any(|notice| notice.starts_with("2 requests stay")));
    }

    /// The requests of a run of which this is known, and what is said of them as a load.
    fn load_of(run: RunInfo, records: Vec<IoResult>) -> (Vec<Request>, Vec<String>) {
        let metadata = Metadata { run: Some(Box::new(run)), ..Metadata::new(Kind::Replay, "test") };
        let mut load = SortedLoad::of_run(Box::new(Run(records.into_iter(), metadata))).unwrap();
        let requests = std::iter::from_fn(|| load.next().unwrap()).collect();
        (requests, load.metadata.notices)
    }

    #[test]
    fn requests_of_equal_times_come_in_the_order_of_the_load() {
        let of = |at, iteration, number| {
            let request = Request::new(Nanos(at), Op::Read, Sector(u64::from(iteration) * 10 + number), Sectors(1));
            IoResult { iteration, ..IoResult::of(&request, number) }
        };
        let run = vec![of(5, 0, 3), of(0, 0, 1), of(5, 1, 0), of(5, 0, 2), of(0, 0, 0), of(5, 1, 1)];
        let (requests, _) = load_of(RunInfo::default(), run);
        assert_eq!(requests.iter().map(|request| request.sector.0).collect::<Vec<_>>(), [0, 1, 2, 3, 10, 11]);
    }

    #[test]
    fn a_load_says_that_the_run_was_fake_or_had_no_times() {
        let said = |run| load_of(run, Vec::new()).1.join("; ");
        let fake = |fake: Option<&str>| RunInfo { fake: fake.map(str::to_owned).into(), ..RunInfo::default() };
        assert!(said(fake(Some("FAKE RESULT: simulated"))).contains("FAKE RESULT: simulated"));
        let mut options = OpenMap::default();
        options.insert("asap", true);
        let asap = RunInfo { options: options.clone().into(), ..RunInfo::default() };
        assert!(said(asap).contains("times of their issue"));
        options.insert("asap", false);
        let real = said(RunInfo { options: options.into(), ..fake(None) });
        assert_eq!(real, "this load was made from a run: its requests at their scheduled times");
    }

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
