//! The journal of a running replay: an append-only file of checksummed, fixed-size entries.
//!
//! ```text
//!  magic and version   8 bytes    "iosonar" 2
//!  header length       4 bytes    little-endian, like all numbers
//!  header checksum     4 bytes    CRC-32 of the header
//!  header              JSON       the run's footer as known at the start, padded with spaces
//!  entries             100 bytes each; the last 4 are the CRC-32 of the others
//! ```
//!
//! A killed program loses only the entries of its last fraction of a second, which were not yet written. A [`Journal`] reads
//! all valid entries and counts the damaged ones. A run holds a lock on its journal; a journal without a lock was left by a
//! killed run.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iosonar_pacing::{Error, Result};
use iosonar_trace::human;
use iosonar_trace::output::becomes_free;
use iosonar_trace::{
    DelayReason, DeviceId, Flags, FooterError, IoResult, Metadata, Nanos, Op, Outcome, Sector, Sectors,
};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

/// Name and version. Increment the version if the layout of an entry changes.
const MAGIC: [u8; 8] = *b"iosonar\x03";
/// Entries of version 2 lack stream and cause; journals of other versions are refused.
const ENTRY_BYTES_OF_VERSION_2: usize = 100;
/// The magic without its version.
pub use iosonar_device::content::MAGIC as NAME;
/// Size of an entry.
pub const ENTRY_BYTES: usize = 106;
/// The most bytes of a row in the result. Space for the result is reserved together with the journal's.
const RESULT_ROW_BYTES: u64 = 64;
/// Padding of the header, for keys added between the journal's creation and the first request.
const HEADER_PADDING: usize = 1024;
/// A missing stream.
const NO_STREAM: u16 = u16::MAX;
/// A missing time.
const NEVER: i64 = i64::MIN;

/// Path of the journal for a result: `.journal` is appended.
pub fn path_for(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// Writes a journal.
pub struct JournalWriter {
    file: BufWriter<File>,
    path: JournalPath,
    header_bytes: usize,
    entries: u64,
}

/// Removes the journal when dropped, unless it has entries.
struct JournalPath {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for JournalPath {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the next run with this --output reports the leftover journal.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl JournalWriter {
    /// Creates a journal and reserves space for `expected` entries. Never replaces an existing journal, which holds a run
    /// that has not been recovered yet.
    pub fn create(path: &Path, header: &Metadata, expected: u64) -> Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::Journal { path: path.to_owned(), problem: existing_journal(path) },
            _ => Error::file(path, e),
        })?;
        lock(&file, FlockOperation::NonBlockingLockExclusive);
        Self::begin(file, JournalPath { path: path.to_owned(), is_kept: false }, header, expected)
    }

    /// Creates a journal without a name, which disappears with this process.
    pub fn unnamed(header: &Metadata) -> Result<Self> {
        let path = std::env::temp_dir().join("(temporary file; set TMPDIR to a directory with more space)");
        let file = tempfile::tempfile().map_err(|e| Error::file(&path, e))?;
        Self::begin(file, JournalPath { path, is_kept: true }, header, 0)
    }

    fn begin(file: File, path: JournalPath, header: &Metadata, expected: u64) -> Result<Self> {
        let mut header = serde_json::to_vec(header).expect("metadata is plain data");
        header.resize(header.len() + HEADER_PADDING, b' ');
        let bytes = 16 + header.len() as u64 + expected * (ENTRY_BYTES as u64 + RESULT_ROW_BYTES);
        if let Err(error) = reserve(&file, bytes) {
            let what = format!(
                "{}: the journal of {} requests needs {}; make room, or choose another --output",
                path.path.display(),
                human::count(expected),
                human::block(bytes)
            );
            return Err(Error::system(what, error));
        }
        let mut journal =
            Self { file: BufWriter::with_capacity(1 << 18, file), path, header_bytes: header.len(), entries: 0 };
        let mut start = MAGIC.to_vec();
        start.extend((header.len() as u32).to_le_bytes());
        start.extend(crc32fast::hash(&header).to_le_bytes());
        start.extend(header);
        let written = journal.file.write_all(&start).and_then(|()| journal.file.flush());
        written.map_err(|e| Error::file(&journal.path.path, e))?;
        Ok(journal)
    }

    /// Replaces the header, before the first entry. Does nothing if the new header does not fit.
    pub fn rewrite_header(&mut self, header: &Metadata) -> io::Result<()> {
        debug_assert_eq!(self.entries, 0, "entries share a page with the header");
        let mut header = serde_json::to_vec(header).expect("metadata is plain data");
        if header.len() > self.header_bytes {
            return Ok(());
        }
        header.resize(self.header_bytes, b' ');
        let mut bytes = crc32fast::hash(&header).to_le_bytes().to_vec();
        bytes.extend(header);
        // A single call, so that a killed program leaves one of the two headers whole.
        self.file.get_ref().write_all_at(&bytes, 12)
    }

    /// Adds an entry.
    pub fn write(&mut self, record: &IoResult) -> io::Result<()> {
        self.path.is_kept = true;
        self.file.write_all(&encode(record))?;
        self.entries += 1;
        Ok(())
    }

    /// Writes all entries so far to the page cache, where they survive the end of this program.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Path of the journal.
    pub fn path(&self) -> &Path {
        &self.path.path
    }

    /// Closes the journal, frees reserved space that was not used, and returns the path.
    pub fn close(mut self) -> PathBuf {
        self.path.is_kept = true;
        // Buffered entries are here only if flushing them failed, and are counted as unrecorded then.
        let (file, _) = self.file.into_parts();
        // If this fails, the result may run out of space, which is reported then.
        let _ = file.metadata().and_then(|m| file.set_len(m.len()));
        self.path.path.clone()
    }
}

