//! The requests that later events may be about, by place.

use std::collections::BTreeMap;

use crate::request::{DeviceId, Op};
use crate::units::{MAX_END_SECTOR, Sector, Sectors};

/// By place, and at each place by number: the oldest first. The value is the length in sectors.
#[derive(Default)]
pub struct Open {
    requests: BTreeMap<Key, u64>,
    /// Kept only so that its memory is.
    removed: Vec<Key>,
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
        let side = u128::from(place.device.0) << 8 | place.op as u128;
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

/// Device, direction, first sector.
#[derive(Clone, Copy)]
pub struct Place {
    device: DeviceId,
    op: Op,
    sector: u64,
}

impl Place {
    /// Where what begins there, and is so long, is looked for.
    pub fn of(device: DeviceId, op: Op, sector: Sector, sectors: Sectors) -> Self {
        // A flush has no place; kernels put anything there, even a different thing into each event.
        Self { device, op, sector: if sectors.0 == 0 { 0 } else { sector.0.min(MAX_END_SECTOR) } }
    }

    /// Another place on the same device, in the same direction.
    fn at(self, sector: u64) -> Self {
        Self { sector: sector.min(MAX_END_SECTOR), ..self }
    }
}

/// What becomes of a request that an event covers.
#[derive(PartialEq, Eq)]
pub enum Covered {
    Keep,
    Remove,
}

impl Open {
    /// Takes a request; numbers grow.
    pub fn add(&mut self, place: Place, sectors: Sectors, number: u64) {
        self.requests.insert(Key::new(place, number), sectors.0);
    }

    /// Removes a request, if it is still there.
    pub fn forget(&mut self, place: Place, number: u64) {
        self.requests.remove(&Key::new(place, number));
    }

    /// Walks over the requests that tile the range of an event: number, and how many sectors of it are in the range.
    pub fn cover(&mut self, place: Place, sectors: Sectors, mut each: impl FnMut(u64, u64) -> Covered) {
        if sectors.0 == 0 {
            // What moves nothing covers nothing but its like: the oldest of them.
            let like = self.at(place).find(|(_, sectors)| *sectors == 0);
            if let Some((number, _)) = like
                && each(number, 0) == Covered::Remove
            {
                self.forget(place, number);
            }
            return;
        }
        let (from, to) = (place.sector, place.sector.saturating_add(sectors.0));
        let mut first = self.from(place);
        // Mostly it is one request, and the oldest there.
        if let Some((key, length)) = first
            && key.is_at(place)
            && length == sectors.0
        {
            if each(key.number(), length) == Covered::Remove {
                self.requests.remove(&key);
            }
            return;
        }
        let mut removed = std::mem::take(&mut self.removed);
        let mut visit = |key: Key, covered: u64| {
            if each(key.number(), covered) == Covered::Remove {
                removed.push(key);
            }
        };
        let mut at = from;
        if first.is_none_or(|(key, _)| !key.is_at(place))
            && let Some((key, length)) = self.oldest_before(place)
            && key.sector().saturating_add(length) > from
        {
            // A request that begins before the range, and was split.
            at = key.sector().saturating_add(length).min(to);
            visit(key, at - from);
            first = self.from(place.at(at));
        }
        while at < to
            && let Some((key, length)) = first
            && key.is_beside(place)
            && key.sector() < to
        {
            let sector = key.sector();
            // Of several that begin there, the one of just this length, or else the oldest.
            let exact = if sector == from && length != sectors.0 {
                self.at(place).find(|(_, length)| *length == sectors.0)
            } else {
                None
            };
            let (number, length) = exact.unwrap_or((key.number(), length));
            let end = sector.saturating_add(length).min(to);
            visit(Key::new(place.at(sector), number), end.saturating_sub(sector));
            // What covers nothing may stand there as well.
            at = end.max(sector.saturating_add(1));
            first = if at < to { self.from(place.at(at)) } else { None };
        }
        for key in removed.drain(..) {
            self.requests.remove(&key);
        }
        self.removed = removed;
    }

    /// The requests that begin at a place: number and length.
    fn at(&self, place: Place) -> impl Iterator<Item = (u64, u64)> {
        let keys = Key::first_of(place)..=Key::last_of(place);
        self.requests.range(keys).map(|(key, sectors)| (key.number(), *sectors))
    }

    /// The first at that place or behind it.
    fn from(&self, place: Place) -> Option<(Key, u64)> {
        self.requests.range(Key::first_of(place)..).next().map(|(key, sectors)| (*key, *sectors))
    }

    /// The oldest at the last place of the same device and direction before that one.
    fn oldest_before(&self, place: Place) -> Option<(Key, u64)> {
        let (last, _) = self.requests.range(..Key::first_of(place)).next_back()?;
        if !last.is_beside(place) {
            return None;
        }
        self.from(place.at(last.sector()))
    }
}
