//! Reads a journal.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::row_set::RowSet;
use super::{CRC_BYTES, Entry, LENGTH_BYTES, Length, MAGIC, MetadataOf, START_BYTES, checksum, is_abandoned};
use crate::error::{Error, Result};
use crate::io::stream::Reader;
use crate::model::row::Footer as _;
use crate::model::versions::FooterError;

/// The most bytes of the content of an entry: longer ones are damaged.
const MAX_BYTES: usize = 2 << 20;

/// Reads a journal: its header, then entry by entry.
pub struct Journal<E: Entry> {
    path: PathBuf,
    file: BufReader<File>,
    header: MetadataOf<E>,
    layout: u8,
    entry: Vec<u8>,
    /// Bytes without a valid entry so far.
    damaged_bytes: u64,
    seen: RowSet,
    /// Entries so far whose row stood before.
    repeated: u64,
    kind: PhantomData<fn() -> E>,
}

/// The layout of a journal's entries; `None` if the file is no journal, or cannot be read.
pub fn layout_of(path: &Path) -> Option<u8> {
    let mut start = [0; 8];
    File::open(path).ok()?.read_exact(&mut start).ok()?;
    start.strip_prefix(&MAGIC).map(|rest| rest[0])
}

impl<E: Entry> Journal<E> {
    /// Opens a journal and checks its header.
    ///
    /// # Errors
    /// If it is still written, or damaged at its start, or of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let problem = |problem: &str| Error::format(path, problem);
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        if !is_abandoned(&file) {
            return Err(problem("a replay is still writing this journal; wait for its end, or end it with Ctrl-C"));
        }
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut start = [0; START_BYTES];
        file.read_exact(&mut start)
            .map_err(|_| problem("too short for a journal: the run was killed before it began"))?;
        if !start.starts_with(&MAGIC) {
            return Err(problem("not a journal of iosonar"));
        }
        let layout = start[MAGIC.len()];
        if !E::LAYOUTS.contains(&layout) {
            return Err(problem("a journal of another version of iosonar; recover it with that version"));
        }
        let field = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
        let mut header = Vec::new();
        let read = file.by_ref().take(field(8).into()).read_to_end(&mut header).map_err(|e| Error::io(path, e))?;
        if read as u64 != u64::from(field(8)) || checksum(&header) != field(12) {
            return Err(problem("its header is damaged: nothing can be recovered"));
        }
        let header = MetadataOf::<E>::parse(&header).map_err(|error| match error {
            FooterError::TooNew(_) => problem(&error.to_string()),
            FooterError::Invalid(_) => problem(&format!("its header is damaged, nothing can be recovered: {error}")),
        })?;
        let (path, entry, seen) = (path.to_owned(), Vec::new(), RowSet::default());
        Ok(Self { path, file, header, layout, entry, damaged_bytes: 0, seen, repeated: 0, kind: PhantomData })
    }

    /// The footer as known at the start of the run.
    pub fn header(&self) -> &MetadataOf<E> {
        &self.header
    }

    /// Damaged entries skipped so far; about so many, if entries differ in length.
    pub fn damaged(&self) -> u64 {
        self.damaged_bytes.div_ceil(E::length(self.layout).in_file() as u64)
    }

    /// Entries skipped so far because their row stood before.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The next valid entry of a row that did not stand before; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<E>> {
        while let Some(entry) = self.read().map_err(|e| Error::io(&self.path, e))? {
            if self.seen.insert(entry.id()) {
                return Ok(Some(entry));
            }
            self.repeated += 1;
        }
        Ok(None)
    }

    fn read(&mut self) -> io::Result<Option<E>> {
        let length = E::length(self.layout);
        loop {
            self.entry.clear();
            let is_whole = match length {
                Length::Fixed(content) => self.fill(content + CRC_BYTES)?,
                Length::About(_) => self.fill(LENGTH_BYTES)? && self.fill_content()?,
            };
            if self.entry.is_empty() {
                return Ok(None);
            }
            if let Some(entry) = self.decode(length).filter(|_| is_whole) {
                return Ok(Some(entry));
            }
            let skipped = match length {
                Length::Fixed(_) => self.entry.len(),
                // Its length may be what is damaged: the next entry may begin anywhere.
                Length::About(_) => 1,
            };
            self.damaged_bytes += skipped as u64;
            self.file.seek_relative(skipped as i64 - self.entry.len() as i64)?;
        }
    }

    fn fill_content(&mut self) -> io::Result<bool> {
        let content = self.entry.first_chunk().copied().map_or(0, u32::from_le_bytes) as usize;
        Ok(content <= MAX_BYTES && self.fill(content + CRC_BYTES)?)
    }

    /// Reads so many more bytes of the entry. Returns whether the file had them.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        Ok(self.file.by_ref().take(bytes as u64).read_to_end(&mut self.entry)? == bytes)
    }

    fn decode(&self, length: Length) -> Option<E> {
        let (content, crc) = self.entry.split_last_chunk::<CRC_BYTES>()?;
        if checksum(content) != u32::from_le_bytes(*crc) {
            return None;
        }
        let start = if let Length::About(_) = length { LENGTH_BYTES } else { 0 };
        E::decode(self.layout, content.get(start..)?)
    }
}

impl<E: Entry> Reader<E::Row> for Journal<E> {
    fn next(&mut self) -> Result<Option<E::Row>> {
        Ok(self.next_entry()?.map(E::into_row))
    }

    fn metadata(&self) -> &MetadataOf<E> {
        &self.header
    }
}
