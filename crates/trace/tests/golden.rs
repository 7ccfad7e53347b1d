//! Files of every version of the tables can be read, with the same rows and the same footer.
//!
//! After a new version: `IOSONAR_WRITE_GOLDEN=1 cargo test -p iosonar-trace --test golden` adds its files. The files of
//! earlier versions remain unchanged.

use std::fs;
use std::path::{Path, PathBuf};

use iosonar_trace::{
    Comm, DelayReason, Device, DeviceId, Flags, IoResult, Kind, Metadata, Nanos, Op, Opened, Outcome, Reader, Request,
    Row, SCHEMA_VERSION, Sector, Sectors,
};

fn file(version: u32, kind: &str) -> PathBuf {
    PathBuf::from(format!("{}/tests/golden/v{version}.{kind}.parquet", env!("CARGO_MANIFEST_DIR")))
}

fn requests() -> Vec<Request> {
    let bare = |at, op, sector, sectors| Request::new(Nanos(at), op, Sector(sector), Sectors(sectors));
    vec![
        bare(0, Op::Read, 0, 1),
        Request {
            device: DeviceId(1),
            flags: Flags::FUA.with(Flags::SYNC),
            latency: Some(Nanos(123_456)),
            queued: Some(Nanos(789)),
            pid: Some(4_000_000_000),
            comm: Comm::new("postgres"),
            ..bare(1_500, Op::Write, 1 << 40, 2048)
        },
        Request { flags: Flags::PREFLUSH, ..bare(1_500, Op::Flush, 0, 0) },
        bare(2_000, Op::Discard, 8, 1 << 30),
        bare(i64::MAX, Op::WriteZeroes, 16, 8),
    ]
}

fn records() -> Vec<IoResult> {
    let mut records: Vec<IoResult> =
        requests().iter().zip(0..).map(|(request, number)| record(request, number)).collect();
    records[1].outcome = Outcome::Error;
    records[1].errno = 5;
    records[2] =
        IoResult { issued: None, completed: None, in_flight: 0, waiting: 0, outcome: Outcome::Dropped, ..records[2] };
    records
}

fn record(request: &Request, number: u64) -> IoResult {
    IoResult {
        iteration: 2,
        sector: Sector(number * 8),
        issued: Some(request.at + Nanos(7)),
        completed: Some(request.at + Nanos(70)),
        ready: Some(request.at - Nanos(1000)),
        bytes_done: request.sectors.bytes(),
        in_flight: 3,
        waiting: 1,
        pushed_back: number == 1,
        widened: number == 3,
        delay_reason: DelayReason::Depth,
        outcome: Outcome::Ok,
        ..IoResult::of(request, number)
    }
}

fn metadata(kind: Kind) -> Metadata {
    let mut metadata = Metadata::new(kind, "classic");
    metadata.source.path = Some("x.load.gz".into());
    metadata.source.preamble = "free text\nof two lines".into();
    metadata.devices = vec![Device { name: "sda".into(), sectors: Some(1 << 41) }, Device::default()];
    metadata.epoch_unix_ns = Some(1_336_140_000_000_000_000);
    metadata.counts.bad_lines = 1;
    metadata.warning("line 17 left out");
    if kind == Kind::Replay {
        let run = serde_json::json!({"load": "x.load.gz", "fake": null, "statistics": {"iops": 1.5}});
        metadata.run = serde_json::from_value(run).unwrap();
    }
    metadata
}

/// The last row has a time that no reader takes, as it is an end of the range: it is left out, and counted.
fn all_but_the_last<Row>(mut rows: Vec<Row>) -> Vec<Row> {
    rows.pop();
    rows
}

/// Its totals are those of the rows that were read, whatever the footer of the file says.
fn footer_of_what_was_read(kind: Kind) -> Metadata {
    let mut metadata = metadata(kind);
    metadata.counts.bad_lines += 1;
    metadata.counts.unreadable_rows += 1;
    metadata.warning("row 4 left out: a time is 292 years or more from zero");
    metadata
}

fn rows<R: Row<Metadata = Metadata>>(mut reader: Box<dyn Reader<R>>) -> (Vec<R>, Metadata) {
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

#[test]
fn every_version_is_read() {
    if std::env::var_os("IOSONAR_WRITE_GOLDEN").is_some() {
        write();
    }
    for version in 1..=SCHEMA_VERSION {
        let Opened::Load(load) = iosonar_trace::open(&file(version, "load")).unwrap() else { panic!("not a load") };
        let (read, footer) = rows(load);
        assert_eq!(read, all_but_the_last(requests()), "version {version}");
        let mut expected = footer_of_what_was_read(Kind::Load);
        read.iter().for_each(|row| expected.count_request(row));
        assert_eq!(footer, expected, "version {version}");

        let Opened::Run(run) = iosonar_trace::open(&file(version, "replay")).unwrap() else { panic!("not a run") };
        let (read, footer) = rows(run);
        assert_eq!(read, all_but_the_last(records()), "version {version}");
        let mut expected = footer_of_what_was_read(Kind::Replay);
        read.iter().for_each(|row| expected.count_record(row));
        assert_eq!(footer, expected, "version {version}");
    }
}

#[test]
fn a_run_of_version_1_is_written_as_the_newest_version() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.replay.parquet");
    let Opened::Run(mut run) = iosonar_trace::open(&file(1, "replay")).unwrap() else { panic!("not a run") };
    let mut writer = iosonar_trace::create_run(&path, run.metadata()).unwrap();
    while let Some(row) = run.next().unwrap() {
        writer.write(&row).unwrap();
    }
    writer.finish(run.metadata()).unwrap();
    let newest = |path: &Path| {
        let Opened::Run(run) = iosonar_trace::open(path).unwrap() else { panic!("not a run") };
        rows(run).0
    };
    assert_eq!(newest(&path), newest(&file(SCHEMA_VERSION, "replay")));
    let columns = |path: &Path| fs::read(path).unwrap().windows(12).any(|bytes| bytes == b"scheduled_ns");
    assert!(columns(&path), "columns have the names of the newest version");
}

fn write() {
    let (load, run) = (metadata(Kind::Load), metadata(Kind::Replay));
    let mut writer = iosonar_trace::create_load(&file(SCHEMA_VERSION, "load"), &load).unwrap();
    requests().iter().for_each(|row| writer.write(row).unwrap());
    writer.finish(&load).unwrap();
    let mut writer = iosonar_trace::create_run(&file(SCHEMA_VERSION, "replay"), &run).unwrap();
    records().iter().for_each(|row| writer.write(row).unwrap());
    writer.finish(&run).unwrap();
}
