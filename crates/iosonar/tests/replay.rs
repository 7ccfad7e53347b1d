//! `iosonar replay` on files and on loop devices: every request once, at the right place, with its outcome. Times are
//! only asserted to be present and in order.

use crate::replaying;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{DelayReason, Flags, IoResult, Op, Outcome};
use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, request};

/// Asserts that each request of the load was done once, at its place, with times in order.
fn assert_all_done(ran: &Finished, load: &[Row]) {
    let rows = ran.by_request();
    assert_eq!(rows.len(), load.len());
    for (i, (row, &(_, sector, sectors, op))) in rows.iter().zip(load).enumerate() {
        assert_eq!(row.request, i as u64);
        let expected = (sector, sectors, if op == 'R' { Op::Read } else { Op::Write });
        assert_eq!((row.source_sector.0, row.sectors.0, row.op), expected);
        assert_eq!((row.outcome, row.errno, row.bytes_done), (Outcome::Ok, 0, sectors * 512), "{row:?}");
        assert!(row.scheduled <= row.issued.unwrap(), "never early: {row:?}");
        assert!(row.issued <= row.completed, "{row:?}");
        assert!(row.in_flight >= 1, "{row:?}");
    }
    let done: Vec<_> = ran.rows().iter().map(|row| row.completed).collect();
    assert!(done.is_sorted(), "rows are in order of completion");
    assert!(ran.footer().complete);
}

fn outcomes(rows: &[IoResult]) -> BTreeMap<Outcome, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.outcome).or_default() += 1;
    }
    counts
}

#[test]
fn every_request_of_a_load_is_done_once_on_a_file() {
    let bench = Bench::new();
    let load = adjacent_requests(300, 8);
    let ran = bench.replay(&bench.load(&load), &bench.target(16 * MIB), &[]).with_code(0);
    assert_all_done(&ran, &load);
    assert!(ran.rows().iter().all(|row| row.source_sector == row.sector && !row.widened));
    let scheduled: Vec<_> = ran.by_request().iter().map(|row| row.scheduled.0).collect();
    assert!(scheduled.iter().enumerate().all(|(i, &ns)| ns == i as i64 * 1_000_000), "the load's own times");
    assert_eq!(bench.names(), ["a.load", "r.replay.parquet", "target"], "the journal is removed");
}

#[test]
fn every_request_of_a_load_is_done_once_on_a_device() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(16 * MIB);
    let load = adjacent_requests(300, 8);
    let ran = bench.replay(&bench.load(&load), device.path(), &[]).with_code(0);
    assert_all_done(&ran, &load);
    let target = ran.run()["target"].clone();
    assert_eq!((&target["kind"], &target["sectors"]), (&"block".into(), &32_768.into()));
    let statistics = ran.statistics();
    assert_eq!(statistics["devices"][0]["latency_us"], statistics["latency_us"], "there is only one device");
}

#[test]
fn writes_reach_the_target_and_nothing_else_changes() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    fs::write(device.path(), vec![0xaa; MIB as usize]).unwrap();
    let load = [(0.0, 8, 8, 'W'), (0.001, 64, 32, 'W'), (0.002, 256, 8, 'R')];
    let ran = bench.replay(&bench.load(&load), device.path(), &[]).with_code(0);
    let content = fs::read(device.path()).unwrap();
    for (sector, bytes) in content.chunks(512).enumerate() {
        let written = (8..16).contains(&sector) || (64..96).contains(&sector);
        assert_eq!(bytes.iter().all(|&b| b == 0xaa), !written, "sector {sector}");
    }
    assert_eq!(ran.statistics()["zero_reads"], 0);
    let again = zstd_size(&content[64 * 512..96 * 512]);
    assert!(again > 16_000, "written data is incompressible: 16 KiB became {again} bytes");
}

/// The size after compression by iosonar, which compresses text by the file's name.
fn zstd_size(bytes: &[u8]) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    fs::write(&file, bytes).unwrap();
    let output = std::process::Command::new("gzip").arg("-9c").arg(&file).output().unwrap();
    assert!(output.status.success());
    output.stdout.len()
}

