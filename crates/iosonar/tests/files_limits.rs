//! `iosonar files replay` at the limits: descriptors, memory, full file systems, signals.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use iosonar_files::{CallKind, CallOutcome, Name};
use iosonar_testing::{Need, left_out};
use iosonar_trace::Nanos;

use crate::files_replaying::{Bench, Trace, outcomes};

#[test]
fn a_replay_that_was_stopped_is_not_faithful() {
    // Each call waits for the one before it, so that only the first after the stop waits for nothing but the replayer.
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for _ in 0..8000 {
        trace.call(CallKind::Pwrite64, |call| {
            call.begin = call.begin + Nanos(1_000_000);
            (call.fd, call.offset, call.length, call.result) = (Some(3), Some(0), Some(100), Some(100));
        });
    }
    for timing in ["exact", "diff"] {
        let bench = Bench::new();
        let mut command = bench.command(&trace, &["--timing", timing]);
        let mut replay = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        // The process that issues the calls may be a child of it.
        let group = rustix::process::Pid::from_child(&replay);
        iosonar_testing::wait_until("the replay has begun", || {
            assert!(replay.try_wait().unwrap().is_none(), "it ended");
            bench.root().join("a").exists()
        });
        rustix::process::kill_process_group(group, rustix::process::Signal::STOP).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(600));
        rustix::process::kill_process_group(group, rustix::process::Signal::CONT).unwrap();
        assert!(iosonar_testing::ended(&mut replay).success());
        let statistics = bench.statistics();
        assert_eq!(statistics["verdict"]["faithful"], false, "{timing}: {statistics}");
        assert!(statistics["lost_s"].as_f64().unwrap() > 0.5, "{timing}: {statistics}");
        if timing == "exact" {
            assert!(statistics["delay_reasons"]["backlog"].as_u64().unwrap() > 500, "{statistics}");
        }
    }
}

#[test]
fn many_files_are_open_at_once() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let many = limit.maximum.unwrap_or(u64::MAX).min(5000) - 100;
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for fd in 4..many as i64 {
        trace.open("/a", libc::O_RDONLY, fd);
    }
    let rows = bench.replay(&trace, 0, &["--timing", "asap"]);
    assert_eq!(rows.len() as u64, many - 3);
}

#[test]
fn writes_of_more_data_than_is_built_ahead_begin_all_the_same() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for _ in 0..300 {
        trace.call(CallKind::Pwrite64, |call| {
            (call.fd, call.offset, call.length, call.result) = (Some(3), Some(0), Some(1 << 20), Some(1 << 20));
        });
    }
    let rows = bench.replay(&trace, 0, &["--timing", "asap", "--data", "zero"]);
    assert_eq!(rows.len(), 301);
}

#[test]
fn a_replay_without_descriptors_left_says_so() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for fd in 4..200 {
        trace.open("/a", libc::O_RDONLY, fd);
    }
    let limited = |more: &[&str]| {
        let replay = bench.command(&trace, more);
        let mut limited = Command::new("prlimit");
        limited.args(["--nofile=64:64", "setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]);
        limited.arg(replay.get_program()).args(replay.get_args()).stdin(Stdio::null());
        let output = limited.output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let message = limited(&["--timing", "asap"]);
    assert!(message.contains("ulimit -n"), "{message}");
    // Those that are open when the window begins. The program itself needs some more.
    fs::write(bench.root().join("a"), "").unwrap();
    let message = limited(&["--timing", "asap", "--start", &format!("{}ns", trace.calls[100].begin.0)]);
    assert!(message.contains("100 files were open when the window begins"), "{message}");
    assert!(message.contains("may have only 64 open") && message.contains("`ulimit -n 164`"), "{message}");
}

#[test]
fn a_full_file_system_is_a_result() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let root = bench.root();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&root).status().unwrap();
    assert!(mounted.success());
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for _ in 0..8 {
        trace.on(CallKind::Write, 3, Some(256 << 10), 256 << 10);
    }
    let output = bench.command(&trace, &["--timing", "asap"]).output();
    assert!(Command::new("umount").arg(&root).status().unwrap().success());
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(4));
    let rows = bench.rows();
    assert_eq!(rows.last().map(|row| (row.outcome, row.errno)), Some((CallOutcome::Failed, libc::ENOSPC)));
    assert!(String::from_utf8_lossy(&output.stderr).contains("was full"));
}

#[test]
fn a_result_on_a_full_disk_is_an_error() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let place = bench.0.path().join("full");
    fs::create_dir(&place).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32k", "tmpfs"]).arg(&place).status().unwrap();
    assert!(mounted.success());
    let mut trace = Trace::new();
    for number in 0..12_000 {
        trace.path(CallKind::Stat, &format!("/{}", number * 7919 % 12_000), -i64::from(libc::ENOENT));
    }
    let mut command = bench.command(&trace, &["--timing", "asap"]);
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let result = place.join("r.calls-run.parquet").into_os_string();
    command.args(words.into_iter().map(|word| if word == bench.result() { result.clone() } else { word }));
    let output = command.output();
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    let output = output.unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("No space left"), "{message}");
}

#[test]
fn an_interrupted_replay_keeps_what_was_measured() {
    let bench = Bench::new();
    let mut trace = Trace::new();
    trace.path(CallKind::Mkdir, "/d", 0);
    trace.call(CallKind::Rmdir, |call| {
        call.begin = Nanos(60_000_000_000);
        call.path = Some(Name::from("/d"));
    });
    let child = bench.command(&trace, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    iosonar_testing::wait_until("the first call is issued", || bench.root().join("d").exists());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = iosonar_testing::output_of(child);
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(outcomes(&bench.rows()), [CallOutcome::Same]);
    assert_eq!(bench.statistics()["complete"], false);
}
