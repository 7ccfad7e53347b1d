//! `iosonar files replay`: results, safety, windows, limits, exit codes. All calls go to directories in memory.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iosonar_files::{Call, CallKind, CallOutcome, CallResult, InitialProcess, Metadata, Name, table};
use iosonar_testing::{Need, left_out};
use iosonar_trace::{Nanos, Writer as _};
use tempfile::TempDir;

/// Calls of one thread, a microsecond after each other.
pub(crate) struct Trace {
    pub(crate) calls: Vec<Call>,
    processes: Vec<InitialProcess>,
}

impl Trace {
    fn new() -> Self {
        Self { calls: Vec::new(), processes: Vec::new() }
    }

    fn call(&mut self, kind: CallKind, change: impl FnOnce(&mut Call)) -> &mut Self {
        let at = self.calls.last().map_or(0, |last| last.end().unwrap().0 + 1000);
        let mut call = Call { process: 100, duration: Some(Nanos(1000)), ..Call::new(Nanos(at), 100, kind) };
        change(&mut call);
        self.calls.push(call);
        self
    }

    fn open(&mut self, path: &str, flags: i32, result: i64) -> &mut Self {
        self.call(CallKind::Openat, |call| {
            call.fd = Some(iosonar_files::AT_FDCWD);
            call.path = Some(Name::from(path));
            call.flags = flags as u64;
            call.mode = Some(0o644);
            (call.result, call.errno) = returned(result);
        })
    }

    fn on(&mut self, kind: CallKind, fd: i32, length: Option<u64>, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.fd = Some(fd);
            call.length = length;
            (call.result, call.errno) = returned(result);
        })
    }

    fn path(&mut self, kind: CallKind, path: &str, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.path = Some(Name::from(path));
            call.mode = Some(0o755);
            (call.result, call.errno) = returned(result);
        })
    }

    fn two(&mut self, kind: CallKind, path: &str, path2: &str, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.path = Some(Name::from(path));
            call.path2 = Some(Name::from(path2));
            (call.result, call.errno) = returned(result);
        })
    }

    fn write(&self, to: &Path) {
        let metadata = Metadata { complete: true, processes: self.processes.clone(), ..Metadata::default() };
        let mut writer = table::create(to, &metadata).expect("a table");
        for call in &self.calls {
            writer.write(call).expect("a row");
        }
        writer.finish(&metadata).expect("a footer");
    }
}

/// Result and errno of a result that is a negated errno if the call failed.
fn returned(result: i64) -> (Option<i64>, i32) {
    if result < 0 { (Some(-1), -result as i32) } else { (Some(result), 0) }
}

pub(crate) struct Bench(TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        iosonar_testing::default_signals();
        let bench = Self(tempfile::tempdir_in("/dev/shm").expect("a directory in memory"));
        fs::create_dir(bench.root()).unwrap();
        bench
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    pub(crate) fn result(&self) -> PathBuf {
        self.0.path().join("r.calls-run.parquet")
    }

    pub(crate) fn command(&self, trace: &Trace, more: &[&str]) -> Command {
        let path = self.0.path().join("t.calls.parquet");
        trace.write(&path);
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["files", "replay"]).arg(&path).arg("--root").arg(self.root()).arg("--output").arg(self.result());
        command.arg("--overwrite").args(more).stdin(Stdio::null());
        if !more.contains(&"--wait") {
            // The choice takes a tenth of a second.
            command.args(["--wait", "hybrid"]);
        }
        command
    }

    /// Replays, expects this exit code, and returns the rows in the order of the trace.
    pub(crate) fn replay(&self, trace: &Trace, code: i32, more: &[&str]) -> Vec<CallResult> {
        self.output(trace, code, more);
        self.rows()
    }

    pub(crate) fn output(&self, trace: &Trace, code: i32, more: &[&str]) -> Output {
        let output = self.command(trace, more).output().expect("it runs");
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(code), "{}\n{}", shown(&output.stdout), shown(&output.stderr));
        output
    }

    fn rows(&self) -> Vec<CallResult> {
        let mut reader = table::open_run(&self.result()).expect("a result");
        let mut rows: Vec<CallResult> = std::iter::from_fn(|| reader.next().expect("a row")).collect();
        rows.sort_by_key(|row| (row.instance, row.call));
        rows
    }

    pub(crate) fn statistics(&self) -> serde_json::Value {
        serde_json::to_value(table::open_run(&self.result()).unwrap().metadata().run.clone()).unwrap()["statistics"]
            .clone()
    }
}

