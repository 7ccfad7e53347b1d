//! The requests that later events may be about, by place.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::request::{DeviceId, Op};
use crate::units::{Sector, Sectors};

/// By place, and at each place by number: the oldest first. The value is the length in sectors.
#[derive(Default)]
pub struct Open {
    requests: BTreeMap<(Place, u64), u64>,
    /// Kept only so that its memory is.
    removed: Vec<(Place, u64)>,
}

/// Device, direction, first sector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(DeviceId, Op, u64);

impl Place {
    /// Where what begins there, and is so long, is looked for.
    pub fn of(device: DeviceId, op: Op, sector: Sector, sectors: Sectors) -> Self {
        // A flush has no place; kernels put anything there, even a different thing into each event.
        Self(device, op, if sectors.0 == 0 { 0 } else { sector.0 })
    }

    fn is_beside(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
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
        self.requests.insert((place, number), sectors.0);
    }

    /// Removes a request, if it is still there.
    pub fn forget(&mut self, place: Place, number: u64) {
        self.requests.remove(&(place, number));
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
        let (from, to) = (place.2, place.2.saturating_add(sectors.0));
        let mut removed = std::mem::take(&mut self.removed);
        let mut visit = |key: (Place, u64), covered: u64| {
            if each(key.1, covered) == Covered::Remove {
                removed.push(key);
            }
        };
        let mut at = from;
        let mut first = self.from(place);
        if first.is_none_or(|(key, _)| key.0 != place)
            && let Some((key, length)) = self.oldest_before(place)
            && key.0.2.saturating_add(length) > from
        {
            // A request that begins before the range, and was split.
            at = key.0.2.saturating_add(length).min(to);
            visit(key, at - from);
            first = self.from(Place(place.0, place.1, at));
        }
        while at < to
            && let Some((key, length)) = first
            && key.0.is_beside(&place)
            && key.0.2 < to
        {
            let sector = key.0.2;
            // Of several that begin there, the one of just this length, or else the oldest.
            let exact = if sector == from && length != sectors.0 {
                self.at(place).find(|(_, length)| *length == sectors.0)
            } else {
                None
            };
            let (number, length) = exact.unwrap_or((key.1, length));
            let end = sector.saturating_add(length).min(to);
            visit((key.0, number), end.saturating_sub(sector));
            // What covers nothing may stand there as well.
            at = end.max(sector.saturating_add(1));
            first = if at < to { self.from(Place(place.0, place.1, at)) } else { None };
        }
        for key in removed.drain(..) {
            self.requests.remove(&key);
        }
        self.removed = removed;
    }

    /// The requests that begin at a place: number and length.
    fn at(&self, place: Place) -> impl Iterator<Item = (u64, u64)> {
        self.requests.range((place, 0)..=(place, u64::MAX)).map(|(key, sectors)| (key.1, *sectors))
    }

    /// The first at that place or behind it.
    fn from(&self, place: Place) -> Option<((Place, u64), u64)> {
        self.requests.range((Included((place, 0)), Unbounded)).next().map(|(key, sectors)| (*key, *sectors))
    }

    /// The oldest at the last place of the same device and direction before that one.
    fn oldest_before(&self, place: Place) -> Option<((Place, u64), u64)> {
        let (last, _) = self.requests.range((Unbounded, Excluded((place, 0)))).next_back()?;
        if !last.0.is_beside(&place) {
            return None;
        }
        self.from(last.0)
    }
}
