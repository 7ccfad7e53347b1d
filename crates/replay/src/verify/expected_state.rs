//! What every sector of the run's targets must hold, in bounded memory.
//!
//! A block of eight sectors costs 41 bytes in a hash table that is between 44 and 88 % full: 47 to 94 bytes for each
//! 4 KiB that were written. The table is cut into [`DRAWERS`] by the block's hash, each growing by itself, so that growing
//! never takes long and never needs twice the memory. When the limit is reached, half of the drawers are closed for good:
//! what belongs into a closed drawer is not known any more. The rest is a fair sample, because the hash has nothing to do
//! with what blocks hold or when they are used.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::block::{self, BLOCK_SECTORS, Change, Content, Span, Verdict};
use super::header::Found;

/// Parts of the table; one of so many is the smallest share that is ever known.
const DRAWERS: usize = 4096;
/// Bytes of an entry of the table: key, contents, and the table's own byte.
const BLOCK_BYTES: usize = 8 + 4 * BLOCK_SECTORS as usize + 1;
/// Bytes of a change with its share of the list that it stands in.
const CHANGE_BYTES: usize = 2 * size_of::<Change>() + 48;
/// Bytes of an entry in the list of what is to be settled.
const DUE_BYTES: usize = 2 * size_of::<(u64, u64)>();
/// Sectors of a target that a key has room for.
const SECTOR_BITS: u32 = 48;

type Contents = [Content; BLOCK_SECTORS as usize];
type Table<T> = HashMap<u64, T, BuildHasherDefault<Mixed>>;

/// Some sectors of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which target.
    pub target: u16,
    /// The first.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
}

/// What a request did, or may have done, to its sectors.
#[derive(Clone, Copy, Debug)]
pub struct WriteEffect {
    /// Where.
    pub place: Place,
    /// What is there if it was done.
    pub content: Content,
    /// Whether it was done.
    pub is_done: bool,
    /// When it was with the target.
    pub span: Span,
    /// See [`Change::fence`].
    pub fence: u64,
}

/// What is known of all sectors.
#[derive(Debug)]
pub struct ExpectedState {
    shards: Vec<Shard>,
    limit_bytes: usize,
    bytes: usize,
    /// Blocks with changes that can be settled when the request of that sequence number and all before it are through.
    due: VecDeque<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Shard {
    base: Table<Contents>,
    changes: Table<Vec<Change>>,
}

impl Shard {
    fn base_bytes(&self) -> usize {
        // A table is at most 7/8 full.
        self.base.capacity() / 7 * 8 * BLOCK_BYTES
    }

