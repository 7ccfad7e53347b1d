//! Calls to files in `convert`, `info`, `edit` and `recover`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use iosonar_files::{Call, CallKind, Metadata, OpenOptions, table};
use iosonar_trace::{Nanos, Writer as _};

const TEXT: &str = "\
100 1700000000.000000 openat(AT_FDCWD, \"in.txt\", O_RDONLY) = 3 <0.000010>
100 1700000000.000100 read(3, \"\"..., 4096) = 4096 <0.000020>
100 1700000000.000200 read(3, \"\"..., 4096) = 100 <0.000020>
101 1700000000.000300 openat(AT_FDCWD, \"/etc/none\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>
100 1700000000.500000 close(3) = 0 <0.000001>
";

fn iosonar(directory: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).current_dir(directory).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), text)
}

fn ok(directory: &Path, words: &[&str]) -> String {
    let (is_ok, text) = iosonar(directory, words);
    assert!(is_ok, "{words:?}: {text}");
    text
}

fn refused(directory: &Path, words: &[&str]) -> String {
    let (is_ok, text) = iosonar(directory, words);
    assert!(!is_ok, "{words:?}: {text}");
    text
}

fn calls(path: &Path) -> Vec<Call> {
    let mut reader = iosonar_files::open(path, &OpenOptions::default()).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn directory_with_text() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("x.strace"), TEXT).unwrap();
    directory
}

#[test]
fn text_of_strace_becomes_a_table_that_info_describes() {
    let directory = directory_with_text();
    let directory = directory.path();
    let said = ok(directory, &["convert", "x.strace", "x.calls.parquet", "--cwd", "/home/u"]);
    assert!(said.contains("x.calls.parquet: 5 calls over 500 ms"), "{said}");
    assert_eq!(calls(&directory.join("x.calls.parquet")), calls(&directory.join("x.strace")));
    for file in ["x.calls.parquet", "x.strace"] {
        let said = ok(directory, &["info", file]);
        for part in
            ["calls       5, of 3 kinds", "failed      1 (20.0 %): ENOENT 1", "data        4.2 kB read, 0 B written"]
        {
            assert!(said.contains(part), "{file}: {part}\n{said}");
        }
    }
    let json = ok(directory, &["info", "x.calls.parquet", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["files"]["most_bytes"][0]["file"], "/home/u/in.txt");
    assert_eq!(
        (&json["bytes"]["read"], &json["threads"]["number"], &json["kind"]),
        (&4196.into(), &2.into(), &"calls".into())
    );
    assert_eq!(json["errors"]["2"], 1);
}

#[test]
fn info_takes_what_a_pipe_brings() {
    let directory = directory_with_text();
    let directory = directory.path();
    ok(directory, &["convert", "x.strace", "x.calls.parquet"]);
    fs::write(directory.join("x.load"), "0.000000000 ; 8 ; 16 ; R\n0.500000000 ; 800 ; 8 ; W\n").unwrap();
    ok(directory, &["convert", "x.load", "x.load.parquet"]);
    for (file, part) in [
        ("x.strace", "calls       5, of 3 kinds"),
        ("x.calls.parquet", "calls       5, of 3 kinds"),
        ("x.load", "requests    2"),
        ("x.load.parquet", "requests    2"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        let output = command.args(["info", "-"]).pipe_stdin(directory.join(file)).unwrap().output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success() && text.contains(part), "{file}: {text}");
    }
}

#[test]
fn a_trace_is_selected_mapped_and_anonymised() {
    let directory = directory_with_text();
    let directory = directory.path();
    ok(directory, &["convert", "x.strace", "x.calls.parquet", "--cwd", "/home/u"]);
    ok(
        directory,
        &["edit", "x.calls.parquet", "file.calls.parquet", "select path=/home/u/in.txt | map old=/etc new=/srv"],
    );
    let found = calls(&directory.join("file.calls.parquet"));
    let kinds: Vec<CallKind> = found.iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [CallKind::Openat, CallKind::Read, CallKind::Read, CallKind::Close]);
    let said =
        ok(directory, &["edit", "x.calls.parquet", "anon.calls.parquet", "select family=open | anonymise key=k"]);
    assert!(said.contains("anon.calls.parquet: 2 calls"), "{said}");
    let said = ok(directory, &["info", "anon.calls.parquet", "--json"]);
    assert!(
        !said.contains("in.txt") && !said.contains("/home/u") && said.contains("select | anonymise key=…"),
        "{said}"
    );
}

