//! `iosonar files replay`: results, orders, windows, paths, options, exit codes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use iosonar_files::{CallKind, CallOutcome, InitialProcess};

use crate::files_replaying::{Bench, Trace, outcomes, program};

#[test]
fn a_program_is_repeated_with_all_its_results() {
    let each = [
        &[][..],
        &["--timing", "asap"],
        &["--order", "resource", "--timing", "diff"],
        &["--order", "thread", "--timing", "begin"],
        &["--threads", "trace", "--wait", "hybrid"],
        &["--no-cache", "--pool", "1", "--wait", "sleep"],
    ];
    let check = |more: &[&str]| {
        let bench = Bench::new();
        let rows = bench.replay(&program(), 0, more);
        let wrong: Vec<_> =
            rows.iter().filter(|row| row.issued.is_some() && row.outcome != CallOutcome::Same).collect();
        assert!(wrong.is_empty(), "{more:?}: {wrong:?}");
        assert_eq!(rows.len(), program().calls.len());
        let file = fs::metadata(bench.root().join("d/b")).unwrap();
        assert_eq!((file.len(), file.nlink(), file.mode() & 0o777), (7000, 1, 0o755));
        assert_eq!(fs::read_link(bench.root().join("d/l")).unwrap(), Path::new("b"));
        let statistics = bench.statistics();
        assert_eq!(statistics["bytes_written"], 5100);
        assert_eq!(statistics["bytes_read"], 4200);
        assert_eq!(statistics["complete"], true);
    };
    std::thread::scope(|scope| each.map(|more| scope.spawn(move || check(more))).map(|test| test.join().unwrap()));
}

#[test]
fn the_footer_has_the_proof_of_the_order() {
    let bench = Bench::new();
    let output = bench.output(&program(), 0, &["--json", "--timing", "asap"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["order"]["violations"] == 0 && json["order"]["pairs"].as_u64() > Some(0), "{json}");
    // Each call of the one thread but the last has one dependent.
    let calls = program().calls.len() as u64;
    assert_eq!(json["outdegree"], serde_json::json!({ "0": 1, "1": calls - 1 }));
    let footer = bench.statistics();
    assert_eq!((&footer["order"], &footer["outdegree"]), (&json["order"], &json["outdegree"]));
    let names: Vec<_> = fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "root, trace and result only: {names:?}");

    let bench = Bench::new();
    bench.output(&program(), 0, &["--no-verify-order"]);
    let footer = bench.statistics();
    assert!(footer["order"].is_null() && footer["outdegree"].is_null(), "{footer}");
}

/// Four threads that use files of their own, all in one directory, and one file together.
fn threads() -> Trace {
    use CallKind as K;
    let mut trace = Trace::new();
    trace.open("/common", libc::O_CREAT | libc::O_WRONLY, 3);
    for round in 0..15 {
        for thread in 0..4 {
            let fd = 4 + thread;
            let path = format!("/{round}-{thread}");
            let first = trace.calls.len();
            trace.open(&path, libc::O_CREAT | libc::O_WRONLY, fd.into());
            trace.on(K::Write, fd, Some(4096), 4096).on(K::Write, 3, Some(100_000), 100_000).on(K::Close, fd, None, 0);
            trace.calls[first..].iter_mut().for_each(|call| call.thread = 100 + thread as u32);
        }
    }
    trace
}

#[test]
fn an_order_of_issues_is_kept_and_uses_wait_for_the_opening() {
    for timing in ["asap", "exact"] {
        let bench = Bench::new();
        let more = ["--order", "fs-dispatched", "--timing", timing, "--pool", "8"];
        let rows = bench.replay(&threads(), 0, &more);
        let order = &bench.statistics()["order"];
        assert_eq!((&order["policy"], &order["violations"]), (&"fs-dispatched".into(), &0.into()), "{order}");
        assert!(order["pairs"].as_u64() > Some(240), "{order}");
        // Each write to the common file modifies it after the write before.
        let writes: Vec<_> = rows.iter().filter(|row| row.length == Some(100_000)).collect();
        assert!(writes.windows(2).all(|pair| pair[0].issued <= pair[1].issued), "{timing}");
        for opening in rows.iter().filter(|row| row.kind == CallKind::Openat) {
            let uses = rows.iter().filter(|row| row.call > opening.call && row.path == opening.path);
            assert!(uses.into_iter().all(|row| row.issued >= opening.completed), "{timing} {:?}", opening.path);
        }
    }
}

