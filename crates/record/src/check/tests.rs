//! Tests of the comparison, on readers in memory.

use std::collections::BTreeMap;

use iosonar_trace::{Flags, Kind, Metadata, Nanos, Op, Outcome, Sector, Sectors};
use proptest::prelude::*;

use super::*;

fn compared(run: &[IoResult], recording: &[Request], pass_size: u64) -> Comparison {
    compared_with(run, &Metadata::new(Kind::Replay, "test"), recording, &Metadata::new(Kind::Load, "test"), pass_size)
}

struct Rows<R> {
    rows: std::vec::IntoIter<R>,
    metadata: Metadata,
}

impl<R: Row<Metadata = Metadata>> Reader<R> for Rows<R> {
    fn next(&mut self) -> iosonar_trace::Result<Option<R>> {
        let row = self.rows.next();
        self.metadata.counts.requests += u64::from(row.is_some());
        Ok(row)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

fn reader<R: Row<Metadata = Metadata> + Clone>(rows: &[R], metadata: &Metadata) -> Result<Box<dyn Reader<R>>> {
    let rows = Vec::from(rows).into_iter();
    Ok(Box::new(Rows { rows, metadata: metadata.clone() }))
}

fn issued(sector: u64, sectors: u64, op: Op, issued: Option<i64>) -> IoResult {
    IoResult {
        source_sector: Sector(0),
        issued: issued.map(Nanos),
        in_flight: 1,
        outcome: Outcome::Ok,
        ..IoResult::of(&Request::new(Nanos(0), op, Sector(sector), Sectors(sectors)), 0)
    }
}

fn recorded(sector: u64, sectors: u64, op: Op, at: i64) -> Request {
    Request::new(Nanos(at), op, Sector(sector), Sectors(sectors))
}

fn compared_with(
    run: &[IoResult],
    run_metadata: &Metadata,
    recording: &[Request],
    recording_metadata: &Metadata,
    pass_size: u64,
) -> Comparison {
    compare_in_passes(&mut || reader(run, run_metadata), &mut || reader(recording, recording_metadata), pass_size, 1000)
        .unwrap()
}

#[test]
fn requests_are_compared_with_the_device_of_their_target() {
    let target = |disk: &str, source: u32| {
        serde_json::json!({"path": format!("/dev/{disk}"), "kind": "block", "disk": disk,
                           "sources": [source], "others": false})
    };
    let targets = serde_json::json!({"targets": [target("sda", 0), target("sdb", 1)]});
    let run_metadata =
        Metadata { run: serde_json::from_value(targets).unwrap(), ..Metadata::new(Kind::Replay, "test") };
    let device = |name: &str| iosonar_trace::Device { name: name.into(), sectors: None };
    let recording_metadata =
        Metadata { devices: vec![device("sdb"), device("sda")], ..Metadata::new(Kind::Load, "test") };
    let on = |device: u32, mut row: IoResult| {
        row.device = iosonar_trace::DeviceId(device as _);
        row
    };
    let run = [on(0, issued(0, 8, Op::Read, Some(1))), on(1, issued(8, 8, Op::Read, Some(2)))];
    let seen = |device: u32, sector| Request {
        device: iosonar_trace::DeviceId(device as _),
        ..recorded(sector, 8, Op::Read, 5)
    };
    let right = compared_with(&run, &run_metadata, &[seen(1, 0), seen(0, 8)], &recording_metadata, 100);
    assert!(right.complete, "{right:?}");
    assert_eq!(right.devices, ["sdb", "sda"]);
    let swapped = compared_with(&run, &run_metadata, &[seen(0, 0), seen(1, 8)], &recording_metadata, 100);
    assert_eq!((swapped.complete, swapped.missing, swapped.extra), (false, 2, 2));
    assert_eq!(swapped.missing_requests[0].device, Some(1), "of sda");
}

#[test]
fn a_run_that_is_damaged_or_was_cut_short_is_never_complete() {
    let rows = [issued(0, 8, Op::Read, Some(1))];
    let recording_metadata = Metadata::new(Kind::Load, "test");
    let mut damaged = Metadata::new(Kind::Replay, "test");
    (damaged.counts.bad_lines, damaged.counts.unreadable_rows) = (5, 3);
    let found = compared_with(&rows, &damaged, &[recorded(0, 8, Op::Read, 1)], &recording_metadata, 100);
    assert_eq!((found.complete, found.missing, found.unreadable_run), (false, 0, 3));
    let cut = Metadata { complete: false, ..Metadata::new(Kind::Replay, "test") };
    assert!(!compared_with(&rows, &cut, &[recorded(0, 8, Op::Read, 1)], &recording_metadata, 100).complete);
    // Damage in the recording cannot make it seem more complete.
    let found = compared_with(&rows, &recording_metadata, &[recorded(0, 8, Op::Read, 1)], &damaged, 100);
    assert_eq!((found.complete, found.unreadable_recording), (true, 5));
}

#[test]
fn a_complete_recording_is_reported_with_its_time_differences() {
    let run =
        [issued(0, 8, Op::Read, Some(100)), issued(8, 8, Op::Write, Some(300)), issued(0, 8, Op::Read, Some(200))];
    let recording = [recorded(0, 8, Op::Read, 1101), recorded(0, 8, Op::Read, 1203), recorded(8, 8, Op::Write, 1302)];
    let found = compared(&run, &recording, 100);
    assert!(found.complete);
    assert_eq!((found.issued, found.recorded, found.same, found.extra), (3, 3, 3, 0));
    let times = Times { compared: 3, offset_ns: 1002, median_ns: 1, p99_ns: 1, max_ns: 1 };
    assert_eq!(found.times, Some(times));
}

#[test]
fn times_are_not_compared_if_an_equal_request_is_missing() {
    let flush = |at| issued(0, 0, Op::Flush, Some(at));
    let run = [flush(1), flush(1000), issued(8, 8, Op::Read, Some(2))];
    let recording = [recorded(0, 0, Op::Flush, 1001), recorded(8, 8, Op::Read, 3)];
    let found = compared(&run, &recording, 100);
    assert_eq!((found.missing, found.missing_flushes, found.same), (1, 1, 2));
    assert_eq!(found.times.map(|times| (times.compared, times.offset_ns, times.max_ns)), Some((1, 1, 0)));
}

#[test]
fn a_request_that_occurs_less_often_is_missing() {
    let run = [issued(0, 8, Op::Read, Some(1)), issued(0, 8, Op::Read, Some(2)), issued(0, 8, Op::Read, None)];
    let recording = [recorded(0, 8, Op::Read, 1), recorded(0, 8, Op::Write, 1)];
    let found = compared(&run, &recording, 100);
    assert!(!found.complete);
    assert_eq!((found.issued, found.never_issued, found.missing, found.extra), (2, 1, 1, 1));
    assert_eq!(found.missing_requests, [Difference { sector: 0, sectors: 8, op: Op::Read, at_ns: 2, device: None }]);
    assert_eq!(found.extra_requests, [Difference { sector: 0, sectors: 8, op: Op::Write, at_ns: 1, device: None }]);
}

#[test]
fn split_and_merged_requests_are_not_missing() {
    let run = [issued(0, 16, Op::Write, Some(1)), issued(50, 8, Op::Read, Some(2)), issued(58, 8, Op::Read, Some(2))];
    let recording = [recorded(0, 8, Op::Write, 1), recorded(8, 8, Op::Write, 1), recorded(50, 16, Op::Read, 1)];
    let found = compared(&run, &recording, 100);
    assert!(found.complete);
    assert_eq!((found.same, found.split, found.merged, found.missing, found.extra), (0, 1, 2, 0, 0));
}

#[test]
fn with_too_many_differences_pieces_are_not_searched_for() {
    let run: Vec<_> = (0..20).map(|n| issued(n * 16, 16, Op::Write, Some(1))).collect();
    let recording: Vec<_> = (0..40).map(|n| recorded(n * 8, 8, Op::Write, 1)).collect();
    let with_max_differences = |max_differences| {
        let recording_metadata = [Kind::Replay, Kind::Load].map(|kind| Metadata::new(kind, "test"));
        let (run, recording) =
            (&mut || reader(&run, &recording_metadata[0]), &mut || reader(&recording, &recording_metadata[1]));
        compare_in_passes(run, recording, 7, max_differences).unwrap()
    };
    let found = with_max_differences(40);
    assert_eq!((found.complete, found.looked_for_pieces, found.split), (true, true, 20));
    let found = with_max_differences(39);
    assert_eq!((found.complete, found.looked_for_pieces, found.missing, found.extra), (false, false, 20, 40));
    let nothing = compared(&run, &[], 7);
    assert_eq!((nothing.looked_for_pieces, nothing.missing), (true, 20));
}

#[test]
fn a_flush_before_a_write_is_expected() {
    let flags = Flags::PREFLUSH.with(Flags::FUA);
    let flushed = |sector, at| IoResult { flags, ..issued(sector, 8, Op::Write, Some(at)) };
    let run = [flushed(0, 1), flushed(8, 2), issued(0, 0, Op::Flush, Some(3))];
    let writes = [recorded(0, 8, Op::Write, 1), recorded(8, 8, Op::Write, 2)];
    let with = |flushes: usize| [&writes[..], &vec![recorded(0, 0, Op::Flush, 1); flushes]].concat();
    for pass_size in [1, 100] {
        for (flushes, missing, extra) in [(4, 0, 1), (3, 0, 0), (2, 1, 0), (0, 3, 0)] {
            let found = compared(&run, &with(flushes), pass_size);
            assert_eq!((found.issued, found.flushes_before_writes), (3, 2));
            assert_eq!((found.complete, found.missing, found.extra), (missing == 0, missing, extra), "{flushes}");
            assert_eq!(found.missing_flushes, missing);
        }
    }
    assert_eq!(compared(&run, &with(3), 100).times.map(|times| times.compared), Some(5));
    // Some traces give a flush a position.
    let placed = [&writes[..], &vec![recorded(u64::MAX >> 9, 0, Op::Flush, 1); 3]].concat();
    assert!(compared(&run, &placed, 100).complete);
}

/// Few positions and lengths that never overlap, so that many requests occur several times.
fn key() -> impl Strategy<Value = (u64, u64, Op)> {
    (0..20_u64, prop_oneof![Just(1_u64), Just(2)], prop_oneof![Just(Op::Read), Just(Op::Write)])
        .prop_map(|(place, sectors, op)| (place * 10, sectors, op))
}

proptest! {
    #[test]
    fn counts_equal_those_of_a_map_of_all_requests(
        run in prop::collection::vec(key(), 0..80),
        recording in prop::collection::vec(key(), 0..80),
        pass_size in 1..100_u64,
    ) {
        let mut balance: BTreeMap<(u64, u64, Op), i64> = BTreeMap::new();
        run.iter().for_each(|&key| *balance.entry(key).or_default() += 1);
        recording.iter().for_each(|&key| *balance.entry(key).or_default() -= 1);
        let missing: i64 = balance.values().filter(|&&n| n > 0).sum();
        let extra: i64 = -balance.values().filter(|&&n| n < 0).sum::<i64>();

        let run: Vec<_> = run.into_iter().enumerate().map(|(i, (a, b, c))| issued(a, b, c, Some(i as i64))).collect();
        let recording: Vec<_> = recording.into_iter().enumerate().map(|(i, (a, b, c))| recorded(a, b, c, i as i64)).collect();
        let found = compared(&run, &recording, pass_size);
        prop_assert_eq!((found.missing, found.extra), (missing as u64, extra as u64));
        prop_assert_eq!(found.same + found.missing, run.len() as u64);
        prop_assert_eq!(found.complete, missing == 0);
        let whole = compared(&run, &recording, 1000);
        prop_assert_eq!((found.missing_requests, found.extra_requests), (whole.missing_requests, whole.extra_requests));
    }
}

const SECOND: i64 = 1_000_000_000;

/// A run on a disk, and a recording whose zero is `zero_ns` before the start of the run.
fn metadata_with_zero(zero_ns: i64) -> (Metadata, Metadata) {
    let run = serde_json::json!({
        "started_unix_ns": 1000 * SECOND, "started_monotonic_ns": 50 * SECOND,
        "targets": [{"path": "/dev/sda", "kind": "block", "disk": "sda", "others": true}],
    });
    let run_metadata = Metadata { run: serde_json::from_value(run).unwrap(), ..Metadata::new(Kind::Replay, "test") };
    let at = |ns: i64| ns - zero_ns;
    let clocks = iosonar_trace::Clocks { unix_ns: at(1000 * SECOND), monotonic_ns: at(50 * SECOND) };
    let recording_metadata = Metadata {
        epoch_unix_ns: Some(clocks.unix_ns),
        clocks: Some(clocks),
        devices: vec![iosonar_trace::Device { name: "sda".into(), sectors: None }],
        ..Metadata::new(Kind::Load, "record")
    };
    (run_metadata, recording_metadata)
}

fn read_at(sector: u64, at: i64) -> IoResult {
    IoResult { completed: Some(Nanos(at + 1000)), ..issued(sector, 8, Op::Read, Some(at)) }
}

#[test]
fn a_recording_of_another_run_is_detected_by_its_time() {
    let run: Vec<_> = (0..50).map(|n| read_at(n * 8, n as i64 * 1_000_000)).collect();
    let recording: Vec<_> = (0..50).map(|n| recorded(n * 8, 8, Op::Read, 2 * SECOND + n as i64 * 1_000_000)).collect();
    for pass_size in [7, 100] {
        for (zero, apart) in [(2 * SECOND, None), (62 * SECOND, Some(-60 * SECOND)), (-SECOND, Some(3 * SECOND))] {
            for has_clocks in [true, false] {
                let (run_metadata, mut recording_metadata) = metadata_with_zero(zero);
                recording_metadata.clocks = recording_metadata.clocks.filter(|_| has_clocks);
                let found = compared_with(&run, &run_metadata, &recording, &recording_metadata, pass_size);
                assert_eq!((found.complete, found.apart_ns, found.missing), (apart.is_none(), apart, 0), "{zero}");
                recording_metadata.epoch_unix_ns = None;
                assert!(compared_with(&run, &run_metadata, &recording, &recording_metadata, pass_size).complete);
            }
        }
    }
}

#[test]
fn requests_before_or_after_the_run_do_not_count_for_it() {
    let run: Vec<_> = (0..50).map(|n| read_at(n * 8, n as i64 * 1_000_000)).collect();
    let zero = 2 * SECOND;
    let (run_metadata, recording_metadata) = metadata_with_zero(zero);
    let during = (0..40).map(|n| recorded(n * 8, 8, Op::Read, zero + n as i64 * 1_000_000));
    for at in [zero - 150_000_000, zero + 60_000_000] {
        let others = (0..50).map(|n| recorded(n * 8, 8, Op::Read, at));
        let mut recording: Vec<_> = during.clone().chain(others).collect();
        recording.sort_by_key(|row| row.at);
        for pass_size in [7, 100] {
            let found = compared_with(&run, &run_metadata, &recording, &recording_metadata, pass_size);
            assert_eq!((found.complete, found.missing, found.apart_ns), (false, 10, None));
            assert_eq!((found.recorded, found.outside, found.same, found.extra), (90, 50, 40, 0));
        }
    }
}

#[test]
fn the_load_of_the_run_is_no_recording_of_it() {
    let scheduled = |number: i64| recorded(number as u64 * 8, 8, Op::Write, 5_000 + number * 1_000);
    let load: Vec<Request> = (0..20).map(scheduled).collect();
    let run: Vec<IoResult> = load
        .iter()
        .map(|request| IoResult {
            issued: Some(request.at + Nanos(request.sector.0 as i64)),
            source_sector: request.sector,
            ..issued(request.sector.0, 8, Op::Write, Some(0))
        })
        .zip(0..)
        .map(|(row, number)| IoResult { scheduled: Nanos(number * 1_000), ..row })
        .collect();
    let mut about = Metadata::new(Kind::Load, "test");
    load.iter().for_each(|request| about.count_request(request));
    let compared = |recording: &[Request], pass_size| {
        compared_with(&run, &Metadata::new(Kind::Replay, "test"), recording, &about, pass_size)
    };
    for pass_size in [100, 7] {
        let found = compared(&load, pass_size);
        assert_eq!((found.is_the_load, found.complete, found.missing), (true, false, 0));
        let mut seen = load.clone();
        seen[7].at = seen[7].at + Nanos(1);
        let found = compared(&seen, pass_size);
        assert_eq!((found.is_the_load, found.complete), (false, true));
    }
}