#[test]
fn what_was_recorded_before_the_end_is_recovered() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let about = Metadata { complete: false, ..Metadata::new("calls", "record") };
    let mut writer = table::create(&directory.join("a.calls.parquet"), &about).unwrap();
    for second in 0..3 {
        writer.write(&Call::new(Nanos(second), 7, CallKind::Getcwd)).unwrap();
    }
    writer.checkpoint(&about).unwrap();
    writer.write(&Call::new(Nanos(9), 7, CallKind::Getcwd)).unwrap();
    drop(writer);
    let hidden = fs::read_dir(directory).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    let said = ok(directory, &["recover", &hidden]);
    assert!(said.contains("a.calls.parquet: 3 calls before it was cut short"), "{said}");
    assert!(ok(directory, &["info", "a.calls.parquet"]).contains("NO: cut short"));
}

#[test]
fn info_of_a_window_has_the_rows_that_are_due_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("a.strace"), TEXT).unwrap();
    fs::write(directory.join("x.csv"), "0,R,0,4096\n1,W,0,8192\n2.5,R,0,512\n3,R,0,512\n").unwrap();
    let object = |words: &[&str]| -> serde_json::Value { serde_json::from_str(&ok(directory, words)).unwrap() };
    let found = object(&["info", "a.strace", "--from", "100us", "--to", "400us", "--json"]);
    assert_eq!((&found["counts"]["calls"], &found["window"]["from_s"]), (&3.into(), &0.0001.into()));
    // The descriptor was opened before the window.
    assert_eq!((&found["bytes"]["read"], &found["files"]["number"]), (&4196.into(), &2.into()));
    assert!((found["duration_s"].as_f64().unwrap() - 0.00021).abs() < 1e-9, "from the start of the window: {found}");
    let columns = ["--columns", "at=1 op=2 offset=3 size=4"];
    let words = [&["info", "x.csv", "--from", "1", "--to", "3", "--json"], &columns[..]].concat();
    let found = object(&words);
    assert_eq!((&found["counts"]["requests"], &found["counts"]["writes"]), (&2.into(), &1.into()));
    assert_eq!((&found["duration_s"], &found["bytes"]["read"]), (&1.5.into(), &512.into()));
    let text = ok(directory, &["info", "a.strace", "--from", "0.4"]);
    assert!(text.contains("only calls from 400 ms on"), "{text}");
    // A name is that of a format, as before.
    assert!(refused(directory, &["info", "x.csv", "--from", "nonsense"]).contains("unknown format"));
    assert!(refused(directory, &["info", "a.strace", "--from", "2", "--to", "1"]).contains("is not before --to"));
    assert!(refused(directory, &["info", "a.strace", "--from", "100"]).contains("no call in this window"));
    assert!(refused(directory, &["convert", "x.csv", "x.load.parquet", "--from", "2m"]).contains("not a format"));
}

#[test]
fn what_was_converted_lasts_to_the_end_of_the_last_call() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{TEXT}100 1700000001.000000 fsync(4) = 0 <4.000000>\n");
    fs::write(directory.path().join("a.strace"), text).unwrap();
    let said = ok(directory.path(), &["convert", "a.strace", "a.calls.parquet"]);
    assert!(said.contains("6 calls over 5 s"), "{said}");
}

#[test]
fn a_log_of_gvisor_is_a_trace_of_calls() {
    let directory = tempfile::tempdir().unwrap();
    let log = "I0102 15:04:04.0 1 main.go:230] Args: [boot]\n\
               I0102 15:04:05.000000 1 strace.go:572] [ 1: 1] sh E fsync(0x3 /a)\n\
               I0102 15:04:05.000100 1 strace.go:610] [ 1: 1] sh X fsync(0x3 /a) = 0 (0x0) (95µs)\n";
    fs::write(directory.path().join("runsc.log"), log).unwrap();
    let info = ok(directory.path(), &["info", "runsc.log"]);
    assert!(info.contains("log of gVisor's strace") && info.contains("unverified"), "{info}");
    let said = ok(directory.path(), &["convert", "runsc.log", "a.calls.parquet"]);
    assert!(said.contains("1 call over 95 µs"), "{said}");
}
