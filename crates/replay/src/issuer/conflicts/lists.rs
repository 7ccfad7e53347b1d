//! Lists of requests by the chunks that they touch.
//!
//! A target is divided into chunks of one size, which are hashed into lists. A request is in the list of each chunk that
//! it touches:
//!
//! ```text
//!  chunks    0         1         2         3
//!            |---------|---------|---------|
//!  slot 3         [========]                   in chunks 0 and 1
//!  slot 7               [==]                   in chunk 1
//! ```
//!
//! Two requests can share several chunks; only the first shared chunk counts, so each overlap is found once.

use std::ops::RangeInclusive;

use super::range::Range;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    next: u32,
    chunk: u64,
}

/// Lists for one chunk size, in constant memory.
#[derive(Debug)]
pub struct Lists {
    /// log2 of the sectors per chunk: a shift is much faster than a division.
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

    /// Whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.unused == self.entries.len()
    }

    /// Number of chunks that a request touches.
    pub fn count(&self, range: &Range) -> u64 {
        let chunks = self.chunks(range);
        chunks.end() - chunks.start() + 1
    }

    /// Whether enough entries are free for a request.
    pub fn has_room(&self, range: &Range) -> bool {
        self.count(range) <= self.unused as u64
    }

    fn chunks(&self, range: &Range) -> RangeInclusive<u64> {
        let last = range.sector + range.sectors.max(1) - 1;
        range.sector >> self.chunk_bits..=last >> self.chunk_bits
    }

    /// Adds a request. [`has_room`](Self::has_room) must be true.
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

    /// Removes a request.
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

    /// Calls `found` once for each listed request that overlaps `range`; `ranges` has the range of each slot.
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
        // Fibonacci hashing: adjacent chunks go to distant lists.
        let key = (chunk ^ (u64::from(target) << 48)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (key >> 32) as usize & (self.heads.len() - 1)
    }
}
