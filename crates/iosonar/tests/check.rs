//! `iosonar check` on recordings of I/O that the test does itself, as a replay would.

use crate::recording;
use std::path::Path;
use std::time::Instant;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{Device, Flags, IoResult, Kind, Metadata, Nanos, Op, Outcome, Request, Sector, Sectors};

use crate::recording::{Direct, Recording, iosonar};

fn issued(op: Op, sector: u64, sectors: u64, at: Nanos) -> IoResult {
    IoResult {
        issued: Some(at),
        completed: Some(at + Nanos(1)),
        bytes_done: sectors * 512,
        in_flight: 1,
        outcome: Outcome::Ok,
        ..IoResult::of(&Request::new(at, op, Sector(sector), Sectors(sectors)), 0)
    }
}

fn write_run(path: &Path, rows: &[IoResult]) {
    let metadata = Metadata::new(Kind::Replay, "test");
    let mut writer = iosonar_trace::create_run(path, &metadata).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.finish(&metadata).unwrap();
}

#[test]
fn a_complete_recording_passes_and_a_lost_request_is_found() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 << 20);
    let recording = Recording::start(&["--device", &device.path().to_string_lossy()]);
    let direct = Direct::open(device.path());
    let start = Instant::now();
    let mut rows = Vec::new();
    for i in 0..200_u64 {
        let at = Nanos(start.elapsed().as_nanos() as i64);
        // Every position twice, so that counts matter.
        let sector = i % 100 * 16;
        if i % 3 == 0 {
            direct.read(sector * 512, 4096);
            rows.push(issued(Op::Read, sector, 8, at));
        } else {
            direct.write(sector * 512, 8192);
            rows.push(issued(Op::Write, sector, 16, at));
        }
    }
    let at = Nanos(start.elapsed().as_nanos() as i64);
    direct.flush();
    rows.push(issued(Op::Flush, 0, 0, at));
    let directory = recording.keep();
    let (run, seen) = (directory.path().join("a.replay.parquet"), directory.path().join("a.load.parquet"));
    write_run(&run, &rows);
    let (run, seen) = (run.to_string_lossy().into_owned(), seen.to_string_lossy().into_owned());

    let found = iosonar(&["check", &run, &seen]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{message}");
    assert!(message.contains("\ncomplete: every request"), "{message}");
    assert!(message.contains("issue times of 201 requests"), "{message}");

    // This request was never submitted to the kernel.
    rows.push(issued(Op::Write, 4000, 8, at));
    write_run(Path::new(&run), &rows);
    let found = iosonar(&["check", &run, &seen]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(3), "{message}");
    assert!(message.contains("NOT complete: 1 request of the replay is missing"), "{message}");

    let found = iosonar(&["check", "--json", &run, &seen]);
    assert_eq!(found.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(json["complete"], false);
    assert_eq!((&json["issued"], &json["same"], &json["missing"]), (&202.into(), &201.into(), &1.into()));
    assert_eq!(json["missing_requests"][0]["sector"], 4000);
    assert_eq!(json["missing_requests"][0]["op"], "write");
    assert!(json["times"]["p99_ns"].is_u64());
}

#[test]
fn a_recorded_load_replays_completely_on_another_device() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let load = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../loads/git.load.parquet");
    let device = LoopDevice::new(512 << 20);
    let target = device.path().to_string_lossy().into_owned();
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (run, seen) = (file("git.replay.parquet"), file("seen.load.parquet"));
    let program = env!("CARGO_BIN_EXE_iosonar");
    let replay = [program, "replay", &load.to_string_lossy(), "--target", &target, "--output", &run, "--speedup", "10"];
    let record = [&["record", "--device", &target, "--output", &seen, "--"][..], &replay].concat();
    let output = iosonar(&record);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let found = iosonar(&["check", "--json", &run, &seen]);
    let json: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found.status.code(), Some(0), "{json:#}");
    assert_eq!(json["issued"], 7870, "the whole load was replayed");
    assert_eq!(json["never_issued"], 0);
}