#[test]
fn other_results_are_mismatches_by_kind_and_exit_with_4() {
    let bench = Bench::new();
    fs::write(bench.root().join("short"), [0; 10]).unwrap();
    let mut trace = Trace::new();
    trace.open("/missing", libc::O_RDONLY, 3).on(CallKind::Read, 3, Some(10), 10);
    trace.open("/short", libc::O_RDONLY, 4).on(CallKind::Read, 4, Some(100), 100);
    trace.path(CallKind::Mkdir, "/made", -i64::from(libc::EEXIST)).path(CallKind::Rmdir, "/nothing", -39);
    let printed = String::from_utf8(bench.output(&trace, 4, &["--unprepared"]).stdout).unwrap();
    for words in [
        "1 openat: failed with ENOENT, the original succeeded; first call 0 on /missing",
        "1 read: moved fewer bytes than the original; first call 3 on /short",
        "1 mkdir: succeeded, the original failed with EEXIST; first call 4 on /made",
        "1 rmdir: failed with ENOENT, the original with ENOTEMPTY; first call 5 on /nothing",
        "But 5 of 6 calls (83.3 %) returned other results than the original.",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let rows = bench.rows();
    use CallOutcome::{Failed, Fewer, OtherErrno, Same, Succeeded};
    assert_eq!(outcomes(&rows), [Failed, Failed, Same, Fewer, Succeeded, OtherErrno]);
    assert_eq!((rows[0].errno, rows[1].errno, rows[3].result), (libc::ENOENT, libc::EBADF, Some(10)));
    assert_eq!(bench.statistics()["mismatches"], 5);
}

#[test]
fn a_root_that_lacks_files_is_refused() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/d/missing", libc::O_RDONLY, 3).on(CallKind::Read, 3, Some(10), 10);
    let error = |more: &[&str]| String::from_utf8(bench.output(&trace, 1, more).stderr).unwrap();
    let message = error(&[]);
    let place = bench.0.path().display();
    let remedy = format!("run `iosonar files prepare {place}/t.calls.parquet --root {place}/root` first");
    assert!(message.contains(&remedy) && message.contains("2 paths are missing"), "{message}");
    assert!(message.contains("such as /d: ") && message.contains("--unprepared"), "{message}");
    assert!(!bench.result().exists());

    (0..2).for_each(|number| fs::create_dir_all(bench.root().join(format!("instance-{number}/d"))).unwrap());
    fs::write(bench.root().join("instance-0/d/missing"), [0; 10]).unwrap();
    let message = error(&["--instances", "2"]);
    assert!(message.contains("a path is missing") && message.contains("/root --instances 2`"), "{message}");
    fs::write(bench.root().join("instance-1/d/missing"), [0; 5]).unwrap();
    // A file that is too short is a warning.
    let message = String::from_utf8(bench.output(&trace, 4, &["--instances", "2"]).stderr).unwrap();
    assert!(message.contains("1 path differs"), "{message}");
    let rows = bench.replay(&trace, 4, &["--unprepared"]);
    assert_eq!(outcomes(&rows), [CallOutcome::Failed, CallOutcome::Failed]);
    bench.output(&trace, 0, &["--fake-io"]);
}

#[test]
fn a_missing_root_or_trace_is_named_without_error_numbers() {
    let bench = Bench::new();
    fs::remove_dir(bench.root()).unwrap();
    let output = bench.output(&program(), 1, &[]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.ends_with("/root does not exist; `iosonar files prepare` creates it and its files\n"), "{message}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["files", "check", "/nonexistent.calls.parquet", "--root", "/tmp"]);
    let message = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert_eq!(message, "iosonar: /nonexistent.calls.parquet: No such file or directory\n");
}

#[test]
fn a_copy_goes_to_the_offset_that_the_call_states() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3).on(CallKind::Write, 3, Some(100), 100);
    trace.open("/b", libc::O_CREAT | libc::O_RDWR, 4);
    trace.call(CallKind::CopyFileRange, |call| {
        (call.fd, call.offset, call.fd2, call.offset2) = (Some(3), Some(40), Some(4), Some(5000));
        (call.length, call.result) = (Some(200), Some(60));
    });
    // The position of the output has not moved.
    trace.on(CallKind::Write, 4, Some(10), 10);
    let rows = bench.replay(&trace, 0, &[]);
    assert_eq!(rows[4].position, Some(0));
    assert_eq!(fs::metadata(bench.root().join("b")).unwrap().len(), 5060);
}

