//! A read cache: reads of cached blocks are answered without the medium. Reads and writes put their blocks into the cache,
//! and the block that was used least recently leaves it. A block counts as cached from the arrival of the request that
//! fetches it.

use std::collections::HashMap;

use iosonar_trace::params::{Key, Section, Takes};
use iosonar_trace::{Nanos, Op};

use super::law::{Arrival, Law, Passage};
use super::values::{Size, Speed, Time};

/// Settings of a read cache.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadCacheSettings {
    pub size: Size,
    /// The unit that is cached; 4 KiB unless set.
    pub block: Option<Size>,
    /// The time of a hit.
    pub time: Time,
    /// Bytes per second of a hit, in addition; unlimited unless set.
    pub speed: Option<Speed>,
}

impl ReadCacheSettings {
    const MAX_BLOCKS: u64 = 1 << 24;

    fn blocks(&self) -> u64 {
        self.size.0 / self.block_bytes()
    }

    fn block_bytes(&self) -> u64 {
        self.block.map_or(4096, |block| block.0)
    }

    pub const KEYS: &[Key] = &[
        Key::new("size", Takes::Number, "Its size").required(),
        Key::new("block", Takes::Number, "The unit that is cached (default 4K)"),
        Key::new("time", Takes::Number, "The time of a hit").required(),
        Key::new("speed", Takes::Number, "Bytes per second of a hit, in addition (default: unlimited)"),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let settings = Self {
            size: section.required("size", Size::parse)?,
            block: section.parsed("block", Size::parse)?,
            time: section.required("time", Time::parse)?,
            speed: section.parsed("speed", Speed::parse)?,
        };
        match settings.blocks() {
            0 => Err(section.error("size", "smaller than a block; increase it, or choose a smaller block")),
            blocks if blocks > Self::MAX_BLOCKS => {
                let why =
                    format!("{blocks} blocks are more than the limit of {}; choose a larger block", Self::MAX_BLOCKS);
                Err(section.error("size", &why))
            }
            _ => Ok(settings),
        }
    }
}

const NONE: u32 = u32::MAX;

/// A cached block, in a list by time of use.
#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u64,
    newer: u32,
    older: u32,
}

/// A cache that replaces the least recently used block.
#[derive(Debug)]
pub struct ReadCache {
    block_bytes: u64,
    time: Nanos,
    speed: Option<Speed>,
    capacity: usize,
    places: HashMap<u64, u32>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
}

impl ReadCache {
    /// An empty cache, with valid settings.
    pub fn new(settings: &ReadCacheSettings) -> Self {
        let capacity = settings.blocks() as usize;
        Self {
            block_bytes: settings.block_bytes(),
            time: settings.time.0,
            speed: settings.speed,
            capacity,
            // An insertion precedes the removal.
            places: HashMap::with_capacity(capacity + 1),
            entries: Vec::with_capacity(capacity),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Puts a block at the front. Returns whether it was cached.
    fn touch(&mut self, block: u64) -> bool {
        let known = self.places.get(&block).copied();
        let place = match known {
            Some(place) => {
                self.unlink(place);
                place
            }
            None if self.entries.len() < self.capacity => {
                self.entries.push(Entry { block, newer: NONE, older: NONE });
                self.entries.len() as u32 - 1
            }
            None => {
                let oldest = self.oldest;
                self.unlink(oldest);
                self.places.remove(&self.entries[oldest as usize].block);
                oldest
            }
        };
        self.entries[place as usize] = Entry { block, newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = place,
            newest => self.entries[newest as usize].newer = place,
        }
        self.newest = place;
        if known.is_none() {
            self.places.insert(block, place);
        }
        known.is_some()
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

impl Law for ReadCache {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        if passage.answer.is_some() || !matches!(request.op, Op::Read | Op::Write) || request.length == 0 {
            return;
        }
        let mut is_hit = true;
        for block in request.chunks(self.block_bytes, u64::MAX) {
            is_hit &= self.touch(block);
        }
        if is_hit && request.op == Op::Read {
            passage.answer = Some(self.time + self.speed.map_or(Nanos::ZERO, |speed| speed.time(request.length)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn the_least_recently_used_block_leaves_the_cache() {
        let settings = ReadCacheSettings { size: Size(3 * 4096), block: None, time: Time(Nanos(5)), speed: None };
        let mut cache = ReadCache::new(&settings);
        let mut is_hit = |op, block| pass(&mut cache, &arrival(0, op, block)).answer.is_some();
        assert_eq!([0, 1, 2, 0, 1].map(|block| is_hit(Op::Read, block)), [false, false, false, true, true]);
        // A write is not answered, but its block is cached, and block 2 leaves.
        assert!(!is_hit(Op::Write, 3));
        assert_eq!([3, 0, 1, 2, 3].map(|block| is_hit(Op::Read, block)), [true, true, true, false, false]);
    }
}
