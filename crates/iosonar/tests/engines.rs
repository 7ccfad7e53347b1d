//! Every engine and way of opening the target, real and fake.

use std::fs;
use std::path::Path;
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Flags, Nanos, Op, Outcome, Request};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, read_run, request};

/// One request of each operation, one after the other.
fn all_operations() -> Vec<Request> {
    let durable = |flags, row: Request| Request { flags, ..row };
    vec![
        request(0.000, Op::Write, 0, 64),
        durable(Flags::FUA, request(0.002, Op::Write, 64, 64)),
        durable(Flags::PREFLUSH.with(Flags::FUA), request(0.004, Op::Write, 128, 64)),
        request(0.006, Op::Read, 0, 64),
        request(0.008, Op::Flush, 0, 0),
        request(0.010, Op::Discard, 0, 64),
        request(0.012, Op::WriteZeroes, 64, 64),
    ]
}

#[test]
fn every_engine_does_every_operation_on_a_device() {
    if left_out(Need::Loop) {
        return;
    }
    for (more, engine) in [
        (&["--engine", "io_uring"][..], "io_uring"),
        (&["--sqpoll"], "io_uring"),
        (&["--engine", "threads"], "threads"),
        (&["--engine", "threads", "--workers", "1", "--o-sync"], "threads"),
        (&["--no-o-direct"], "io_uring"),
    ] {
        let (bench, device) = (Bench::new(), LoopDevice::new(MIB));
        fs::write(device.backing_file(), vec![7; MIB as usize]).unwrap();
        let ran = bench.replay(&bench.parquet(&all_operations()), device.path(), more).with_code(0);
        let rows = ran.by_request();
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{more:?}: {rows:?}");
        assert_eq!(ran.run()["engine"], engine);
        assert_eq!(ran.run()["fake"].is_null(), !more.contains(&"--no-o-direct"));
        let content = fs::read(device.backing_file()).unwrap();
        let is_zero = |from: usize| content[from * 512..(from + 64) * 512].iter().all(|&byte| byte == 0);
        assert!(is_zero(0), "{more:?}: discarded");
        assert!(is_zero(64), "{more:?}: zeroed");
        assert!(content[128 * 512..192 * 512].iter().any(|&byte| byte != 7), "{more:?}: written");
        assert!(content[192 * 512..].iter().all(|&byte| byte == 7), "{more:?}: nothing else was touched");
    }
}

/// The bios that reached the device, according to the kernel's tracepoint: RWBS, sector, sectors.
fn traced(device: &Path, work: impl FnOnce()) -> Vec<(String, u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    // Not every machine has it mounted at /sys/kernel/tracing.
    let directory = tempfile::tempdir().unwrap();
    let tracefs = Mount::new(directory.path().join("tracing"), ["-t", "tracefs", "tracefs"]);
    let instance = tracefs.path().join(format!("instances/iosonar-test-{}", std::process::id()));
    fs::create_dir(&instance).expect("a trace instance");
    let rdev = fs::metadata(device).unwrap().rdev();
    let (major, minor) = ((rdev >> 8) & 0xfff, rdev & 0xff);
    let event = instance.join("events/block/block_bio_queue");
    fs::write(event.join("filter"), format!("dev == {}", major << 20 | minor)).unwrap();
    fs::write(event.join("enable"), "1").unwrap();
    work();
    let text = fs::read_to_string(instance.join("trace")).unwrap();
    fs::write(event.join("enable"), "0").unwrap();
    fs::remove_dir(&instance).unwrap();
    // … block_bio_queue: 7,0 WS 64 + 64 [iosonar]
    let lines = text.lines().filter_map(|line| line.split_once("block_bio_queue: "));
    let fields = lines.map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
    fields.map(|f| (f[1].to_owned(), f[2].parse().unwrap(), f[4].parse().unwrap())).collect()
}

