//! An index of the pending requests by position, in which the matcher finds the requests of an event.

use std::collections::BTreeMap;

use crate::model::request::{DeviceId, Op};
use crate::model::units::{MAX_END_SECTOR, Sectors};

use super::Event;

/// Pending requests by position, and at each position by number: the oldest first.
#[derive(Default)]
pub struct ExtentIndex {
    requests: BTreeMap<Key, Extent>,
    /// Buffer of [`ExtentIndex::cover`].
    changed: Vec<(Key, Covered)>,
}

/// A position and a number in one integer, because each event takes several searches of the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

/// Bits of a request's number: enough for any trace.
const NUMBER_BITS: u32 = 50;
/// Bits of a sector, which is at most `MAX_END_SECTOR`.
const SECTOR_BITS: u32 = 54;
const _: () = assert!(MAX_END_SECTOR < 1 << SECTOR_BITS);

impl Key {
    fn new(position: Position, number: u64) -> Self {
        let group = u128::from(position.device.0) << 8 | u128::from(position.is_append) << 7 | position.op as u128;
        let at = group << SECTOR_BITS | u128::from(position.sector);
        Self(at << NUMBER_BITS | u128::from(number & ((1 << NUMBER_BITS) - 1)))
    }

    fn first_of(position: Position) -> Self {
        Self::new(position, 0)
    }

    fn last_of(position: Position) -> Self {
        Self::new(position, u64::MAX)
    }

    fn number(self) -> u64 {
        self.0 as u64 & ((1 << NUMBER_BITS) - 1)
    }

    fn sector(self) -> u64 {
        (self.0 >> NUMBER_BITS) as u64 & ((1 << SECTOR_BITS) - 1)
    }

    fn is_at(self, position: Position) -> bool {
        self.0 >> NUMBER_BITS == Self::first_of(position).0 >> NUMBER_BITS
    }

    /// Whether device and operation are the same.
    fn is_in_group_of(self, position: Position) -> bool {
        self.0 >> (SECTOR_BITS + NUMBER_BITS) == Self::first_of(position).0 >> (SECTOR_BITS + NUMBER_BITS)
    }
}

/// Device, operation and first sector. Zone appends are separate from writes.
#[derive(Clone, Copy)]
pub struct Position {
    device: DeviceId,
    op: Op,
    is_append: bool,
    sector: u64,
}

impl Position {
    /// The position at which the requests of an event are searched.
    pub fn of(event: &Event) -> Self {
        let &Event { device, op, is_append, sector, sectors, .. } = event;
        // An event without a length has no position; kernels write any sector, even a different one in each event.
        Self { device, op, is_append, sector: if sectors.0 == 0 { 0 } else { sector.0.min(MAX_END_SECTOR) } }
    }

    /// Another sector with the same device and operation.
    fn at(self, sector: u64) -> Self {
        Self { sector: sector.min(MAX_END_SECTOR), ..self }
    }
}

/// The new state of a request that an event covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Covered {
    Unchanged,
    /// All of it was issued.
    Issued,
    Requeued,
    /// It has no further events.
    Remove,
}

/// The length of a request, and whether it was issued, in one integer.
#[derive(Clone, Copy)]
struct Extent(u64);

/// A bit beyond all lengths.
const ISSUED: u64 = 1 << 63;
const _: () = assert!(MAX_END_SECTOR < ISSUED);

impl Extent {
    fn sectors(self) -> u64 {
        self.0 & !ISSUED
    }

    fn is_issued(self) -> bool {
        self.0 & ISSUED != 0
    }

    fn with_issued(self, issued: bool) -> Self {
        Self(if issued { self.0 | ISSUED } else { self.0 & !ISSUED })
    }
}

/// Most requests before a position that are checked for one that reaches beyond it.
const MAX_LOOK_BACK: usize = 64;

impl ExtentIndex {
    /// Adds a request. Numbers increase.
    pub fn add(&mut self, position: Position, sectors: Sectors, number: u64) {
        self.requests.insert(Key::new(position, number), Extent(sectors.0.min(MAX_END_SECTOR)));
    }

    /// Removes a request, if it is still in the index.
    pub fn remove(&mut self, position: Position, number: u64) {
        self.requests.remove(&Key::new(position, number));
    }

    /// Notes whether a request was issued.
    pub fn set_issued(&mut self, position: Position, number: u64, issued: bool) {
        if let Some(extent) = self.requests.get_mut(&Key::new(position, number)) {
            *extent = extent.with_issued(issued);
        }
    }

    /// Removes all issued requests with exactly this extent except the youngest, if their number is below `doubtful`.
    /// Returns their numbers.
    pub fn remove_older(&mut self, position: Position, sectors: Sectors, doubtful: u64) -> Vec<u64> {
        if doubtful == 0 {
            return Vec::new();
        }
        let is_equal = |(_, extent): &(u64, Extent)| extent.is_issued() && extent.sectors() == sectors.0;
        let mut numbers: Vec<u64> = self.at(position).filter(is_equal).map(|(number, _)| number).collect();
        numbers.pop();
        numbers.retain(|&number| number < doubtful);
        numbers.iter().for_each(|&number| self.remove(position, number));
        numbers
    }

    /// Removes the youngest request with exactly this extent that was not issued: a request is refused right after it was
    /// queued. Returns its number.
    pub fn refuse(&mut self, position: Position, sectors: Sectors) -> Option<u64> {
        let is_equal = |(_, extent): &(u64, Extent)| !extent.is_issued() && extent.sectors() == sectors.0;
        let (number, _) = self.at(position).filter(is_equal).last()?;
        self.remove(position, number);
        Some(number)
    }

