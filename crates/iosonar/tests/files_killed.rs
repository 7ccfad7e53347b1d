//! Recordings and replays of calls that are killed, or whose disk is full: what they had is kept.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use iosonar_files::{Call, CallKind, Metadata, Name, table};
use iosonar_testing::{Mount, Need, left_out};
use iosonar_trace::input::Input;
use iosonar_trace::{Nanos, Writer as _};
use tempfile::TempDir;

const IOSONAR: &str = env!("CARGO_BIN_EXE_iosonar");

/// Opens of `/etc/hostname` before the command waits for a line.
const FEW: usize = 400;

/// Tests each method of recording, both at the same time: most of it is waiting.
fn with_each_method(test: impl Fn(&str) + Sync) {
    let has_strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    let has = [("ebpf", !left_out(Need::Bpf)), ("strace", has_strace)];
    let test = &test;
    thread::scope(|scope| {
        for (method, _) in has.into_iter().filter(|(_, is_possible)| *is_possible) {
            scope.spawn(move || test(method));
        }
    });
}

fn directory() -> TempDir {
    iosonar_testing::default_signals();
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Records a shell that opens files, waits for a line, and opens more. A call of another process is in progress all the time,
/// and holds back those after it.
fn record(method: &str, fifo: &Path, output: &Path, more: usize) -> Child {
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let fifo = fifo.display();
    // A checkpoint of the later calls comes before the held ones are written.
    let pause = if more > 0 { 1.2 } else { 0.0 };
    let opens = |count: usize| format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); : < /etc/hostname; done");
    let script = format!(
        "timeout 60 sh -c ': < {fifo}' & sleep 0.2; {}; read line; {}; sleep {pause}; : > {fifo}; wait",
        opens(FEW),
        opens(more)
    );
    Command::new(IOSONAR)
        .args(["files", "record", "--with", method, "--output"])
        .arg(output)
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn calls_in(trace: &Path) -> (Vec<Call>, Metadata) {
    let mut reader = table::open(Input::open(trace).unwrap()).unwrap();
    let calls = std::iter::from_fn(|| reader.next().unwrap()).collect();
    (calls, reader.metadata().clone())
}

fn opens(calls: &[Call]) -> usize {
    let is_open = |call: &&Call| call.path.as_ref().is_some_and(|path| path.as_bytes() == b"/etc/hostname");
    calls.iter().filter(is_open).count()
}

fn recover(hidden: &Path, output: &Path) -> Output {
    Command::new(IOSONAR).arg("recover").arg(hidden).arg("--output").arg(output).output().unwrap()
}

/// The hidden file of a recording, or the journal of a replay.
fn hidden_in(directory: &Path) -> Option<PathBuf> {
    let mut names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.extension().is_some_and(|ending| ending == "partial" || ending == "journal"))
}

