//! When requests were asked for that are taken from their issue.

use std::collections::{BTreeMap, VecDeque};

use crate::model::request::DeviceId;
use crate::model::units::{Nanos, Sectors};

use super::Event;
use super::event::{MAX_AGE, MAX_WAITING, is_flush};
use super::open::{Covered, Open, Place};

/// What was asked for, and not given to the device yet.
#[derive(Default)]
pub struct Asked {
    open: Open,
    /// From the number `first` on.
    requests: VecDeque<One>,
    first: u64,
    /// The first flush of each device that waits.
    flushes: BTreeMap<DeviceId, Nanos>,
}

struct One {
    at: Nanos,
    place: Place,
    /// Sectors that were not given to the device yet.
    left: u64,
}

impl Asked {
    /// A request, or a flush, was asked for.
    pub fn ask(&mut self, event: &Event) {
        if is_flush(event) {
            let first = self.flushes.entry(event.device).or_insert(event.at);
            // One that the device did not take was asked for before those that came meanwhile.
            *first = event.at.min(*first);
            return;
        }
        // What was never given to the device must not be taken for what is asked for at its place much later.
        while self.requests.front().is_some_and(|oldest| event.at - oldest.at > MAX_AGE)
            || self.requests.len() > MAX_WAITING
        {
            if let Some(oldest) = self.requests.pop_front() {
                self.open.forget(oldest.place, self.first);
            }
            self.first += 1;
        }
        let number = self.first + self.requests.len() as u64;
        self.open.add(Place::of(event), event.sectors, number);
        self.requests.push_back(One { at: event.at, place: Place::of(event), left: event.sectors.0 });
    }

    /// Nothing will come of what was asked for there last. Whether something was.
    pub fn refuse(&mut self, place: Place, sectors: Sectors) -> bool {
        self.open.refuse(place, sectors).is_some()
    }

    /// Whether it is the rest of something that was asked for.
    pub fn has_rest(&self, place: Place, sectors: Sectors) -> bool {
        self.open.has_rest(place, sectors)
    }

    /// When the first part of what is given to the device was asked for.
    pub fn issued(&mut self, event: &Event) -> Option<Nanos> {
        let mut asked: Option<Nanos> = None;
        let (first, requests) = (self.first, &mut self.requests);
        self.open.cover(Place::of(event), event.sectors, false, |number, sectors| {
            let Some(one) = number.checked_sub(first).and_then(|i| requests.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            if event.at - one.at <= MAX_AGE {
                asked = Some(asked.map_or(one.at, |earlier| earlier.min(one.at)));
            }
            // The other parts of what was split were asked for then as well.
            one.left = one.left.saturating_sub(sectors);
            if one.left == 0 { Covered::Remove } else { Covered::Kept }
        });
        asked.filter(|&asked| asked <= event.at)
    }

    /// When the first of the flushes was asked for that are given to the device as one.
    pub fn flush_issued(&mut self, event: &Event) -> Option<Nanos> {
        self.flushes.remove(&event.device).filter(|&asked| asked <= event.at && event.at - asked <= MAX_AGE)
    }
}