/// Why a new run cannot use the path of an existing journal.
fn existing_journal(path: &Path) -> String {
    let is_in_use = File::open(path).is_ok_and(|file| !is_abandoned(&file));
    if is_in_use {
        return "the journal of a replay that is still running; choose another --output".into();
    }
    format!(
        "the journal of an earlier run that was killed; make a result of it with `iosonar recover {}`, or remove it",
        path.display()
    )
}

/// Whether no process writes the journal.
fn is_abandoned(file: &File) -> bool {
    becomes_free(|| lock(file, FlockOperation::NonBlockingLockShared))
}

/// Whether the file could be locked. True as well on a file system without locks.
fn lock(file: &File, kind: FlockOperation) -> bool {
    flock(file.as_fd(), kind) != Err(Errno::WOULDBLOCK)
}

/// Reserves space without changing the length of the file.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file.as_fd(), FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(Errno::NOSPC) => Err(Errno::NOSPC.into()),
        // The file system cannot reserve space: running out of it is reported when it happens.
        _ => Ok(()),
    }
}

/// Reads a journal: its header, then entry by entry.
pub struct Journal {
    file: BufReader<File>,
    /// The footer as known at the start of the run.
    pub header: Metadata,
    entry_bytes: usize,
    /// Damaged entries skipped so far.
    pub damaged: u64,
}

impl Journal {
    /// Opens a journal and checks its header.
    pub fn open(path: &Path) -> Result<Self> {
        let problem = |problem: &str| Error::Journal { path: path.to_owned(), problem: problem.into() };
        let file = File::open(path).map_err(|e| Error::file(path, e))?;
        if !is_abandoned(&file) {
            return Err(problem("a replay is still writing this journal; wait for its end, or end it with Ctrl-C"));
        }
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut start = [0; 16];
        file.read_exact(&mut start)
            .map_err(|_| problem("too short for a journal: the run was killed before it began"))?;
        if start[..7] != MAGIC[..7] {
            return Err(problem("not a journal of iosonar"));
        }
        let entry_bytes = match start[7] {
            2 => ENTRY_BYTES_OF_VERSION_2,
            version if version == MAGIC[7] => ENTRY_BYTES,
            _ => return Err(problem("a journal of another version of iosonar; recover it with that version")),
        };
        let field = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
        let mut header = Vec::new();
        let read =
            file.by_ref().take(u64::from(field(8))).read_to_end(&mut header).map_err(|e| Error::file(path, e))?;
        if read as u64 != u64::from(field(8)) || crc32fast::hash(&header) != field(12) {
            return Err(problem("its header is damaged: nothing can be recovered"));
        }
        let header = Metadata::from_json(&header).map_err(|error| match error {
            FooterError::TooNew(_) => problem(&error.to_string()),
            FooterError::Invalid(_) => problem(&format!("its header is damaged, nothing can be recovered: {error}")),
        })?;
        Ok(Self { file, header, entry_bytes, damaged: 0 })
    }

