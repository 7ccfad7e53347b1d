//! `iosonar replay --issuers`: a run shared among several issuing loops has each request once, keeps conflicts apart, and
//! ends as a run of one loop does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::process::Command;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, request};

/// Sectors of an extent: requests that cross a multiple of it concern several loops.
const EXTENT: u64 = 8192;

/// Requests on both sides of the ends of six extents, which often overlap; one of fifty is longer than an extent.
fn crossing(requests: u64) -> Vec<Row> {
    let place = |i: u64| (i % 6 + 1) * EXTENT - 160 + i * 7919 % 97 * 4;
    let length = |i: u64| if i % 50 == 49 { EXTENT + 8 } else { 4 + i % 3 * 4 };
    (0..requests).map(|i| (i as f64 / 1e6, place(i), length(i), if i % 5 < 2 { 'R' } else { 'W' })).collect()
}

fn assert_each_once(rows: &[IoResult], requests: u64) {
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.request).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..requests), "{numbers:?}");
    assert!(rows.iter().filter_map(IoResult::delay).all(|delay| delay >= Nanos::ZERO), "never early");
}

/// That no two requests that overlap, one of them a write, were in flight at the same time, and in the load's order.
fn assert_no_conflict(rows: &[IoResult], is_in_order: bool) {
    let issued: Vec<_> = rows.iter().filter(|row| row.issued.is_some()).collect();
    for (i, a) in issued.iter().enumerate() {
        for b in &issued[i + 1..] {
            let overlap = a.device == b.device && a.sector < b.sector + b.sectors && b.sector < a.sector + a.sectors;
            if overlap && (a.op != Op::Read || b.op != Op::Read) {
                let (first, then) = if a.issued < b.issued { (a, b) } else { (b, a) };
                assert!(first.completed <= then.issued, "{first:?}\n{then:?}");
                assert!(!is_in_order || first.request < then.request, "{first:?}\n{then:?}");
            }
        }
    }
}

fn assert_verified(ran: &Finished) -> Value {
    let verify = ran.statistics()["verify"].clone();
    assert_eq!((&verify["mismatches"], &verify["errors"]), (&0.into(), &0.into()), "{verify}\n{}", ran.stderr);
    verify
}

#[test]
fn data_is_right_and_conflicts_are_kept_apart_between_loops() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let load = bench.load(&crossing(1200));
    for more in [
        &["--issuers", "2", "--verify", "reads", "--wait", "hybrid"][..],
        &["--issuers", "3", "--verify", "paranoia", "--asap", "--depth", "16"],
        &["--issuers", "2", "--verify", "final", "--engine", "threads", "--depth", "each=8", "--wait", "spin"],
        &["--issuers", "5", "--verify", "final", "--loop", "--for", "3ms", "--wait", "sleep"],
        &["--issuers", "2", "--verify", "reads", "--strong", "2", "--asap", "--depth", "2"],
    ] {
        let ran = bench.replay(&load, device.path(), &[more, &["--overwrite"]].concat()).with_code(0);
        let verify = assert_verified(&ran);
        assert_eq!(verify["undecided_sectors"], 0, "{more:?}");
        assert!(verify["read_sectors"].as_u64().unwrap() > 0, "{verify}");
        let rows = ran.rows();
        if more.contains(&"--loop") {
            assert!(rows.len() > 1200, "{}", rows.len());
        } else {
            assert_each_once(&rows, 1200);
            assert_no_conflict(&rows, true);
        }
        assert!(ran.statistics()["pushed_back"].as_u64().unwrap() > 0);
        assert_eq!(ran.run()["options"]["issuers"].to_string(), more[1]);
        assert!(ran.footer().complete);
    }
}

#[test]
fn data_is_right_with_overlaps_and_requests_left_out() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let load = bench.load(&crossing(1200));
    for overlaps in [&["--conflicts", "allow"][..], &["--strong", "0"], &["--conflicts", "drop"]] {
        let more = [&["--issuers", "2", "--verify", "final", "--wait", "hybrid", "--overwrite"], overlaps].concat();
        let ran = bench.replay(&load, device.path(), &more).with_code(0);
        assert_verified(&ran);
        let rows = ran.rows();
        assert_each_once(&rows, 1200);
        let dropped = rows.iter().filter(|row| row.outcome == Outcome::Dropped).count();
        assert_eq!(dropped > 0, overlaps[1] == "drop", "{overlaps:?}");
        assert_eq!(ran.statistics()["dropped"], dropped);
        if overlaps[1] == "drop" {
            assert_no_conflict(&rows, false);
        }
    }
}

#[test]
fn two_targets_have_a_loop_each() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, first, second) = (Bench::new(), LoopDevice::new(4 * MIB), LoopDevice::new(4 * MIB));
    let requests: Vec<_> = adjacent_requests(800, 4)
        .into_iter()
        .zip(0..)
        .map(|((at, sector, sectors, op), i)| {
            (i % 2, request(at / 100.0, if op == 'R' { Op::Read } else { Op::Write }, sector % 1000, sectors))
        })
        .collect();
    let load = bench.host(&requests);
    let (target, other) = (format!("sda={}", first.path().display()), format!("sdb={}", second.path().display()));
    let more = ["--target", &other, "--issuers", "2", "--wait", "hybrid", "--verify", "final", "--depth", "each=4"];
    let ran = bench.replay(&load, target.as_ref(), &more).with_code(0);
    assert_verified(&ran);
    assert_each_once(&ran.rows(), 800);
    assert_no_conflict(&ran.rows(), true);
    for device in ran.statistics()["devices"].as_array().unwrap() {
        assert_eq!(device["requests"], 400, "{device}");
    }
}

