//! Data of writes: new for each request, so that no device can avoid storing it, except for the share that it is meant to
//! compress or deduplicate.
//!
//! Data is laid out in blocks by position on the target, usually of 4 KiB, the unit in which storage systems compress and
//! deduplicate. A request covers whole blocks and, at its ends, parts of blocks. Each is generated separately:
//!
//! ```text
//!  ├──────── a block ────────┤├──────── a block ────────┤
//!  [ random …… ][ filler …… ][ random …… ][ filler …… ]      blocks:      random bytes, then a compressible run
//!                             ╰─ the same bytes as an earlier block           duplicates:  which blocks are copies
//! ```

mod blocks;
mod duplicates;
mod options;
mod pattern;
mod percent;
mod spec;

use iosonar_trace::{Nanos, Sector};

pub use blocks::{BLOCK_BYTES, Filler};
pub use iosonar_trace::run_info::Written;
pub use pattern::Pattern;
pub use percent::Percent;
pub use spec::DataSpec;

use blocks::Blocks;
use pattern::Tile;

/// Generates the data of writes.
#[derive(Debug)]
pub struct Payload {
    source: Source,
    block_bytes: u64,
    written: Written,
}

#[derive(Debug)]
enum Source {
    Zero,
    Pattern(Tile),
    Blocks(Box<Blocks>),
}

impl Payload {
    /// The same seed generates the same data.
    pub fn new(spec: &DataSpec, seed: u64) -> Self {
        let source = match spec {
            DataSpec::Zero => Source::Zero,
            DataSpec::Pattern { hex } => Source::Pattern(Tile::new(hex)),
            &DataSpec::Random { random_pct, filler, dedupe_pct, .. } => {
                Source::Blocks(Box::new(Blocks::new(random_pct, filler, dedupe_pct, seed)))
            }
        };
        let block_bytes = match spec {
            DataSpec::Random { block_bytes, .. } => *block_bytes,
            _ => BLOCK_BYTES as u64,
        };
        Self { source, block_bytes, written: Written::default() }
    }

    /// Fills the data of a write that begins at this sector of the target.
    pub fn fill(&mut self, at: Sector, bytes: &mut [u8]) {
        self.fill_at(at.bytes(), bytes);
    }

    /// Fills the data of a write that begins at this byte of a file.
    pub fn fill_at(&mut self, at: u64, bytes: &mut [u8]) {
        self.written.bytes += bytes.len() as u64;
        for (offset, piece) in pieces(at, bytes, self.block_bytes) {
            let is_whole = piece.len() as u64 == self.block_bytes;
            *(if is_whole { &mut self.written.blocks } else { &mut self.written.partial_blocks }) += 1;
            match &mut self.source {
                Source::Zero => piece.fill(0),
                Source::Pattern(tile) => tile.fill(offset, piece),
                Source::Blocks(blocks) if is_whole => self.written.duplicates += u64::from(blocks.fill_block(piece)),
                Source::Blocks(blocks) => blocks.fill_part(piece),
            }
        }
    }

    /// Data generated so far.
    pub fn written(&self) -> Written {
        self.written
    }
}

/// Approximate time to build so many bytes of data, at 4 GB/s.
pub fn build_time(bytes: u64) -> Nanos {
    Nanos(bytes as i64 / 4)
}

/// The blocks and partial blocks that a request covers, with their positions in bytes.
fn pieces(at: u64, mut bytes: &mut [u8], block_bytes: u64) -> impl Iterator<Item = (u64, &mut [u8])> {
    let mut offset = at;
    std::iter::from_fn(move || {
        let to_border = (block_bytes - offset % block_bytes) as usize;
        let all = std::mem::take(&mut bytes);
        let (piece, rest) = all.split_at_mut(to_border.min(all.len()));
        bytes = rest;
        let begin = offset;
        offset += piece.len() as u64;
        (!piece.is_empty()).then_some((begin, piece))
    })
}

#[cfg(test)]
mod tests;
