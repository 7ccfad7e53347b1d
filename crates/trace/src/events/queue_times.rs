//! The times at which requests were queued, for requests that are taken from their issue.

use std::collections::{BTreeMap, VecDeque};

use crate::model::request::DeviceId;
use crate::model::units::{Nanos, Sectors};

use super::Event;
use super::event::{MAX_AGE, MAX_PENDING, is_flush};
use super::extents::{Covered, ExtentIndex, Position};

/// Requests that were queued and not issued yet.
#[derive(Default)]
pub struct QueueTimes {
    extents: ExtentIndex,
    /// In the order of their numbers, which begin with `first`.
    requests: VecDeque<Queued>,
    first: u64,
    /// For each device, when the first of the flushes that wait was queued.
    flushes: BTreeMap<DeviceId, Nanos>,
}

struct Queued {
    at: Nanos,
    position: Position,
    /// Sectors that were not issued yet.
    remaining: u64,
}

impl QueueTimes {
    /// Adds a queued request or flush.
    pub fn queue(&mut self, event: &Event) {
        if is_flush(event) {
            let first = self.flushes.entry(event.device).or_insert(event.at);
            // A requeued flush is older than those queued meanwhile.
            *first = event.at.min(*first);
            return;
        }
        // A request that was never issued must not match a much later one at its position.
        while self.requests.front().is_some_and(|oldest| event.at - oldest.at > MAX_AGE)
            || self.requests.len() > MAX_PENDING
        {
            if let Some(oldest) = self.requests.pop_front() {
                self.extents.remove(oldest.position, self.first);
            }
            self.first += 1;
        }
        let number = self.first + self.requests.len() as u64;
        self.extents.add(Position::of(event), event.sectors, number);
        self.requests.push_back(Queued { at: event.at, position: Position::of(event), remaining: event.sectors.0 });
    }

    /// Removes the last request queued with this extent. Returns whether there was one.
    pub fn refuse(&mut self, position: Position, sectors: Sectors) -> bool {
        self.extents.refuse(position, sectors).is_some()
    }

    /// Whether the extent is the rest of a queued request that was split.
    pub fn has_rest(&self, position: Position, sectors: Sectors) -> bool {
        self.extents.has_rest(position, sectors)
    }

    /// Returns when the first part of an issued request was queued.
    pub fn issue(&mut self, event: &Event) -> Option<Nanos> {
        let mut earliest: Option<Nanos> = None;
        let (first, requests) = (self.first, &mut self.requests);
        self.extents.cover(Position::of(event), event.sectors, false, |number, sectors| {
            let Some(queued) = number.checked_sub(first).and_then(|i| requests.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            if event.at - queued.at <= MAX_AGE {
                earliest = Some(earliest.map_or(queued.at, |earlier| earlier.min(queued.at)));
            }
            // A split request stays: its other parts have the same queue time.
            queued.remaining = queued.remaining.saturating_sub(sectors);
            if queued.remaining == 0 { Covered::Remove } else { Covered::Unchanged }
        });
        earliest.filter(|&queued| queued <= event.at)
    }

    /// Returns when the first of the flushes was queued that are issued as one.
    pub fn issue_flush(&mut self, event: &Event) -> Option<Nanos> {
        self.flushes.remove(&event.device).filter(|&queued| queued <= event.at && event.at - queued <= MAX_AGE)
    }
}