    /// The next valid entry; `None` at the end.
    pub fn read(&mut self) -> io::Result<Option<IoResult>> {
        loop {
            let mut bytes = [0; ENTRY_BYTES];
            let bytes = &mut bytes[..self.entry_bytes];
            let read = self.fill(bytes)?;
            if read == 0 {
                return Ok(None);
            }
            if let Some(record) = decode(bytes).filter(|_| read == self.entry_bytes) {
                return Ok(Some(record));
            }
            self.damaged += 1;
        }
    }

    /// Reads until `bytes` is full or the file ends. Returns the number of bytes read.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}

fn encode(record: &IoResult) -> [u8; ENTRY_BYTES] {
    let mut out = [0; ENTRY_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let r = record;
    // Three times are stored as 32-bit differences: return of the submission and last empty poll in ns (up to 4 s),
    // readiness in µs (up to 2147 s). Longer ones are unknown.
    let issued = r.issued.map_or(NEVER, |t| t.0);
    let between = |from: Option<Nanos>, to: Option<Nanos>| match (from, to) {
        (Some(from), Some(to)) => u32::try_from((to - from).0).unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    let submitted = between(r.issued, r.submitted);
    let last_empty_poll = between(r.last_empty_poll, r.completed);
    let ready_us = r.ready.and_then(|t| i32::try_from((t - r.scheduled).0 / 1000).ok()).unwrap_or(i32::MIN);
    put(&r.request.to_le_bytes());
    put(&r.scheduled.0.to_le_bytes());
    put(&issued.to_le_bytes());
    put(&r.completed.map_or(NEVER, |t| t.0).to_le_bytes());
    put(&r.source_sector.0.to_le_bytes());
    put(&r.sector.0.to_le_bytes());
    put(&r.bytes_done.to_le_bytes());
    put(&r.sectors.0.to_le_bytes()[..6]);
    put(&r.device.0.to_le_bytes());
    put(&r.iteration.to_le_bytes());
    put(&r.in_flight.to_le_bytes());
    put(&r.waiting.to_le_bytes());
    put(&submitted.to_le_bytes());
    put(&last_empty_poll.to_le_bytes());
    put(&ready_us.to_le_bytes());
    put(&(r.errno as i16).to_le_bytes());
    put(&r.flags.0.to_le_bytes());
    put(&[r.op as u8, r.outcome as u8, r.delay_reason as u8, u8::from(r.pushed_back) | u8::from(r.widened) << 1]);
    // The cause is stored as the number of requests between.
    put(&r.stream.unwrap_or(NO_STREAM).to_le_bytes());
    put(&r.cause.map_or(0, |cause| u32::try_from(r.request - cause).unwrap_or(0)).to_le_bytes());
    let crc = crc32fast::hash(&out[..ENTRY_BYTES - 4]);
    out[ENTRY_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<IoResult> {
    let (content, crc) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*crc) {
        return None;
    }
    let is_whole = bytes.len() == ENTRY_BYTES;
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
    let time = |at: usize| Some(long(at) as i64).filter(|&t| t != NEVER).map(Nanos);
    let distance = |at: usize| Some(word(at)).filter(|&ns| ns != u32::MAX).map(|ns| Nanos(ns.into()));
    let (scheduled, issued, completed) = (Nanos(long(8) as i64), time(16), time(24));
    Some(IoResult {
        request: long(0),
        scheduled,
        issued,
        completed,
        source_sector: Sector(long(32)),
        sector: Sector(long(40)),
        bytes_done: long(48),
        sectors: Sectors(long(56) & 0xffff_ffff_ffff),
        device: DeviceId(short(62)),
        iteration: word(64),
        in_flight: word(68),
        waiting: word(72),
        submitted: issued.zip(distance(76)).map(|(issued, after)| issued + after),
        last_empty_poll: completed.zip(distance(80)).map(|(completed, before)| completed - before),
        ready: Some(word(84) as i32).filter(|&us| us != i32::MIN).map(|us| scheduled + Nanos(i64::from(us) * 1000)),
        errno: i32::from(short(88) as i16),
        flags: Flags(short(90)),
        op: Op::from_number(bytes[92])?,
        outcome: Outcome::from_number(bytes[93])?,
        delay_reason: DelayReason::from_number(bytes[94])?,
        pushed_back: bytes[95] & 1 != 0,
        widened: bytes[95] & 2 != 0,
        stream: is_whole.then(|| short(96)).filter(|&stream| stream != NO_STREAM),
        cause: is_whole.then(|| word(98)).filter(|&before| before > 0).map(|before| long(0) - u64::from(before)),
    })
}