#[test]
fn a_stop_in_the_middle_leaves_a_complete_record() {
    let bench = Bench::new();
    let rows: Vec<Row> =
        crossing(20_000).into_iter().zip(0..).map(|(row, i)| (f64::from(i) / 1e3, row.1, row.2, row.3)).collect();
    let load = bench.load(&rows);
    let running = bench.start(&load, &bench.target(32 * MIB), &["--issuers", "2", "--wait", "hybrid"]);
    running.signal("INT");
    let ran = running.end().with_code(5);
    let rows = ran.rows();
    assert!(rows.len() < 20_000 && !ran.footer().complete);
    let mut numbers: Vec<u64> = rows.iter().map(|row| row.request).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), rows.len(), "each once");
    assert!(rows.iter().all(|row| row.completed.is_some() || row.outcome == Outcome::Unfinished));
    assert_eq!(ran.statistics()["requests"], rows.len());
}

#[test]
fn several_loops_take_pipes_time_limits_and_dry_runs() {
    let bench = Bench::new();
    let load = bench.load(&crossing(2000));
    let target = bench.target(32 * MIB);
    let mut piped = bench.command(Path::new("-"), &target, &["--issuers", "3", "--asap"]);
    let output = piped.stdin(File::open(&load).unwrap()).output().unwrap();
    assert_each_once(&Finished::of(output, bench.path("r.replay.parquet")).with_code(0).rows(), 2000);
    for engine in ["null", "dry-run"] {
        let more = ["--issuers", "4", "--asap", "--engine", engine, "--overwrite"];
        assert_each_once(&bench.replay(&load, &target, &more).with_code(0).rows(), 2000);
    }
    let more = ["--issuers", "4", "--asap", "--loop", "--for", "300ms", "--engine", "null", "--overwrite"];
    // On a machine under load, a run may begin late and have few requests.
    let ran = std::iter::repeat_with(|| bench.replay(&load, &target, &more).with_code(0));
    let ran = ran.take(5).find(|ran| ran.rows().len() > 2000).expect("a run with more than one iteration");
    assert!(ran.footer().complete);
    let rows = ran.rows();
    let completed: Vec<_> = rows.iter().filter_map(|row| row.completed).collect();
    assert_eq!(completed.len(), rows.len());
}

#[test]
fn what_needs_one_loop_is_refused_with_a_remedy() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(10, 8)), bench.target(MIB));
    for (more, remedy) in [
        (&["--closed"][..], "add --conflicts allow"),
        (&["--closed=dependencies"], "omit --issuers"),
        (&["--conflicts", "ordering"], "--conflicts partial"),
        (&["--wait", "inline"], "another --wait"),
        (&["--depth", "1"], "at most --issuers 1"),
        (&["--simulate", "constant=1ms"], "omit --issuers"),
    ] {
        bench.replay(&load, &target, &[more, &["--issuers", "2"]].concat()).refused(&[remedy]);
    }
}

#[test]
fn with_deadlines_there_are_fewer_loops_than_processors() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&crossing(100)), bench.target(32 * MIB));
    let most = std::thread::available_parallelism().unwrap().get().saturating_sub(1).max(1);
    let issuers = most + 2;
    let ran = bench.replay(&load, &target, &["--issuers", &issuers.to_string()]).with_code(0);
    assert_eq!(ran.run()["options"]["issuers"], most);
    assert!(ran.stderr.contains(&format!("--issuers {issuers} was reduced to {most}")), "{}", ran.stderr);
    let more = ["--issuers", &issuers.to_string(), "--asap", "--overwrite"];
    let ran = bench.replay(&load, &target, &more).with_code(0);
    assert_eq!(ran.run()["options"]["issuers"], issuers);
    assert!(!ran.stderr.contains("reduced"), "{}", ran.stderr);
}

/// The most rows in flight at a time.
fn most_in_flight(rows: &[IoResult]) -> usize {
    let begins = rows.iter().filter_map(|row| Some((row.issued?, 1)));
    let ends = rows.iter().filter_map(|row| Some((row.completed?, -1)));
    let mut changes: Vec<(Nanos, i64)> = begins.chain(ends).collect();
    // An end before a beginning at the same time.
    changes.sort_unstable();
    let mut now = 0;
    changes
        .iter()
        .map(|(_, change)| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0) as usize
}

