//! Finds the tracked requests that overlap a range, in constant time and constant memory.
//!
//! The device is cut into chunks of 64 KiB, and chunks are hashed into lists. A request stands in the list of each chunk
//! that it touches:
//!
//! ```text
//!  sectors   0        128       256       384
//!            |---------|---------|---------|
//!  slot 3         [========]                   in chunks 0 and 1
//!  slot 7               [==]                   in chunk 1
//! ```
//!
//! Two requests may meet in several chunks; only the first chunk that they share counts, so each is found once. A request
//! of very many chunks, or one for which no more list entries are left, goes to a short list that is looked through whole.

const CHUNK_SECTORS: u64 = 128;
/// A request of more chunks than this is "long".
const MOST_CHUNKS: u64 = 32;
const NONE: u32 = u32::MAX;

/// The part of a target that a request touches, and whether it modifies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Which target.
    pub target: u16,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Whether its content may change.
    pub modifies: bool,
}

impl Range {
    fn first_chunk(&self) -> u64 {
        self.sector / CHUNK_SECTORS
    }

    fn last_chunk(&self) -> u64 {
        (self.sector + self.sectors.max(1) - 1) / CHUNK_SECTORS
    }

    /// Whether looking for its overlaps means looking at every request.
    pub fn is_long(&self) -> bool {
        self.last_chunk() - self.first_chunk() >= MOST_CHUNKS
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.target == other.target
            && self.sector < other.sector + other.sectors
            && other.sector < self.sector + self.sectors
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u32,
    next: u32,
    chunk: u64,
}

/// The requests that are tracked, by place.
#[derive(Debug)]
pub struct Index {
    /// First entry of each hash list.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    free: u32,
    unused: usize,
    /// What stands in each slot.
    ranges: Vec<Option<Range>>,
    /// Slots that stand in no list.
    long: Vec<u32>,
    is_long: Vec<bool>,
}

impl Index {
    pub fn new(slots: usize) -> Self {
        let entries = slots * 4;
        Self {
            heads: vec![NONE; (slots * 4).next_power_of_two()],
            entries: (0..entries)
                .map(|i| Entry { slot: NONE, next: if i + 1 == entries { NONE } else { i as u32 + 1 }, chunk: 0 })
                .collect(),
            free: 0,
            unused: entries,
            ranges: vec![None; slots],
            long: Vec::with_capacity(slots),
            is_long: vec![false; slots],
        }
    }

    pub fn insert(&mut self, slot: u32, range: Range) {
        debug_assert!(self.ranges[slot as usize].is_none(), "slot {slot} is in use");
        self.ranges[slot as usize] = Some(range);
        let chunks = range.last_chunk() - range.first_chunk() + 1;
        if chunks > MOST_CHUNKS || chunks > self.unused as u64 {
            self.is_long[slot as usize] = true;
            self.long.push(slot);
            return;
        }
        for chunk in range.first_chunk()..=range.last_chunk() {
            let list = self.list(range.target, chunk);
            let new = self.free;
            let entry = &mut self.entries[new as usize];
            self.free = entry.next;
            *entry = Entry { slot, next: self.heads[list], chunk };
            self.heads[list] = new;
        }
        self.unused -= chunks as usize;
    }

    /// Forgets a request; `None` if it was not tracked.
    pub fn remove(&mut self, slot: u32) -> Option<Range> {
        let range = self.ranges[slot as usize].take()?;
        if std::mem::take(&mut self.is_long[slot as usize]) {
            self.long.retain(|&s| s != slot);
            return Some(range);
        }
        for chunk in range.first_chunk()..=range.last_chunk() {
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
        Some(range)
    }

    /// Calls `found` once for each tracked request that overlaps `range`.
    pub fn overlapping(&self, range: Range, mut found: impl FnMut(u32, &Range)) {
        for &slot in &self.long {
            self.report(slot, &range, &mut found);
        }
        if range.is_long() {
            // Longer than a walk over all slots is worth: look at each once.
            for slot in 0..self.ranges.len() as u32 {
                if !self.is_long[slot as usize] {
                    self.report(slot, &range, &mut found);
                }
            }
            return;
        }
        for chunk in range.first_chunk()..=range.last_chunk() {
            let mut at = self.heads[self.list(range.target, chunk)];
            while at != NONE {
                let Entry { slot, next, chunk: own } = self.entries[at as usize];
                at = next;
                let Some(other) = &self.ranges[slot as usize] else { continue };
                let first_shared = other.first_chunk().max(range.first_chunk());
                if own == chunk && first_shared == chunk && range.overlaps(other) {
                    found(slot, other);
                }
            }
        }
    }

    fn report(&self, slot: u32, range: &Range, found: &mut impl FnMut(u32, &Range)) {
        if let Some(other) = &self.ranges[slot as usize]
            && range.overlaps(other)
        {
            found(slot, other);
        }
    }

    #[inline]
    fn list(&self, target: u16, chunk: u64) -> usize {
        // Fibonacci hashing: neighbouring chunks go to lists far apart.
        let key = (chunk ^ (u64::from(target) << 48)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (key >> 32) as usize & (self.heads.len() - 1)
    }
}
