//! Finds the tracked requests that overlap a range, in constant memory, and in a time that does not grow with their number.
//!
//! | a request | stands in | and looks for overlaps among |
//! |---|---|---|
//! | of up to 2 MiB | lists of small chunks; of large ones as well, once there was a long request | the short ones in its small chunks, the long ones in its large chunks |
//! | of up to 4 GiB | lists of large chunks | all in its large chunks |
//! | longer, or without room in the lists | none: it is looked at by all | all |

use super::lists::Lists;
use super::range::Range;

/// 64 KiB, in bits of sectors: most requests touch one or two.
const SMALL: u32 = 7;
/// 16 MiB, likewise: a discard of a GiB touches 64.
const LARGE: u32 = 15;
/// A request of more small chunks than this is long.
const MOST_SMALL: u64 = 32;
/// One of more large chunks than this is looked at by all.
const MOST_LARGE: u64 = 256;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Short,
    Long,
    Nowhere,
}

/// The requests that are tracked, by place.
#[derive(Debug)]
pub struct Index {
    /// Short requests by small chunks.
    short: Lists,
    /// Short requests by large chunks, for long ones to find; kept from when the first long one came.
    short_for_long: Lists,
    is_kept: bool,
    /// Long requests by large chunks.
    long: Lists,
    /// Slots that stand in no list.
    nowhere: Vec<u32>,
    /// What stands in each slot, and where.
    ranges: Vec<Option<Range>>,
    stands: Vec<Stand>,
}

impl Index {
    pub fn new(slots: usize) -> Self {
        Self {
            short: Lists::new(SMALL, slots * 4),
            // A short request is smaller than a large chunk: it touches two at most.
            short_for_long: Lists::new(LARGE, slots * 2),
            is_kept: false,
            long: Lists::new(LARGE, slots * 4),
            nowhere: Vec::with_capacity(slots),
            ranges: vec![None; slots],
            stands: vec![Stand::Nowhere; slots],
        }
    }

    /// Whether looking for its overlaps may mean looking at very many.
    pub fn is_long(&self, range: &Range) -> bool {
        self.short.count(range) > MOST_SMALL
    }

    pub fn insert(&mut self, slot: u32, range: Range) {
        debug_assert!(self.ranges[slot as usize].is_none(), "slot {slot} is in use");
        let stand = if !self.is_long(&range) && self.short.has_room(&range) {
            self.short.insert(slot, &range);
            if self.is_kept {
                self.short_for_long.insert(slot, &range);
            }
            Stand::Short
        } else if self.long.count(&range) <= MOST_LARGE && self.long.has_room(&range) {
            self.long.insert(slot, &range);
            Stand::Long
        } else {
            self.nowhere.push(slot);
            Stand::Nowhere
        };
        self.ranges[slot as usize] = Some(range);
        self.stands[slot as usize] = stand;
    }

    /// Forgets a request; `None` if it was not tracked.
    pub fn remove(&mut self, slot: u32) -> Option<Range> {
        let range = self.ranges[slot as usize].take()?;
        match self.stands[slot as usize] {
            Stand::Short => {
                self.short.remove(slot, &range);
                if self.is_kept {
                    self.short_for_long.remove(slot, &range);
                }
            }
            Stand::Long => self.long.remove(slot, &range),
            Stand::Nowhere => self.nowhere.retain(|&s| s != slot),
        }
        Some(range)
    }

    /// Readies what a request needs to look for its overlaps.
    pub fn prepare(&mut self, range: &Range) {
        if !self.is_kept && self.is_long(range) {
            self.is_kept = true;
            for (slot, tracked) in self.ranges.iter().enumerate() {
                if let Some(tracked) = tracked.as_ref().filter(|_| self.stands[slot] == Stand::Short) {
                    self.short_for_long.insert(slot as u32, tracked);
                }
            }
        }
    }

    /// Calls `found` once for each tracked request that overlaps `range`, which was given to [`Index::prepare`] before.
    pub fn overlapping(&self, range: Range, mut found: impl FnMut(u32, &Range)) {
        if self.long.count(&range) > MOST_LARGE {
            // Longer than a walk over all slots is worth: look at each once.
            for slot in 0..self.ranges.len() as u32 {
                self.report(slot, &range, &mut found);
            }
            return;
        }
        for &slot in &self.nowhere {
            self.report(slot, &range, &mut found);
        }
        if !self.long.is_empty() {
            self.long.overlapping(&range, &self.ranges, &mut found);
        }
        let short = if self.is_long(&range) { &self.short_for_long } else { &self.short };
        short.overlapping(&range, &self.ranges, found);
    }

    fn report(&self, slot: u32, range: &Range, found: &mut impl FnMut(u32, &Range)) {
        if let Some(other) = &self.ranges[slot as usize]
            && range.overlaps(other)
        {
            found(slot, other);
        }
    }
}
