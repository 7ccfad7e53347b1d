//! `iosonar check` on a recording of what the test itself did to a device, as a replay would have.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod recording;

use std::path::Path;
use std::time::Instant;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{Kind, Metadata, Nanos, Op, Outcome, Record, Request, Sector, Sectors};

use recording::{Direct, Recording, iosonar};

fn issued(op: Op, sector: u64, sectors: u64, at: Nanos) -> Record {
    Record {
        issued: Some(at),
        completed: Some(at + Nanos(1)),
        bytes_done: sectors * 512,
        in_flight: 1,
        outcome: Outcome::Ok,
        ..Record::of(&Request::new(at, op, Sector(sector), Sectors(sectors)), 0)
    }
}

fn write_run(path: &Path, rows: &[Record]) {
    let metadata = Metadata::new(Kind::Replay, "test");
    let mut writer = iosonar_trace::create_run(path, &metadata).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.finish(&metadata).unwrap();
}

#[test]
fn a_recording_holds_what_was_issued_and_a_lost_request_is_found() {
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
        // Every place twice, so that the number of times counts.
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
    let folder = recording.keep();
    let (run, seen) = (folder.path().join("a.replay.parquet"), folder.path().join("a.load.parquet"));
    write_run(&run, &rows);
    let (run, seen) = (run.to_string_lossy().into_owned(), seen.to_string_lossy().into_owned());

    let found = iosonar(&["check", &run, &seen]);
    let said = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{said}");
    assert!(said.contains("complete: every request"), "{said}");
    assert!(said.contains("issue times of 201 requests"), "{said}");

    // The kernel was never asked for this one.
    rows.push(issued(Op::Write, 4000, 8, at));
    write_run(Path::new(&run), &rows);
    let found = iosonar(&["check", &run, &seen]);
    let said = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(3), "{said}");
    assert!(said.contains("NOT complete"), "{said}");

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
fn a_recorded_load_is_replayed_in_full_on_another_device() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let load = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../loads/git.load.parquet");
    let device = LoopDevice::new(512 << 20);
    let target = device.path().to_string_lossy().into_owned();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
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
fn files_in_the_wrong_order_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("a.replay.parquet").to_string_lossy().into_owned();
    write_run(Path::new(&run), &[issued(Op::Read, 0, 8, Nanos(0))]);
    let found = iosonar(&["check", &run, &run]);
    assert_eq!(found.status.code(), Some(1));
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(said.contains("second comes the recording"), "{said}");
}

#[test]
fn what_was_cut_short_is_not_called_complete() {
    let folder = tempfile::tempdir().unwrap();
    let (run, seen) = (folder.path().join("a.replay.parquet"), folder.path().join("a.load.parquet"));
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
    let said = String::from_utf8_lossy(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{said}");
    assert!(
        said.contains("a.replay.parquet was cut short") && said.contains("as far as the run's result goes"),
        "{said}"
    );
}
