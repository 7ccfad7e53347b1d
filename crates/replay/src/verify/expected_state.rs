//! The expected content of all sectors of the run's targets, in bounded memory.
//!
//! A block of eight sectors takes 41 bytes in a hash table that is 44 to 88 % full: 47 to 94 bytes per 4 KiB written. The
//! table is divided into [`SHARDS`] shards by the hash of the block. Each grows separately, so that growing is fast and
//! never needs twice the memory. At the memory limit, half of the shards are dropped permanently, and the content of
//! their blocks is no longer known. The remaining blocks are an unbiased sample, because the hash is independent of the
//! content and use of blocks.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::block::{self, BLOCK_SECTORS, Change, Content, Judgement, Span};
use super::header::Found;

/// Number of shards at the start; the smallest known share is one of them.
const SHARDS: usize = 4096;
/// Bytes of a table entry: key, contents, and a control byte of the table.
const BLOCK_BYTES: usize = 8 + 4 * BLOCK_SECTORS as usize + 1;
/// Bytes of a change, with its part of the list.
const CHANGE_BYTES: usize = 2 * size_of::<Change>() + 48;
/// Bytes of an entry of the settle queue.
const SETTLE_ENTRY_BYTES: usize = 2 * size_of::<(u64, u64)>();
/// Bits of the block number in a key.
const BLOCK_BITS: u32 = 48;

type Contents = [Content; BLOCK_SECTORS as usize];
type Table<T> = HashMap<u64, T, BuildHasherDefault<MixHasher>>;

/// A range of sectors on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRange {
    /// Index of the target.
    pub target: u16,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
}

/// The effect, or possible effect, of a request on its sectors.
#[derive(Clone, Copy, Debug)]
pub struct WriteEffect {
    /// The sectors that it may have changed.
    pub range: SectorRange,
    /// Their content if the request took effect.
    pub content: Content,
    /// Whether it certainly took effect.
    pub is_done: bool,
    /// When the request was in flight.
    pub span: Span,
    /// See [`Change::fence`].
    pub fence: u64,
}

impl WriteEffect {
    /// The effect on these sectors of a block, as bits.
    pub fn change(&self, sectors: u8) -> Change {
        let Self { content, is_done, span, fence, .. } = *self;
        Change { sectors, content, is_done, span, fence }
    }
}

