//! What is written: bytes made afresh for each request, so that no device saves itself the work, or as much of it as it
//! is meant to save.
//!
//! Everything is laid out in blocks of 4 KiB by their position on the target: the unit in which storages compress and
//! find duplicates. A request covers whole blocks and, at its ends, parts of some. Each is made on its own:
//!
//! ```text
//!  ├──────── a block ────────┤├──────── a block ────────┤
//!  [ random …… ][ filler …… ][ random …… ][ filler …… ]      blocks:      a part random, then a run that compresses
//!                             ╰─ the same bytes as a block written before     duplicates:  which blocks are copies
//! ```

mod blocks;
mod duplicates;
mod pattern;
mod percent;
mod spec;

use iosonar_trace::Sector;

pub use blocks::{BLOCK_BYTES, Filler};
pub use iosonar_trace::run_info::Written;
pub use pattern::Pattern;
pub use percent::Percent;
pub use spec::DataSpec;

use blocks::Blocks;
use pattern::Tile;

/// Makes the data of writes, in the order in which they are asked for.
#[derive(Debug)]
pub struct Content {
    source: Source,
    written: Written,
}

#[derive(Debug)]
enum Source {
    Zero,
    Pattern(Tile),
    Blocks(Box<Blocks>),
}

impl Content {
    /// The same seed makes the same data.
    pub fn new(spec: &DataSpec, seed: u64) -> Self {
        let source = match spec {
            DataSpec::Zero => Source::Zero,
            DataSpec::Pattern { hex } => Source::Pattern(Tile::new(hex)),
            &DataSpec::Random { random_pct, filler, dedupe_pct } => {
                Source::Blocks(Box::new(Blocks::new(random_pct, filler, dedupe_pct, seed)))
            }
        };
        Self { source, written: Written::default() }
    }

    /// Fills what will be written from the sector `at` of the target on.
    pub fn fill(&mut self, at: Sector, bytes: &mut [u8]) {
        self.written.bytes += bytes.len() as u64;
        for (offset, piece) in pieces(at, bytes) {
            let is_whole = piece.len() == BLOCK_BYTES;
            *(if is_whole { &mut self.written.blocks } else { &mut self.written.partial_blocks }) += 1;
            match &mut self.source {
                Source::Zero => piece.fill(0),
                Source::Pattern(tile) => tile.fill(offset, piece),
                Source::Blocks(blocks) if is_whole => self.written.duplicates += u64::from(blocks.fill_block(piece)),
                Source::Blocks(blocks) => blocks.fill_part(piece),
            }
        }
    }

    /// What was made so far.
    pub fn written(&self) -> Written {
        self.written
    }
}

/// The blocks, or parts of blocks, that a request covers: each with the byte of the target where it begins.
fn pieces(at: Sector, mut bytes: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let mut offset = at.bytes();
    std::iter::from_fn(move || {
        let to_border = BLOCK_BYTES - (offset % BLOCK_BYTES as u64) as usize;
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
