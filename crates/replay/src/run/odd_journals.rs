//! Tests of journals of other versions, and with headers or entries that no replay writes: each is recovered, or refused with
//! a message.

use std::fs;
use std::path::Path;

use iosonar_trace::journal::JournalWriter;
use iosonar_trace::{
    DelayReason, DeviceId, Flags, IoResult, Kind, Metadata, Nanos, Op, Opened, Outcome, Request, Sector, Sectors,
};
use serde_json::{Value, json};

use super::recover;

/// A header with all keys that `recover` reads, and some others.
fn header() -> Metadata {
    let mut header = Metadata::new(Kind::Replay, "iosonar");
    header.devices[0].sectors = Some(64);
    header.run = serde_json::from_value(json!({
        "load": "a.load",
        "options": {"asap": false, "verbose": true, "output_offset": 5, "overwrite": false},
        "target": {"path": "t", "sectors": 64},
        "targets": [{"path": "t", "sectors": 64, "sources": [0, 3], "others": true}],
        "fake": null,
        "data": {"what": "random", "seed": 7},
        "started_unix_ns": 1,
    }))
    .unwrap();
    header
}

fn entry() -> IoResult {
    let mut record = IoResult::of(&Request::new(Nanos(3), Op::Read, Sector(8), Sectors(8)), 0);
    (record.issued, record.completed) = (Some(Nanos(5)), Some(Nanos(9)));
    (record.outcome, record.bytes_done) = (Outcome::Ok, 4096);
    record
}

/// Writes a journal whose header is `header_text`.
fn journal(path: &Path, header_text: &str, entries: &[IoResult]) {
    let _ = fs::remove_file(path);
    let mut writer = JournalWriter::create(path, &header(), 1).unwrap();
    assert!(entries.iter().all(|entry| writer.write(entry)));
    writer.close();
    let whole = fs::read(path).unwrap();
    let length = u32::from_le_bytes(whole[8..12].try_into().unwrap()) as usize;
    let mut changed = whole[..8].to_vec();
    changed.extend((header_text.len() as u32).to_le_bytes());
    changed.extend(crc32fast::hash(header_text.as_bytes()).to_le_bytes());
    changed.extend(header_text.as_bytes());
    changed.extend(&whole[16 + length..]);
    fs::write(path, changed).unwrap();
}

/// Collects the JSON pointers of a value and of all values within it.
fn pointers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_owned());
    let children: Vec<_> = match value {
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(array) => array.iter().enumerate().map(|(key, value)| (key.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    children.into_iter().for_each(|(key, value)| pointers(value, &format!("{pointer}/{key}"), found));
}

fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!([]),
        json!([[7]]),
        json!({}),
        json!({"x": 1}),
    ]
}

#[test]
fn a_header_whose_run_is_not_an_object_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.replay.parquet.journal");
    for run in ["7", "\"x\"", "[1]", "true"] {
        let mut text = serde_json::to_value(header()).unwrap();
        text["run"] = serde_json::from_str(run).unwrap();
        journal(&path, &text.to_string(), &[entry()]);
        let message = recover(&path, &directory.path().join("r.replay.parquet")).unwrap_err().to_string();
        assert!(message.contains("header is damaged") && message.contains("`run` is not an object"), "{message}");
        assert!(path.exists(), "the journal is kept");
    }
}

#[test]
fn recovering_an_odd_header_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let (path, output) = (directory.path().join("r.replay.parquet.journal"), directory.path().join("r.replay.parquet"));
    let whole = serde_json::to_value(header()).unwrap();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    let (mut recovered, mut refused) = (0, 0);
    for pointer in &all {
        for odd in odd_values() {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = odd;
            journal(&path, &changed.to_string(), &[entry()]);
            match recover(&path, &output) {
                Ok(_) => recovered += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
            let _ = fs::remove_file(&output);
        }
    }
    assert!(recovered > 0 && refused > 0, "{recovered} recovered, {refused} refused");
}

