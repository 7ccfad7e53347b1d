//! Names, warnings, preambles and paths are shown without terminal escape sequences, and paths that are not UTF-8 work
//! in every command.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

use iosonar_trace::journal::JournalWriter;
use iosonar_trace::{Device, DeviceId, IoResult, Kind, Metadata, Nanos, Op, Outcome, Request};

use crate::replaying::{Bench, MIB, request};

/// Clears the screen, moves the cursor, rings the bell, writes right to left; and has a second line that imitates a
/// message of iosonar.
const EVIL: &str = "sda\x1b[2J\x1b]0;title\x07\u{9b}31m\u{202e}\r\niosonar: all is well";

fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c)
}

/// Asserts that neither stream has control characters, or the imitated message.
fn assert_harmless(what: &str, output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap_or_else(|e| panic!("{what}: {e}"));
        let bad: Vec<_> =
            text.lines().filter(|line| line.contains(is_control) || line == &"iosonar: all is well").collect();
        assert!(bad.is_empty(), "{what}: {bad:#?}");
    }
}

fn iosonar(bench: &Bench, words: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(words).current_dir(bench.path("")).output().unwrap();
    assert_harmless(&format!("{words:?}"), &output);
    output
}

fn words<const N: usize>(words: [&str; N]) -> [&OsStr; N] {
    words.map(OsStr::new)
}

fn evil_metadata() -> Metadata {
    let mut evil_metadata = Metadata::new(Kind::Load, "test");
    evil_metadata.devices = ["", "2"].map(|more| Device { name: format!("{EVIL}{more}"), sectors: Some(64) }).into();
    evil_metadata.source.preamble = format!("{EVIL}\n{EVIL}");
    evil_metadata.source.path = Some(EVIL.into());
    evil_metadata.warning(EVIL);
    evil_metadata
}

fn load(bench: &Bench, name: &OsStr) {
    let mut writer = iosonar_trace::create_load(bench.path("").join(name).as_path(), &evil_metadata()).unwrap();
    for i in 0..4 {
        let row = request(i as f64 / 1e3, Op::Write, u64::from(i) * 8, 8);
        writer.write(&Request { device: DeviceId(i % 2), ..row }).unwrap();
    }
    writer.finish(&evil_metadata()).unwrap();
}

#[test]
fn texts_from_a_file_cannot_control_the_terminal() {
    let bench = Bench::new();
    load(&bench, OsStr::new("a.load.parquet"));
    bench.target(MIB);
    let info = iosonar(&bench, &words(["info", "a.load.parquet"]));
    let message = String::from_utf8(info.stdout).unwrap();
    assert!(message.contains(r"sda\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\niosonar: all is well"), "{message}");
    // JSON has the text unchanged.
    let info = iosonar(&bench, &words(["info", "--json", "a.load.parquet"]));
    let json: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&json["devices"][0]["name"], &json["warnings"][0]), (&EVIL.into(), &EVIL.into()));

    iosonar(&bench, &words(["convert", "a.load.parquet", "b.load"]));
    iosonar(&bench, &words(["convert", "a.load.parquet", "b.iolog"]));
    iosonar(&bench, &words(["edit", "a.load.parquet", "c.load.parquet", "select from=0"]));
    let run =
        iosonar(&bench, &words(["replay", "--force", "a.load.parquet", "-t", "target", "-o", "a.replay.parquet"]));
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    iosonar(&bench, &words(["replay", "--force", "a.load.parquet", "-t", "sda=target", "-o", "b.replay.parquet"]));
    iosonar(
        &bench,
        &words(["replay", "--force", "--json", "a.load.parquet", "-t", "target", "-o", "c.replay.parquet"]),
    );
    for run in ["a.replay.parquet", "nothing.parquet"] {
        iosonar(&bench, &words(["limit", run]));
        iosonar(&bench, &words(["limit", "--json", run]));
        iosonar(&bench, &words(["check", run, "a.load.parquet"]));
        iosonar(&bench, &words(["check", "--json", run, "a.load.parquet"]));
    }

    let journal = bench.path("d.replay.parquet.journal");
    let mut header = Metadata { kind: Kind::Replay, ..evil_metadata() };
    let target = serde_json::json!({"path": EVIL, "sectors": 64, "sources": [0], "others": true});
    header.run = serde_json::from_value(serde_json::json!({"fake": EVIL, "targets": [target]})).unwrap();
    let mut writer = JournalWriter::create(&journal, &header, 2).unwrap();
    for device in 0..2 {
        let row = Request { device: DeviceId(device), ..request(0.0, Op::Read, 0, 8) };
        let mut record = IoResult::of(&row, 0);
        (record.issued, record.completed) = (Some(Nanos(5)), Some(Nanos(9)));
        record.outcome = Outcome::Ok;
        assert!(writer.write(&record));
    }
    writer.close();
    let recovered = iosonar(&bench, &[OsStr::new("recover"), journal.as_os_str()]);
    assert_eq!(recovered.status.code(), Some(0), "{recovered:?}");
}

#[test]
fn paths_cannot_control_the_terminal() {
    let bench = Bench::new();
    for name in [
        &b"esc\x1b[2J\x07iosonar: all is well"[..],
        b"line\niosonar: all is well",
        b"caf\xe9\x9b",
        "bidi\u{202e}".as_bytes(),
    ] {
        let with = |ending: &str| OsString::from(OsStr::from_bytes(&[name, ending.as_bytes()].concat()));
        let (loaded, target, run) = (with(".load.parquet"), with(".target"), with(".replay.parquet"));
        load(&bench, &loaded);
        fs::write(bench.path("").join(&target), vec![0; MIB as usize]).unwrap();
        let one = |verb: &[&str], paths: &[&OsStr]| {
            let verb = verb.iter().map(OsStr::new);
            iosonar(&bench, &verb.chain(paths.iter().copied()).collect::<Vec<_>>())
        };
        one(&["info"], &[&loaded]);
        let info = one(&["info", "--json"], &[&loaded]);
        assert!(serde_json::from_slice::<serde_json::Value>(&info.stdout).is_ok());
        let (t, o) = (OsStr::new("--target"), OsStr::new("--output"));
        let ran = one(&["replay", "--force"], &[&loaded, t, &target, o, &run]);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        let mut sources = OsString::from("0=");
        sources.push(&target);
        let ran =
            one(&["replay", "--force", "--overwrite", "--json", "--repeat", "2"], &[&loaded, t, &sources, o, &run]);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        assert!(bench.path("").join(with(".2.replay.parquet")).exists());
        one(&["limit"], &[&run]);
        one(&["limit", "--json"], &[&run]);
        one(&["check"], &[&run, &loaded]);
        one(&["convert"], &[&run, &with(".replay.gz")]);
        one(&["edit"], &[&loaded, &with("2.load.parquet"), OsStr::new("slip")]);
        one(&["generate", "uniform"], &[&with("3.load"), OsStr::new("--rate"), OsStr::new("9")]);
        one(&["recover"], &[&with(".replay.parquet.journal")]);
        one(&["recover"], &[&with(".load.Ab3xYz.partial")]);
        one(&["device", "inspect"], &[&target]);
        one(&["device", "inspect", "--json"], &[&target]);
        one(&["device", "slurp"], &[&target]);
        one(&["device", "slurp", "--json"], &[&target]);
        one(&["device", "wipe", "--force"], &[&target]);
        one(&["device", "scheduler"], &[&target]);
        one(&["replay"], &[&with("none"), t, &with("none"), o, &with("none")]);
        one(&["replay", "--nonsense"], &[&with("none")]);
        one(&[], &[&with("none")]);
    }
}
