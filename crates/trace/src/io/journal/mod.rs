//! The journal of a running replay: an append-only file of checksummed entries, one for each row. To append costs much less
//! than to encode a table, which is done when nothing is issued any more.
//!
//! ```text
//!  magic, layout       8 bytes    "iosonar", and the layout of the entries
//!  header length       4 bytes    little-endian, like all numbers
//!  header checksum     4 bytes    CRC-32 of the header
//!  header              JSON       the run's footer as known at the start, padded with spaces
//!  entries                        each ends with 4 bytes, the CRC-32 of its others
//! ```
//!
//! A layout has entries of one length, or of several: then each begins with its length, in 4 bytes without these and the
//! checksum.
//!
//! A killed program loses only the entries of its last fraction of a second, which were not yet written. A [`Journal`] reads
//! all valid entries, of each row the first, and counts the damaged and the repeated ones. A run holds a lock on its journal; a journal without a lock was left by a
//! killed run.

mod publish;
mod read;
mod results;
mod row_set;
mod write;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libdeflater::Crc;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::io::checkpoint::becomes_free;
use crate::model::row::Row;

pub use publish::publish;
pub use read::{Journal, layout_of};
pub use write::{Closed, JournalWriter};

/// The name of the format, before the byte of the layout.
pub const MAGIC: [u8; 7] = *b"iosonar";
/// Bytes before the header.
const START_BYTES: usize = 16;
const CRC_BYTES: usize = 4;
/// Bytes of the length of an entry.
const LENGTH_BYTES: usize = 4;

/// An entry of a journal: a row, and what else is needed to count it.
pub trait Entry: Sized {
    /// The row.
    type Row: Row;
    /// The layouts that can be read; the last one is written. No other kind of entries has one of them.
    const LAYOUTS: &'static [u8];

    /// Bytes of an entry.
    fn length(layout: u8) -> Length;

    /// Appends the content.
    fn encode(&self, content: &mut Vec<u8>);

    /// An entry with this content, whose checksum is right; `None` if a program of another version wrote it.
    fn decode(layout: u8, content: &[u8]) -> Option<Self>;

    /// Which row it is.
    fn id(&self) -> RowId;

    /// The row alone.
    fn into_row(self) -> Self::Row;
}

/// Identifies a row of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowId {
    /// Whether a program made it, which numbers its requests apart from those of a load.
    pub of_program: bool,
    /// The pass over the load or trace that made it: an iteration, or an instance.
    pub pass: u32,
    /// Its number in the load or trace.
    pub number: u64,
}

/// Bytes of the content of entries.
#[derive(Clone, Copy)]
pub enum Length {
    /// All have so many.
    Fixed(usize),
    /// They differ, with about so many.
    About(usize),
}

impl Length {
    /// Bytes of an entry in the file.
    fn in_file(self) -> usize {
        match self {
            Self::Fixed(content) => content + CRC_BYTES,
            Self::About(content) => LENGTH_BYTES + content + CRC_BYTES,
        }
    }
}

/// The metadata of the rows of entries.
type MetadataOf<E> = <<E as Entry>::Row as Row>::Metadata;

/// The checksum of an entry or header. For an entry of a request libdeflate takes 21 ns, `crc32fast` 45.
#[inline]
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Path of the journal for a result: `.journal` is appended.
pub fn path_for(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// Whether no process writes the journal.
fn is_abandoned(file: &File) -> bool {
    becomes_free(|| lock(file, FlockOperation::NonBlockingLockShared))
}

/// Whether the file could be locked. True as well on a file system without locks.
fn lock(file: &File, kind: FlockOperation) -> bool {
    flock(file.as_fd(), kind) != Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests;