#[test]
fn discards_flushes_and_durable_writes_reach_the_device_as_such() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    for more in [&["--engine", "io_uring"][..], &["--engine", "threads"], &["--sqpoll"]] {
        let (bench, device) = (Bench::new(), LoopDevice::new(MIB));
        let load = bench.parquet(&all_operations());
        let seen = traced(device.path(), || drop(bench.replay(&load, device.path(), more).with_code(0)));
        let one = |what: &str, is: &dyn Fn(&str) -> bool, sector, sectors| {
            let there = seen.iter().any(|(rwbs, at, length)| is(rwbs) && (*at, *length) == (sector, sectors));
            assert!(there, "{more:?}: no {what} in {seen:?}");
        };
        one("discard", &|rwbs| rwbs.starts_with('D'), 0, 64);
        one("durable write", &|rwbs| rwbs.starts_with("WF"), 64, 64);
        one("durable write", &|rwbs| rwbs.starts_with("WF"), 128, 64);
        one("plain write", &|rwbs| rwbs.starts_with('W') && !rwbs.contains('F'), 0, 64);
        let flushes = seen.iter().filter(|(rwbs, ..)| rwbs.starts_with('F')).count();
        assert!(flushes >= 2, "{more:?}: the flush before the write or the separate one is missing in {seen:?}");
    }
}

#[test]
fn unsupported_operations_are_skipped_and_named() {
    let bench = Bench::new();
    // tmpfs supports holes, but not zeroed ranges.
    for engine in ["io_uring", "threads"] {
        let more = ["--engine", engine, "--overwrite"];
        let ran = bench.replay(&bench.parquet(&all_operations()), &bench.target(MIB), &more).with_code(0);
        let rows = ran.by_request();
        assert_eq!((rows[5].outcome, rows[6].outcome), (Outcome::Ok, Outcome::Unsupported));
        assert!(rows[6].issued.is_none());
        assert_eq!(ran.statistics()["skipped"]["unsupported"], 1);
        assert!(ran.stderr.contains("does not support write-zeroes"), "{}", ran.stderr);
    }
}

#[test]
fn polling_is_refused_on_a_device_without_it() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    bench.replay(&load, &bench.target(MIB), &["--poll"]).refused(&["not a block device", "leave out --poll"]);
    if left_out(Need::Loop) {
        return;
    }
    let device = LoopDevice::new(MIB);
    bench.replay(&load, device.path(), &["--poll"]).refused(&["queue/io_poll", "leave out --poll"]);
    assert_eq!(bench.names(), ["a.load", "target"], "nothing is left behind");
}

#[test]
fn fake_results_are_marked_everywhere() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(200, 8)), bench.target(MIB));
    for (more, word) in [
        (&["--fake-io"][..], "--engine null"),
        (&["--engine", "null"], "--engine null"),
        (&["--dry-run"], "--engine dry-run"),
        (&["--engine", "dry-run"], "--engine dry-run"),
        (&["--simulate", "constant=100us"], "constant=100us"),
        (&["--no-o-direct"], "--no-o-direct"),
        (&["--no-o-direct", "--engine", "threads"], "--no-o-direct"),
    ] {
        let more = [more, &["--overwrite"]].concat();
        let ran = bench.replay(&load, &target, &more).with_code(0);
        assert_eq!(ran.rows().len(), 200);
        let sentence = ran.run()["fake"].as_str().unwrap().to_owned();
        assert!(sentence.starts_with("FAKE RESULT: ") && sentence.contains(word), "{sentence}");
        assert_eq!(ran.statistics()["fake"], sentence.as_str());
        assert!(ran.stdout.starts_with("FAKE RESULT"), "{}", ran.stdout);
        assert!(ran.stderr.contains("FAKE RESULT"), "{}", ran.stderr);
        let json = bench.replay(&load, &target, &[&more[..], &["--json"]].concat()).with_code(0);
        let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!(json["fake"], sentence.as_str());
        let info = Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("info").arg(&ran.result).output().unwrap();
        assert!(String::from_utf8_lossy(&info.stdout).contains(&sentence));
        // The classic text has the sentence as well, and a reader finds it.
        let text = bench.path("t.replay.gz");
        let as_text = [&more[..], &["--output", text.to_str().unwrap()]].concat();
        bench.replay(&load, &target, &as_text).with_code(0);
        assert_eq!(read_run(&text).1.run.unwrap().fake.text(), Some(sentence.as_str()));
    }
}