#[test]
fn times_of_a_window_count_from_its_start() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    let target = bench.target(MIB);
    for window in [&["--start", "0.02", "--end", "0.05"][..], &["--start", "0.02", "--duration", "0.03"]] {
        let ran = bench.replay(&load, &target, &[window, &["--overwrite"]].concat()).with_code(0);
        let rows = ran.by_request();
        assert_eq!(rows.iter().map(|row| row.request).collect::<Vec<_>>(), (20..50).collect::<Vec<_>>());
        assert_eq!((rows[0].scheduled.0, rows[29].scheduled.0), (0, 29_000_000));
    }
    let open = bench.replay(&load, &target, &["--start", "0.09", "--overwrite"]).with_code(0);
    assert_eq!(open.rows().len(), 10);
    bench.replay(&load, &target, &["--start", "5", "--overwrite"]).refused(&["no request", "iosonar info"]);
    bench.replay(&load, &target, &["--start", "5", "--end", "4", "--overwrite"]).refused(&["--end must be after"]);
    bench.replay(&load, &target, &["--start", "-1", "--overwrite"]).with_code(2);
}

#[test]
fn a_speed_up_divides_all_times() {
    let bench = Bench::new();
    let ran =
        bench.replay(&bench.load(&adjacent_requests(100, 8)), &bench.target(MIB), &["--speedup", "4"]).with_code(0);
    assert!(ran.by_request().iter().enumerate().all(|(i, row)| row.scheduled.0 == i as i64 * 250_000));
    assert!(ran.stderr.contains("distorts"), "{}", ran.stderr);
    assert_eq!(ran.run()["options"]["speedup"], 4.0);
}

#[test]
fn requests_wrap_around_at_the_end_of_the_target() {
    let bench = Bench::new();
    // 1 MiB has 2048 sectors.
    let load = [
        (0.000, 2040, 8, 'W'),
        (0.001, 2048, 8, 'W'),
        (0.002, 2044, 8, 'W'),
        (0.003, 4096 + 16, 8, 'R'),
        (0.004, 8184, 8, 'R'),
        (0.005, 8188, 8, 'R'),
        (0.006, 0, 4096, 'R'),
    ];
    let ran = bench.replay(&bench.load(&load), &bench.target(MIB), &[]).with_code(0);
    let rows: Vec<_> = ran.by_request().iter().map(|r| (r.source_sector.0, r.sector.0, r.outcome)).collect();
    let (ok, beyond) = (Outcome::Ok, Outcome::BeyondEnd);
    assert_eq!(
        rows,
        [
            (2040, 2040, ok),
            (2048, 0, ok),
            (2044, 2044, beyond),
            (4112, 16, ok),
            (8184, 2040, ok),
            (8188, 8188, beyond),
            (0, 0, beyond)
        ]
    );
    let statistics = ran.statistics();
    assert_eq!((&statistics["requests"], &statistics["completed"]), (&7.into(), &4.into()));
    assert_eq!(
        (&statistics["skipped"]["beyond_end"], &statistics["wrap_factor"]),
        (&3.into(), &(8196.0 / 2048.0).into())
    );
    assert!(ran.stderr.contains("wrapped around"), "{}", ran.stderr);
    assert!(ran.stdout.contains("3 beyond the target's end"), "{}", ran.stdout);
}

#[test]
fn unaligned_requests_are_widened_or_skipped() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::with_block_size(MIB, 4096);
    let load = bench.load(&[(0.0, 8, 8, 'W'), (0.001, 3, 2, 'W'), (0.002, 15, 2, 'R'), (0.003, 2047, 1, 'R')]);
    let widened = bench.replay(&load, device.path(), &[]).with_code(0);
    let rows: Vec<_> =
        widened.by_request().iter().map(|r| (r.sector.0, r.sectors.0, r.bytes_done, r.widened)).collect();
    assert_eq!(rows, [(8, 8, 4096, false), (0, 8, 4096, true), (8, 16, 8192, true), (2040, 8, 4096, true)]);
    assert_eq!(widened.statistics()["widened"], 3);

    let left = bench.replay(&load, device.path(), &["--align", "reject", "--overwrite"]).with_code(0);
    assert_eq!(outcomes(&left.rows()), BTreeMap::from([(Outcome::Ok, 1), (Outcome::Unaligned, 3)]));
    assert_eq!(left.statistics()["skipped"]["unaligned"], 3);
    assert!(left.rows().iter().filter(|r| r.outcome == Outcome::Unaligned).all(|r| r.issued.is_none()));
}

