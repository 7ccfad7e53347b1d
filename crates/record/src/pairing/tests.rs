use iosonar_trace::{Comm, Flags, Op};
use proptest::prelude::*;

use super::*;

const IO: Io = Io { device: 0, op: Op::Write, flags: Flags::SYNC, sector: 1008, bytes: 4096 };

fn process() -> Process {
    Process { pid: 7, comm: Comm::new("postgres") }
}

fn pairing(level: Level, layer: Layer) -> Pairing {
    Pairing::new(level, vec![RecordedDevice { layer, first: Sector(1000) }], 0)
}

fn event(time_ns: u64, id: u64, kind: Kind) -> Event {
    Event { time_ns, id: Id(id), losses: 0, kind }
}

fn rows(pairing: &mut Pairing, events: &[(u64, u64, Kind)]) -> Vec<Request> {
    for &(time_ns, id, kind) in events {
        pairing.push(&event(time_ns, id, kind));
    }
    let mut rows = Vec::new();
    pairing.release_all(&mut rows);
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
fn at_level_d_a_request_has_the_process_that_submitted_its_bio() {
    let mut pairing = pairing(Level::Driver, Layer::Requests);
    let events = [
        (10, BIO, Kind::Queued(IO, process())),
        (15, REQUEST, Kind::Issued(IO, Id(BIO))),
        (40, REQUEST, Kind::Completed(0)),
        (50, REQUEST, Kind::Completed(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(15, Some(5), Some(25))]);
    assert_eq!(pairing.rows().abandoned(), 0);
}

#[test]
fn a_split_bio_has_the_process_of_the_whole() {
    let mut pairing = pairing(Level::Driver, Layer::Requests);
    let events = [
        (10, BIO, Kind::Queued(IO, process())),
        (11, PART, Kind::SplitFrom(Id(BIO))),
        (15, REQUEST, Kind::Issued(IO, Id(PART))),
        (16, REQUEST + 1, Kind::Issued(IO, Id(BIO))),
        (40, REQUEST + 1, Kind::Completed(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(15, Some(5), None), row(16, Some(6), Some(24))]);
    assert_eq!(pairing.rows().abandoned(), 1);
}

#[test]
fn a_split_bio_completes_with_its_last_part() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let events = [
        (10, BIO, Kind::Queued(IO, process())),
        (11, PART, Kind::SplitFrom(Id(BIO))),
        (15, PART, Kind::BioIssued),
        (16, BIO, Kind::BioIssued),
        (40, BIO, Kind::Completed(0)),
        (45, PART, Kind::Completed(-5)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(10, Some(5), Some(30))]);
    assert_eq!(pairing.counts(), Counts { started: 1, failed: 1, ..Counts::default() });
}

#[test]
fn a_split_bio_fails_if_any_part_fails() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let events = [
        (10, BIO, Kind::Queued(IO, process())),
        (11, PART, Kind::SplitFrom(Id(BIO))),
        (40, PART, Kind::Completed(-5)),
        (45, BIO, Kind::Completed(0)),
    ];
    rows(&mut pairing, &events);
    assert_eq!(pairing.counts().failed, 1);
}

#[test]
fn bios_whose_row_was_released_are_dropped_and_recent_ones_kept() {
    let mut pairing = pairing(Level::Queue, Layer::Bios);
    let second = |number: u64| number * 1_000_000_000;
    let queued = Kind::Queued(IO, process());
    pairing.push(&event(second(1), BIO, queued));
    pairing.push(&event(second(1), PART, Kind::SplitFrom(Id(BIO))));
    pairing.release_all(&mut Vec::new());
    pairing.push(&event(second(2), BIO + 10, queued));
    pairing.push(&event(second(90), BIO + 11, queued));
    pairing.prune_at = 0;
    pairing.push(&event(second(100), BIO + 12, queued));
    let mut left: Vec<u64> = pairing.bios.keys().map(|id| id.0).collect();
    left.sort_unstable();
    assert_eq!((left, pairing.parents.len()), (vec![BIO + 10, BIO + 11, BIO + 12], 0));
}

#[test]
fn a_part_that_is_reported_twice_completes_once() {
    let mut pairing = pairing(Level::Queue, Layer::Bios);
    let split = Kind::SplitFrom(Id(BIO));
    let events = [
        (10, BIO, Kind::Queued(IO, process())),
        (11, PART, split),
        (12, PART, split),
        (40, PART, Kind::Completed(0)),
        (45, BIO, Kind::Completed(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(10, None, Some(35))]);
}

#[test]
fn a_bio_that_would_block_is_left_out() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let queued = Kind::Queued(IO, process());
    let events = [
        (10, BIO, queued),
        (11, BIO, Kind::Completed(BLK_STS_AGAIN)),
        (20, BIO, queued),
        (22, BIO, Kind::BioIssued),
        (30, BIO, Kind::Completed(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(20, Some(2), Some(8))]);
    assert_eq!(pairing.counts(), Counts { started: 1, would_block: 1, ..Counts::default() });
}

#[test]
fn on_a_bio_based_device_latency_counts_from_the_queue_event() {
    for level in [Level::Queue, Level::Driver] {
        let mut pairing = pairing(level, Layer::Bios);
        let events = [(10, BIO, Kind::Queued(IO, process())), (30, BIO, Kind::Completed(0))];
        assert_eq!(rows(&mut pairing, &events), [row(10, None, Some(20))]);
    }
}

#[test]
fn reuse_of_an_address_means_that_a_completion_was_lost() {
    let mut queue_level = pairing(Level::Queue, Layer::Bios);
    let queued = Kind::Queued(IO, process());
    let events = [(10, BIO, queued), (20, BIO, queued), (30, BIO, Kind::Completed(0))];
    assert_eq!(rows(&mut queue_level, &events), [row(10, None, None), row(20, None, Some(10))]);
    assert_eq!(queue_level.rows().abandoned(), 1);

    let mut driver_level = pairing(Level::Driver, Layer::Requests);
    let issued = Kind::Issued(IO, Id(BIO));
    let events = [(9, BIO, queued), (10, REQUEST, issued), (20, REQUEST, issued), (30, REQUEST, Kind::Completed(0))];
    assert_eq!(rows(&mut driver_level, &events), [row(10, Some(1), None), row(20, Some(11), Some(10))]);
    assert_eq!(driver_level.rows().abandoned(), 1);
}

#[test]
fn a_request_without_completion_keeps_its_queueing_time() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let queued = Kind::Queued(IO, process());
    let events = [(10, BIO, queued), (14, BIO, Kind::BioIssued), (20, BIO, queued), (23, BIO, Kind::BioIssued)];
    assert_eq!(rows(&mut pairing, &events), [row(10, Some(4), None), row(20, Some(3), None)]);
}

#[test]
fn only_the_last_second_may_be_in_flight_at_the_end() {
    let mut pairing = pairing(Level::Driver, Layer::Requests);
    pairing.end_at(5_000_000_000);
    let issued = Kind::Issued(IO, Id(BIO));
    // The completion of the first two was not seen; the recorder waited for the last.
    let events = [(900_000_000, 101, issued), (3_900_000_000, 102, issued), (4_100_000_000, 103, issued)];
    assert_eq!(rows(&mut pairing, &events).len(), 3);
    assert_eq!((pairing.rows().abandoned(), pairing.rows().in_flight_at_end()), (3, 1));
}

#[test]
fn after_a_loss_requests_in_flight_get_no_completion() {
    let queued = Kind::Queued(IO, process());
    let mut queue_level = pairing(Level::Queue, Layer::Requests);
    for (time, kind) in [(10, queued), (11, Kind::BioIssued)] {
        queue_level.push(&event(time, BIO, kind));
    }
    // Lost: its completion, and the start of the next bio at that address.
    queue_level.push(&Event { losses: 3, ..event(40, BIO, Kind::Completed(0)) });
    assert_eq!(rows(&mut queue_level, &[]), [row(10, Some(1), None)]);
    assert_eq!(queue_level.rows().abandoned(), 1);

    let mut driver_level = pairing(Level::Driver, Layer::Requests);
    driver_level.push(&event(10, BIO, queued));
    // Lost: the start of the next bio. Its issue and completion are seen.
    let issued = Kind::Issued(IO, Id(BIO));
    for (time, kind) in [(15, issued), (25, Kind::Completed(0))] {
        driver_level.push(&Event { losses: 1, ..event(time, REQUEST, kind) });
    }
    let got = rows(&mut driver_level, &[]);
    assert_eq!((got[0].pid, got[0].queued, got[0].latency), (None, None, Some(Nanos(10))));
}

#[test]
fn a_requeued_request_counts_from_its_last_issue() {
    let mut pairing = pairing(Level::Driver, Layer::Requests);
    let events = [
        (5, BIO, Kind::Queued(IO, process())),
        (10, REQUEST, Kind::Issued(IO, Id(BIO))),
        (12, REQUEST, Kind::Requeued),
        (20, REQUEST, Kind::Issued(IO, Id(BIO))),
        (30, REQUEST, Kind::Completed(0)),
    ];
    assert_eq!(rows(&mut pairing, &events), [row(20, Some(15), Some(10))]);
    assert_eq!((pairing.counts().started, pairing.counts().requeued), (1, 1));
}

#[test]
fn a_requeued_request_that_is_not_issued_again_keeps_its_row() {
    let requeued = [
        (5, BIO, Kind::Queued(IO, process())),
        (10, REQUEST, Kind::Issued(IO, Id(BIO))),
        (12, REQUEST, Kind::Requeued),
    ];
    let mut failed = pairing(Level::Driver, Layer::Requests);
    let ended = [requeued.as_slice(), &[(20, REQUEST, Kind::Completed(-5))]].concat();
    assert_eq!(rows(&mut failed, &ended), [row(10, Some(5), Some(10))]);

    let mut never_ended = pairing(Level::Driver, Layer::Requests);
    assert_eq!(rows(&mut never_ended, &requeued), [row(10, Some(5), None)]);
    assert_eq!(never_ended.rows().abandoned(), 1);
}

#[test]
fn an_event_without_start_or_past_the_end_is_no_row() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    pairing.end_at(100);
    let events = [
        (10, REQUEST, Kind::Completed(0)),
        (11, PART, Kind::SplitFrom(Id(BIO))),
        (12, BIO, Kind::BioIssued),
        (101, BIO, Kind::Queued(IO, process())),
    ];
    assert_eq!(rows(&mut pairing, &events), []);
    assert_eq!(pairing.counts(), Counts { unqueued: 1, ..Counts::default() });
    assert!(!pairing.is_past_end(), "an earlier event may still arrive");
    pairing.push(&event(101 + REORDER_WINDOW.0 as u64, BIO, Kind::Completed(0)));
    assert!(pairing.is_past_end());
}