fn outcomes(rows: &[CallResult]) -> Vec<CallOutcome> {
    rows.iter().map(|row| row.outcome).collect()
}

/// A program that makes, writes, reads, renames, links and removes files, as it ran in an empty tree.
pub(crate) fn program() -> Trace {
    use CallKind as K;
    let mut trace = Trace::new();
    trace.path(K::Mkdir, "/d", 0).open("/d/a", libc::O_CREAT | libc::O_RDWR, 3);
    trace.on(K::Write, 3, Some(5000), 5000).on(K::Fsync, 3, None, 0);
    trace.call(K::Lseek, |call| (call.fd, call.offset, call.result) = (Some(3), Some(1000), Some(1000)));
    trace.on(K::Read, 3, Some(8000), 4000).on(K::Read, 3, Some(8000), 0);
    trace.call(K::Pread64, |call| {
        (call.fd, call.offset, call.length, call.result) = (Some(3), Some(4000), Some(100), Some(100));
    });
    trace.call(K::Pwrite64, |call| {
        (call.fd, call.offset, call.length, call.result) = (Some(3), Some(10_000), Some(100), Some(100));
    });
    trace.on(K::Ftruncate, 3, Some(7000), 0).on(K::Fstat, 3, None, 0).on(K::Close, 3, None, 0);
    trace.two(K::Rename, "/d/a", "/d/b", 0).two(K::Link, "/d/b", "/d/c", 0).two(K::Symlink, "b", "/d/l", 0);
    trace.open("/d/a", libc::O_RDONLY, -i64::from(libc::ENOENT)).open("/d/l", libc::O_RDONLY, 3);
    trace.on(K::Read, 3, Some(100), 100).on(K::Close, 3, None, 0);
    trace.path(K::Stat, "/d/l", 0).path(K::Readlink, "/d/l", 1).path(K::Chmod, "/d/b", 0).path(K::Rmdir, "/d", -39);
    trace.open("/d", libc::O_RDONLY | libc::O_DIRECTORY, 4).on(K::Getdents64, 4, Some(32_768), 120);
    trace.on(K::Getdents64, 4, Some(32_768), 0).on(K::Close, 4, None, 0).path(K::Unlink, "/d/c", 0);
    trace.call(K::Dup, |call| (call.fd, call.result) = (Some(1), Some(9)));
    trace
}

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

/// A directory beside the root that must stay as it is.
fn with_outside(bench: &Bench) -> PathBuf {
    let outside = bench.0.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "untouched").unwrap();
    outside
}

#[test]
fn nothing_leads_out_of_the_root() {
    let bench = Bench::new();
    let outside = with_outside(&bench);
    let shown = outside.to_str().unwrap();
    symlink(&outside, bench.root().join("absolute")).unwrap();
    symlink("../outside", bench.root().join("relative")).unwrap();
    symlink(outside.join("secret"), bench.root().join("file")).unwrap();
    let mut trace = Trace::new();
    for (number, way) in ["/absolute", "/relative", "/../outside", "/x/../../outside", shown].into_iter().enumerate() {
        let fd = 10 + number as i64;
        trace.open(&format!("{way}/new"), libc::O_CREAT | libc::O_WRONLY, fd);
        trace.open(&format!("{way}/secret"), libc::O_TRUNC | libc::O_WRONLY, fd + 100);
        trace.path(CallKind::Unlink, &format!("{way}/secret"), 0).path(CallKind::Chmod, &format!("{way}/secret"), 0);
        trace.path(CallKind::Truncate, &format!("{way}/secret"), 0).path(CallKind::Mkdir, &format!("{way}/d"), 0);
        trace.two(CallKind::Rename, &format!("{way}/secret"), "/stolen", 0);
    }
    trace.path(CallKind::Truncate, "/file", 0).path(CallKind::Chmod, "/file", 0).two(
        CallKind::Symlink,
        shown,
        "/own",
        0,
    );
    trace.open("/own/secret", libc::O_RDWR | libc::O_TRUNC, 90);
    bench.replay(&trace, 4, &["--timing", "asap", "--unprepared"]);
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secret"]);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "untouched");
    assert!(!bench.root().join("stolen").exists());
}

