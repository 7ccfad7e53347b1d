//! Makes rows of events: finds the beginning of each end, and who had asked.
//!
//! The same address is used for one bio or request after another, so events of one address must be taken in the order
//! in which they happened. The ring gives just that: there is one for all processors, and the kernel finishes telling
//! of a beginning before anybody can bring about its end. (The order among different addresses is looser: that is
//! `order.rs`' work.) Where events were lost, an address may have been used again without a word: whatever was on its way
//! by then is given up.

use std::collections::HashMap;
use std::mem::take;

use iosonar_trace::{DeviceId, Nanos, Request, SECTOR_BYTES, Sector, Sectors};

use crate::device::Layer;
use crate::event::{Event, Id, Kind, Process, What};
use crate::options::Level;
use crate::order::{HOLD, Key, LIMIT, Order};

/// Askers that are remembered before the old ones among them are forgotten.
const REMEMBERED: usize = 1 << 18;

/// After this long nobody's request is on its way to the driver any more.
const FORGET_AFTER: Nanos = Nanos(60_000_000_000);

/// What pairing must know of a device.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Whether it has requests.
    pub layer: Layer,
    /// The sector of the disk that is its first.
    pub first: Sector,
}

/// Takes events in the order of the ring, hands out rows in the order of time.
pub struct Pairing {
    level: Level,
    devices: Vec<Recorded>,
    /// The time of the trace's zero on the events' clock.
    zero_ns: u64,
    /// Beginnings after this are no part of the recording any more.
    until: Nanos,
    /// The time of the last event.
    newest: Nanos,
    bios: HashMap<Id, Bio>,
    forget_at: usize,
    /// The bio that a bio is a part of.
    parts: HashMap<Id, Id>,
    requests: HashMap<Id, Given>,
    order: Order,
    /// What the last event said of losses before it.
    losses: u16,
    counts: Counts,
}

/// What went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Beginnings that became rows.
    pub begun: u64,
    /// Requests that the driver ended with an error.
    pub failed: u64,
    /// Bios that were refused because they would have had to wait: whoever asked asks again.
    pub refused: u64,
    /// Times that the driver gave a request back.
    pub requeued: u64,
    /// Bios that went to the driver without having been asked for.
    pub unasked: u64,
}

/// `BLK_STS_AGAIN`: what a request that must not wait (`REQ_NOWAIT`, io_uring's first try) gets where it would have to.
const AGAIN: i32 = 12;

/// A bio that was asked for.
#[derive(Clone, Copy)]
struct Bio {
    asked: Nanos,
    process: Process,
    /// Its row, where bios are rows.
    row: Option<Key>,
    /// When the first of it went to the driver.
    given: Option<Nanos>,
    /// Parts that were split off and are not done.
    parts_out: u32,
    /// Whether what was left after the splits is done.
    rest_done: bool,
    /// The first error of its parts and of that; 0 for none.
    error: i32,
}

/// A request that was given to the driver.
struct Given {
    row: Key,
    /// The row is that of the last time that it was given; until there is another, this one stands for it.
    is_back: bool,
}

