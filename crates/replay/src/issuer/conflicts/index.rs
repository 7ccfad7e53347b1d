//! Index of tracked requests, to find overlaps in constant memory and in a time independent of their number.
//!
//! | request | is listed in | finds overlaps in |
//! |---|---|---|
//! | short: up to 2 MiB | lists of small chunks; since the first long request, also of large chunks | lists of short requests by small chunks, of long requests by large chunks |
//! | long: up to 4 GiB | lists of large chunks | all lists of large chunks |
//! | longer | no list; every search checks it | all slots |
//!
//! A request is in no list either if its lists are full.

use super::lists::Lists;
use super::range::Range;

/// Small chunks: 64 KiB, as log2 of sectors. Most requests touch one or two.
const SMALL_CHUNK_BITS: u32 = 7;
/// Large chunks: 16 MiB, as log2 of sectors. A discard of 1 GiB touches 64.
const LARGE_CHUNK_BITS: u32 = 15;
/// Maximum number of small chunks of a short request.
const MAX_SMALL_CHUNKS: u64 = 32;
/// Maximum number of large chunks of a listed request.
const MAX_LARGE_CHUNKS: u64 = 256;

/// Where a request is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Short,
    Long,
    Unlisted,
}

/// The tracked requests, by position.
#[derive(Debug)]
pub struct Index {
    /// Short requests by small chunks.
    short: Lists,
    /// Short requests by large chunks, for searches of long requests; maintained since the first long request.
    short_for_long: Lists,
    has_long_searches: bool,
    /// Long requests by large chunks.
    long: Lists,
    /// Slots in no list.
    unlisted: Vec<u32>,
    /// The range and the list of each slot.
    ranges: Vec<Option<Range>>,
    listings: Vec<Listing>,
}

impl Index {
    pub fn new(slots: usize) -> Self {
        Self {
            short: Lists::new(SMALL_CHUNK_BITS, slots * 4),
            // A short request is smaller than a large chunk, so it touches at most two.
            short_for_long: Lists::new(LARGE_CHUNK_BITS, slots * 2),
            has_long_searches: false,
            long: Lists::new(LARGE_CHUNK_BITS, slots * 4),
            unlisted: Vec::with_capacity(slots),
            ranges: vec![None; slots],
            listings: vec![Listing::Unlisted; slots],
        }
    }

    /// Whether it touches many small chunks, so that a search for its overlaps can be slow.
    pub fn is_long(&self, range: &Range) -> bool {
        self.short.count(range) > MAX_SMALL_CHUNKS
    }

    pub fn insert(&mut self, slot: u32, range: Range) {
        debug_assert!(self.ranges[slot as usize].is_none(), "slot {slot} is in use");
        let listing = if !self.is_long(&range) && self.short.has_room(&range) {
            self.short.insert(slot, &range);
            if self.has_long_searches {
                self.short_for_long.insert(slot, &range);
            }
            Listing::Short
        } else if self.long.count(&range) <= MAX_LARGE_CHUNKS && self.long.has_room(&range) {
            self.long.insert(slot, &range);
            Listing::Long
        } else {
            self.unlisted.push(slot);
            Listing::Unlisted
        };
        self.ranges[slot as usize] = Some(range);
        self.listings[slot as usize] = listing;
    }

    /// Removes a request; `None` if it was not tracked.
    pub fn remove(&mut self, slot: u32) -> Option<Range> {
        let range = self.ranges[slot as usize].take()?;
        match self.listings[slot as usize] {
            Listing::Short => {
                self.short.remove(slot, &range);
                if self.has_long_searches {
                    self.short_for_long.remove(slot, &range);
                }
            }
            Listing::Long => self.long.remove(slot, &range),
            Listing::Unlisted => self.unlisted.retain(|&s| s != slot),
        }
        Some(range)
    }

    /// Prepares the index for a search of this range.
    pub fn prepare(&mut self, range: &Range) {
        if !self.has_long_searches && self.is_long(range) {
            self.has_long_searches = true;
            for (slot, tracked) in self.ranges.iter().enumerate() {
                if let Some(tracked) = tracked.as_ref().filter(|_| self.listings[slot] == Listing::Short) {
                    self.short_for_long.insert(slot as u32, tracked);
                }
            }
        }
    }

    /// Calls `found` once for each tracked request that overlaps `range`. Needs [`Index::prepare`] for this range before.
    pub fn overlapping(&self, range: Range, mut found: impl FnMut(u32, &Range)) {
        if self.long.count(&range) > MAX_LARGE_CHUNKS {
            // Checking each slot once is cheaper than searching so many chunks.
            for slot in 0..self.ranges.len() as u32 {
                self.check_slot(slot, &range, &mut found);
            }
            return;
        }
        for &slot in &self.unlisted {
            self.check_slot(slot, &range, &mut found);
        }
        if !self.long.is_empty() {
            self.long.overlapping(&range, &self.ranges, &mut found);
        }
        let short = if self.is_long(&range) { &self.short_for_long } else { &self.short };
        short.overlapping(&range, &self.ranges, found);
    }

    fn check_slot(&self, slot: u32, range: &Range, found: &mut impl FnMut(u32, &Range)) {
        if let Some(other) = &self.ranges[slot as usize]
            && range.overlaps(other)
        {
            found(slot, other);
        }
    }
}