#[test]
fn a_recording_of_another_run_of_the_same_load_does_not_pass() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 << 20);
    let target = device.path().to_string_lossy().into_owned();
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (load, first, second, seen) =
        (file("a.load.parquet"), file("1.replay.parquet"), file("2.replay.parquet"), file("seen.load.parquet"));
    let (unseen, unsampled) = (file("0.replay.parquet"), file("unsampled.load.parquet"));
    let metadata = Metadata::new(Kind::Load, "test");
    let mut writer = iosonar_trace::create_load(Path::new(&load), &metadata).unwrap();
    for i in 0..200 {
        let request = Request::new(Nanos(i as i64 * 2_000_000), Op::Read, Sector(i * 8), Sectors(8));
        writer.write(&request).unwrap();
    }
    writer.finish(&metadata).unwrap();
    let program = env!("CARGO_BIN_EXE_iosonar");
    let replay = |run| [program, "replay", &load, "--target", &target, "--output", run];
    let recorded = |seen: &str, replay: &[&str]| {
        let output = iosonar(&[&["record", "--device", &target, "--output", seen, "--"], replay].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    recorded(&unsampled, &[&replay(&unseen)[..], &["--no-sample"]].concat());
    recorded(&seen, &replay(&first));
    assert!(iosonar(&replay(&second)[1..]).status.success());

    let found = iosonar(&["check", &first, &seen]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{message}");
    assert!(message.contains("\n  before or after it "), "the samples that it reads before: {message}");
    let found = iosonar(&["check", &second, &seen]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(3), "{message}");
    assert!(message.contains("all recorded requests are before or after the run"), "{message}");
    let found = iosonar(&["check", &second, &unsampled]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(3), "{message}");
    assert!(
        message.contains("was not made during this run") && message.contains("s earlier than the run's"),
        "{message}"
    );
}

/// A load like a database log: each write after a flush, and one separate flush.
fn write_flushed_load(path: &Path) {
    let metadata = Metadata::new(Kind::Load, "test");
    let mut writer = iosonar_trace::create_load(path, &metadata).unwrap();
    for i in 0..40_u64 {
        let flags = [Flags::PREFLUSH, Flags::PREFLUSH.with(Flags::FUA), Flags::FUA, Flags::NONE][i as usize % 4];
        let request = Request::new(Nanos(i as i64 * 100_000), Op::Write, Sector(i * 16), Sectors(8));
        writer.write(&Request { flags, ..request }).unwrap();
    }
    // As in recordings of earlier versions: a flush that has the preflush flag.
    let flush = Request::new(Nanos(5_000_000), Op::Flush, Sector(0), Sectors(0));
    writer.write(&Request { flags: Flags::PREFLUSH.with(Flags::SYNC), ..flush }).unwrap();
    writer.finish(&metadata).unwrap();
}

/// Writes the recording again, without flush number `without` if given, and with another device name.
fn write_variant(path: &Path, rows: &[Request], known: &Metadata, without: Option<usize>, name: &str) {
    let mut known = known.clone();
    known.devices[0].name = name.to_owned();
    let mut writer = iosonar_trace::create_load(path, &known).unwrap();
    let flushes: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].op == Op::Flush).collect();
    let left_out = without.map(|n| flushes[n]);
    rows.iter().enumerate().filter(|(i, _)| Some(*i) != left_out).for_each(|(_, row)| writer.write(row).unwrap());
    writer.finish(&known).unwrap();
}

#[test]
fn a_missing_flush_of_the_replay_is_found() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 << 20);
    let target = device.path().to_string_lossy().into_owned();
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (load, run, seen, again) =
        (file("a.load.parquet"), file("a.replay.parquet"), file("seen.load.parquet"), file("again.load.parquet"));
    write_flushed_load(Path::new(&load));
    let program = env!("CARGO_BIN_EXE_iosonar");
    let replay = [program, "replay", &load, "--target", &target, "--output", &run];
    let output = iosonar(&[&["record", "--device", &target, "--output", &seen, "--"][..], &replay].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let check = |recorded: &str| {
        let found = iosonar(&["check", "--json", &run, recorded]);
        (found.status.code(), serde_json::from_slice::<serde_json::Value>(&found.stdout).unwrap())
    };

    let (code, json) = check(&seen);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!((&json["issued"], &json["flushes_before_writes"], &json["same"]), (&41.into(), &20.into(), &61.into()));
    let extra = json["extra_requests"].as_array().unwrap();
    assert!(extra.iter().all(|of| of["op"] != "flush"), "no flush before a flush, none after FUA: {json:#}");

    let (rows, known) = recording::read_load(Path::new(&seen));
    let name = known.devices[0].name.clone();
    write_variant(Path::new(&again), &rows, &known, Some(7), &name);
    let (code, json) = check(&again);
    assert_eq!((code, &json["missing"], &json["missing_flushes"]), (Some(3), &1.into(), &1.into()), "{json:#}");
    assert_eq!(json["missing_requests"][0]["op"], "flush");
    let message = iosonar(&["check", &run, &again]).stdout;
    let message = String::from_utf8_lossy(&message);
    assert!(
        message.contains("1 of the missing is a flush\n") && message.contains("1 request of the replay is missing"),
        "{message}"
    );

    // Other programs write device numbers.
    let numbers = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().replace(':', ",");
    write_variant(Path::new(&again), &rows, &known, None, &numbers);
    let (code, json) = check(&again);
    assert_eq!((code, &json["devices"]), (Some(0), &serde_json::json!([numbers])), "{json:#}");
}