#[test]
fn new_files_have_the_permissions_of_the_recorded_umask() {
    for (umask, expected) in [(0o77, 0o600), (0, 0o644)] {
        let bench = Bench::new();
        let mut trace = Trace::new();
        let process = InitialProcess {
            process: 100,
            threads: vec![100],
            cwd: "/".into(),
            umask: Some(umask),
            ..Default::default()
        };
        trace.processes.push(process);
        trace.open("/a", libc::O_CREAT | libc::O_WRONLY, 3);
        bench.replay(&trace, 0, &[]);
        assert_eq!(fs::metadata(bench.root().join("a")).unwrap().mode() & 0o777, expected);
    }
}

#[test]
fn a_window_begins_with_the_files_open_then() {
    let bench = Bench::new();
    let data: Vec<u8> = (0..100).collect();
    fs::write(bench.root().join("a"), data).unwrap();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_RDONLY, 3).on(CallKind::Read, 3, Some(40), 40).on(CallKind::Read, 3, Some(100), 60);
    trace.on(CallKind::Close, 3, None, 0);
    let start = format!("{}ns", trace.calls[2].begin.0);
    let rows = bench.replay(&trace, 0, &["--start", &start]);
    // It reads what is left after the first forty bytes.
    assert_eq!(rows.iter().map(|row| (row.call, row.result)).collect::<Vec<_>>(), [(2, Some(60)), (3, Some(0))]);
    let end = format!("{}ns", trace.calls[1].begin.0 + 1);
    let rows = bench.replay(&trace, 0, &["--end", &end]);
    assert_eq!(rows.iter().map(|row| row.call).collect::<Vec<_>>(), [0, 1]);
    let output = bench.output(&trace, 1, &["--start", "1h"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no call of the trace begins in the window"));
}

#[test]
fn calls_without_times_to_keep_are_not_issued_with_fake_io() {
    let bench = Bench::new();
    let rows = bench.replay(&program(), 0, &["--fake-io", "--timing", "asap"]);
    assert_eq!(rows.len(), program().calls.len());
    assert!(!bench.root().join("d").exists());
    assert!(bench.statistics()["fake"].as_str().unwrap().starts_with("FAKE RESULT"));
}

#[test]
fn paths_are_mapped_and_ignored() {
    let bench = Bench::new();
    let (map, ignore) = (bench.0.path().join("map"), bench.0.path().join("ignore"));
    fs::write(&map, "/home/u /moved/{instance}\n").unwrap();
    fs::write(&ignore, "# a comment\n*.log\n").unwrap();
    let mut trace = Trace::new();
    trace.path(CallKind::Mkdir, "/home/u/d", 0).open("/home/u/x.log", libc::O_CREAT | libc::O_WRONLY, 3);
    trace.on(CallKind::Write, 3, Some(10), 10).on(CallKind::Close, 3, None, 0);
    (0..2).for_each(|number| fs::create_dir_all(bench.root().join(format!("moved/{number}"))).unwrap());
    let more = ["--map", map.to_str().unwrap(), "--ignore", ignore.to_str().unwrap(), "--instances", "2"];
    fs::create_dir(bench.root().join("home")).unwrap();
    let rows = bench.replay(&trace, 0, &more);
    for number in 0..2 {
        let directory = bench.root().join(format!("moved/{number}"));
        assert!(directory.join("d").is_dir() && !directory.join("x.log").exists());
    }
    assert_eq!(rows.iter().filter(|row| row.outcome == CallOutcome::Ignored).count(), 6, "{:?}", outcomes(&rows));
}

#[test]
fn instances_have_directories_of_their_own() {
    let bench = Bench::new();
    let output = bench.output(&program(), 1, &["--instances", "2"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("instance-0"));
    (0..3).for_each(|number| fs::create_dir(bench.root().join(format!("instance-{number}"))).unwrap());
    let rows = bench.replay(&program(), 0, &["--instances", "3", "--timing", "asap"]);
    assert_eq!(rows.len(), 3 * program().calls.len());
    for number in 0..3 {
        assert!(bench.root().join(format!("instance-{number}/d/b")).exists());
    }
    assert_eq!(bench.statistics()["instances"].as_array().unwrap().len(), 3);
}

#[test]
fn an_experiment_with_several_instances_repeats_no_warning() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3).on(CallKind::Mmap, 3, Some(4096), 0x7000_0000);
    let path = bench.0.path().join("t.calls.parquet");
    trace.write(&path);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["files", "scale"]).arg(&path).arg("--root").arg(bench.root()).args(["--instances", "1,2,3"]);
    let output = command.arg("--output").arg(bench.0.path().join("t.scale.parquet")).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), message.matches("maps files into memory").count()), (Some(0), 1), "{message}");
}

