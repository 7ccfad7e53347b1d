//! External merge sort of requests by time: sorted chunks on disk, merged as they are read.

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
use crate::model::row::{Footer as _, Row as _};
use crate::model::units::{Nanos, SECTOR_BYTES, Sector};
use crate::order::packed;
use crate::order::packed::{PACKED_BYTES, pack, unpack};
use crate::text::human;

/// Requests sorted in memory at a time: about 100 MB.
const CHUNK: usize = 1 << 20;

/// Bytes of a request and its rank in the temporary file.
const RANKED_BYTES: usize = 8 + PACKED_BYTES;

/// Takes requests in any order and sorts them by time. The sort is stable.
pub struct Sorter {
    chunk: Vec<Ranked>,
    count: u64,
    chunk_size: usize,
    /// The temporary file with the sorted chunks.
    spilled: Option<File>,
    spilled_bytes: u64,
    /// The extents of the chunks in the temporary file.
    extents: Vec<Extent>,
}

/// A request, and its rank among those with equal times.
type Ranked = (u64, Request);

#[derive(Clone, Copy)]
struct Extent {
    from: u64,
    to: u64,
}

impl Default for Sorter {
    fn default() -> Self {
        Self::with_chunk_size(CHUNK)
    }
}

impl Sorter {
    fn with_chunk_size(chunk_size: usize) -> Self {
        Self { chunk: Vec::new(), count: 0, chunk_size, spilled: None, spilled_bytes: 0, extents: Vec::new() }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// If the directory for temporary files is full.
    pub fn push(&mut self, request: Request) -> Result<()> {
        self.count += 1;
        self.push_at(self.count, request)
    }

    /// Adds a request with a rank among those with equal times.
    fn push_at(&mut self, rank: u64, request: Request) -> Result<()> {
        if self.chunk.len() == self.chunk_size {
            self.spill().map_err(packed::error)?;
        }
        self.chunk.push((rank, request));
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match self.spilled.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        self.chunk.sort_by_key(|(rank, request)| (request.at, *rank));
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        for (rank, request) in self.chunk.drain(..) {
            writer.write_all(&rank.to_le_bytes())?;
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

    /// Sorts the last chunk and starts the merge.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn finish(mut self) -> Result<Sorted> {
        self.chunk.sort_by_key(|(rank, request)| (request.at, *rank));
        let mut chunks: Vec<Chunk> = self.extents.iter().map(|&extent| Chunk::on_disk(extent)).collect();
        chunks.push(Chunk { extent: Extent { from: 0, to: 0 }, buffer: Vec::new(), next: self.chunk.into_iter() });
        let mut sorted = Sorted { file: self.spilled, chunks, heads: BinaryHeap::new() };
        for index in 0..sorted.chunks.len() {
            sorted.advance(index).map_err(packed::error)?;
        }
        Ok(sorted)
    }
}

/// Requests sorted by time.
pub struct Sorted {
    file: Option<File>,
    chunks: Vec<Chunk>,
    /// The next request of each chunk, with the index of the chunk.
    heads: BinaryHeap<Reverse<(Head, usize)>>,
}

/// A sorted chunk: its unread extent on disk, and the requests read from it.
struct Chunk {
    extent: Extent,
    buffer: Vec<u8>,
    next: std::vec::IntoIter<Ranked>,
}

/// A request in a heap, ordered by time and then by number.
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

impl Chunk {
    fn on_disk(extent: Extent) -> Self {
        Self { extent, buffer: Vec::new(), next: Vec::new().into_iter() }
    }

    fn next(&mut self, file: Option<&File>) -> io::Result<Option<Ranked>> {
        if let Some(ranked) = self.next.next() {
            return Ok(Some(ranked));
        }
        let left = self.extent.to - self.extent.from;
        let (Some(file), true) = (file, left > 0) else { return Ok(None) };
        let bytes = left.min(RANKED_BYTES as u64 * 512) as usize;
        self.buffer.resize(bytes, 0);
        file.read_exact_at(&mut self.buffer, self.extent.from)?;
        self.extent.from += bytes as u64;
        let ranked = |bytes: &[u8; RANKED_BYTES]| {
            let (rank, request) = bytes.split_first_chunk()?;
            Some((u64::from_le_bytes(*rank), unpack(request.first_chunk()?)?))
        };
        let ranked: Option<Vec<Ranked>> = self.buffer.as_chunks().0.iter().map(ranked).collect();
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the data read back differs from the data written");
        self.next = ranked.ok_or_else(damaged)?.into_iter();
        Ok(self.next.next())
    }
}

impl Sorted {
    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the same signature as `Reader::next`")]
    pub fn next(&mut self) -> Result<Option<Request>> {
        let Some(Reverse((head, chunk))) = self.heads.pop() else { return Ok(None) };
        self.advance(chunk).map_err(packed::error)?;
        Ok(Some(head.request))
    }

    fn advance(&mut self, chunk: usize) -> io::Result<()> {
        if let Some((number, request)) = self.chunks[chunk].next(self.file.as_ref())? {
            self.heads.push(Reverse((Head { at: request.at, number, request }, chunk)));
        }
        Ok(())
    }
}

/// A load that was read to its end and sorted.
pub struct SortedLoad {
    sorted: Sorted,
    metadata: Metadata,
}

impl SortedLoad {
    /// The requests of a sorter, described by `metadata`.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn new(sorter: Sorter, metadata: Metadata) -> Result<Self> {
        Ok(Self { sorted: sorter.finish()?, metadata })
    }

    /// The load that a run replayed: its requests at their scheduled times; equal times stay in the order of the load.
    /// Widened requests stay widened, because a run does not have their length in the load.
    ///
    /// # Errors
    /// If the run cannot be read, or the directory for temporary files is full.
    pub fn of_run(mut run: Box<dyn Reader<IoResult>>) -> Result<Self> {
        let mut sorter = Sorter::default();
        let mut counted = Metadata::new(Kind::Load, "");
        let (block, mut widened, mut impossible) = (block_sectors(run.metadata()), 0_u64, 0);
        while let Some(record) = run.next()? {
            let mut request = Request {
                device: record.device,
                flags: record.flags,
                latency: record.latency(),
                ..Request::new(record.scheduled, record.op, sector_in_load(&record, block), record.sectors)
            };
            impossible += request.remove_impossible();
            widened += u64::from(record.widened);
            counted.count_request(&request);
            // Rows are in order of completion; the rank restores the order of the load. No load has 2^40 requests.
            sorter.push_at(u64::from(record.iteration) << 40 | record.request, request)?;
        }
        let Metadata { counts, span, .. } = counted;
        let mut metadata = Metadata { kind: Kind::Load, counts, span, run: None, ..run.metadata().clone() };
        metadata.counts.add_losses(&run.metadata().counts);
        metadata.count_impossible(impossible);
        let run = run.metadata().run.as_deref();
        let times = if run.is_some_and(|run| run.is_asap()) {
            "their issue times, because a run with --asap has no others"
        } else {
            "their scheduled times"
        };
        metadata.warning(format!("this load was made from a run: its requests at {times}"));
        if let Some(fake) = run.and_then(|run| run.fake.text()) {
            metadata.warning(format!("the latencies are those of the run: {fake}"));
        }
        if widened > 0 {
            metadata.warning(format!(
                "{} requests remain widened to the blocks of the run's target",
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

/// The start of a request's range on the target, as a sector of the load. A widened range begins before the request does.
fn sector_in_load(record: &IoResult, block_sectors: u64) -> Sector {
    let (from, of_load) = (record.sector, record.source_sector);
    if !record.widened {
        of_load
    } else if from <= of_load && of_load < from + record.sectors {
        // Sectors of the load and the target are the same.
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
    fn widened_requests_stay_widened_at_their_load_position() {
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
        assert!(load.metadata().warnings.iter().any(|warning| warning.starts_with("2 requests remain widened")));
    }

    /// The requests and warnings of the load that is made from a run.
    fn load_of(run: RunInfo, records: Vec<IoResult>) -> (Vec<Request>, Vec<String>) {
        let metadata = Metadata { run: Some(Box::new(run)), ..Metadata::new(Kind::Replay, "test") };
        let mut load = SortedLoad::of_run(Box::new(Run(records.into_iter(), metadata))).unwrap();
        let requests = std::iter::from_fn(|| load.next().unwrap()).collect();
        (requests, load.metadata.warnings)
    }

    #[test]
    fn requests_with_equal_times_stay_in_the_order_of_the_load() {
        let of = |at, iteration, number| {
            let request = Request::new(Nanos(at), Op::Read, Sector(u64::from(iteration) * 10 + number), Sectors(1));
            IoResult { iteration, ..IoResult::of(&request, number) }
        };
        let run = vec![of(5, 0, 3), of(0, 0, 1), of(5, 1, 0), of(5, 0, 2), of(0, 0, 0), of(5, 1, 1)];
        let (requests, _) = load_of(RunInfo::default(), run);
        assert_eq!(requests.iter().map(|request| request.sector.0).collect::<Vec<_>>(), [0, 1, 2, 3, 10, 11]);
    }

    #[test]
    fn warnings_of_the_load_mention_a_fake_run_and_asap() {
        let warnings = |run| load_of(run, Vec::new()).1.join("; ");
        let fake = |fake: Option<&str>| RunInfo { fake: fake.map(str::to_owned).into(), ..RunInfo::default() };
        assert!(warnings(fake(Some("FAKE RESULT: simulated"))).contains("FAKE RESULT: simulated"));
        let mut options = OpenMap::default();
        options.insert("asap", true);
        let asap = RunInfo { options: options.clone().into(), ..RunInfo::default() };
        assert!(warnings(asap).contains("their issue times"));
        options.insert("asap", false);
        let real = warnings(RunInfo { options: options.into(), ..fake(None) });
        assert_eq!(real, "this load was made from a run: its requests at their scheduled times");
    }

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(mut requests in prop::collection::vec(request(), 0..200), chunk in 1_usize..70) {
            let mut sorter = Sorter::with_chunk_size(chunk);
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