#[test]
fn an_asap_run_keeps_to_the_depth() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(16 * MIB);
    // Hours apart in the load.
    let load: Vec<Row> = adjacent_requests(2000, 8).iter().map(|&(at, s, n, op)| (at * 10_000.0, s, n, op)).collect();
    let path = bench.load(&load);
    for (depth, how) in [(1, "hybrid"), (7, "hybrid"), (1, "inline"), (7, "inline"), (64, "inline")] {
        let more = ["--asap", "--depth", &depth.to_string(), "--wait", how, "--overwrite"];
        let ran = bench.replay(&path, device.path(), &more).with_code(0);
        assert_all_done(&ran, &load);
        assert!(ran.rows().iter().all(|row| row.in_flight <= depth), "depth {depth}");
        let statistics = ran.statistics();
        assert_eq!(statistics["delay_us"], Value::Null, "there are no scheduled times");
        assert!(statistics["max_in_flight"].as_u64().unwrap() <= u64::from(depth));
        if depth == 1 {
            let mut rows = ran.by_request();
            rows.sort_by_key(|row| row.issued);
            assert!(rows.is_sorted_by_key(|row| row.request), "one at a time, in the order of the load");
            assert!(rows.windows(2).all(|w| w[0].completed <= w[1].issued));
        }
    }
}

#[test]
fn skipped_requests_may_exceed_the_queue_of_the_completion_log() {
    let bench = Bench::new();
    // More than any queue in the engine can hold.
    let load: Vec<Row> = (0..150_000).map(|i| (0.0, i % 100 * 8, 8, 'W')).collect();
    let (path, target) = (bench.load(&load), bench.target(MIB));
    for how in ["spin", "inline"] {
        let ran = bench.replay(&path, &target, &["--reads-only", "--wait", how, "--overwrite"]).with_code(0);
        assert_eq!(outcomes(&ran.rows()), BTreeMap::from([(Outcome::Excluded, load.len())]));
    }
}

#[test]
fn the_smaller_of_depth_and_bottleneck_limits_in_flight() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(500, 8));
    for (depth, bottleneck, most) in [("64", "16", 16), ("8", "16", 8), ("64", "0", 64)] {
        let more = ["--asap", "--depth", depth, "--bottleneck", bottleneck, "--overwrite"];
        let more = [&more[..], &["--virtual-time", "--simulate", "constant=1ms servers=64"]].concat();
        let ran = bench.replay(&load, &bench.target(MIB), &more).with_code(0);
        assert_eq!(ran.rows().iter().map(|row| row.in_flight).max(), Some(most), "{depth} {bottleneck}");
    }
    let each = ["--depth", "each=4", "--bottleneck", "2", "--overwrite"];
    let said = bench.replay(&load, &bench.target(MIB), &each).with_code(2).stderr;
    assert!(said.contains("--bottleneck limits all targets together"), "{said}");
}

#[test]
fn requests_beyond_the_depth_wait_and_are_marked() {
    let bench = Bench::new();
    let load: Vec<Row> = (0..200).map(|i| (0.0, i * 8, 8, 'W')).collect();
    let ran = bench.replay(&bench.load(&load), &bench.target(MIB), &["--depth", "2"]).with_code(0);
    assert_all_done(&ran, &load);
    assert!(ran.rows().iter().all(|row| row.in_flight <= 2));
    // On a machine under load, some wait for depth only because the replayer or its input had been late before.
    let waited =
        |row: &&IoResult| matches!(row.delay_reason, DelayReason::Depth | DelayReason::Backlog | DelayReason::Input);
    assert!(ran.rows().iter().filter(waited).count() > 100);
}

/// Writes at the same time, each of which overlaps its neighbours.
fn overlapping() -> Vec<Row> {
    (0..400).map(|i| (i as f64 / 1e7, i % 10 * 4, 8, 'W')).collect()
}

/// Asserts that overlapping requests were never in flight together, and went in the order of the load.
fn assert_overlaps_in_order(rows: &[IoResult]) {
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[i + 1..] {
            let overlap = a.sector.0 < b.sector.0 + b.sectors.0 && b.sector.0 < a.sector.0 + a.sectors.0;
            if overlap && a.outcome == Outcome::Ok && b.outcome == Outcome::Ok {
                assert!(a.completed.unwrap() <= b.issued.unwrap(), "{a:?}\n{b:?}");
            }
        }
    }
}

