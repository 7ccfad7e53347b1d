//! `iosonar files check` and `files prepare`, on a root of their own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use iosonar_files::tree::Tree;
use iosonar_files::{Call, CallKind, Metadata, table};
use iosonar_trace::{Nanos, Writer as _};

/// A trace that reads a file of 5000 bytes, and creates another one exclusively.
fn write_trace(path: &Path) {
    let metadata = Metadata::new("calls", "test");
    let mut writer = table::create(path, &metadata).unwrap();
    let mut now = 0;
    let mut write = |kind, change: &dyn Fn(&mut Call)| {
        let mut call = Call::new(Nanos(now), 1, kind);
        now += 10;
        change(&mut call);
        writer.write(&call).unwrap();
    };
    write(CallKind::Open, &|call| (call.path, call.result) = (Some("/data/in/file".into()), Some(3)));
    write(CallKind::Read, &|call| (call.fd, call.length, call.result) = (Some(3), Some(8192), Some(5000)));
    write(CallKind::Mkdir, &|call| call.path = Some("/data/out".into()));
    write(CallKind::Open, &|call| {
        (call.path, call.result, call.flags) = (Some("/data/skip/x".into()), Some(4), 0);
    });
    writer.finish(&metadata).unwrap();
}

fn files(command: &str, directory: &Path, more: &[&str]) -> Output {
    let mut words = vec!["files", command, "t.calls.parquet", "--root", "root"];
    words.extend(more);
    Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words).current_dir(directory).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn prepare_creates_what_check_misses() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_trace(&directory.join("t.calls.parquet"));
    fs::create_dir(directory.join("root")).unwrap();
    fs::write(directory.join("map"), "/data/in \"other place\"\n").unwrap();
    fs::write(directory.join("ignore"), "# not needed\n/data/skip\n").unwrap();
    let options = ["--map", "map", "--ignore", "ignore"];
    let checked = files("check", directory, &[&options[..], &["--json"]].concat());
    assert_eq!(checked.status.code(), Some(3), "{}", text(&checked));
    let json: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((json["problems"]["missing"].as_u64(), json["data_bytes"].as_u64()), (Some(3), Some(5000)), "{json}");
    assert_eq!((json["calls"].as_u64(), json["must_not_exist"].as_u64()), (Some(4), Some(1)));
    let prepared = files("prepare", directory, &options);
    assert!(prepared.status.success(), "{}", text(&prepared));
    assert_eq!(fs::metadata(directory.join("root/other place/file")).unwrap().len(), 5000);
    assert!(!directory.join("root/data/skip").exists() && !directory.join("root/data/out").exists());
    assert!(text(&files("prepare", directory, &options)).contains("nothing was changed"));
    assert_eq!(files("check", directory, &options).status.code(), Some(0));

    fs::create_dir(directory.join("root/data/out")).unwrap();
    let checked = files("check", directory, &options);
    assert_eq!(checked.status.code(), Some(3));
    assert!(text(&checked).contains("/data/out: in the way"), "{}", text(&checked));
    let refused = files("prepare", directory, &options);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("--reset"), "{}", text(&refused));
    let reset = files("prepare", directory, &[&options[..], &["--reset"]].concat());
    assert!(reset.status.success(), "{}", text(&reset));
    assert_eq!(files("check", directory, &options).status.code(), Some(0));
}

#[test]
fn the_snapshot_beside_the_trace_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_trace(&directory.join("t.calls.parquet"));
    let source = directory.join("source");
    fs::create_dir_all(source.join("in")).unwrap();
    fs::create_dir_all(source.join("skip")).unwrap();
    fs::write(source.join("in/file"), vec![7; 5000]).unwrap();
    fs::write(source.join("skip/x"), "x").unwrap();
    fs::write(source.join("more"), "more").unwrap();
    Tree::capture(&source, b"/data").unwrap().save(&directory.join("t.tree.parquet")).unwrap();
    let prepared = files("prepare", directory, &["--data", "zero"]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    assert_eq!(fs::read(directory.join("root/data/in/file")).unwrap(), vec![0; 5000]);
    assert_eq!(fs::metadata(directory.join("root/data/more")).unwrap().len(), 4);
    assert_eq!(files("check", directory, &[]).status.code(), Some(0));
}

#[test]
fn each_instance_has_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_trace(&directory.join("t.calls.parquet"));
    fs::write(directory.join("map"), "/data i{instance}/data\n").unwrap();
    let prepared = files("prepare", directory, &["--map", "map", "--instances", "2"]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    for instance in ["i0", "i1"] {
        assert!(directory.join("root").join(instance).join("data/in/file").is_file(), "{instance}");
    }
}

#[test]
fn instances_without_a_map_have_directories_as_a_replay_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_trace(&directory.join("t.calls.parquet"));
    let prepared = files("prepare", directory, &["--instances", "2"]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    assert_eq!(files("check", directory, &["--instances", "2"]).status.code(), Some(0));
    fs::remove_file(directory.join("root/instance-1/data/in/file")).unwrap();
    assert_eq!(files("check", directory, &["--instances", "2"]).status.code(), Some(3));
    let again = files("prepare", directory, &["--instances", "2"]);
    assert!(text(&again).contains("1 file"), "{}", text(&again));
    let replayed = files("replay", directory, &["--instances", "2", "--output", "r.calls-run.parquet"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
}

#[test]
fn a_missing_root_and_a_wrong_map_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_trace(&directory.join("t.calls.parquet"));
    let checked = files("check", directory, &[]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked).contains("cannot open the root root"), "{}", text(&checked));
    fs::write(directory.join("map"), "/data ../up\n").unwrap();
    let refused = files("prepare", directory, &["--map", "map"]);
    assert!(text(&refused).contains("map: line 1: `.` and `..` are not allowed"), "{}", text(&refused));
    assert!(!directory.join("root").exists());
}

#[test]
fn postmark_runs_in_a_prepared_root_as_generated() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("root")).unwrap();
    let words = ["files", "generate", "postmark", "t.calls.parquet", "--scale", "0.0002", "--read-size", "64k"];
    let generated = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words).current_dir(directory).output().unwrap();
    assert!(text(&generated).contains("on 60 files of 512 B to 200 KiB"), "{}", text(&generated));
    let prepared = files("prepare", directory, &[]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    let more = ["--timing", "asap", "--output", "r.calls-run.parquet", "--json"];
    let replayed = files("replay", directory, &more);
    assert!(replayed.status.success(), "{}", text(&replayed));
    let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let counts = ["mismatches", "left_out"].map(|key| json[key].clone());
    assert_eq!(counts, [serde_json::json!(0), serde_json::json!({})], "{json:#}");
    assert!(json["issued"].as_u64().is_some_and(|calls| calls == json["calls"].as_u64().unwrap() && calls > 500));
    // Nothing is left below the directory of all sets, as the trace removes its files and sets.
    assert_eq!(fs::read_dir(directory.join("root/data/postmark")).unwrap().count(), 0);
}
