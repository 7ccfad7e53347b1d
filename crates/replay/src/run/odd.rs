//! Journals whose header is JSON, but not what a replay writes: each is recovered or refused in a sentence.

use std::fs;
use std::path::Path;

use iosonar_trace::{IoResult, Kind, Metadata, Nanos, Op, Outcome, Request, Sector, Sectors};
use serde_json::{Value, json};

use super::recover;
use crate::result::journal::JournalWriter;

/// As a replay writes it: what `recover` looks at, and some more.
fn header() -> Metadata {
    let mut header = Metadata::new(Kind::Replay, "iosonar");
    header.devices[0].sectors = Some(64);
    header.run = Some(json!({
        "load": "a.load",
        "options": {"asap": false, "verbose": true, "output_offset": 5, "overwrite": false},
        "target": {"path": "t", "sectors": 64},
        "targets": [{"path": "t", "sectors": 64, "sources": [0, 3], "others": true}],
        "fake": null,
        "data": {"what": "random", "seed": 7},
        "started_unix_ns": 1,
    }));
    header
}

fn entry() -> IoResult {
    let mut record = IoResult::of(&Request::new(Nanos(3), Op::Read, Sector(8), Sectors(8)), 0);
    (record.issued, record.completed) = (Some(Nanos(5)), Some(Nanos(9)));
    (record.outcome, record.bytes_done) = (Outcome::Ok, 4096);
    record
}

/// A journal with that header in place of its own.
fn journal(path: &Path, header_text: &str, entries: &[IoResult]) {
    let _ = fs::remove_file(path);
    let mut writer = JournalWriter::create(path, &header(), 1).unwrap();
    entries.iter().for_each(|entry| writer.write(entry).unwrap());
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

/// Where there is a value, itself and all within it.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let deeper: Vec<_> = match value {
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(all) => all.iter().enumerate().map(|(key, value)| (key.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    deeper.into_iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), found));
}

fn odd() -> Vec<Value> {
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
fn a_run_that_is_no_object_is_refused_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.replay.parquet.journal");
    for run in ["7", "\"x\"", "[1]", "true"] {
        let mut text = serde_json::to_value(header()).unwrap();
        text["run"] = serde_json::from_str(run).unwrap();
        journal(&path, &text.to_string(), &[entry()]);
        let said = recover(&path, &folder.path().join("r.replay.parquet")).unwrap_err().to_string();
        assert!(said.contains("header is damaged") && said.contains("`run` is not an object"), "{said}");
        assert!(path.exists(), "it is left as it was");
    }
}

#[test]
fn odd_headers_are_recovered_or_refused_but_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join("r.replay.parquet.journal"), folder.path().join("r.replay.parquet"));
    let whole = serde_json::to_value(header()).unwrap();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let (mut recovered, mut refused) = (0, 0);
    for place in &all {
        for odd in odd() {
            let mut changed = whole.clone();
            *changed.pointer_mut(place).unwrap() = odd;
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

/// An entry whose checksum is right may still hold any numbers.
#[test]
fn odd_entries_are_recovered_too() {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = (folder.path().join("r.replay.parquet.journal"), folder.path().join("r.replay.parquet"));
    let text = serde_json::to_string(&header()).unwrap();
    let [least, most] = [Some(Nanos(i64::MIN + 1)), Some(Nanos::MAX)];
    for (issued, completed, intended) in [
        (least, most, Nanos(i64::MIN)),
        (most, least, Nanos::MAX),
        (None, most, Nanos(i64::MIN)),
        (most, None, Nanos::ZERO),
    ] {
        for number in [0, u64::MAX, 1 << 63] {
            let mut row = entry();
            (row.issued, row.completed, row.intended) = (issued, completed, intended);
            (row.request, row.bytes_done) = (number, number);
            (row.source_sector, row.sector, row.sectors) = (Sector(number), Sector(number), Sectors(number));
            (row.in_flight, row.waiting, row.round) = (number as u32, number as u32, number as u32);
            journal(&path, &text, &[entry(), row, row]);
            let _ = recover(&path, &output);
            let _ = fs::remove_file(&output);
        }
    }
}