#[test]
fn closed_clients_of_all_loops_are_as_many_as_the_depth() {
    let bench = Bench::new();
    let reads: Vec<Row> = crossing(2000).into_iter().map(|row| (row.0, row.1, row.2, 'R')).collect();
    let (load, target) = (bench.load(&reads), bench.target(32 * MIB));
    for (more, depth) in [
        (&["--closed=no-think", "--depth", "5", "--issuers", "2"][..], 5),
        (&["--closed", "--depth", "7", "--issuers", "3"], 7),
        (&["--closed=no-think", "--depth", "each=4", "--issuers", "3", "--engine", "threads"], 4),
    ] {
        let ran = bench.replay(&load, &target, &[more, &["--wait", "hybrid", "--overwrite"]].concat()).with_code(0);
        let rows = ran.rows();
        assert_each_once(&rows, 2000);
        assert!(most_in_flight(&rows) <= depth, "{more:?}: {}", most_in_flight(&rows));
        assert!(ran.statistics()["max_in_flight"].as_u64().unwrap() <= depth as u64);
        assert!(ran.footer().complete);
    }
}

#[test]
fn closed_writes_of_several_loops_are_verified() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let load = bench.load(&crossing(1200));
    let more = ["--closed=no-think", "--issuers", "2", "--conflicts", "allow", "--verify", "final", "--depth", "16"];
    let ran = bench.replay(&load, device.path(), &more).with_code(0);
    assert_verified(&ran);
    assert_each_once(&ran.rows(), 1200);
}

#[test]
fn streams_of_a_program_are_the_same_in_any_number_of_loops() {
    let bench = Bench::new();
    let stream = |name: &str, keys: &str| format!("[[stream]]\nname = \"{name}\"\nclosed = true\n{keys}\n");
    let steps = "[[stream.step]]\nop = \"write\"\nsizes = \"8k\"\n[[stream.step]]\nop = \"read\"\nsame = true";
    let text = "name = \"p\"\nabout = \"A program.\"\n".to_owned()
        + &stream("a", "op = \"read\"\ninstances = 5\nrequests = 60\nown_region = true")
        + &stream("b", &format!("depth = 3\nrequests = 100\n{steps}"))
        + &stream("c", "op = \"write\"\nrequests = 40")
        + &stream("e", "op = \"read\"\nafter = \"c\"\nrequests = 20");
    let (program, target) = (bench.text("p.toml", &text), bench.target(32 * MIB));
    let ran = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["workload", "run"]).arg(&program).arg("--target").arg(&target).arg("--output");
        command.arg(bench.path("r.replay.parquet")).args(["--overwrite", "--force"]).args(more);
        Finished::of(command.output().expect("a child process"), bench.path("r.replay.parquet"))
    };
    let mut expected: Option<BTreeMap<_, Vec<_>>> = None;
    for more in [&[][..], &["--issuers", "2", "--conflicts", "allow"], &["--issuers", "4", "--conflicts", "allow"]] {
        let ran = ran(&[more, &["--wait", "hybrid"]].concat()).with_code(0);
        let rows = ran.rows();
        assert_eq!(rows.len(), 460);
        assert_eq!(rows.iter().map(|row| row.request).collect::<HashSet<_>>().len(), 460, "each once");
        let by_number: HashMap<_, _> = rows.iter().map(|row| (row.request, row)).collect();
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for row in &rows {
            if let Some(cause) = row.cause {
                let cause = by_number[&cause];
                assert!(cause.stream == row.stream && cause.completed <= row.issued, "{cause:?}\n{row:?}");
            }
            places.entry(row.stream).or_default().push((row.source_sector, row.sectors, row.op));
        }
        places.values_mut().for_each(|places| places.sort_unstable_by_key(|place| (place.0, place.1, place.2 as u8)));
        assert_eq!(expected.get_or_insert_with(|| places.clone()), &places, "{more:?}");
        let loops = more.get(1).map_or("1", |count| count);
        assert_eq!(ran.run()["options"]["issuers"].to_string(), loops);
        // The stream after another one begins when that has ended.
        let of = |stream: i32| rows.iter().filter(move |row| row.stream.map(i32::from) == Some(stream));
        assert!(of(2).filter_map(|row| row.completed).max() <= of(3).filter_map(|row| row.issued).min());
    }
    ran(&["--issuers", "2"]).refused(&["add --conflicts allow"]);
    let ran = ran(&["--issuers", "9", "--conflicts", "allow", "--wait", "hybrid"]).with_code(0);
    assert!(ran.stderr.contains("--issuers 9 was reduced to 7"), "{}", ran.stderr);
    assert_eq!(ran.run()["options"]["issuers"], 7);
}

#[test]
fn a_time_limit_ends_all_loops_of_an_endless_program() {
    let bench = Bench::new();
    let text = "name = \"p\"\nabout = \"A program.\"\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\ninstances = 4\ndepth = 2\n";
    let program = bench.text("p.toml", text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["workload", "run"]).arg(&program).args(["--engine", "null", "--for", "200ms", "--issuers", "2"]);
    let output = command.arg("--output").arg(bench.path("r.replay.parquet")).output().expect("a child process");
    let ran = Finished::of(output, bench.path("r.replay.parquet")).with_code(0);
    assert!(ran.footer().complete && ran.run()["options"]["issuers"] == 2);
    assert!(most_in_flight(&ran.rows()) <= 8);
}