    /// Whether the extent is the rest of a request: that begins earlier and has the same end.
    pub fn has_rest(&self, position: Position, sectors: Sectors) -> bool {
        let to = position.sector.saturating_add(sectors.0);
        let whole = self.reaching_beyond(position, to, false);
        whole.is_some_and(|(key, extent)| key.sector().saturating_add(extent.sectors()) == to)
    }

    /// Removes the oldest append of this length to the zone of a position: the last zone before it that has appends. Returns
    /// its number.
    pub fn remove_append(&mut self, position: Position, sectors: Sectors) -> Option<u64> {
        let (key, _) = self
            .requests
            .range(..=Key::last_of(position))
            .next_back()
            .filter(|(key, _)| key.is_in_group_of(position))?;
        let zone = position.at(key.sector());
        let (number, _) = self.best_at(zone, sectors.0, true).filter(|(_, extent)| extent.sectors() == sectors.0)?;
        self.remove(zone, number);
        Some(number)
    }

    /// Calls `each` with the requests that tile the range of an event: their number, and how many of their sectors are in
    /// the range. Of several requests at one position, it prefers those whose state is `issued`, then the oldest.
    pub fn cover(
        &mut self,
        position: Position,
        sectors: Sectors,
        issued: bool,
        mut each: impl FnMut(u64, u64) -> Covered,
    ) {
        if sectors.0 == 0 {
            // An event without a length covers the oldest request without a length.
            let empty = self.at(position).find(|(_, extent)| extent.sectors() == 0);
            if let Some((number, _)) = empty {
                let state = each(number, 0);
                self.update(Key::new(position, number), state);
            }
            return;
        }
        let (from, to) = (position.sector, position.sector.saturating_add(sectors.0));
        let mut first = self.from(position);
        // The usual case: one request, which is the oldest at this position.
        if let Some((key, extent)) = first
            && key.is_at(position)
            && extent.sectors() == sectors.0
            && extent.is_issued() == issued
        {
            let state = each(key.number(), sectors.0);
            self.update(key, state);
            return;
        }
        let mut changed = std::mem::take(&mut self.changed);
        let mut visit = |key: Key, covered: u64| changed.push((key, each(key.number(), covered)));
        let mut at = from;
        if first.is_none_or(|(key, _)| !key.is_at(position))
            && let Some((key, extent)) = self.reaching_beyond(position, to, issued)
        {
            // A split request that begins before the range.
            at = key.sector().saturating_add(extent.sectors()).min(to);
            visit(key, at - from);
            first = self.from(position.at(at));
        }
        while at < to
            && let Some((key, _)) = first
            && key.is_in_group_of(position)
            && key.sector() < to
        {
            let sector = key.sector();
            let length = if sector == from { sectors.0 } else { to - sector };
            let Some((number, extent)) = self.best_at(position.at(sector), length, issued) else { break };
            let end = sector.saturating_add(extent.sectors()).min(to);
            visit(Key::new(position.at(sector), number), end.saturating_sub(sector));
            // The request may have no length.
            at = end.max(sector.saturating_add(1));
            first = if at < to { self.from(position.at(at)) } else { None };
        }
        for (key, state) in changed.drain(..) {
            self.update(key, state);
        }
        self.changed = changed;
    }

    fn update(&mut self, key: Key, state: Covered) {
        let issued = match state {
            Covered::Unchanged => return,
            Covered::Remove => {
                self.requests.remove(&key);
                return;
            }
            Covered::Issued => true,
            Covered::Requeued => false,
        };
        if let Some(extent) = self.requests.get_mut(&key) {
            *extent = extent.with_issued(issued);
        }
    }

    /// The best match at a position: the oldest request with this state and length; else with this state; else with this
    /// length; else the oldest.
    fn best_at(&self, position: Position, sectors: u64, issued: bool) -> Option<(u64, Extent)> {
        let fits = |extent: Extent| (extent.is_issued() == issued, extent.sectors() == sectors);
        let mut best: Option<(u64, Extent)> = None;
        for (number, extent) in self.at(position) {
            if best.is_none_or(|(_, best)| fits(extent) > fits(best)) {
                best = Some((number, extent));
            }
            if fits(extent) == (true, true) {
                break;
            }
        }
        best
    }

    /// The requests that begin at a position: number and extent.
    fn at(&self, position: Position) -> impl Iterator<Item = (u64, Extent)> {
        let keys = Key::first_of(position)..=Key::last_of(position);
        self.requests.range(keys).map(|(key, extent)| (key.number(), *extent))
    }

    /// The first request at the position or after it.
    fn from(&self, position: Position) -> Option<(Key, Extent)> {
        self.requests.range(Key::first_of(position)..).next().map(|(key, extent)| (*key, *extent))
    }

    /// The oldest request with this state that begins before a position and reaches beyond it; one that reaches `to` is
    /// preferred.
    fn reaching_beyond(&self, position: Position, to: u64, issued: bool) -> Option<(Key, Extent)> {
        let end = |key: Key, extent: Extent| key.sector().saturating_add(extent.sectors());
        self.requests
            .range(..Key::first_of(position))
            .rev()
            .map(|(key, extent)| (*key, *extent))
            .take(MAX_LOOK_BACK)
            .take_while(|(key, _)| key.is_in_group_of(position))
            .filter(|&(key, extent)| end(key, extent) > position.sector)
            .max_by_key(|&(key, extent)| {
                (end(key, extent) >= to, extent.is_issued() == issued, std::cmp::Reverse(key.number()))
            })
    }
}