    fn bytes(&self) -> usize {
        self.base_bytes() + self.changes.values().map(|c| c.len() * CHANGE_BYTES).sum::<usize>()
    }
}

impl ExpectedState {
    /// That takes no more than about so many bytes.
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            shards: std::iter::repeat_with(Shard::default).take(DRAWERS).collect(),
            limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX),
            bytes: 0,
            due: VecDeque::new(),
        }
    }

    /// Enters a change. `low` is the sequence number up to which all requests are through, this one counted as such.
    pub fn enter(&mut self, deed: &WriteEffect, low: u64) {
        for (key, sectors) in blocks(deed.place) {
            if drawer_of(key) >= self.shards.len() {
                continue;
            }
            self.enter_block(key, sectors, deed, low);
            while self.bytes > self.limit_bytes && self.shards.len() > 1 {
                self.close_half();
            }
        }
    }

    fn enter_block(&mut self, key: u64, sectors: u8, deed: &WriteEffect, low: u64) {
        let shard = &mut self.shards[drawer_of(key)];
        let before = shard.base.capacity();
        let base = match shard.base.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert([Content::BEFORE; BLOCK_SECTORS as usize]),
        };
        let is_certain = deed.is_done && deed.fence <= low;
        // Most requests don't look for changes at all: there are none.
        let waits = !shard.changes.is_empty() && shard.changes.contains_key(&key);
        if is_certain && !waits {
            for (i, content) in base.iter_mut().enumerate() {
                if sectors & (1 << i) != 0 {
                    *content = deed.content;
                }
            }
        } else {
            let changes = shard.changes.entry(key).or_default();
            let (count, change) = (
                changes.len(),
                Change { sectors, content: deed.content, is_done: deed.is_done, span: deed.span, fence: deed.fence },
            );
            block::add(changes, change);
            self.bytes = self.bytes + changes.len() * CHANGE_BYTES - count * CHANGE_BYTES;
            if deed.is_done {
                self.due.push_back((deed.fence, key));
                self.bytes += DUE_BYTES;
            }
        }
        if shard.base.capacity() != before {
            self.bytes += shard.base_bytes() - before / 7 * 8 * BLOCK_BYTES;
        }
    }

    /// Settles what can be, now that the request of sequence number `low` and all before it are through and entered.
    pub fn settle(&mut self, low: u64) {
        while let Some(&(fence, key)) = self.due.front()
            && fence <= low
        {
            self.due.pop_front();
            self.bytes -= DUE_BYTES;
            let Some(shard) = self.shards.get_mut(drawer_of(key)) else { continue };
            let (Some(base), Some(changes)) = (shard.base.get_mut(&key), shard.changes.get_mut(&key)) else {
                continue;
            };
            let before = changes.len();
            block::settle(base, changes, low);
            self.bytes -= (before - changes.len()) * CHANGE_BYTES;
            if changes.is_empty() {
                shard.changes.remove(&key);
            }
        }
    }

    /// Closes half of the drawers.
    fn close_half(&mut self) {
        let left = self.shards.len() / 2;
        self.shards.truncate(left);
        self.due.retain(|(_, key)| drawer_of(*key) < left);
        self.bytes = self.shards.iter().map(Shard::bytes).sum::<usize>() + self.due.len() * DUE_BYTES;
    }

    /// Judges sectors of one block that were read: calls `judged` with each one's number in the block.
    pub fn judge(
        &self,
        key: u64,
        sectors: u8,
        found: impl Fn(u32) -> Found,
        read: Span,
        mut judged: impl FnMut(u32, Found, Option<Verdict>),
    ) {
        let shard = self.shards.get(drawer_of(key));
        let base = shard.and_then(|d| d.base.get(&key)).copied().unwrap_or_default();
        let changes = shard.filter(|d| !d.changes.is_empty()).and_then(|d| d.changes.get(&key));
        let changes = changes.map_or(&[][..], Vec::as_slice);
        for sector in (0..BLOCK_SECTORS as u32).filter(|s| sectors & (1 << s) != 0) {
            let found = found(sector);
            let verdict = shard.map(|_| block::judge(base[sector as usize], changes, sector, &found, read));
            judged(sector, found, verdict);
        }
    }

    /// Judges one sector as if this change had been entered as well.
    pub fn judge_with(&self, key: u64, sector: u32, found: &Found, read: Span, change: Change) -> Verdict {
        let Some(shard) = self.shards.get(drawer_of(key)) else { return Verdict::Unknown };
        let base = shard.base.get(&key).copied().unwrap_or_default();
        let mut changes = shard.changes.get(&key).cloned().unwrap_or_default();
        changes.push(change);
        block::judge(base[sector as usize], &changes, sector, found, read)
    }

    /// The share of all blocks that is known.
    pub fn share(&self) -> f64 {
        self.shards.len() as f64 / DRAWERS as f64
    }

    /// Memory that it takes, about, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many sectors can be checked: they were written or zeroed, and not discarded since
    /// where that leaves anything.
    pub fn sectors(&self) -> u64 {
        let count = |shard: &Shard| {
            shard.base.iter().map(|(key, base)| u64::from(shard.checkable(*key, base).count_ones())).sum::<u64>()
        };
        self.shards.iter().map(count).sum()
    }

    /// The next blocks, in order, behind that key, with the sectors that can be checked: up to `most`, all in memory that
    /// does not depend on how many there are.
    pub fn next(&self, behind: Option<u64>, most: usize) -> Vec<(u64, u8)> {
        let mut found: Vec<(u64, u8)> = Vec::with_capacity(2 * most);
        for shard in &self.shards {
            for (&key, base) in &shard.base {
                let sectors = shard.checkable(key, base);
                if behind.is_some_and(|behind| key <= behind) || sectors == 0 {
                    continue;
                }
                if found.len() == 2 * most {
                    found.select_nth_unstable(most);
                    found.truncate(most);
                }
                found.push((key, sectors));
            }
        }
        found.sort_unstable();
        found.truncate(most);
        found
    }
}

impl Shard {
    /// Which sectors of a block can be checked, as bits.
    fn checkable(&self, key: u64, base: &Contents) -> u8 {
        let changed = if self.changes.is_empty() { None } else { self.changes.get(&key) };
        let changed = changed.map_or(0, |changes| changes.iter().fold(0, |all, c| all | c.sectors));
        (0..BLOCK_SECTORS as usize).fold(0, |bits, i| {
            let is_known = base[i] != Content::BEFORE && base[i] != Content::ANYTHING;
            bits | u8::from(is_known || changed & (1 << i) != 0) << i
        })
    }
}

/// The blocks of some sectors: key, and which of the block's sectors, as bits.
pub fn blocks(place: Place) -> impl Iterator<Item = (u64, u8)> {
    let (start, end) = (place.sector, place.sector + place.sectors);
    let target = u64::from(place.target) << SECTOR_BITS;
    let last = if place.sectors == 0 { 0 } else { end.div_ceil(BLOCK_SECTORS) };
    (start / BLOCK_SECTORS..last).map(move |block| {
        let first = block * BLOCK_SECTORS;
        let from = start.max(first) - first;
        let to = end.min(first + BLOCK_SECTORS) - first;
        (target | block, ((1_u16 << to) - (1 << from)) as u8)
    })
}

