use iosonar_trace::{Comm, Flags, Op};
use proptest::prelude::*;

use super::*;

const WHAT: What = What { device: 0, op: Op::Write, flags: Flags::SYNC, sector: 1008, bytes: 4096 };

fn asker() -> Process {
    Process { pid: 7, comm: Comm::new("postgres") }
}

fn pairing(level: Level, layer: Layer) -> Pairing {
    Pairing::new(level, vec![Recorded { layer, first: Sector(1000) }], 0)
}

fn event(time_ns: u64, id: u64, kind: Kind) -> Event {
    Event { time_ns, id: Id(id), losses: 0, kind }
}

fn rows(pairing: &mut Pairing, events: &[(u64, u64, Kind)]) -> Vec<Request> {
    for &(time_ns, id, kind) in events {
        pairing.take(&event(time_ns, id, kind));
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
    assert_eq!(pairing.counts(), Counts { begun: 1, failed: 1, ..Counts::default() });
}

#[test]
fn a_part_that_failed_is_not_made_good_by_the_last() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let events = [
        (10, BIO, Kind::Queued(WHAT, asker())),
        (11, PART, Kind::SplitFrom(Id(BIO))),
        (40, PART, Kind::Done(-5)),
        (45, BIO, Kind::Done(0)),
    ];
    rows(&mut pairing, &events);
    assert_eq!(pairing.counts().failed, 1);
}

#[test]
fn bios_whose_row_left_without_an_end_are_forgotten_and_others_are_not() {
    let mut pairing = pairing(Level::Queue, Layer::Bios);
    let second = |number: u64| number * 1_000_000_000;
    let queued = Kind::Queued(WHAT, asker());
    pairing.take(&event(second(1), BIO, queued));
    pairing.take(&event(second(1), PART, Kind::SplitFrom(Id(BIO))));
    pairing.finish(&mut Vec::new());
    pairing.take(&event(second(2), BIO + 10, queued));
    pairing.take(&event(second(90), BIO + 11, queued));
    pairing.forget_at = 0;
    pairing.take(&event(second(100), BIO + 12, queued));
    let mut left: Vec<u64> = pairing.bios.keys().map(|id| id.0).collect();
    left.sort_unstable();
    assert_eq!((left, pairing.parts.len()), (vec![BIO + 10, BIO + 11, BIO + 12], 0));
}

#[test]
fn a_part_that_is_told_of_twice_ends_once() {
    let mut pairing = pairing(Level::Queue, Layer::Bios);
    let split = Kind::SplitFrom(Id(BIO));
    let events = [
        (10, BIO, Kind::Queued(WHAT, asker())),
        (11, PART, split),
        (12, PART, split),
        (40, PART, Kind::Done(0)),
        (45, BIO, Kind::Done(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(10, None, Some(35))]);
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
    assert_eq!(pairing.counts(), Counts { begun: 1, refused: 1, ..Counts::default() });
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
fn what_was_on_its_way_when_events_were_lost_gets_no_end_of_another() {
    let queued = Kind::Queued(WHAT, asker());
    let mut asked = pairing(Level::Queue, Layer::Requests);
    for (time, kind) in [(10, queued), (11, Kind::BioIssued)] {
        asked.take(&event(time, BIO, kind));
    }
    // Its end is lost, and all of the next at that address but the end.
    asked.take(&Event { losses: 3, ..event(40, BIO, Kind::Done(0)) });
    assert_eq!(rows(&mut asked, &[]), [row(10, None, None)]);
    assert_eq!(asked.order().given_up(), 1);

    let mut reached = pairing(Level::Driver, Layer::Requests);
    reached.take(&event(10, BIO, queued));
    // The next one that was asked for is lost, and not what became of it.
    let nobodys = Kind::Issued(WHAT, Id(BIO));
    for (time, kind) in [(15, nobodys), (25, Kind::Done(0))] {
        reached.take(&Event { losses: 1, ..event(time, REQUEST, kind) });
    }
    let got = rows(&mut reached, &[]);
    assert_eq!((got[0].pid, got[0].queued, got[0].latency), (None, None, Some(Nanos(10))));
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
    assert_eq!((pairing.counts().begun, pairing.counts().requeued), (1, 1));
}

#[test]
fn what_the_driver_gave_back_and_did_not_take_again_was_given_to_it_all_the_same() {
    let given_back = [
        (5, BIO, Kind::Queued(WHAT, asker())),
        (10, REQUEST, Kind::Issued(WHAT, Id(BIO))),
        (12, REQUEST, Kind::Requeued),
    ];
    let mut failed = pairing(Level::Driver, Layer::Requests);
    let ended = [given_back.as_slice(), &[(20, REQUEST, Kind::Done(-5))]].concat();
    assert_eq!(rows(&mut failed, &ended), [row(10, Some(5), Some(10))]);

    let mut never_ended = pairing(Level::Driver, Layer::Requests);
    assert_eq!(rows(&mut never_ended, &given_back), [row(10, Some(5), None)]);
    assert_eq!(never_ended.order().given_up(), 1);
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
    assert_eq!(pairing.counts(), Counts { unasked: 1, ..Counts::default() });
    assert!(!pairing.is_past_the_end(), "an earlier one may come");
    pairing.take(&event(101 + HOLD.0 as u64, BIO, Kind::Done(0)));
    assert!(pairing.is_past_the_end());
}

#[test]
fn what_was_asked_for_before_the_zero_is_no_row_but_tells_who_had_asked() {
    let before = [(5, BIO, Kind::Queued(WHAT, asker())), (15, REQUEST, Kind::Issued(WHAT, Id(BIO)))];
    let recorded = vec![Recorded { layer: Layer::Requests, first: Sector(1000) }];
    let mut asked = Pairing::new(Level::Queue, recorded.clone(), 10);
    assert_eq!(rows(&mut asked, &before[..1]), []);
    let mut reached = Pairing::new(Level::Driver, recorded, 10);
    assert_eq!(rows(&mut reached, &before), [row(5, Some(10), None)]);
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
                    arrivals.push((last_arrival, event(time, address as u64, kind)));
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
