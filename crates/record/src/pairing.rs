//! Makes rows of events: finds the beginning of each end, and who had asked.
//!
//! The same address is used for one bio or request after another, so events of one address must be taken in the order
//! in which they happened. The ring gives just that: there is one for all processors, and the kernel finishes telling
//! of a beginning before anybody can bring about its end. (The order among different addresses is looser: that is
//! `order.rs`' work.)

use std::collections::HashMap;

use iosonar_trace::{DeviceId, Nanos, Request, SECTOR_BYTES, Sector, Sectors};

use crate::device::Layer;
use crate::event::{Event, Id, Kind, Process, What};
use crate::order::{Key, LIMIT, Order};
use crate::recorder::Level;

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
    bios: HashMap<Id, Bio>,
    forget_at: usize,
    /// The bio that a bio is a part of.
    parts: HashMap<Id, Id>,
    requests: HashMap<Id, Key>,
    order: Order,
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
}

impl Pairing {
    /// For these devices, with the trace's zero at that time of the events' clock.
    pub fn new(level: Level, devices: Vec<Recorded>, zero_ns: u64) -> Self {
        Self {
            level,
            devices,
            zero_ns,
            until: Nanos::MAX,
            bios: HashMap::new(),
            forget_at: REMEMBERED,
            parts: HashMap::new(),
            requests: HashMap::new(),
            order: Order::new(LIMIT),
            counts: Counts::default(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        let at = self.since_zero(event.time_ns);
        match event.kind {
            Kind::Queued(what, process) => self.queued(at, event.id, what, process),
            Kind::Issued(what, first_bio) => self.issued(at, event.id, what, first_bio),
            Kind::BioIssued => self.bio_issued(at, event.id),
            Kind::Done(error) => self.done(at, event.id, error),
            Kind::SplitFrom(whole) => self.split(event.id, whole),
            Kind::Requeued => {
                if let Some(key) = self.requests.remove(&event.id) {
                    self.order.remove(key);
                    self.counts.begun -= 1;
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
        self.until = self.since_zero(time_ns);
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
        let bio = Bio { asked: at, process, row, given: None, parts_out: 0, rest_done: false };
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
            Some(key) => self.requests.insert(id, key),
            None => self.requests.remove(&id),
        };
        if let Some(before) = before {
            self.order.give_up(before);
        }
    }

    fn bio_issued(&mut self, at: Nanos, id: Id) {
        let whole = self.parts.get(&id).copied().unwrap_or(id);
        if let Some(bio) = self.bios.get_mut(&whole) {
            bio.given.get_or_insert(at);
        }
    }

    fn split(&mut self, part: Id, whole: Id) {
        let whole = self.parts.get(&whole).copied().unwrap_or(whole);
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        if bio.row.is_some() {
            bio.parts_out += 1;
            self.parts.insert(part, whole);
        } else {
            // Only its asker is of interest.
            let copy = *bio;
            self.bios.insert(part, copy);
        }
    }

    fn done(&mut self, at: Nanos, id: Id, error: i32) {
        if let Some(key) = self.requests.remove(&id) {
            self.counts.failed += u64::from(error != 0);
            return self.order.settle(key, |row| row.latency = Some(at - row.at));
        }
        let (whole, is_part) = match self.parts.remove(&id) {
            Some(whole) => (whole, true),
            None => (id, false),
        };
        let Some(bio) = self.bios.get_mut(&whole) else { return };
        let Some(key) = bio.row else { return };
        if is_part {
            bio.parts_out = bio.parts_out.saturating_sub(1);
        } else {
            bio.rest_done = true;
        }
        if bio.rest_done && bio.parts_out == 0 {
            let Bio { asked, given, .. } = *bio;
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
        if at > self.until {
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

    /// Bios that are no rows have no end here either: their request has it. Old ones are dropped now and then.
    fn forget_old(&mut self, now: Nanos) {
        if self.bios.len() >= self.forget_at {
            self.bios.retain(|_, bio| bio.row.is_some() || now - bio.asked < FORGET_AFTER);
            self.forget_at = REMEMBERED.max(2 * self.bios.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Comm, Flags, Op};
    use proptest::prelude::*;

    use super::*;
    use crate::order::HOLD;

    const WHAT: What = What { device: 0, op: Op::Write, flags: Flags::SYNC, sector: 1008, bytes: 4096 };

    fn asker() -> Process {
        Process { pid: 7, comm: Comm::new("postgres") }
    }

    fn pairing(level: Level, layer: Layer) -> Pairing {
        Pairing::new(level, vec![Recorded { layer, first: Sector(1000) }], 0)
    }

    fn rows(pairing: &mut Pairing, events: &[(u64, u64, Kind)]) -> Vec<Request> {
        for &(time_ns, id, kind) in events {
            pairing.take(&Event { time_ns, id: Id(id), kind });
        }
        let mut rows = Vec::new();
        pairing.finish(&mut rows);
        rows
    }

    fn row(at: i64, queued: Option<i64>, latency: Option<i64>) -> Request {
        Request {
            flags: Flags::SYNC,
            queued: queued.map(Nanos),
            latency: latency.map(Nanos),
            pid: Some(7),
            comm: Comm::new("postgres"),
            ..Request::new(Nanos(at), Op::Write, Sector(8), Sectors(8))
        }
    }

    const BIO: u64 = 1;
    const PART: u64 = 2;
    const REQUEST: u64 = 100;

    #[test]
    fn what_reached_the_device_knows_who_had_asked() {
        let mut pairing = pairing(Level::Driver, Layer::Requests);
        let events = [
            (10, BIO, Kind::Queued(WHAT, asker())),
            (15, REQUEST, Kind::Issued(WHAT, Id(BIO))),
            (40, REQUEST, Kind::Done(0)),
            (50, REQUEST, Kind::Done(0)),
        ];
        assert_eq!(rows(&mut pairing, &events), [row(15, Some(5), Some(25))]);
        assert_eq!(pairing.order().given_up(), 0);
    }

    #[test]
    fn a_part_was_asked_for_by_whom_the_whole_was() {
        let mut pairing = pairing(Level::Driver, Layer::Requests);
        let events = [
            (10, BIO, Kind::Queued(WHAT, asker())),
            (11, PART, Kind::SplitFrom(Id(BIO))),
            (15, REQUEST, Kind::Issued(WHAT, Id(PART))),
            (16, REQUEST + 1, Kind::Issued(WHAT, Id(BIO))),
            (40, REQUEST + 1, Kind::Done(0)),
        ];
        assert_eq!(rows(&mut pairing, &events), [row(15, Some(5), None), row(16, Some(6), Some(24))]);
        assert_eq!(pairing.order().given_up(), 1);
    }

    #[test]
    fn what_was_asked_for_is_done_when_all_its_parts_are() {
        let mut pairing = pairing(Level::Queue, Layer::Requests);
        let events = [
            (10, BIO, Kind::Queued(WHAT, asker())),
            (11, PART, Kind::SplitFrom(Id(BIO))),
            (15, PART, Kind::BioIssued),
            (16, BIO, Kind::BioIssued),
            (40, BIO, Kind::Done(0)),
            (45, PART, Kind::Done(-5)),
        ];
        assert_eq!(rows(&mut pairing, &events), [row(10, Some(5), Some(30))]);
        assert_eq!(pairing.counts(), Counts { begun: 1, failed: 1, refused: 0 });
    }

    #[test]
    fn what_was_refused_because_it_would_have_to_wait_is_asked_for_again() {
        let mut pairing = pairing(Level::Queue, Layer::Requests);
        let queued = Kind::Queued(WHAT, asker());
        let events = [
            (10, BIO, queued),
            (11, BIO, Kind::Done(AGAIN)),
            (20, BIO, queued),
            (22, BIO, Kind::BioIssued),
            (30, BIO, Kind::Done(0)),
        ];
        assert_eq!(rows(&mut pairing, &events), [row(20, Some(2), Some(8))]);
        assert_eq!(pairing.counts(), Counts { begun: 1, failed: 0, refused: 1 });
    }

    #[test]
    fn without_requests_the_latency_counts_from_the_asking() {
        for level in [Level::Queue, Level::Driver] {
            let mut pairing = pairing(level, Layer::Bios);
            let events = [(10, BIO, Kind::Queued(WHAT, asker())), (30, BIO, Kind::Done(0))];
            assert_eq!(rows(&mut pairing, &events), [row(10, None, Some(20))]);
        }
    }

    #[test]
    fn an_address_that_is_used_again_had_an_end_that_was_lost() {
        let mut asked = pairing(Level::Queue, Layer::Bios);
        let queued = Kind::Queued(WHAT, asker());
        let events = [(10, BIO, queued), (20, BIO, queued), (30, BIO, Kind::Done(0))];
        assert_eq!(rows(&mut asked, &events), [row(10, None, None), row(20, None, Some(10))]);
        assert_eq!(asked.order().given_up(), 1);

        let mut reached = pairing(Level::Driver, Layer::Requests);
        let issued = Kind::Issued(WHAT, Id(BIO));
        let events = [(9, BIO, queued), (10, REQUEST, issued), (20, REQUEST, issued), (30, REQUEST, Kind::Done(0))];
        assert_eq!(rows(&mut reached, &events), [row(10, Some(1), None), row(20, Some(11), Some(10))]);
        assert_eq!(reached.order().given_up(), 1);
    }

    #[test]
    fn what_the_driver_did_not_take_did_not_reach_it() {
        let mut pairing = pairing(Level::Driver, Layer::Requests);
        let events = [
            (5, BIO, Kind::Queued(WHAT, asker())),
            (10, REQUEST, Kind::Issued(WHAT, Id(BIO))),
            (12, REQUEST, Kind::Requeued),
            (20, REQUEST, Kind::Issued(WHAT, Id(BIO))),
            (30, REQUEST, Kind::Done(0)),
        ];
        assert_eq!(rows(&mut pairing, &events), [row(20, Some(15), Some(10))]);
        assert_eq!(pairing.counts().begun, 1);
    }

    #[test]
    fn ends_without_a_beginning_and_beginnings_after_the_end_are_no_rows() {
        let mut pairing = pairing(Level::Queue, Layer::Requests);
        pairing.end_at(100);
        let events = [
            (10, REQUEST, Kind::Done(0)),
            (11, PART, Kind::SplitFrom(Id(BIO))),
            (12, BIO, Kind::BioIssued),
            (101, BIO, Kind::Queued(WHAT, asker())),
        ];
        assert_eq!(rows(&mut pairing, &events), []);
    }

    #[test]
    fn a_flush_without_data_has_no_position() {
        let mut pairing = pairing(Level::Queue, Layer::Requests);
        let flush = What { op: Op::Flush, sector: u64::MAX, bytes: 0, ..WHAT };
        let got = rows(&mut pairing, &[(10, BIO, Kind::Queued(flush, asker())), (30, BIO, Kind::Done(0))]);
        assert_eq!((got[0].sector, got[0].sectors, got[0].latency), (Sector(0), Sectors(0), Some(Nanos(20))));
    }

    /// Requests that follow one another at a few addresses: (start after the last one there, duration).
    fn lives() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
        let gap = prop_oneof![0..1_000_u64, 0..400_000_000_u64];
        prop::collection::vec(prop::collection::vec((gap.clone(), gap), 0..12), 1..6)
    }

    proptest! {
        /// Events reach the ring late by less than [`HOLD`], each address in its own order; rows must come out as
        /// if all had been sorted at the end.
        #[test]
        fn rows_come_in_the_order_of_time_and_with_their_own_end(lives in lives(), delays in prop::collection::vec(0..HOLD.0 as u64, 200)) {
            let mut delays = delays.into_iter().cycle();
            let mut expected = Vec::new();
            let mut arrivals = Vec::new();
            for (address, life) in lives.iter().enumerate() {
                let (mut now, mut last_arrival) = (0, 0);
                for &(gap, duration) in life {
                    let (start, end) = (now + gap, now + gap + duration);
                    expected.push((start as i64, Some(duration as i64)));
                    for (time, kind) in [(start, Kind::Queued(WHAT, asker())), (end, Kind::Done(0))] {
                        last_arrival = (time + delays.next().unwrap()).max(last_arrival);
                        arrivals.push((last_arrival, Event { time_ns: time, id: Id(address as u64), kind }));
                    }
                    now = end;
                }
            }
            expected.sort_unstable();
            arrivals.sort_by_key(|&(arrival, _)| arrival);

            let mut pairing = pairing(Level::Queue, Layer::Bios);
            let mut got = Vec::new();
            for (arrival, event) in &arrivals {
                // Everything that arrived before was read: just now the ring was empty.
                pairing.found_empty(arrival.saturating_sub(1));
                pairing.release(&mut got);
                pairing.take(event);
            }
            pairing.finish(&mut got);
            let mut got: Vec<_> = got.iter().map(|row| (row.at.0, row.latency.map(|l| l.0))).collect();
            prop_assert!(got.is_sorted_by_key(|row| row.0));
            got.sort_unstable();
            prop_assert_eq!(got, expected);
            prop_assert_eq!((pairing.order().late(), pairing.order().given_up()), (0, 0));
        }
    }
}