#[test]
fn special_files_are_neither_made_nor_waited_for() {
    let bench = Bench::new();
    let fifo = std::ffi::CString::new(bench.root().join("planted").into_os_string().into_encoded_bytes()).unwrap();
    assert!(Command::new("mkfifo").arg(fifo.to_str().unwrap()).status().unwrap().success());
    let mut trace = Trace::new();
    trace.path(CallKind::Mknod, "/fifo", 0);
    trace.calls[0].mode = Some(libc::S_IFIFO | 0o644);
    trace.open("/planted", libc::O_RDONLY, 3);
    let rows = bench.replay(&trace, 4, &[]);
    assert_eq!(outcomes(&rows), [CallOutcome::SpecialFile, CallOutcome::Failed]);
    assert!(!bench.root().join("fifo").exists());
    bench.output(&trace, 0, &["--special-files"]);
    assert!(fs::metadata(bench.root().join("fifo")).unwrap().file_type().is_fifo());
}

#[test]
fn names_of_unix_sockets_are_made_if_asked_for() {
    use CallKind as K;
    let mut trace = Trace::new();
    for errno in [0, libc::EADDRINUSE] {
        trace.path(K::Bind, "/s", -i64::from(errno));
        trace.calls.last_mut().unwrap().fd = Some(3);
    }
    trace.path(K::Chmod, "/s", 0).two(K::Rename, "/s", "/t", 0);
    let bench = Bench::new();
    assert_eq!(outcomes(&bench.replay(&trace, 0, &[])), [CallOutcome::SpecialFile; 4]);
    assert_eq!(outcomes(&bench.replay(&trace, 0, &["--special-files"])), [CallOutcome::Same; 4]);
    assert!(fs::metadata(bench.root().join("t")).unwrap().file_type().is_socket());
}

#[test]
fn links_with_absolute_targets_lead_to_where_the_map_puts_them() {
    use CallKind as K;
    let bench = Bench::new();
    let map = bench.0.path().join("map");
    fs::write(&map, "/home/u /moved\n").unwrap();
    for name in ["home", "moved"] {
        fs::create_dir(bench.root().join(name)).unwrap();
    }
    let mut trace = Trace::new();
    trace.path(K::Mkdir, "/home/u/d", 0).two(K::Symlink, "/home/u/d", "/home/u/l", 0).path(K::Mkdir, "/home/u/l/x", 0);
    bench.replay(&trace, 0, &["--map", map.to_str().unwrap()]);
    assert_eq!(fs::read_link(bench.root().join("moved/l")).unwrap(), Path::new("/moved/d"));
    assert!(bench.root().join("moved/d/x").is_dir());
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
fn a_replay_that_was_stopped_is_not_faithful() {
    // Each call waits for the one before it, so that only the first after the stop waits for nothing but the replayer.
    let mut trace = Trace::new();
    trace.open("/a", libc::O_CREAT | libc::O_RDWR, 3);
    for _ in 0..1500 {
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
fn wrong_options_are_refused_before_anything_is_touched() {
    let bench = Bench::new();
    for (more, words) in [
        (&["--factor", "0"][..], "above zero"),
        (&["--start", "2s", "--end", "1s"], "--start 5m --end 10m"),
        (&["--order", "fs", "--threads", "trace"], "omit --threads trace"),
        (&["--order", "fs-dispatched", "--threads", "trace"], "--order fs-dispatched does not keep"),
        (&["--pool", "0"], "64"),
        (&["--instances", "0"], "a whole number from 1 to"),
        (&["--order", "nonsense"], "conservative"),
        (&["--output", "b.parquet"], "cannot be used multiple times"),
    ] {
        let output = bench.output(&program(), 2, more);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(words), "{more:?}: {message}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["files", "replay", "--root", "/", "--output"]).arg(bench.result());
    let output = command.arg(bench.0.path().join("t.calls.parquet")).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("is the root directory of this system"), "{message}");
    assert!(!bench.result().exists());
    bench.replay(&program(), 0, &[]);
    let again = bench.command(&program(), &[]);
    let mut kept = Command::new(again.get_program());
    let output = kept.args(again.get_args().filter(|word| *word != "--overwrite")).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && message.contains("exists; choose another --output"), "{message}");
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