/// A run on a target, and a recording of the same requests, each `later(index)` ns later.
struct RunAndRecording {
    directory: tempfile::TempDir,
}

impl RunAndRecording {
    fn new(rows: &[IoResult], known: &Metadata, recorded: &[&str], later: impl Fn(usize) -> i64) -> Self {
        let both = Self { directory: tempfile::tempdir().unwrap() };
        let mut writer = iosonar_trace::create_run(&both.path("a.replay.parquet"), known).unwrap();
        rows.iter().for_each(|row| writer.write(row).unwrap());
        writer.finish(known).unwrap();
        let mut metadata = Metadata::new(Kind::Load, "record");
        metadata.devices = recorded.iter().map(|name| Device { name: (*name).into(), sectors: None }).collect();
        let mut writer = iosonar_trace::create_load(&both.path("a.load.parquet"), &metadata).unwrap();
        let mut seen: Vec<Request> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.sector.0 < 1 << 40)
            .map(|(i, row)| Request::new(row.issued.unwrap() + Nanos(later(i)), row.op, row.sector, row.sectors))
            .collect();
        seen.sort_by_key(|request| request.at);
        seen.iter().for_each(|request| writer.write(request).unwrap());
        writer.finish(&metadata).unwrap();
        both
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Exit code and standard output.
    fn check(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let files = ["a.replay.parquet", "a.load.parquet"].map(|name| self.path(name).to_string_lossy().into_owned());
        let found = iosonar(&[&["check", &files[0], &files[1]], arguments].concat());
        (found.status.code(), String::from_utf8_lossy(&found.stdout).into_owned())
    }
}

fn run_on(disk: &str) -> Metadata {
    let target = serde_json::json!({"path": format!("/dev/{disk}"), "kind": "block", "disk": disk, "others": true});
    let run = serde_json::from_value(serde_json::json!({"targets": [target]})).unwrap();
    Metadata { run, ..Metadata::new(Kind::Replay, "test") }
}

fn ten_writes() -> Vec<IoResult> {
    (0..10).map(|i| issued(Op::Write, i * 8, 8, Nanos(i as i64 * 1000))).collect()
}

#[test]
fn a_note_warns_that_another_device_was_recorded() {
    let (code, message) = RunAndRecording::new(&ten_writes(), &run_on("loop1"), &["loop2"], |_| 0).check(&[]);
    assert_eq!(code, Some(0), "{message}");
    assert!(message.contains("the target of the replay was loop1, the recording is of loop2"), "{message}");
    assert!(message.ends_with("is in the recording of loop2\n"), "{message}");
    let (_, message) = RunAndRecording::new(&ten_writes(), &run_on("loop1"), &["loop1"], |_| 0).check(&[]);
    assert!(!message.contains("note:") && message.ends_with("is in the recording of loop1\n"), "{message}");
    let (_, message) = RunAndRecording::new(&ten_writes(), &run_on("loop1"), &["loop2"], |_| 0).check(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&message).unwrap();
    assert!(json["notes"][0].as_str().unwrap().contains("the recording is of loop2"), "{message}");
    assert_eq!(json["devices"], serde_json::json!([]));
}