/// The expected content of all sectors.
#[derive(Debug)]
pub struct ExpectedState {
    shards: Vec<Shard>,
    limit_bytes: usize,
    bytes: usize,
    /// Blocks with changes, and the sequence number up to which all requests must have completed to settle them.
    settle_queue: VecDeque<(u64, u64)>,
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
    /// Limits the memory to about this size.
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            shards: std::iter::repeat_with(Shard::default).take(SHARDS).collect(),
            limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX),
            bytes: 0,
            settle_queue: VecDeque::new(),
        }
    }

    /// Applies an effect. All requests up to `low` have completed, including this one if it is among them.
    pub fn apply(&mut self, effect: &WriteEffect, low: u64) {
        for (key, sectors) in blocks(effect.range) {
            if shard_of(key) >= self.shards.len() {
                continue;
            }
            self.apply_to_block(key, sectors, effect, low);
            while self.bytes > self.limit_bytes && self.shards.len() > 1 {
                self.drop_half();
            }
        }
    }

    fn apply_to_block(&mut self, key: u64, sectors: u8, effect: &WriteEffect, low: u64) {
        let shard = &mut self.shards[shard_of(key)];
        let before = shard.base.capacity();
        let base = match shard.base.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert([Content::INITIAL; BLOCK_SECTORS as usize]),
        };
        let is_certain = effect.is_done && effect.fence <= low;
        // Usually there are no changes.
        let has_changes = !shard.changes.is_empty() && shard.changes.contains_key(&key);
        if is_certain && !has_changes {
            for (i, content) in base.iter_mut().enumerate() {
                if sectors & (1 << i) != 0 {
                    *content = effect.content;
                }
            }
        } else {
            let changes = shard.changes.entry(key).or_default();
            let count = changes.len();
            block::add(changes, effect.change(sectors));
            self.bytes = self.bytes + changes.len() * CHANGE_BYTES - count * CHANGE_BYTES;
            if effect.is_done {
                self.settle_queue.push_back((effect.fence, key));
                self.bytes += SETTLE_ENTRY_BYTES;
            }
        }
        if shard.base.capacity() != before {
            self.bytes += shard.base_bytes() - before / 7 * 8 * BLOCK_BYTES;
        }
    }

    /// Settles changes that are certain, now that all requests up to `low` have completed and are applied.
    pub fn settle(&mut self, low: u64) {
        while let Some(&(fence, key)) = self.settle_queue.front()
            && fence <= low
        {
            self.settle_queue.pop_front();
            self.bytes -= SETTLE_ENTRY_BYTES;
            let Some(shard) = self.shards.get_mut(shard_of(key)) else { continue };
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

    /// Drops half of the shards.
    fn drop_half(&mut self) {
        let left = self.shards.len() / 2;
        self.shards.truncate(left);
        self.settle_queue.retain(|(_, key)| shard_of(*key) < left);
        self.bytes = self.shards.iter().map(Shard::bytes).sum::<usize>() + self.settle_queue.len() * SETTLE_ENTRY_BYTES;
    }

    /// Checks sectors of a block. `judged` gets the index of each sector in the block.
    pub fn judge(
        &self,
        key: u64,
        sectors: u8,
        found: impl Fn(u32) -> Found,
        read: Span,
        mut judged: impl FnMut(u32, Found, Option<Judgement>),
    ) {
        let shard = self.shards.get(shard_of(key));
        let base = shard.and_then(|d| d.base.get(&key)).copied().unwrap_or_default();
        let changes = shard.filter(|d| !d.changes.is_empty()).and_then(|d| d.changes.get(&key));
        let changes = changes.map_or(&[][..], Vec::as_slice);
        for sector in (0..BLOCK_SECTORS as u32).filter(|s| sectors & (1 << s) != 0) {
            let found = found(sector);
            let judgement = shard.map(|_| block::judge(base[sector as usize], changes, sector, &found, read));
            judged(sector, found, judgement);
        }
    }

    /// Checks a sector as if this change had also been applied.
    pub fn judge_with(&self, key: u64, sector: u32, found: &Found, read: Span, change: Change) -> Judgement {
        let Some(shard) = self.shards.get(shard_of(key)) else { return Judgement::Unknown };
        let base = shard.base.get(&key).copied().unwrap_or_default();
        let mut changes = shard.changes.get(&key).cloned().unwrap_or_default();
        changes.push(change);
        block::judge(base[sector as usize], &changes, sector, found, read)
    }

    /// The share of blocks that is known.
    pub fn known_share(&self) -> f64 {
        self.shards.len() as f64 / SHARDS as f64
    }

    /// Approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of sectors that can be checked: written or zeroed, and not discarded since without a guarantee.
    pub fn sectors(&self) -> u64 {
        let count = |shard: &Shard| {
            shard.base.iter().map(|(key, base)| u64::from(shard.checkable(*key, base).count_ones())).sum::<u64>()
        };
        self.shards.iter().map(count).sum()
    }

    /// Up to `most` blocks after `after`, in order, each with its checkable sectors. Memory does not depend on the
    /// number of blocks.
    pub fn next_blocks(&self, after: Option<u64>, most: usize) -> Vec<(u64, u8)> {
        let mut found: Vec<(u64, u8)> = Vec::with_capacity(2 * most);
        for shard in &self.shards {
            for (&key, base) in &shard.base {
                let sectors = shard.checkable(key, base);
                if after.is_some_and(|after| key <= after) || sectors == 0 {
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
    /// The checkable sectors of a block, as bits.
    fn checkable(&self, key: u64, base: &Contents) -> u8 {
        let changed = if self.changes.is_empty() { None } else { self.changes.get(&key) };
        let changed = changed.map_or(0, |changes| changes.iter().fold(0, |all, c| all | c.sectors));
        (0..BLOCK_SECTORS as usize).fold(0, |bits, i| {
            let is_known = base[i] != Content::INITIAL && base[i] != Content::ANYTHING;
            bits | u8::from(is_known || changed & (1 << i) != 0) << i
        })
    }
}

/// The blocks of a range: their keys, and their sectors in the range, as bits.
pub fn blocks(range: SectorRange) -> impl Iterator<Item = (u64, u8)> {
    let (start, end) = (range.sector, range.sector + range.sectors);
    let target = u64::from(range.target) << BLOCK_BITS;
    let last = if range.sectors == 0 { 0 } else { end.div_ceil(BLOCK_SECTORS) };
    (start / BLOCK_SECTORS..last).map(move |block| {
        let first = block * BLOCK_SECTORS;
        let from = start.max(first) - first;
        let to = end.min(first + BLOCK_SECTORS) - first;
        (target | block, ((1_u16 << to) - (1 << from)) as u8)
    })
}

/// Target and first sector of a block.
pub fn block_start(key: u64) -> (u16, u64) {
    ((key >> BLOCK_BITS) as u16, (key & ((1 << BLOCK_BITS) - 1)) * BLOCK_SECTORS)
}

/// The shard of a block. Uses middle bits of the hash; the tables use the highest and the lowest ones.
fn shard_of(key: u64) -> usize {
    (mix(key) >> 40) as usize % SHARDS
}

/// Spreads adjacent keys.
fn mix(key: u64) -> u64 {
    let x = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Hashes keys with [`mix`].
#[derive(Default)]
struct MixHasher(u64);

impl Hasher for MixHasher {
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
        let range = SectorRange { target, sector, sectors };
        let span =
            Span { issued: Nanos(sequence_number as i64 * 10), completed: Nanos(sequence_number as i64 * 10 + 5) };
        WriteEffect { range, content: Content::of(sequence_number), is_done: true, span, fence: sequence_number }
    }

    fn own(sequence_number: u64, target: u16, sector: u64) -> Found {
        let (request, offset, length, iteration) = (0, 0, 1, 0);
        Found::Written(Header { run: 1, target, sequence_number, request, sector, offset, length, iteration })
    }

    const LATER: Span = Span { issued: Nanos(i64::MAX - 1), completed: Nanos(i64::MAX) };

    /// Number of known blocks in this range. Each must contain its own number as the sequence number.
    fn known(state: &ExpectedState, blocks: std::ops::Range<u64>) -> u64 {
        let mut known = 0;
        for block in blocks {
            state.judge(
                block,
                1,
                |_| own(block, 0, block * 8),
                LATER,
                |_, _, judgement| {
                    if let Some(judgement) = judgement {
                        assert_eq!(judgement, Judgement::Correct);
                        known += 1;
                    }
                },
            );
        }
        known
    }

    #[test]
    fn beyond_its_memory_limit_it_keeps_an_unbiased_sample() {
        let limit = 4 << 20;
        let mut state = ExpectedState::new(limit);
        for block in 1..1_000_001 {
            state.apply(&write(block, 0, block * 8, 8), u64::MAX);
            assert!(state.bytes() as u64 <= limit);
        }
        // A million blocks need 47 to 94 MB.
        assert!((1.0 / 32.0..=1.0 / 8.0).contains(&state.known_share()), "{}", state.known_share());
        let estimated = state.sectors() as f64 / 8.0 / state.known_share();
        assert!((0.97e6..1.03e6).contains(&estimated), "{estimated}");
        // The sample does not depend on the time of the write.
        let (early, late) = (known(&state, 1..300_000), known(&state, 700_000..1_000_000));
        assert!(early.abs_diff(late) < early / 10, "{early} {late}");
    }

    #[test]
    fn a_block_takes_the_documented_memory() {
        let mut state = ExpectedState::new(1 << 30);
        for block in 0..1_000_000 {
            state.apply(&write(1, 0, block * 8, 8), u64::MAX);
        }
        let each = state.bytes() as f64 / 1e6;
        assert!((46.0..95.0).contains(&each), "{each} bytes for each block");
        assert_eq!(state.known_share(), 1.0);
    }

    proptest! {
        /// Compares with a map of sectors to sequence numbers.
        #[test]
        fn sectors_hold_what_was_written_last(
            writes in prop::collection::vec((0_u16..3, 0_u64..100, 0_u64..40), 1..60), most in 1_usize..8,
        ) {
            let mut state = ExpectedState::new(1 << 30);
            let mut model = BTreeMap::new();
            for (sequence_number, &(target, sector, sectors)) in (1..).zip(&writes) {
                state.apply(&write(sequence_number, target, sector, sectors), u64::MAX);
                model.extend((sector..sector + sectors).map(|sector| ((target, sector), sequence_number)));
            }
            prop_assert_eq!(state.sectors(), model.len() as u64);
            // The final pass reads all sectors in order.
            let mut seen = Vec::new();
            let mut after = None;
            loop {
                let blocks = state.next_blocks(after, most);
                let Some((last, _)) = blocks.last() else { break };
                after = Some(*last);
                for (key, sectors) in blocks {
                    let (target, start) = block_start(key);
                    let found = |i| model.get(&(target, start + u64::from(i))).map_or(Found::Foreign, |g| own(*g, target, start + u64::from(i)));
                    state.judge(key, sectors, found, LATER, |i, _, judgement| {
                        assert_eq!(judgement, Some(Judgement::Correct));
                        seen.push((target, start + u64::from(i)));
                    });
                }
            }
            prop_assert!(seen.iter().eq(model.keys()));
        }
    }
}