impl Pairing {
    /// For these devices, with the trace's zero at that time of the events' clock.
    pub fn new(level: Level, devices: Vec<Recorded>, zero_ns: u64) -> Self {
        Self {
            level,
            devices,
            zero_ns,
            until: Nanos::MAX,
            newest: Nanos(0),
            bios: HashMap::new(),
            forget_at: REMEMBERED,
            parts: HashMap::new(),
            requests: HashMap::new(),
            order: Order::new(LIMIT),
            losses: 0,
            counts: Counts::default(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        if event.losses != self.losses {
            self.losses = event.losses;
            self.give_up_all();
        }
        let at = self.since_zero(event.time_ns);
        self.newest = self.newest.max(at);
        match event.kind {
            Kind::Queued(what, process) => self.queued(at, event.id, what, process),
            Kind::Issued(what, first_bio) => self.issued(at, event.id, what, first_bio),
            Kind::BioIssued => self.bio_issued(at, event.id),
            Kind::Done(error) => self.done(at, event.id, error),
            Kind::SplitFrom(whole) => self.split(event.id, whole),
            Kind::Requeued => {
                self.counts.requeued += 1;
                if let Some(given) = self.requests.get_mut(&event.id) {
                    given.is_back = true;
                }
            }
        }
    }

    /// The ring was found empty at that time.
    pub fn found_empty(&mut self, time_ns: u64) {
        self.order.found_empty(self.since_zero(time_ns));
    }

    /// Nothing that begins after that time becomes a row.
    pub fn end_at(&mut self, time_ns: u64) {
        self.until = self.until.min(self.since_zero(time_ns));
    }

    /// Whether events came that are so much later than the end that none before it can follow.
    pub fn is_past_the_end(&self) -> bool {
        self.newest - HOLD > self.until
    }

    /// Hands over the rows that may leave.
    pub fn release(&mut self, into: &mut Vec<Request>) {
        self.order.release(into);
    }

    /// Hands over all rows, with or without their end.
    pub fn finish(&mut self, into: &mut Vec<Request>) {
        self.order.finish(into);
    }

    /// The rows that wait for their end or for earlier ones.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// What went by.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn since_zero(&self, time_ns: u64) -> Nanos {
        Nanos(time_ns.wrapping_sub(self.zero_ns).cast_signed())
    }

    fn queued(&mut self, at: Nanos, id: Id, what: What, process: Process) {
        let is_row = self.level == Level::Queue || self.layer(what.device) == Some(Layer::Bios);
        let row = if is_row { self.begin(at, what, process, None) } else { None };
        let bio = Bio { asked: at, process, row, given: None, parts_out: 0, rest_done: false, error: 0 };
        if let Some(Bio { row: Some(before), .. }) = self.bios.insert(id, bio) {
            // Its end was lost, or its address would not be in use again.
            self.order.give_up(before);
        }
        self.parts.remove(&id);
        self.forget_old(at);
    }

    fn issued(&mut self, at: Nanos, id: Id, what: What, first_bio: Id) {
        let (process, queued) = match self.bios.get(&first_bio) {
            Some(bio) => (bio.process, Some(at - bio.asked)),
            None => (Process::default(), None),
        };
        let before = match self.begin(at, what, process, queued) {
            Some(row) => self.requests.insert(id, Given { row, is_back: false }),
            None => self.requests.remove(&id).map(|before| Given { is_back: false, ..before }),
        };
        match before {
            Some(Given { row, is_back: true }) => {
                self.order.remove(row);
                self.counts.begun -= 1;
            }
            Some(Given { row, is_back: false }) => self.order.give_up(row),
            None => {}
        }
    }

    fn bio_issued(&mut self, at: Nanos, id: Id) {
        let whole = self.parts.get(&id).copied().unwrap_or(id);
        match self.bios.get_mut(&whole) {
            Some(bio) => _ = bio.given.get_or_insert(at),
            None => self.counts.unasked += 1,
        }
    }

    fn split(&mut self, part: Id, whole: Id) {
        let whole = self.parts.get(&whole).copied().unwrap_or(whole);
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        if bio.row.is_some() {
            // Device mapper tells of a part again when it splits that.
            if self.parts.insert(part, whole).is_none() {
                bio.parts_out += 1;
            }
        } else {
            // Only its asker is of interest.
            let copy = *bio;
            self.bios.insert(part, copy);
        }
    }

    fn done(&mut self, at: Nanos, id: Id, error: i32) {
        if let Some(Given { row: key, .. }) = self.requests.remove(&id) {
            self.counts.failed += u64::from(error != 0);
            return self.order.settle(key, |row| row.latency = Some(at - row.at));
        }
        let (whole, is_part) = match self.parts.remove(&id) {
            Some(whole) => (whole, true),
            None => (id, false),
        };
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        let Some(key) = bio.row else { return };
        if bio.error == 0 {
            bio.error = error;
        }
        if is_part {
            bio.parts_out = bio.parts_out.saturating_sub(1);
        } else {
            bio.rest_done = true;
        }
        if bio.rest_done && bio.parts_out == 0 {
            let Bio { asked, given, error, .. } = *bio;
            self.bios.remove(&whole);
            if error == AGAIN && given.is_none() {
                self.counts.begun -= 1;
                self.counts.refused += 1;
                return self.order.remove(key);
            }
            self.counts.failed += u64::from(error != 0);
            self.order.settle(key, |row| {
                row.queued = given.map(|given| given - asked);
                row.latency = Some(at - given.unwrap_or(asked));
            });
        }
    }

    fn begin(&mut self, at: Nanos, what: What, process: Process, queued: Option<Nanos>) -> Option<Key> {
        let device = self.devices.get(usize::from(what.device))?;
        if at < Nanos(0) || at > self.until {
            return None;
        }
        // A request without data may carry any position.
        let (sector, sectors) = match u64::from(what.bytes) / SECTOR_BYTES {
            0 => (Sector(0), Sectors(0)),
            sectors => (Sector(what.sector.saturating_sub(device.first.0)), Sectors(sectors)),
        };
        self.counts.begun += 1;
        Some(self.order.insert(Request {
            device: DeviceId(what.device.into()),
            flags: what.flags,
            queued,
            pid: (process != Process::default()).then_some(process.pid),
            comm: process.comm,
            ..Request::new(at, what.op, sector, sectors)
        }))
    }

    fn layer(&self, device: u8) -> Option<Layer> {
        self.devices.get(usize::from(device)).map(|device| device.layer)
    }

    /// Nobody knows any more whose end comes next at an address.
    fn give_up_all(&mut self) {
        self.parts.clear();
        let rows = take(&mut self.bios).into_values().filter_map(|bio| bio.row);
        for key in rows.chain(take(&mut self.requests).into_values().map(|given| given.row)) {
            self.order.give_up(key);
        }
    }

    /// Bios that are no rows have no end here either: their request has it. Old ones are dropped now and then, and so are
    /// those whose row has left without its end.
    fn forget_old(&mut self, now: Nanos) {
        if self.bios.len() >= self.forget_at {
            let waits = |bio: &Bio| bio.row.is_some_and(|row| self.order.holds(row));
            self.bios.retain(|_, bio| now - bio.asked < FORGET_AFTER || waits(bio));
            self.parts.retain(|_, whole| self.bios.contains_key(whole));
            self.forget_at = REMEMBERED.max(2 * self.bios.len());
        }
    }
}

#[cfg(test)]
mod tests;