#[test]
fn a_bio_queued_before_time_zero_only_names_the_process() {
    let before = [(5, BIO, Kind::Queued(IO, process())), (15, REQUEST, Kind::Issued(IO, Id(BIO)))];
    let recorded = vec![RecordedDevice { layer: Layer::Requests, first: Sector(1000) }];
    let mut queue_level = Pairing::new(Level::Queue, recorded.clone(), 10);
    assert_eq!(rows(&mut queue_level, &before[..1]), []);
    let mut driver_level = Pairing::new(Level::Driver, recorded, 10);
    assert_eq!(rows(&mut driver_level, &before), [row(5, Some(10), None)]);
}

#[test]
fn a_flush_without_data_has_no_position() {
    let mut pairing = pairing(Level::Queue, Layer::Requests);
    let flush = Io { op: Op::Flush, sector: u64::MAX, bytes: 0, ..IO };
    let got = rows(&mut pairing, &[(10, BIO, Kind::Queued(flush, process())), (30, BIO, Kind::Completed(0))]);
    assert_eq!((got[0].sector, got[0].sectors, got[0].latency), (Sector(0), Sectors(0), Some(Nanos(20))));
}

/// Successive requests at a few addresses: (gap after the last completion there, duration).
fn requests_by_address() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let gap = prop_oneof![0..1_000_u64, 0..400_000_000_u64];
    prop::collection::vec(prop::collection::vec((gap.clone(), gap), 0..12), 1..6)
}