#[test]
fn overlapping_requests_wait_for_each_other() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    let load = overlapping();
    let path = bench.load(&load);

    let partial = bench.replay(&path, device.path(), &[]).with_code(0);
    assert_all_done(&partial, &load);
    assert_overlaps_in_order(&partial.by_request());
    let pushed_back = partial.rows().iter().filter(|row| row.pushed_back).count();
    assert!(pushed_back > 100, "{pushed_back}");
    assert_eq!(partial.statistics()["pushed_back"], pushed_back);
    assert_eq!(partial.run()["options"]["conflicts"], "partial");

    let ordering = bench.replay(&path, device.path(), &["--conflicts", "ordering", "--overwrite"]).with_code(0);
    assert_all_done(&ordering, &load);
    assert_overlaps_in_order(&ordering.by_request());
    assert!(ordering.by_request().is_sorted_by_key(|row| row.issued), "no request overtakes another");
    assert!(ordering.statistics()["ordered_waits"].as_u64().unwrap() > 100);
    assert_eq!(ordering.statistics()["pushed_back"], 0);

    let allow = bench.replay(&path, device.path(), &["--conflicts", "allow", "--overwrite"]).with_code(0);
    assert_all_done(&allow, &load);
    let statistics = allow.statistics();
    assert_eq!([&statistics["pushed_back"], &statistics["dropped"], &statistics["ordered_waits"]], [0, 0, 0]);
}

#[test]
fn dropped_requests_have_rows_and_a_remedy() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    let ran = bench.replay(&bench.load(&overlapping()), device.path(), &["--conflicts", "drop"]).with_code(0);
    let rows = ran.by_request();
    assert!(rows.iter().map(|row| row.request).eq(0..400), "each once");
    assert_overlaps_in_order(&rows);
    let counts = outcomes(&rows);
    let dropped = counts[&Outcome::Dropped];
    assert!(dropped > 100 && counts[&Outcome::Ok] + dropped == 400, "{counts:?}");
    assert_eq!(ran.statistics()["dropped"], dropped);
    assert!(ran.stderr.contains("more than 5 %") && ran.stderr.contains("--conflicts partial"), "{}", ran.stderr);
    assert!(rows.iter().filter(|r| r.outcome == Outcome::Dropped).all(|r| r.issued.is_none() && r.bytes_done == 0));
}

#[test]
fn strong_0_lets_reads_and_writes_overlap() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    // Groups of a write and reads of the same sectors. The reads of some groups come while the write is in flight.
    let load: Vec<Row> =
        (0..2000).map(|i| (i as f64 / 1e7, i / 100 * 8, 8, if i % 100 == 0 { 'W' } else { 'R' })).collect();
    let path = bench.load(&load);
    let pushed = |strong: &str| {
        let ran = bench.replay(&path, device.path(), &["--strong", strong, "--overwrite"]).with_code(0);
        assert_all_done(&ran, &load);
        ran.statistics()["pushed_back"].as_u64().unwrap()
    };
    assert_eq!(pushed("0"), 0);
    assert!(pushed("2") > pushed("0"));
}

#[test]
fn every_operation_of_a_parquet_load_is_done() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    fs::write(device.path(), vec![0xaa; MIB as usize]).unwrap();
    let fua = iosonar_trace::Request { flags: Flags::FUA, ..request(0.001, Op::Write, 8, 8) };
    let load = bench.parquet(&[
        request(0.0, Op::Write, 0, 8),
        fua,
        request(0.002, Op::Flush, 0, 0),
        request(0.003, Op::Discard, 64, 64),
        request(0.004, Op::WriteZeroes, 256, 64),
        request(0.005, Op::Read, 0, 16),
    ]);
    let ran = bench.replay(&load, device.path(), &[]).with_code(0);
    let rows = ran.by_request();
    let seen: Vec<_> = rows.iter().map(|r| (r.op, r.outcome, r.sectors.0)).collect();
    assert_eq!(
        seen,
        [
            (Op::Write, Outcome::Ok, 8),
            (Op::Write, Outcome::Ok, 8),
            (Op::Flush, Outcome::Ok, 0),
            (Op::Discard, Outcome::Ok, 64),
            (Op::WriteZeroes, Outcome::Ok, 64),
            (Op::Read, Outcome::Ok, 16)
        ]
    );
    assert!(rows[1].flags.has(Flags::FUA));
    assert_eq!(ran.statistics()["others"], 3);
    let content = fs::read(device.path()).unwrap();
    assert!(content[256 * 512..320 * 512].iter().all(|&b| b == 0), "zeros were written");
    assert!(content[128 * 512..256 * 512].iter().all(|&b| b == 0xaa), "its neighbours were not");
}