/// An entry with a valid checksum can still have any numbers.
#[test]
fn recovering_odd_entries_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let (path, output) = (directory.path().join("r.replay.parquet.journal"), directory.path().join("r.replay.parquet"));
    let text = serde_json::to_string(&header()).unwrap();
    let [least, most] = [Some(Nanos(i64::MIN + 1)), Some(Nanos::MAX)];
    for (issued, completed, scheduled) in [
        (least, most, Nanos(i64::MIN)),
        (most, least, Nanos::MAX),
        (None, most, Nanos(i64::MIN)),
        (most, None, Nanos::ZERO),
    ] {
        for number in [0, u64::MAX, 1 << 63] {
            let mut row = entry();
            (row.issued, row.completed, row.scheduled) = (issued, completed, scheduled);
            (row.request, row.bytes_done) = (number, number);
            (row.source_sector, row.sector, row.sectors) = (Sector(number), Sector(number), Sectors(number));
            (row.in_flight, row.waiting, row.iteration) = (number as u32, number as u32, number as u32);
            journal(&path, &text, &[entry(), row, row]);
            let _ = recover(&path, &output);
            let _ = fs::remove_file(&output);
        }
    }
}

#[test]
fn a_recovered_run_has_null_for_what_only_its_end_knows() {
    let directory = tempfile::tempdir().unwrap();
    let (path, output) = (directory.path().join("r.replay.parquet.journal"), directory.path().join("r.replay.parquet"));
    let entries = [IoResult { pushed_back: true, in_flight: 3, ..entry() }, entry()];
    journal(&path, &serde_json::to_string(&header()).unwrap(), &entries);
    let finished = recover(&path, &output).unwrap();
    let found = serde_json::to_value(&finished.statistics).unwrap();
    let of_end = ["ordered_waits", "zero_reads", "bad_lines", "max_pushed_back", "slow_submissions"];
    for key in of_end.into_iter().chain(["completion_log_stalls", "unrecorded", "verify"]) {
        assert_eq!(found[key], json!(null), "{key}");
    }
    // Those of the rows.
    assert_eq!(
        [&found["pushed_back"], &found["max_in_flight"], &found["wrap_factor"]],
        [&json!(1), &json!(3), &json!(0.25)]
    );
    assert!(finished.warnings[0].contains("the most requests pushed back"), "{:?}", finished.warnings);
}

/// An entry written by a program with version 1 of the tables, in version 2 of the layout.
const OLD_ENTRY: &str = "0700000000000000e803000000000000d0070000000000002823000000000000080000000000000010000000000000000010\
                         00000000000008000000000001000300000002000000010000000500000006000000fcffffff0000020001000403eb09b5a3";

#[test]
fn a_journal_of_version_1_becomes_a_run_of_version_3() {
    let directory = tempfile::tempdir().unwrap();
    let (path, output) = (directory.path().join("r.replay.parquet.journal"), directory.path().join("r.replay.parquet"));
    let mut text = serde_json::to_value(header()).unwrap();
    text["schema_version"] = 1.into();
    journal(&path, &text.to_string(), &[]);
    let entry = OLD_ENTRY.as_bytes().chunks(2).map(|hex| u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).unwrap());
    let mut whole = [fs::read(&path).unwrap(), entry.collect()].concat();
    // The version of the entries' layout.
    whole[7] = 2;
    fs::write(&path, whole).unwrap();
    recover(&path, &output).unwrap();
    let file = fs::read(&output).unwrap();
    assert!(file.windows(18).any(|bytes| bytes == b"\"schema_version\":3"));
    let Opened::Run(mut run) = iosonar_trace::open(&output).unwrap() else { panic!("not a run") };
    let row = run.next().unwrap().unwrap();
    // `output_offset` of the header.
    let at = |ns: i64| Nanos(ns + 5);
    let expected = IoResult {
        iteration: 3,
        device: DeviceId(1),
        source_sector: Sector(8),
        flags: Flags(2),
        issued: Some(at(2000)),
        completed: Some(at(9000)),
        ready: Some(at(1000 - 4000)),
        submitted: Some(at(2005)),
        last_empty_poll: Some(at(8994)),
        bytes_done: 4096,
        in_flight: 2,
        waiting: 1,
        pushed_back: true,
        widened: true,
        delay_reason: DelayReason::CompletionLog,
        outcome: Outcome::Ok,
        ..IoResult::of(&Request::new(at(1000), Op::Write, Sector(16), Sectors(8)), 7)
    };
    assert_eq!(row, expected);
}

#[test]
fn a_journal_of_a_newer_version_of_the_tables_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.replay.parquet.journal");
    journal(&path, r#"{"schema_version": 4, "wholly": "different"}"#, &[entry()]);
    let message = recover(&path, &directory.path().join("r.replay.parquet")).unwrap_err().to_string();
    assert!(message.contains("has version 4 of the tables; this iosonar reads versions up to 3"), "{message}");
}