#[test]
fn fake_engines_do_not_touch_the_target() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(200, 8));
    let target = bench.target(MIB);
    bench.replay(&load, &target, &["--dry-run"]).with_code(0);
    for more in [&["--fake-io"][..], &["--simulate", "constant=1us"]] {
        let ran = bench.replay(&load, &target, &[more, &["--overwrite"]].concat()).with_code(0);
        assert!(!ran.stderr.contains("overwritten"), "{}", ran.stderr);
    }
    assert!(fs::read(&target).unwrap().iter().all(|&byte| byte == 0));
    // A target that is not opened need not exist.
    let nowhere = Path::new("/nowhere/at/all");
    let ran = bench.replay(&load, nowhere, &["--fake-io", "--overwrite"]).with_code(0);
    assert_eq!(ran.rows().len(), 200);
    bench.replay(&load, nowhere, &["--dry-run", "--overwrite"]).refused(&["no such device"]);
}

#[test]
fn without_a_target_size_nothing_wraps_around() {
    let bench = Bench::new();
    let far = 1 << 40;
    let load = bench.load(&[(0.0, far, 8, 'W'), (0.001, 3, 5, 'R')]);
    let sectors = |ran: Finished| ran.by_request().iter().map(|row| row.sector.0).collect::<Vec<_>>();
    assert_eq!(sectors(bench.replay(&load, &bench.target(MIB), &["--fake-io"])), [far, 3]);
    let dry = bench.replay(&load, &bench.target(MIB), &["--dry-run", "--overwrite"]);
    assert_eq!(sectors(dry)[0], far % (MIB / 512));
}

#[test]
fn a_simulated_device_has_service_times_and_a_queue() {
    let bench = Bench::new();
    // Ten at once: a single server handles one at a time.
    let rows: Vec<_> = (0..10).map(|i| (0.0, i * 8, 8, 'R')).collect();
    let load = bench.load(&rows);
    let ran = bench.replay(&load, Path::new("none"), &["--simulate", "constant=2ms servers=1"]).with_code(0);
    for (row, i) in ran.by_request().iter().zip(1..) {
        // Not the latency, as some may be issued late.
        assert!((row.completed.unwrap() - row.scheduled).0 > i * 2_000_000 - 1_000_000, "{row:?}");
        assert_eq!(row.bytes_done, 4096);
    }
    // Its result can be simulated in turn.
    fs::rename(&ran.result, bench.path("earlier.replay.parquet")).unwrap();
    let again = bench.replay(&load, Path::new("none"), &["--simulate", "run=earlier.replay.parquet"]).with_code(0);
    assert!(again.rows().iter().all(|row| row.latency().unwrap().0 >= 1_900_000));
    let nothing = bench.replay(&load, Path::new("none"), &["--simulate", "run=a.load", "--overwrite"]);
    nothing.refused(&["is a load", "--simulate run="]);
}

#[test]
fn virtual_time_takes_seconds_for_hours_and_repeats_its_rows() {
    let bench = Bench::new();
    // A request every 90 s for two hours, and one that comes while its device is busy.
    let mut rows: Vec<_> = (0..80).map(|i| (f64::from(i) * 90.0, u64::from(i as u32) * 8, 8, 'R')).collect();
    rows.insert(1, (1.0, 800, 8, 'W'));
    let load = bench.load(&rows);
    let virtual_time = ["--simulate", "constant=5s servers=1", "--virtual-time"];
    let ran = bench.replay(&load, Path::new("none"), &virtual_time).with_code(0);
    let found = ran.by_request();
    for row in &found {
        assert_eq!(row.delay(), Some(Nanos::ZERO), "{row:?}");
        let queued = if row.request == 1 { 4_000_000_000 } else { 0 };
        assert_eq!(row.latency(), Some(Nanos(5_000_000_000 + queued)), "{row:?}");
    }
    assert!(ran.run()["fake"].as_str().unwrap().contains("in virtual time"));
    assert_eq!(ran.run()["options"]["virtual_time"], true);
    let again = bench.replay(&load, Path::new("none"), &[&virtual_time[..], &["--overwrite"]].concat()).with_code(0);
    assert_eq!(again.by_request(), found);
}