#[test]
fn flags_that_change_later_hold_for_the_writes_after_them() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/f", libc::O_CREAT | libc::O_RDWR, 3).on(CallKind::Write, 3, Some(10), 10);
    trace.call(CallKind::Lseek, |call| (call.fd, call.offset) = (Some(3), Some(0)));
    trace.call(CallKind::Fcntl, |call| {
        (call.fd, call.flags, call.fd2) = (Some(3), libc::F_SETFL as u64, Some(libc::O_RDWR | libc::O_APPEND));
    });
    trace.on(CallKind::Write, 3, Some(5), 5);
    for order in ["conservative", "fs", "resource", "thread"] {
        let _ = fs::remove_file(bench.root().join("f"));
        let rows = bench.replay(&trace, 0, &["--order", order]);
        assert_eq!(outcomes(&rows), [CallOutcome::Same; 5], "{order}");
        assert_eq!(fs::metadata(bench.root().join("f")).unwrap().len(), 15, "{order}");
    }
}

#[test]
fn vectors_of_unknown_length_move_what_they_moved() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/f", libc::O_CREAT | libc::O_RDWR, 3).on(CallKind::Writev, 3, None, 5000);
    trace.on(CallKind::Pwritev, 3, None, 100).on(CallKind::Preadv, 3, None, 70);
    trace.calls[2].offset = Some(8000);
    trace.calls[3].offset = Some(8000);
    let rows = bench.replay(&trace, 0, &[]);
    assert_eq!(outcomes(&rows), [CallOutcome::Same; 4]);
    let lengths: Vec<_> = rows.iter().map(|row| row.length).collect();
    assert_eq!(lengths, [None, Some(5000), Some(100), Some(70)]);
    assert_eq!(fs::metadata(bench.root().join("f")).unwrap().len(), 8100);
}

#[test]
fn changes_of_files_that_are_not_replayed_are_counted() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/f", libc::O_CREAT | libc::O_RDWR, 3);
    trace.call(CallKind::Ioctl, |call| (call.fd, call.flags) = (Some(3), 0x4008_6602));
    trace.two(CallKind::Mount, "/dev/sdb", "/mnt", 0);
    let output = bench.output(&trace, 0, &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    for line in [
        "not replayed     2, which change files: ioctl FS_IOC_SETFLAGS 1, mount 1\n",
        "mismatches       none of the calls that were issued\n",
        " But 2 calls change files, and are not replayed: ioctl FS_IOC_SETFLAGS 1, mount 1.\n",
    ] {
        assert!(printed.contains(line), "no {line:?} in {printed}");
    }
    let warning = "warning: 2 calls change files, and are not replayed: ioctl FS_IOC_SETFLAGS 1, mount 1\n";
    assert!(String::from_utf8_lossy(&output.stderr).contains(warning));
    let lost = serde_json::json!({"ioctl FS_IOC_SETFLAGS": 1, "mount": 1});
    assert_eq!(bench.statistics()["changes_not_replayed"], lost);
    assert_eq!(outcomes(&bench.rows())[1..], [CallOutcome::ChangesFiles; 2]);
    let trace = bench.0.path().join("t.calls.parquet");
    for (file, line) in [
        (trace, "not replayed 2, which change files: ioctl FS_IOC_SETFLAGS 1, mount 1\n"),
        (bench.result(), "mismatches  0; 2 calls that change files were not replayed\n"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("info").arg(file).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(line), "no {line:?} in {printed}");
    }
}
