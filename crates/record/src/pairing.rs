//! Pairs events into rows: matches each completion with its request, and finds the process that submitted it.
//!
//! The kernel reuses the address of a completed bio or request, so events of one address must be taken in the order in
//! which they happened. The ring guarantees that: it is one for all processors, and the event of a submission is in the
//! ring before the request can complete. (Events of different addresses are ordered less strictly; `reorder.rs` sorts
//! them.) If events were lost, an address may have been reused unnoticed: all requests in flight are then abandoned.

use std::collections::HashMap;
use std::mem::take;

use iosonar_trace::{DeviceId, Nanos, Request, SECTOR_BYTES, Sector, Sectors};

use crate::device::Layer;
use crate::event::{Event, Id, Io, Kind, Process};
use crate::options::Level;
use crate::reorder::{Key, MAX_ROWS, REORDER_WINDOW, ReorderBuffer};

/// The most bios kept before old ones are dropped.
const MAX_BIOS: usize = 1 << 18;

/// A request without a completion that began this long before the end of the recording may have been in flight then.
/// The recorder waits for those; one that began earlier hung for longer, or its completion was not seen.
const LAST_REQUESTS: Nanos = Nanos(1_000_000_000);

/// A bio that was queued this long ago will not be issued any more.
const BIO_TIMEOUT: Nanos = Nanos(60_000_000_000);

/// The properties of a recorded device that pairing needs.
#[derive(Clone, Copy, Debug)]
pub struct RecordedDevice {
    /// Request-based or bio-based.
    pub layer: Layer,
    /// The first sector of the device on its disk.
    pub first: Sector,
}

/// Takes events in the order of the ring, returns rows in order of time.
pub struct Pairing {
    level: Level,
    devices: Vec<RecordedDevice>,
    /// The recording's zero on the clock of the events.
    zero_ns: u64,
    /// The end of the recording: requests that begin later are left out.
    end: Nanos,
    /// The latest time of an event.
    newest: Nanos,
    bios: HashMap<Id, Bio>,
    /// Number of bios at which old ones are dropped next.
    prune_at: usize,
    /// From a split-off bio to the bio that was queued.
    parents: HashMap<Id, Id>,
    requests: HashMap<Id, IssuedRequest>,
    rows: ReorderBuffer,
    /// [`Event::losses`] of the last event.
    losses: u16,
    counts: Counts,
}

/// Counts for the footer and its warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that became rows.
    pub started: u64,
    /// Requests that the driver completed with an error.
    pub failed: u64,
    /// Bios with `REQ_NOWAIT` that failed because they would have blocked; the application submits them again.
    pub would_block: u64,
    /// Requeues by the driver.
    pub requeued: u64,
    /// Bios that were issued to the driver without a queue event.
    pub unqueued: u64,
}

/// The status of a bio with `REQ_NOWAIT` (io_uring's first attempt) that would have to wait.
const BLK_STS_AGAIN: i32 = 12;

/// A bio that was queued.
#[derive(Clone, Copy)]
struct Bio {
    queued_at: Nanos,
    process: Process,
    /// Its row, if bios are rows.
    row: Option<Key>,
    /// When the first part of it was issued to the driver.
    issued_at: Option<Nanos>,
    /// Parts that were split off and have not completed.
    parts_in_flight: u32,
    /// Whether the rest, after the splits, has completed.
    rest_completed: bool,
    /// The first error among the parts and the rest; 0 for none.
    error: i32,
}

/// A request that was issued to the driver.
struct IssuedRequest {
    row: Key,
    /// Whether the driver requeued it. The next issue replaces the row; without one, the row remains.
    is_requeued: bool,
}

impl Pairing {
    /// Pairs events of these devices; `zero_ns` is the recording's zero on the clock of the events.
    pub fn new(level: Level, devices: Vec<RecordedDevice>, zero_ns: u64) -> Self {
        Self {
            level,
            devices,
            zero_ns,
            end: Nanos::MAX,
            newest: Nanos(0),
            bios: HashMap::new(),
            prune_at: MAX_BIOS,
            parents: HashMap::new(),
            requests: HashMap::new(),
            rows: ReorderBuffer::new(MAX_ROWS),
            losses: 0,
            counts: Counts::default(),
        }
    }

