//! Requests by the chunks that they touch.
//!
//! A target is cut into chunks of one size, and chunks are hashed into lists. A request stands in the list of each chunk
//! that it touches:
//!
//! ```text
//!  chunks    0         1         2         3
//!            |---------|---------|---------|
//!  slot 3         [========]                   in chunks 0 and 1
//!  slot 7               [==]                   in chunk 1
//! ```
//!
//! Two requests may meet in several chunks; only the first chunk that they share counts, so each is found once.

use std::ops::RangeInclusive;

use super::range::Range;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    next: u32,
    chunk: u64,
}

/// The lists of one size of chunks, in constant memory.
#[derive(Debug)]
pub struct Lists {
    /// A chunk has 2 to this power of sectors: a shift is many times cheaper than a division.
    chunk_bits: u32,
    /// First entry of each hash list.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    free: u32,
    unused: usize,
}

impl Lists {
    pub fn new(chunk_bits: u32, entries: usize) -> Self {
        Self {
            chunk_bits,
            heads: vec![NONE; entries.next_power_of_two()],
            entries: (0..entries)
                .map(|i| Entry { slot: NONE, next: if i + 1 == entries { NONE } else { i as u32 + 1 }, chunk: 0 })
                .collect(),
            free: 0,
            unused: entries,
        }
    }

    /// Whether nothing stands in any list.
    pub fn is_empty(&self) -> bool {
        self.unused == self.entries.len()
    }

    /// How many chunks a request touches.
    pub fn count(&self, range: &Range) -> u64 {
        let chunks = self.chunks(range);
        chunks.end() - chunks.start() + 1
    }

    /// Whether there is room for a request.
    pub fn has_room(&self, range: &Range) -> bool {
        self.count(range) <= self.unused as u64
    }

    fn chunks(&self, range: &Range) -> RangeInclusive<u64> {
        let last = range.sector + range.sectors.max(1) - 1;
        range.sector >> self.chunk_bits..=last >> self.chunk_bits
    }

    /// Notes a request, for which there must be room.
    pub fn insert(&mut self, slot: u32, range: &Range) {
        for chunk in self.chunks(range) {
            let list = self.list(range.target, chunk);
            let new = self.free;
            let entry = &mut self.entries[new as usize];
            self.free = entry.next;
            *entry = Entry { slot, next: self.heads[list], chunk };
            self.heads[list] = new;
            self.unused -= 1;
        }
    }

    /// Forgets a request that was noted.
    pub fn remove(&mut self, slot: u32, range: &Range) {
        for chunk in self.chunks(range) {
            let list = self.list(range.target, chunk);
            let mut before = NONE;
            let mut at = self.heads[list];
            while self.entries[at as usize].slot != slot || self.entries[at as usize].chunk != chunk {
                (before, at) = (at, self.entries[at as usize].next);
            }
            let after = self.entries[at as usize].next;
            match before {
                NONE => self.heads[list] = after,
                _ => self.entries[before as usize].next = after,
            }
            self.entries[at as usize] = Entry { slot: NONE, next: self.free, chunk: 0 };
            self.free = at;
            self.unused += 1;
        }
    }

    /// Calls `found` once for each request here that overlaps `range`; `ranges` tells what stands in each slot.
    pub fn overlapping(&self, range: &Range, ranges: &[Option<Range>], mut found: impl FnMut(u32, &Range)) {
        let own = self.chunks(range);
        for chunk in own.clone() {
            let mut at = self.heads[self.list(range.target, chunk)];
            while at != NONE {
                let Entry { slot, next, chunk: listed } = self.entries[at as usize];
                at = next;
                let Some(other) = &ranges[slot as usize] else { continue };
                let first_shared = (*self.chunks(other).start()).max(*own.start());
                if listed == chunk && first_shared == chunk && range.overlaps(other) {
                    found(slot, other);
                }
            }
        }
    }

    #[inline]
    fn list(&self, target: u16, chunk: u64) -> usize {
        // Fibonacci hashing: neighbouring chunks go to lists far apart.
        let key = (chunk ^ (u64::from(target) << 48)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (key >> 32) as usize & (self.heads.len() - 1)
    }
}