/// Where a block begins.
pub fn start_of(key: u64) -> (u16, u64) {
    ((key >> SECTOR_BITS) as u16, (key & ((1 << SECTOR_BITS) - 1)) * BLOCK_SECTORS)
}

/// Which drawer a block belongs into. Not told by the bits that the tables themselves use: the highest and the lowest.
fn drawer_of(key: u64) -> usize {
    (mix(key) >> 40) as usize % DRAWERS
}

/// Spreads keys that lie side by side.
fn mix(key: u64) -> u64 {
    let x = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Hashes keys by [`mix`].
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = mix(key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iosonar_trace::Nanos;
    use proptest::prelude::*;

    use super::*;
    use crate::verify::header::Header;

    fn write(sequence_number: u64, target: u16, sector: u64, sectors: u64) -> WriteEffect {
        let place = Place { target, sector, sectors };
        let span =
            Span { issued: Nanos(sequence_number as i64 * 10), completed: Nanos(sequence_number as i64 * 10 + 5) };
        WriteEffect { place, content: Content::of(sequence_number), is_done: true, span, fence: sequence_number }
    }

    fn own(sequence_number: u64, target: u16, sector: u64) -> Found {
        let (request, offset, length, iteration) = (0, 0, 1, 0);
        Found::Own(Header { run: 1, target, sequence_number, request, sector, offset, length, iteration })
    }

    const LATER: Span = Span { issued: Nanos(i64::MAX - 1), completed: Nanos(i64::MAX) };

    /// How many of these blocks are known, all of which must hold the sequence number that is their number.
    fn known(ledger: &ExpectedState, blocks: std::ops::Range<u64>) -> u64 {
        let mut known = 0;
        for block in blocks {
            ledger.judge(
                block,
                1,
                |_| own(block, 0, block * 8),
                LATER,
                |_, _, verdict| {
                    if let Some(verdict) = verdict {
                        assert_eq!(verdict, Verdict::Right);
                        known += 1;
                    }
                },
            );
        }
        known
    }

    #[test]
    fn beyond_its_memory_it_knows_a_fair_sample() {
        let limit = 4 << 20;
        let mut ledger = ExpectedState::new(limit);
        for block in 1..1_000_001 {
            ledger.enter(&write(block, 0, block * 8, 8), u64::MAX);
            assert!(ledger.bytes() as u64 <= limit);
        }
        // A million blocks need 47 to 94 MB.
        assert!((1.0 / 32.0..=1.0 / 8.0).contains(&ledger.share()), "{}", ledger.share());
        let estimated = ledger.sectors() as f64 / 8.0 / ledger.share();
        assert!((0.97e6..1.03e6).contains(&estimated), "{estimated}");
        // What is known does not depend on when it was written.
        let (early, late) = (known(&ledger, 1..300_000), known(&ledger, 700_000..1_000_000));
        assert!(early.abs_diff(late) < early / 10, "{early} {late}");
    }

    #[test]
    fn a_block_costs_what_is_said() {
        let mut ledger = ExpectedState::new(1 << 30);
        for block in 0..1_000_000 {
            ledger.enter(&write(1, 0, block * 8, 8), u64::MAX);
        }
        let each = ledger.bytes() as f64 / 1e6;
        assert!((46.0..95.0).contains(&each), "{each} bytes for each block");
        assert_eq!(ledger.share(), 1.0);
    }

    proptest! {
        /// Against one number for each sector.
        #[test]
        fn sectors_hold_what_was_written_last(
            writes in prop::collection::vec((0_u16..3, 0_u64..100, 0_u64..40), 1..60), most in 1_usize..8,
        ) {
            let mut ledger = ExpectedState::new(1 << 30);
            let mut model = BTreeMap::new();
            for (sequence_number, &(target, sector, sectors)) in (1..).zip(&writes) {
                ledger.enter(&write(sequence_number, target, sector, sectors), u64::MAX);
                model.extend((sector..sector + sectors).map(|sector| ((target, sector), sequence_number)));
            }
            prop_assert_eq!(ledger.sectors(), model.len() as u64);
            // The last pass comes by all of them, in their order.
            let mut seen = Vec::new();
            let mut behind = None;
            loop {
                let blocks = ledger.next(behind, most);
                let Some((last, _)) = blocks.last() else { break };
                behind = Some(*last);
                for (key, sectors) in blocks {
                    let (target, start) = start_of(key);
                    let found = |i| model.get(&(target, start + u64::from(i))).map_or(Found::Foreign, |g| own(*g, target, start + u64::from(i)));
                    ledger.judge(key, sectors, found, LATER, |i, _, verdict| {
                        assert_eq!(verdict, Some(Verdict::Right));
                        seen.push((target, start + u64::from(i)));
                    });
                }
            }
            prop_assert!(seen.iter().eq(model.keys()));
        }
    }
}