    /// Processes the next event.
    pub fn push(&mut self, event: &Event) {
        if event.losses != self.losses {
            self.losses = event.losses;
            self.abandon_all();
        }
        let at = self.since_zero(event.time_ns);
        self.newest = self.newest.max(at);
        match event.kind {
            Kind::Queued(io, process) => self.queued(at, event.id, io, process),
            Kind::Issued(io, first_bio) => self.issued(at, event.id, io, first_bio),
            Kind::BioIssued => self.bio_issued(at, event.id),
            Kind::Completed(error) => self.completed(at, event.id, error),
            Kind::SplitFrom(whole) => self.split(event.id, whole),
            Kind::Requeued => {
                self.counts.requeued += 1;
                if let Some(request) = self.requests.get_mut(&event.id) {
                    request.is_requeued = true;
                }
            }
        }
    }

    /// The ring was empty at that time.
    pub fn ring_empty_at(&mut self, time_ns: u64) {
        self.rows.ring_empty_at(self.since_zero(time_ns));
    }

    /// Requests that begin after that time are left out.
    pub fn end_at(&mut self, time_ns: u64) {
        self.end = self.end.min(self.since_zero(time_ns));
    }

    /// Whether an event arrived so late after the end that no earlier request can follow.
    pub fn is_past_end(&self) -> bool {
        self.newest - REORDER_WINDOW > self.end
    }

    /// Appends the rows that may be released to `into`.
    pub fn release(&mut self, into: &mut Vec<Request>) {
        self.rows.release(into);
    }

    /// Releases all rows, completed or not.
    pub fn release_all(&mut self, into: &mut Vec<Request>) {
        let end = if self.end == Nanos::MAX { self.newest } else { self.end };
        self.rows.release_all(end - LAST_REQUESTS, into);
    }

