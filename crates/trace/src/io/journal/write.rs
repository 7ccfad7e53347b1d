//! Writes a journal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate};
use rustix::io::Errno;

use super::{Entry, Length, MAGIC, MetadataOf, checksum, is_abandoned, lock};
use crate::error::{Error, Result, temporary_file};
use crate::model::row::Row;
use crate::text::human;

/// A killed program loses at most the rows of this time.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// Bytes that are written at a time: few, as a loop that writes the journal itself issues nothing meanwhile.
const BUFFER: usize = 1 << 14;
/// The most bytes of a row in the result. Space for the result is reserved together with the journal's.
const RESULT_ROW_BYTES: u64 = 64;
/// Padding of the header, for keys added between the journal's creation and the first entry.
const HEADER_PADDING: usize = 1024;

/// Writes a journal. After an error it writes no more entries, and counts them.
pub struct JournalWriter<E: Entry> {
    file: BufWriter<File>,
    path: JournalPath,
    header_bytes: usize,
    /// The entry that is being written.
    entry: Vec<u8>,
    flushed: Instant,
    failure: Option<io::Error>,
    unrecorded: u64,
    kind: PhantomData<fn(E)>,
}

/// What is left of a journal that is no longer written.
pub struct Closed {
    /// Its path.
    pub path: PathBuf,
    /// The first error. The journal has no entries from then on.
    pub failure: Option<io::Error>,
    /// The number of entries that it lacks for this reason.
    pub unrecorded: u64,
    /// Others see by its shared lock that the run goes on. Readers can open the journal meanwhile.
    pub lock: File,
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

impl<E: Entry> JournalWriter<E> {
    /// Creates a journal and reserves space for `expected` entries. Never replaces an existing journal, which holds a run
    /// that has not been recovered yet.
    ///
    /// # Errors
    /// If there is a journal already, or no space.
    pub fn create(path: &Path, header: &MetadataOf<E>, expected: u64) -> Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::format(path, existing_journal(path)),
            _ => Error::io(path, e),
        })?;
        lock(&file, FlockOperation::NonBlockingLockExclusive);
        Self::begin(file, JournalPath { path: path.to_owned(), is_kept: false }, header, expected)
    }

    /// Creates a journal without a name, which disappears with this process.
    ///
    /// # Errors
    /// If the directory of temporary files has no room.
    pub fn unnamed(header: &MetadataOf<E>) -> Result<Self> {
        let path = temporary_file();
        let file = tempfile::tempfile().map_err(|e| Error::io(&path, e))?;
        Self::begin(file, JournalPath { path, is_kept: true }, header, 0)
    }

    fn begin(file: File, path: JournalPath, header: &MetadataOf<E>, expected: u64) -> Result<Self> {
        let mut header = serde_json::to_vec(header).expect("metadata is plain data");
        header.resize(header.len() + HEADER_PADDING, b' ');
        let entry_bytes = E::length(Self::layout()).in_file() as u64;
        let bytes = 16 + header.len() as u64 + expected * (entry_bytes + RESULT_ROW_BYTES);
        reserve(&file, bytes).map_err(|e| {
            let (rows, bytes) = (human::counted(expected, E::Row::NOUN), human::block(bytes));
            let text = format!("the journal of {rows} needs {bytes}; make room, or choose another --output: {e}");
            Error::io(&path.path, io::Error::new(e.kind(), text))
        })?;
        let mut journal = Self {
            file: BufWriter::with_capacity(BUFFER, file),
            path,
            header_bytes: header.len(),
            entry: Vec::new(),
            flushed: Instant::now(),
            failure: None,
            unrecorded: 0,
            kind: PhantomData,
        };
        let mut start = MAGIC.to_vec();
        start.push(Self::layout());
        start.extend((header.len() as u32).to_le_bytes());
        start.extend(checksum(&header).to_le_bytes());
        start.extend(header);
        let written = journal.file.write_all(&start).and_then(|()| journal.file.flush());
        written.map_err(|e| Error::io(&journal.path.path, e))?;
        Ok(journal)
    }

    fn layout() -> u8 {
        E::LAYOUTS[E::LAYOUTS.len() - 1]
    }

    /// Replaces the header, before the first entry. Does nothing if the new header does not fit. If this fails, so does the
    /// writing of entries.
    pub fn rewrite_header(&mut self, header: &MetadataOf<E>) {
        debug_assert!(self.entry.is_empty(), "entries share a page with the header");
        let mut header = serde_json::to_vec(header).expect("metadata is plain data");
        if header.len() > self.header_bytes {
            return;
        }
        header.resize(self.header_bytes, b' ');
        let mut bytes = checksum(&header).to_le_bytes().to_vec();
        bytes.extend(header);
        // A single call, so that a killed program leaves one of the two headers whole.
        let _ = self.file.get_ref().write_all_at(&bytes, 12);
    }

    /// Adds an entry. Returns whether all could be written so far.
    pub fn write(&mut self, entry: &E) -> bool {
        if self.failure.is_none() {
            self.path.is_kept = true;
            self.encode(entry);
            self.failure = self.file.write_all(&self.entry).err();
        }
        self.unrecorded += u64::from(self.failure.is_some());
        self.failure.is_none()
    }

    fn encode(&mut self, entry: &E) {
        let out = &mut self.entry;
        out.clear();
        match E::length(Self::layout()) {
            Length::Fixed(_) => entry.encode(out),
            Length::About(_) => {
                out.extend([0; 4]);
                entry.encode(out);
                let length = (out.len() - 4) as u32;
                out[..4].copy_from_slice(&length.to_le_bytes());
            }
        }
        let crc = checksum(out);
        out.extend(crc.to_le_bytes());
    }

    /// From time to time writes all entries so far to the page cache, where they survive the end of this program. Returns
    /// whether all could be written so far.
    pub fn flush_if_due(&mut self) -> bool {
        if self.flushed.elapsed() > FLUSH_INTERVAL { self.flush() } else { self.failure.is_none() }
    }

    /// Does so at once.
    pub fn flush(&mut self) -> bool {
        if self.failure.is_none() {
            self.failure = self.file.flush().err();
        }
        self.flushed = Instant::now();
        self.failure.is_none()
    }

    /// Closes the flushed journal, and frees reserved space that was not used.
    pub fn close(mut self) -> Closed {
        self.flush();
        self.path.is_kept = true;
        // Buffered entries are here only if flushing them failed.
        let (file, _) = self.file.into_parts();
        // If this fails, the result may run out of space, which is reported then.
        let _ = file.metadata().and_then(|m| file.set_len(m.len()));
        lock(&file, FlockOperation::NonBlockingLockShared);
        Closed { path: self.path.path.clone(), failure: self.failure, unrecorded: self.unrecorded, lock: file }
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

/// Reserves space without changing the length of the file.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file.as_fd(), FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(Errno::NOSPC) => Err(Errno::NOSPC.into()),
        // The file system cannot reserve space: running out of it is reported when it happens.
        _ => Ok(()),
    }
}