#[test]
fn a_classic_result_can_be_read_and_replayed() {
    let bench = Bench::new();
    let mut load = adjacent_requests(100, 8);
    // Crosses the target's end: it is skipped, and is in a comment of the text.
    load.push((0.2, 2044, 8, 'W'));
    let path = bench.load(&load);
    let target = bench.target(MIB);
    let ran = bench.replay(&path, &target, &["--output", "r.replay.gz", "--json"]).with_code(0);
    let (rows, footer) = replaying::read_run(&bench.path("r.replay.gz"));
    assert!(footer.complete, "{:?}", footer.warnings);
    let (issued, skipped): (Vec<&IoResult>, Vec<&IoResult>) = rows.iter().partition(|row| row.issued.is_some());
    assert_eq!((issued.len(), skipped.len(), skipped[0].outcome), (100, 1, Outcome::BeyondEnd));
    assert!(issued.iter().all(|row| row.outcome == Outcome::Ok && row.completed > row.issued));
    let statistics: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(serde_json::to_value(footer.run.unwrap().statistics).unwrap(), statistics);
    assert!(ran.stderr.contains("has no rows for 1 request"), "blkreplay's tools skip it: {}", ran.stderr);
    // A result can be replayed as a load.
    let again = bench.replay(&bench.path("r.replay.gz"), &target, &[]).with_code(0);
    let sectors = |rows: &[IoResult]| rows.iter().map(|row| row.sector.0).collect::<Vec<_>>();
    assert_eq!(sectors(&again.by_request()), load.iter().map(|row| row.1).collect::<Vec<_>>());
}

/// Regression test: a pipe whose name was not `-` was read before the run, and then waited for forever.
#[test]
fn a_load_can_come_through_a_pipe() {
    for name in ["-", "/dev/stdin"] {
        let bench = Bench::new();
        let load = adjacent_requests(100, 8);
        let target = bench.target(MIB);
        let spawned =
            |more: &[&str]| bench.command(Path::new(name), &target, more).stdin(Stdio::piped()).spawn().unwrap();
        let refused = iosonar_testing::output_of(spawned(&["--fit", "scale"]));
        Finished::of(refused, bench.path("r.replay.parquet")).refused(&["unknown for a pipe"]);
        let mut child = spawned(&[]);
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(replaying::text(&load).as_bytes()).unwrap();
        drop(pipe);
        let ran = Finished::of(iosonar_testing::output_of(child), bench.path("r.replay.parquet")).with_code(0);
        assert_all_done(&ran, &load);
    }
}

#[test]
fn bad_lines_are_reported_and_counted_and_the_rest_is_replayed() {
    let bench = Bench::new();
    let text = replaying::text(&adjacent_requests(20, 8)) + "0.02 ; 8 ; 8 ; X\n-1 ; 8 ; 8 ; R\n0.021 ; 160 ; 8 ; W\n";
    let ran = bench.replay(&bench.text("bad.load", &text), &bench.target(MIB), &[]).with_code(0);
    assert_eq!(ran.rows().len(), 21);
    assert_eq!(ran.statistics()["bad_lines"], 2);
    assert!(ran.stderr.contains("2 lines of the load could not be parsed"), "{}", ran.stderr);
    let footer = ran.footer();
    assert!(footer.complete && footer.counts.bad_lines == 2);
    assert!(footer.warnings.iter().any(|warning| warning.contains("line 22")), "{:?}", footer.warnings);
}

#[test]
fn a_truncated_load_makes_a_result_marked_incomplete() {
    let bench = Bench::new();
    let whole = replaying::text(&adjacent_requests(20, 8));
    let ran = bench.replay(&bench.text("cut.load", &whole[..whole.len() - 7]), &bench.target(MIB), &[]).with_code(5);
    assert!(!ran.footer().complete);
    assert_eq!(ran.statistics()["complete"], false);
    assert!(ran.stderr.contains("the load itself is incomplete"), "{}", ran.stderr);
    assert!(ran.rows().len() >= 19);

    let output =
        bench.replay(&bench.load(&adjacent_requests(20, 8)), &bench.path("target"), &["--overwrite"]).with_code(0);
    assert!(output.footer().complete, "the same load, complete");
}