    /// The rows that wait for their completion or for earlier rows.
    pub fn rows(&self) -> &ReorderBuffer {
        &self.rows
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn since_zero(&self, time_ns: u64) -> Nanos {
        Nanos(time_ns.wrapping_sub(self.zero_ns).cast_signed())
    }

    fn queued(&mut self, at: Nanos, id: Id, io: Io, process: Process) {
        let is_row = self.level == Level::Queue || self.layer(io.device) == Some(Layer::Bios);
        let row = if is_row { self.insert_row(at, io, process, None) } else { None };
        let bio =
            Bio { queued_at: at, process, row, issued_at: None, parts_in_flight: 0, rest_completed: false, error: 0 };
        if let Some(Bio { row: Some(before), .. }) = self.bios.insert(id, bio) {
            // The address is in use again, so the completion of the earlier bio was lost.
            self.rows.abandon(before);
        }
        self.parents.remove(&id);
        self.prune(at);
    }

    fn issued(&mut self, at: Nanos, id: Id, io: Io, first_bio: Id) {
        let (process, queued) = match self.bios.get(&first_bio) {
            Some(bio) => (bio.process, Some(at - bio.queued_at)),
            None => (Process::default(), None),
        };
        let before = match self.insert_row(at, io, process, queued) {
            Some(row) => self.requests.insert(id, IssuedRequest { row, is_requeued: false }),
            None => self.requests.remove(&id).map(|before| IssuedRequest { is_requeued: false, ..before }),
        };
        match before {
            Some(IssuedRequest { row, is_requeued: true }) => {
                self.rows.remove(row);
                self.counts.started -= 1;
            }
            Some(IssuedRequest { row, is_requeued: false }) => self.rows.abandon(row),
            None => {}
        }
    }

    fn bio_issued(&mut self, at: Nanos, id: Id) {
        let whole = self.parents.get(&id).copied().unwrap_or(id);
        let Some(bio) = self.bios.get_mut(&whole) else {
            self.counts.unqueued += 1;
            return;
        };
        if let (None, Some(row)) = (bio.issued_at, bio.row) {
            let queued = at - bio.queued_at;
            self.rows.update(row, |row| row.queued = Some(queued));
        }
        bio.issued_at.get_or_insert(at);
    }

    fn split(&mut self, part: Id, whole: Id) {
        let whole = self.parents.get(&whole).copied().unwrap_or(whole);
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        if bio.row.is_some() {
            // Device mapper reports a part again when it splits that part.
            if self.parents.insert(part, whole).is_none() {
                bio.parts_in_flight += 1;
            }
        } else {
            // Only the process and the queue time are needed.
            let copy = *bio;
            self.bios.insert(part, copy);
        }
    }

    fn completed(&mut self, at: Nanos, id: Id, error: i32) {
        if let Some(IssuedRequest { row: key, .. }) = self.requests.remove(&id) {
            self.counts.failed += u64::from(error != 0);
            return self.rows.complete(key, |row| row.latency = Some(at - row.at));
        }
        let (whole, is_part) = match self.parents.remove(&id) {
            Some(whole) => (whole, true),
            None => (id, false),
        };
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        let Some(key) = bio.row else { return };
        if bio.error == 0 {
            bio.error = error;
        }
        if is_part {
            bio.parts_in_flight = bio.parts_in_flight.saturating_sub(1);
        } else {
            bio.rest_completed = true;
        }
        if bio.rest_completed && bio.parts_in_flight == 0 {
            let Bio { queued_at, issued_at, error, .. } = *bio;
            self.bios.remove(&whole);
            if error == BLK_STS_AGAIN && issued_at.is_none() {
                self.counts.started -= 1;
                self.counts.would_block += 1;
                return self.rows.remove(key);
            }
            self.counts.failed += u64::from(error != 0);
            self.rows.complete(key, |row| row.latency = Some(at - issued_at.unwrap_or(queued_at)));
        }
    }

    fn insert_row(&mut self, at: Nanos, io: Io, process: Process, queued: Option<Nanos>) -> Option<Key> {
        let device = self.devices.get(usize::from(io.device))?;
        if at < Nanos(0) || at > self.end {
            return None;
        }
        // A request without data may carry any position.
        let (sector, sectors) = match u64::from(io.bytes) / SECTOR_BYTES {
            0 => (Sector(0), Sectors(0)),
            sectors => (Sector(io.sector.saturating_sub(device.first.0)), Sectors(sectors)),
        };
        self.counts.started += 1;
        Some(self.rows.insert(Request {
            device: DeviceId(io.device.into()),
            flags: io.flags,
            queued,
            pid: (process != Process::default()).then_some(process.pid),
            comm: process.comm,
            ..Request::new(at, io.op, sector, sectors)
        }))
    }

    fn layer(&self, device: u8) -> Option<Layer> {
        self.devices.get(usize::from(device)).map(|device| device.layer)
    }

    /// After a loss of events, the next completion at an address may belong to another request.
    fn abandon_all(&mut self) {
        self.parents.clear();
        let rows = take(&mut self.bios).into_values().filter_map(|bio| bio.row);
        for key in rows.chain(take(&mut self.requests).into_values().map(|request| request.row)) {
            self.rows.abandon(key);
        }
    }

    /// Bios that are not rows are never completed here, as the event comes for their request. Drops old ones from time
    /// to time, and bios whose row was released without a completion.
    fn prune(&mut self, now: Nanos) {
        if self.bios.len() >= self.prune_at {
            let waits = |bio: &Bio| bio.row.is_some_and(|row| self.rows.contains(row));
            self.bios.retain(|_, bio| now - bio.queued_at < BIO_TIMEOUT || waits(bio));
            self.parents.retain(|_, whole| self.bios.contains_key(whole));
            self.prune_at = MAX_BIOS.max(2 * self.bios.len());
        }
    }
}

#[cfg(test)]
mod tests;