/// Waits until copies of the files of a recording or replay can be recovered, and have what is expected.
fn wait_until_kept(directory: &Path, child: &mut Child, output: &str, has_all: impl Fn(&Path) -> bool) {
    let started = Instant::now();
    loop {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        assert!(started.elapsed() < Duration::from_secs(60), "timed out waiting until all is kept");
        let copies = tempfile::tempdir_in("/dev/shm").unwrap();
        if let Some(hidden) = hidden_in(directory) {
            for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
                // A file may be gone meanwhile.
                let _ = fs::copy(&entry, copies.path().join(entry.file_name().unwrap()));
            }
            let output = copies.path().join(output);
            let recovered = recover(&copies.path().join(hidden.file_name().unwrap()), &output);
            if recovered.status.success() && has_all(&output) {
                return;
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_killed_recording_is_recovered_with_the_calls_that_waited() {
    with_each_method(|method| {
        let (directory, work) = (directory(), directory());
        let trace = directory.path().join("t.calls.parquet");
        let mut child = record(method, &work.path().join("fifo"), &trace, 0);
        wait_until_kept(directory.path(), &mut child, "t.calls.parquet", |copy| opens(&calls_in(copy).0) == FEW);
        let hidden = hidden_in(directory.path()).unwrap();
        let refused = recover(&hidden, &trace);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("still being written"), "{refused:?}");
        child.kill().unwrap();
        iosonar_testing::ended(&mut child);
        let recovered = recover(&hidden, &trace);
        assert!(recovered.status.success(), "{method}: {recovered:?}");
        assert_eq!(names(directory.path()), ["t.calls.parquet"], "{method}");
        let (calls, metadata) = calls_in(&trace);
        assert_eq!(opens(&calls), FEW, "{method}");
        assert!(calls.iter().all(|call| call.process != 0), "{method}");
        assert!(calls.is_sorted_by_key(|call| call.begin), "{method}");
        assert!(!metadata.complete && metadata.warnings.iter().any(|warning| warning.contains("killed")));
    });
}

/// A small tmpfs; unmounted when dropped.
struct Small(Mount, #[allow(dead_code, reason = "removed after it was unmounted")] TempDir);

impl Small {
    fn new(size: &str) -> Self {
        let directory = directory();
        Self(Mount::new(directory.path(), ["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]), directory)
    }
}

#[test]
fn a_recording_on_a_full_disk_keeps_its_calls() {
    if left_out(Need::Root) {
        return;
    }
    with_each_method(|method| {
        let (small, directory) = (Small::new("800k"), directory());
        let fifo = directory.path().join("fifo");
        let mut child = record(method, &fifo, &small.0.path().join("t.calls.parquet"), 8000);
        wait_until_kept(small.0.path(), &mut child, "t.calls.parquet", |copy| opens(&calls_in(copy).0) == FEW);
        child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let output = iosonar_testing::output_of(child);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{method}: {message}");
        assert!(message.contains("No space left") && message.contains("iosonar recover"), "{method}: {message}");
        let trace = directory.path().join("t.calls.parquet");
        let recovered = recover(&hidden_in(small.0.path()).unwrap(), &trace);
        assert!(recovered.status.success(), "{method}: {recovered:?}");
        assert!(opens(&calls_in(&trace).0) >= FEW, "{method}");
    });
}

#[test]
fn a_recording_that_is_interrupted_twice_has_its_trace() {
    with_each_method(|method| {
        let (directory, work) = (directory(), directory());
        let trace = directory.path().join("t.calls.parquet");
        let mut child = record(method, &work.path().join("fifo"), &trace, 0);
        wait_until_kept(directory.path(), &mut child, "t.calls.parquet", |copy| opens(&calls_in(copy).0) == FEW);
        for _ in 0..2 {
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            thread::sleep(Duration::from_millis(200));
        }
        let output = iosonar_testing::output_of(child);
        assert_eq!(names(directory.path()), ["t.calls.parquet", "t.tree.parquet"], "{method}: {output:?}");
        assert_eq!(opens(&calls_in(&trace).0), FEW, "{method}");
    });
}

/// A trace of calls at once, and of more after a while.
fn write_trace(to: &Path, first: usize, wait: Nanos, more: usize) {
    let metadata = Metadata { complete: true, ..Metadata::default() };
    let mut writer = table::create(to, &metadata).unwrap();
    for number in 0..first + more {
        let wait = if number < first { 0 } else { wait.0 };
        let mut call = Call::new(Nanos(number as i64 * 1000 + wait), 100, CallKind::Stat);
        call.process = 100;
        call.duration = Some(Nanos(1000));
        call.path = Some(Name::from(format!("/{}", number * 7919 % 100_003).as_str()));
        (call.result, call.errno) = (Some(-1), libc::ENOENT);
        writer.write(&call).unwrap();
    }
    writer.finish(&metadata).unwrap();
}

fn replay(directory: &Path, output: &Path) -> Child {
    fs::create_dir(directory.join("root")).unwrap();
    Command::new(IOSONAR)
        .args(["files", "replay"])
        .arg(directory.join("t.calls.parquet"))
        .arg("--root")
        .arg(directory.join("root"))
        .arg("--output")
        .arg(output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The number of results, and the footer.
fn results_in(run: &Path) -> (u64, Metadata) {
    let mut reader = table::open_run(run).unwrap();
    let mut rows = 0;
    while reader.next().unwrap().is_some() {
        rows += 1;
    }
    (rows, reader.metadata().clone())
}

#[test]
fn the_result_of_a_killed_replay_is_recovered() {
    let (directory, results) = (directory(), directory());
    write_trace(&directory.path().join("t.calls.parquet"), 5000, Nanos(600_000_000_000), 1);
    let run = results.path().join("r.calls-run.parquet");
    let journal = results.path().join("r.calls-run.parquet.journal");
    let mut child = replay(directory.path(), &run);
    wait_until_kept(results.path(), &mut child, "r.calls-run.parquet", |copy| results_in(copy).0 == 5000);
    let refused = recover(&journal, &run);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("still writing this journal"), "{refused:?}");
    child.kill().unwrap();
    iosonar_testing::ended(&mut child);
    let info = Command::new(IOSONAR).arg("info").arg(&journal).output().unwrap();
    assert!(String::from_utf8_lossy(&info.stderr).contains("iosonar recover"), "{info:?}");
    // Another replay does not replace it.
    fs::remove_dir(directory.path().join("root")).unwrap();
    let again = replay(directory.path(), &run).wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("an earlier run that was killed"), "{again:?}");
    let recovered = Command::new(IOSONAR).arg("recover").arg(&journal).output().unwrap();
    assert!(recovered.status.success(), "{recovered:?}");
    let printed = String::from_utf8_lossy(&recovered.stdout);
    assert!(printed.contains("5,000 issued") && !printed.contains("in flight"), "{printed}");
    assert_eq!(names(results.path()), ["r.calls-run.parquet"]);
    let (rows, metadata) = results_in(&run);
    let about = serde_json::to_value(metadata.run.unwrap()).unwrap();
    assert_eq!((rows, &about["statistics"]["calls"], metadata.complete), (5000, &5000.into(), false));
    let statistics = &about["statistics"];
    assert!(statistics["original_s"].as_f64().unwrap() > 0.004, "{statistics}");
    assert!(statistics["latency_us"]["p50"].as_f64().is_some(), "{statistics}");
    assert!(about["warnings"].to_string().contains("killed"), "{about}");
    assert!(about["started_unix_ns"].as_i64().unwrap() > 0, "{about}");
    let info = Command::new(IOSONAR).arg("info").arg(&run).output().unwrap();
    assert!(info.status.success(), "{info:?}");
}

#[test]
fn a_damaged_journal_of_calls_yields_each_call_once() {
    let (directory, results) = (directory(), directory());
    write_trace(&directory.path().join("t.calls.parquet"), 5000, Nanos(600_000_000_000), 1);
    let run = results.path().join("r.calls-run.parquet");
    let journal = results.path().join("r.calls-run.parquet.journal");
    let mut child = replay(directory.path(), &run);
    wait_until_kept(results.path(), &mut child, "r.calls-run.parquet", |copy| results_in(copy).0 == 5000);
    child.kill().unwrap();
    child.wait().unwrap();
    // Its entries a second time, then the cut.
    let mut bytes = fs::read(&journal).unwrap();
    let header = 16 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    bytes.extend_from_within(header..);
    bytes.truncate(bytes.len() - 10);
    fs::write(&journal, bytes).unwrap();
    let recovered = recover(&journal, &run);
    let said = String::from_utf8_lossy(&recovered.stderr);
    assert!(said.contains("1 row is missing: the journal is damaged there"), "{said}");
    assert!(said.contains("4,999 rows are left out: the journal has them a second time"), "{said}");
    let (rows, metadata) = results_in(&run);
    assert_eq!((rows, metadata.counts.bad_lines), (5000, 5000));
}

/// Version 0.1 wrote results with checkpoints.
#[test]
fn a_hidden_result_of_version_0_1_is_recovered() {
    let directory = directory();
    let run = directory.path().join("r.calls-run.parquet");
    let mut writer = table::create_run(&run).unwrap();
    let metadata = Metadata { kind: "calls_run".into(), ..Metadata::default() };
    writer.checkpoint(&metadata).unwrap();
    drop(writer);
    let recovered = recover(&hidden_in(directory.path()).unwrap(), &run);
    assert!(recovered.status.success(), "{recovered:?}");
    assert_eq!((names(directory.path()), results_in(&run).0), (vec!["r.calls-run.parquet".to_owned()], 0));
}

#[test]
fn room_for_the_journal_of_calls_is_reserved_at_the_start() {
    if left_out(Need::Root) {
        return;
    }
    let (small, directory) = (Small::new("64k"), directory());
    write_trace(&directory.path().join("t.calls.parquet"), 2000, Nanos::ZERO, 16_000);
    let child = replay(directory.path(), &small.0.path().join("r.calls-run.parquet"));
    let output = iosonar_testing::output_of(child);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("the journal of 18,000 calls needs") && message.contains("make room"), "{message}");
    assert!(names(small.0.path()).is_empty(), "nothing is left behind");
}

/// The processes of a session that are stopped by a tracer, or by a signal.
fn stopped_in(session: u32) -> Vec<String> {
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| stat(entry.unwrap()));
    let is_stopped = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        matches!(fields[0], "t" | "T") && fields[3] == session.to_string()
    };
    stats.filter(is_stopped).collect()
}

#[test]
fn a_killed_recorder_leaves_no_process_stopped() {
    with_each_method(|method| {
        // Each time in the middle of other calls: of programs that start others, with vfork and with threads.
        for pause in [0, 7, 31, 50, 120] {
            let work = directory();
            let script = "import os, subprocess, threading
def work():
    for number in range(40):
        subprocess.run(['true'])
        os.stat('/etc/hostname')
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
open('ready', 'w').close()
[thread.join() for thread in threads]
open('done', 'w').close()";
            let mut recorder = Command::new("setsid")
                .arg(IOSONAR)
                .args(["files", "record", "--with", method, "--output", "t.calls.parquet", "--"])
                .args(["python3", "-c", script])
                .current_dir(work.path())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let session = recorder.id();
            wait_for("the program has begun", || work.path().join("ready").exists());
            thread::sleep(Duration::from_millis(pause));
            recorder.kill().unwrap();
            recorder.wait().unwrap();
            wait_for("the program ends", || work.path().join("done").exists());
            assert_eq!(stopped_in(session), [""; 0], "{method}, after {pause} ms");
        }
    });
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_recording_in_several_files_loses_no_part() {
    if left_out(Need::Bpf) {
        return;
    }
    let directory = directory();
    let mut recorder = Command::new(IOSONAR)
        .args(["files", "record", "--rotate", "1s", "--output", "t.calls.parquet", "--", "sh", "-c"])
        .arg("i=0; while :; do i=$((i+1)); : < /etc/hostname; : > $i; sleep 0.02; done")
        .current_dir(directory.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let parts = || -> Vec<PathBuf> {
        let mut parts: Vec<PathBuf> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".calls.parquet"))
            .collect();
        parts.sort();
        parts
    };
    wait_for("80 files were made", || directory.path().join("80").exists());
    // The first of the two may end before the last of these files was made.
    let most = parts().len() + 2;
    wait_for("two parts are complete", || parts().len() >= most);
    // The next one has a checkpoint each second.
    wait_for("the next part is kept", || {
        let hidden = hidden_in(directory.path());
        parts().len() > most || hidden.is_some_and(|hidden| fs::metadata(hidden).is_ok_and(|file| file.len() > 1000))
    });
    thread::sleep(Duration::from_millis(600));
    let command = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.id())).unwrap();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    Command::new("kill").args(command.split_whitespace()).status().unwrap();
    let complete = parts();
    let hidden = hidden_in(directory.path()).expect("the part that was being written");
    let last = directory.path().join("last.calls.parquet");
    // A part that has just begun has no rows to lose.
    let has_rows = fs::metadata(&hidden).unwrap().len() > 0;
    if has_rows {
        let recovered = recover(&hidden, &last);
        assert!(recovered.status.success(), "{recovered:?}");
    }
    // Every file that the command made before the last call that was kept has its call, once.
    let mut made = Vec::new();
    for part in complete.iter().chain(has_rows.then_some(&last)) {
        let (calls, metadata) = calls_in(part);
        assert_eq!(metadata.complete, part != &last, "{}", part.display());
        assert!(calls.is_sorted_by_key(|call| call.begin));
        let numbers = calls.iter().filter_map(|call| call.path.as_ref()?.to_string().parse::<u32>().ok());
        made.extend(numbers);
        assert!(metadata.part.is_some(), "{metadata:?}");
        // What the parts before left is known.
        assert!(!metadata.processes.is_empty());
    }
    assert_eq!(made, (1..=made.len() as u32).collect::<Vec<_>>());
    assert!(made.len() > 20, "{made:?}");
}
