//! Memory of a thread: where reads put their data; and memory for paths.

use std::ffi::CStr;

use crate::Name;

/// Aligned for direct I/O.
const ALIGNMENT: usize = 4096;
/// Larger reads get the same memory several times.
const LARGEST: usize = 1 << 20;
/// The most pieces of a read or write (`IOV_MAX`).
const PIECES: u64 = 1024;
/// The kernel refuses longer paths, so that what follows need not be copied.
const LONGEST_PATH: usize = 4200;
/// What calls of fixed size return fits into this.
const LEAST: u64 = 4096;

/// Memory that calls of one thread share.
#[derive(Debug, Default)]
pub struct Scratch {
    memory: Vec<u8>,
    pieces: Vec<libc::iovec>,
}

impl Scratch {
    /// Aligned memory of at least this many bytes, up to a MiB.
    pub fn bytes(&mut self, bytes: u64) -> (*mut u8, usize) {
        let bytes = (bytes.max(LEAST) as usize).min(LARGEST);
        if self.memory.len() < bytes + ALIGNMENT {
            self.memory.resize(bytes.next_power_of_two() + ALIGNMENT, 0);
        }
        let begin = self.memory.as_mut_ptr();
        let to_border = begin.align_offset(ALIGNMENT);
        (begin.wrapping_add(to_border), bytes)
    }

    /// Memory as [`Scratch::bytes`], and the size that the call states, which may be smaller.
    pub fn sized(&mut self, bytes: u64) -> (*mut u8, usize) {
        let (memory, held) = self.bytes(bytes);
        (memory, held.min(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Memory for all of a read; `None` if it is larger than a MiB.
    pub fn whole(&mut self, bytes: u64) -> Option<(*mut u8, usize)> {
        (bytes <= LARGEST as u64).then(|| (self.bytes(bytes).0, bytes as usize))
    }

    /// The same memory, several times, for a large read.
    pub fn pieces(&mut self, bytes: u64) -> &[libc::iovec] {
        let piece = (bytes / PIECES + 1).next_multiple_of(ALIGNMENT as u64).max(LARGEST as u64) as usize;
        if self.memory.len() < piece + ALIGNMENT {
            self.memory.resize(piece + ALIGNMENT, 0);
        }
        let begin = self.memory.as_mut_ptr();
        let begin = begin.wrapping_add(begin.align_offset(ALIGNMENT));
        self.pieces_of(begin, piece as u64, bytes)
    }

    /// A buffer, several times, for a write that is larger than it.
    pub fn pieces_of(&mut self, begin: *mut u8, held: u64, bytes: u64) -> &[libc::iovec] {
        self.pieces.clear();
        let mut left = bytes;
        while left > 0 && (self.pieces.len() as u64) < PIECES {
            let piece = left.min(held.max(1));
            self.pieces.push(libc::iovec { iov_base: begin.cast(), iov_len: piece as usize });
            left -= piece;
        }
        &self.pieces
    }
}

/// A path with the NUL that the kernel wants.
#[derive(Debug, Default)]
pub struct PathBuffer(Vec<u8>);

impl PathBuffer {
    /// Copies a path; none is the empty path.
    pub fn set(&mut self, path: Option<&Name>) -> &CStr {
        let path = path.map_or(b"".as_slice(), Name::as_bytes);
        self.0.clear();
        self.0.extend_from_slice(&path[..path.len().min(LONGEST_PATH)]);
        self.0.push(0);
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}
