//! The requests that later events may be about, by place.

use std::collections::BTreeMap;

use crate::model::request::{DeviceId, Op};
use crate::model::units::{MAX_END_SECTOR, Sectors};

use super::Event;

/// By place, and at each place by number: the oldest first.
#[derive(Default)]
pub struct Open {
    requests: BTreeMap<Key, Extent>,
    /// Kept only so that its memory is.
    changed: Vec<(Key, Covered)>,
}

/// A place and a number, in one number: trees are searched by it, for each event several times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

/// Bits of a number: more requests than any trace has.
const NUMBER_BITS: u32 = 50;
/// Bits of a sector, of which none lies beyond `MAX_END_SECTOR`.
const SECTOR_BITS: u32 = 54;
const _: () = assert!(MAX_END_SECTOR < 1 << SECTOR_BITS);

impl Key {
    fn new(place: Place, number: u64) -> Self {
        let side = u128::from(place.device.0) << 8 | u128::from(place.is_append) << 7 | place.op as u128;
        let at = side << SECTOR_BITS | u128::from(place.sector);
        Self(at << NUMBER_BITS | u128::from(number & ((1 << NUMBER_BITS) - 1)))
    }

    fn first_of(place: Place) -> Self {
        Self::new(place, 0)
    }

    fn last_of(place: Place) -> Self {
        Self::new(place, u64::MAX)
    }

    fn number(self) -> u64 {
        self.0 as u64 & ((1 << NUMBER_BITS) - 1)
    }

    fn sector(self) -> u64 {
        (self.0 >> NUMBER_BITS) as u64 & ((1 << SECTOR_BITS) - 1)
    }

    fn is_at(self, place: Place) -> bool {
        self.0 >> NUMBER_BITS == Self::first_of(place).0 >> NUMBER_BITS
    }

    /// Whether it is on the same device, in the same direction.
    fn is_beside(self, place: Place) -> bool {
        self.0 >> (SECTOR_BITS + NUMBER_BITS) == Self::first_of(place).0 >> (SECTOR_BITS + NUMBER_BITS)
    }
}

/// Device, direction, first sector. Appends to zones have places of their own.
#[derive(Clone, Copy)]
pub struct Place {
    device: DeviceId,
    op: Op,
    is_append: bool,
    sector: u64,
}

impl Place {
    /// Where what an event is about is looked for.
    pub fn of(event: &Event) -> Self {
        let &Event { device, op, is_append, sector, sectors, .. } = event;
        // A flush has no place; kernels put anything there, even a different thing into each event.
        Self { device, op, is_append, sector: if sectors.0 == 0 { 0 } else { sector.0.min(MAX_END_SECTOR) } }
    }

    /// Another place on the same device, in the same direction.
    fn at(self, sector: u64) -> Self {
        Self { sector: sector.min(MAX_END_SECTOR), ..self }
    }
}

/// What becomes of a request that an event covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Covered {
    /// It stays as it is.
    Kept,
    /// All of it was given to the device.
    Issued,
    /// The device gave it back.
    TakenBack,
    /// No event is about it any more.
    Remove,
}

/// How long a request is, and whether it was given to the device, in one number.
#[derive(Clone, Copy)]
struct Extent(u64);

/// No length reaches this bit.
const ISSUED: u64 = 1 << 63;
const _: () = assert!(MAX_END_SECTOR < ISSUED);

impl Extent {
    fn sectors(self) -> u64 {
        self.0 & !ISSUED
    }

    fn is_issued(self) -> bool {
        self.0 & ISSUED != 0
    }

    fn marked(self, issued: bool) -> Self {
        Self(if issued { self.0 | ISSUED } else { self.0 & !ISSUED })
    }
}

/// Requests in front of a place that are looked at for one that reaches beyond it.
const LOOK_BACK: usize = 64;

impl Open {
    /// Takes a request; numbers grow.
    pub fn add(&mut self, place: Place, sectors: Sectors, number: u64) {
        self.requests.insert(Key::new(place, number), Extent(sectors.0.min(MAX_END_SECTOR)));
    }

    /// Removes a request, if it is still there.
    pub fn forget(&mut self, place: Place, number: u64) {
        self.requests.remove(&Key::new(place, number));
    }

    /// Notes whether a request was given to the device.
    pub fn mark(&mut self, place: Place, number: u64, issued: bool) {
        if let Some(extent) = self.requests.get_mut(&Key::new(place, number)) {
            *extent = extent.marked(issued);
        }
    }

    /// Removes the requests of just this place and length that were given to the device before the youngest such: their
    /// numbers. Only those before `doubtful`.
    pub fn older_twins(&mut self, place: Place, sectors: Sectors, doubtful: u64) -> Vec<u64> {
        if doubtful == 0 {
            return Vec::new();
        }
        let twins = |(_, extent): &(u64, Extent)| extent.is_issued() && extent.sectors() == sectors.0;
        let mut numbers: Vec<u64> = self.at(place).filter(twins).map(|(number, _)| number).collect();
        numbers.pop();
        numbers.retain(|&number| number < doubtful);
        numbers.iter().for_each(|&number| self.forget(place, number));
        numbers
    }

    /// Removes the youngest request of just this place and length that was not given to the device: its number. Whatever is
    /// refused is refused at once.
    pub fn refuse(&mut self, place: Place, sectors: Sectors) -> Option<u64> {
        let is_it = |(_, extent): &(u64, Extent)| !extent.is_issued() && extent.sectors() == sectors.0;
        let (number, _) = self.at(place).filter(is_it).last()?;
        self.forget(place, number);
        Some(number)
    }