#[test]
fn a_note_warns_that_times_do_not_match() {
    let both = RunAndRecording::new(&ten_writes(), &run_on("loop1"), &["loop1"], |i| i as i64 * 10_000_000);
    let (code, message) = both.check(&[]);
    assert_eq!(code, Some(0), "{message}");
    assert!(message.contains("may be of another run"), "{message}");
}

#[test]
fn the_load_of_a_run_and_a_run_without_io_are_inconclusive() {
    // Half as fast as the load: only its name tells that it is the load.
    let rows: Vec<IoResult> =
        ten_writes().into_iter().map(|row| IoResult { scheduled: row.scheduled + row.scheduled, ..row }).collect();
    for (load, engine, message) in [
        ("a.load.parquet", "io_uring", "is the load that the run replayed"),
        ("b.load.parquet", "simulate", "did no I/O"),
    ] {
        let mut known = run_on("loop1");
        let run = known.run.as_mut().unwrap();
        (run.load, run.engine) = (load.to_owned().into(), engine.to_owned().into());
        let both = RunAndRecording::new(&rows, &known, &["artificial"], |_| 0);
        let (code, said) = both.check(&[]);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("INCONCLUSIVE") && said.contains(message), "{said}");
    }
}

#[test]
fn a_damaged_run_is_inconclusive() {
    let mut rows = ten_writes();
    // The table can hold this sector, but readers reject it.
    rows.push(issued(Op::Write, 1 << 60, 8, Nanos(10_000)));
    let both = RunAndRecording::new(&rows, &run_on("loop1"), &["loop1"], |_| 0);
    let (code, message) = both.check(&[]);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("1 row of the run unreadable") && message.contains("INCONCLUSIVE"), "{message}");
    let run = both.path("a.replay.parquet").to_string_lossy().into_owned();
    let info = iosonar(&["info", &run]);
    let message = String::from_utf8_lossy(&info.stdout);
    assert!(message.contains("NO: damaged, 1 row"), "{message}");
    let limit = iosonar(&["limit", &run]);
    let message = String::from_utf8_lossy(&limit.stderr);
    assert!(message.contains("1 row"), "{message}");
}

#[test]
fn missing_requests_are_listed_before_additional_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (run, seen) = (directory.path().join("a.replay.parquet"), directory.path().join("a.load.parquet"));
    write_run(&run, &[issued(Op::Write, 1000, 8, Nanos(0))]);
    let metadata = Metadata::new(Kind::Load, "test");
    let mut writer = iosonar_trace::create_load(&seen, &metadata).unwrap();
    (0..5).for_each(|i| writer.write(&Request::new(Nanos(i), Op::Read, Sector(0), Sectors(8))).unwrap());
    writer.finish(&metadata).unwrap();
    let found = iosonar(&["check", "--show", "2", &run.to_string_lossy(), &seen.to_string_lossy()]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(message.matches(" <\n").count(), 1, "{message}");
    assert_eq!(message.matches(" > ").count(), 1, "{message}");
    assert!(message.contains("and 4 more"), "{message}");
}

#[test]
fn a_run_that_was_cut_short_is_inconclusive() {
    let directory = tempfile::tempdir().unwrap();
    let (run, seen) = (directory.path().join("a.replay.parquet"), directory.path().join("a.load.parquet"));
    let rows: Vec<_> = (0..10).map(|i| issued(Op::Write, i * 8, 8, Nanos(i as i64 * 1000))).collect();
    let metadata = Metadata { complete: false, ..Metadata::new(Kind::Replay, "test") };
    let mut writer = iosonar_trace::create_run(&run, &metadata).unwrap();
    rows.iter().for_each(|row| writer.write(row).unwrap());
    writer.finish(&metadata).unwrap();
    let metadata = Metadata::new(Kind::Load, "test");
    let mut writer = iosonar_trace::create_load(&seen, &metadata).unwrap();
    rows.iter().for_each(|row| {
        writer.write(&Request::new(row.issued.unwrap(), row.op, row.sector, row.sectors)).unwrap();
    });
    writer.finish(&metadata).unwrap();
    let found = iosonar(&["check", &run.to_string_lossy(), &seen.to_string_lossy()]);
    let message = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(3), "{message}");
    assert!(message.contains("a.replay.parquet was cut short") && message.contains("INCONCLUSIVE"), "{message}");
}
