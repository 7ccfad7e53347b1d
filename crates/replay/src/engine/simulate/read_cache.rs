//! A read cache: reads of cached blocks are answered without the medium. Reads and writes put their blocks into the cache,
//! and the block that was used least recently leaves it. A block counts as cached from the arrival of the request that
//! fetches it.
//!
//! Several are a hierarchy, and each request counts as a use in all of them: so an inclusive lower cache also holds
//! what is in the upper one, and an exclusive one, which takes the blocks that leave the upper one, holds with it what one
//! cache of both sizes would (Mattson, Gecsei, Slutz and Traiger, "Evaluation Techniques for Storage Hierarchies", 1970).

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
    /// Whether it holds the blocks that left the cache above it, and none that is there.
    pub exclusive: bool,
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
        Key::new(
            "exclusive",
            Takes::Flag,
            "Whether it holds only blocks that left the cache above (default false: also those that are there)",
        ),
    ];

    /// Reads the tables, the upper cache first.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read_all(sections: &[Section<'_, '_>]) -> Result<Vec<Self>, String> {
        let (mut all, mut above) = (Vec::<Self>::new(), 0);
        for section in sections {
            let settings = Self::read(section, all.last())?;
            above = settings.held(above);
            if above > Self::MAX_BLOCKS {
                let with = if settings.exclusive { ", with those above," } else { "" };
                let most = Self::MAX_BLOCKS;
                let why = format!("{above} blocks{with} are more than the limit of {most}; choose a larger block");
                return Err(section.error("size", &why));
            }
            all.push(settings);
        }
        Ok(all)
    }

    fn read(section: &Section<'_, '_>, upper: Option<&Self>) -> Result<Self, String> {
        let settings = Self {
            size: section.required("size", Size::parse)?,
            block: section.parsed("block", Size::parse)?,
            time: section.required("time", Time::parse)?,
            speed: section.parsed("speed", Speed::parse)?,
            exclusive: section.flag("exclusive")?.unwrap_or(false),
        };
        if settings.blocks() == 0 {
            return Err(section.error("size", "smaller than a block; increase it, or choose a smaller block"));
        }
        match upper.map(Self::block_bytes) {
            None if settings.exclusive => Err(section.error("exclusive", "no cache is above this one; remove it")),
            Some(bytes) if settings.exclusive && settings.block_bytes() != bytes => {
                let why =
                    format!("an exclusive cache has blocks of {bytes} bytes, as the one above; set it to the same");
                Err(section.error("block", &why))
            }
            _ => Ok(settings),
        }
    }

    /// The blocks that a request finds in it, or above it if it is exclusive.
    fn held(&self, above: u64) -> u64 {
        self.blocks() + if self.exclusive { above } else { 0 }
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
struct ReadCache {
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
    /// An empty cache of so many blocks.
    fn new(settings: &ReadCacheSettings, blocks: u64) -> Self {
        let capacity = blocks as usize;
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

/// Read caches, the upper one first.
#[derive(Debug)]
pub struct ReadCaches(Vec<ReadCache>);

impl ReadCaches {
    /// Empty caches, with valid settings.
    pub fn new(all: &[ReadCacheSettings]) -> Self {
        let mut above = 0;
        let caches = all.iter().map(|settings| {
            above = settings.held(above);
            ReadCache::new(settings, above)
        });
        Self(caches.collect())
    }
}

impl Law for ReadCaches {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        if passage.answer.is_some() || !matches!(request.op, Op::Read | Op::Write) || request.length == 0 {
            return;
        }
        for cache in &mut self.0 {
            let mut is_hit = true;
            for block in request.chunks(cache.block_bytes, u64::MAX) {
                is_hit &= cache.touch(block);
            }
            if is_hit && request.op == Op::Read && passage.answer.is_none() {
                let transfer = cache.speed.map_or(Nanos::ZERO, |speed| speed.time(request.length));
                passage.answer = Some(cache.time + transfer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::testing::{arrival, pass};
    use super::*;

    /// A cache of so many blocks whose hits take this time.
    fn level(blocks: u64, time: i64, exclusive: bool) -> ReadCacheSettings {
        let (size, time) = (Size(blocks * 4096), Time(Nanos(time)));
        ReadCacheSettings { size, block: None, time, speed: None, exclusive }
    }

    /// The time of a read of this block; 0 from the medium.
    fn read(caches: &mut ReadCaches, block: u64) -> i64 {
        pass(caches, &arrival(0, Op::Read, block)).answer.map_or(0, |time| time.0)
    }

    #[test]
    fn the_least_recently_used_block_leaves_the_cache() {
        let mut cache = ReadCaches::new(&[level(3, 5, false)]);
        let mut is_hit = |op, block| pass(&mut cache, &arrival(0, op, block)).answer.is_some();
        assert_eq!([0, 1, 2, 0, 1].map(|block| is_hit(Op::Read, block)), [false, false, false, true, true]);
        // A write is not answered, but its block is cached, and block 2 leaves.
        assert!(!is_hit(Op::Write, 3));
        assert_eq!([3, 0, 1, 2, 3].map(|block| is_hit(Op::Read, block)), [true, true, true, false, false]);
    }

    #[test]
    fn a_loop_is_served_by_the_level_that_holds_it() {
        // Blocks of the upper and lower cache, whether it is exclusive, of the loop; the time of all but its first round.
        for (upper, lower, exclusive, blocks, time) in [
            (8, 32, false, 8, 1),
            (8, 32, false, 9, 2),
            (8, 32, false, 32, 2),
            (8, 32, false, 33, 0),
            (8, 32, true, 33, 2),
            (8, 32, true, 40, 2),
            (8, 32, true, 41, 0),
            // One that is not larger than the upper cache serves nothing, unless it is exclusive.
            (8, 8, false, 9, 0),
            (8, 4, false, 9, 0),
            (8, 4, true, 12, 2),
        ] {
            let mut caches = ReadCaches::new(&[level(upper, 1, false), level(lower, 2, exclusive)]);
            let times: Vec<i64> = (0..5 * blocks).map(|number| read(&mut caches, number % blocks)).collect();
            let expected = [vec![0; blocks as usize], vec![time; 4 * blocks as usize]].concat();
            assert_eq!(times, expected, "{upper} {lower} {exclusive} {blocks}");
        }
    }

    /// Two lists of blocks, the most recently used first: an exclusive cache moves blocks between them.
    #[test]
    fn an_exclusive_cache_takes_what_leaves_the_upper_one() {
        let mut caches = ReadCaches::new(&[level(20, 1, false), level(50, 2, true)]);
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..20_000 {
            let block = (random.next_u64() % 150).min(random.next_u64() % 150);
            let take = |list: &mut Vec<u64>| list.iter().position(|one| *one == block).map(|place| list.remove(place));
            let expected = if take(&mut upper).is_some() { 1 } else { 2 * i64::from(take(&mut lower).is_some()) };
            upper.insert(0, block);
            lower.splice(0..0, upper.drain(20.min(upper.len())..));
            lower.truncate(50);
            assert_eq!(read(&mut caches, block), expected);
        }
    }
}