    /// Whether a request begins before a place and ends where that does.
    pub fn has_rest(&self, place: Place, sectors: Sectors) -> bool {
        let to = place.sector.saturating_add(sectors.0);
        let whole = self.reaching_beyond(place, to, false);
        whole.is_some_and(|(key, extent)| key.sector().saturating_add(extent.sectors()) == to)
    }

    /// Removes the oldest append of just that length to the zone in which a place lies, which is the last one in front of it that
    /// anything is appended to: its number.
    pub fn append(&mut self, place: Place, sectors: Sectors) -> Option<u64> {
        let (key, _) =
            self.requests.range(..=Key::last_of(place)).next_back().filter(|(key, _)| key.is_beside(place))?;
        let zone = place.at(key.sector());
        let (number, _) = self.best_at(zone, sectors.0, true).filter(|(_, extent)| extent.sectors() == sectors.0)?;
        self.forget(zone, number);
        Some(number)
    }

    /// Walks over the requests that tile the range of an event: number, and how many sectors of it are in the range. Of
    /// several at one place those come first that were `issued` already, or were not, the oldest of them first.
    pub fn cover(&mut self, place: Place, sectors: Sectors, issued: bool, mut each: impl FnMut(u64, u64) -> Covered) {
        if sectors.0 == 0 {
            // What moves nothing covers nothing but its like: the oldest of them.
            let like = self.at(place).find(|(_, extent)| extent.sectors() == 0);
            if let Some((number, _)) = like {
                let becomes = each(number, 0);
                self.become_of(Key::new(place, number), becomes);
            }
            return;
        }
        let (from, to) = (place.sector, place.sector.saturating_add(sectors.0));
        let mut first = self.from(place);
        // Mostly it is one request, and the oldest there.
        if let Some((key, extent)) = first
            && key.is_at(place)
            && extent.sectors() == sectors.0
            && extent.is_issued() == issued
        {
            let becomes = each(key.number(), sectors.0);
            self.become_of(key, becomes);
            return;
        }
        let mut changed = std::mem::take(&mut self.changed);
        let mut visit = |key: Key, covered: u64| changed.push((key, each(key.number(), covered)));
        let mut at = from;
        if first.is_none_or(|(key, _)| !key.is_at(place))
            && let Some((key, extent)) = self.reaching_beyond(place, to, issued)
        {
            // A request that begins before the range, and was split.
            at = key.sector().saturating_add(extent.sectors()).min(to);
            visit(key, at - from);
            first = self.from(place.at(at));
        }
        while at < to
            && let Some((key, _)) = first
            && key.is_beside(place)
            && key.sector() < to
        {
            let sector = key.sector();
            let wanted = if sector == from { sectors.0 } else { to - sector };
            let Some((number, extent)) = self.best_at(place.at(sector), wanted, issued) else { break };
            let end = sector.saturating_add(extent.sectors()).min(to);
            visit(Key::new(place.at(sector), number), end.saturating_sub(sector));
            // What covers nothing may stand there as well.
            at = end.max(sector.saturating_add(1));
            first = if at < to { self.from(place.at(at)) } else { None };
        }
        for (key, becomes) in changed.drain(..) {
            self.become_of(key, becomes);
        }
        self.changed = changed;
    }

    fn become_of(&mut self, key: Key, becomes: Covered) {
        let issued = match becomes {
            Covered::Kept => return,
            Covered::Remove => {
                self.requests.remove(&key);
                return;
            }
            Covered::Issued => true,
            Covered::TakenBack => false,
        };
        if let Some(extent) = self.requests.get_mut(&key) {
            *extent = extent.marked(issued);
        }
    }

    /// Of the requests that begin at a place: the oldest in the right state and of the length that is looked for; else in the
    /// right state; else of that length; else the oldest.
    fn best_at(&self, place: Place, sectors: u64, issued: bool) -> Option<(u64, Extent)> {
        let fits = |extent: Extent| (extent.is_issued() == issued, extent.sectors() == sectors);
        let mut best: Option<(u64, Extent)> = None;
        for (number, extent) in self.at(place) {
            if best.is_none_or(|(_, best)| fits(extent) > fits(best)) {
                best = Some((number, extent));
            }
            if fits(extent) == (true, true) {
                break;
            }
        }
        best
    }

    /// The requests that begin at a place: number and extent.
    fn at(&self, place: Place) -> impl Iterator<Item = (u64, Extent)> {
        let keys = Key::first_of(place)..=Key::last_of(place);
        self.requests.range(keys).map(|(key, extent)| (key.number(), *extent))
    }

    /// The first at that place or behind it.
    fn from(&self, place: Place) -> Option<(Key, Extent)> {
        self.requests.range(Key::first_of(place)..).next().map(|(key, extent)| (*key, *extent))
    }

    /// Of the requests that begin before a place and reach beyond it, best beyond `to`: the oldest in the right state.
    fn reaching_beyond(&self, place: Place, to: u64, issued: bool) -> Option<(Key, Extent)> {
        let end = |key: Key, extent: Extent| key.sector().saturating_add(extent.sectors());
        self.requests
            .range(..Key::first_of(place))
            .rev()
            .map(|(key, extent)| (*key, *extent))
            .take(LOOK_BACK)
            .take_while(|(key, _)| key.is_beside(place))
            .filter(|&(key, extent)| end(key, extent) > place.sector)
            .max_by_key(|&(key, extent)| {
                (end(key, extent) >= to, extent.is_issued() == issued, std::cmp::Reverse(key.number()))
            })
    }
}