proptest! {
    /// Events reach the ring late by less than [`REORDER_WINDOW`], and in order at each address. Rows must come out as
    /// if all events had been sorted at the end.
    #[test]
    fn rows_are_in_order_of_time_and_have_their_own_completion(requests_by_address in requests_by_address(), delays in prop::collection::vec(0..REORDER_WINDOW.0 as u64, 200)) {
        let mut delays = delays.into_iter().cycle();
        let mut expected = Vec::new();
        let mut arrivals = Vec::new();
        for (address, requests) in requests_by_address.iter().enumerate() {
            let (mut now, mut last_arrival) = (0, 0);
            for &(gap, duration) in requests {
                let (start, end) = (now + gap, now + gap + duration);
                expected.push((start as i64, Some(duration as i64)));
                for (time, kind) in [(start, Kind::Queued(IO, process())), (end, Kind::Completed(0))] {
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
            // All earlier arrivals were read: the ring was empty just before this one.
            pairing.ring_empty_at(arrival.saturating_sub(1));
            pairing.release(&mut got);
            pairing.push(event);
        }
        pairing.release_all(&mut got);
        let mut got: Vec<_> = got.iter().map(|row| (row.at.0, row.latency.map(|l| l.0))).collect();
        prop_assert!(got.is_sorted_by_key(|row| row.0));
        got.sort_unstable();
        prop_assert_eq!(got, expected);
        prop_assert_eq!((pairing.rows().late(), pairing.rows().abandoned()), (0, 0));
    }
}
