//! What tests of `iosonar files replay` need: small traces, a root in memory, the program, and its results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iosonar_files::{Call, CallKind, CallOutcome, CallResult, InitialProcess, Metadata, Name, table};
use iosonar_trace::{Nanos, Writer as _};
use tempfile::TempDir;

/// Calls of one thread, a microsecond after each other.
pub(crate) struct Trace {
    pub(crate) calls: Vec<Call>,
    pub(crate) processes: Vec<InitialProcess>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { calls: Vec::new(), processes: Vec::new() }
    }

    pub(crate) fn call(&mut self, kind: CallKind, change: impl FnOnce(&mut Call)) -> &mut Self {
        let at = self.calls.last().map_or(0, |last| last.end().unwrap().0 + 1000);
        let mut call = Call { process: 100, duration: Some(Nanos(1000)), ..Call::new(Nanos(at), 100, kind) };
        change(&mut call);
        self.calls.push(call);
        self
    }

    pub(crate) fn open(&mut self, path: &str, flags: i32, result: i64) -> &mut Self {
        self.call(CallKind::Openat, |call| {
            call.fd = Some(iosonar_files::AT_FDCWD);
            call.path = Some(Name::from(path));
            call.flags = flags as u64;
            call.mode = Some(0o644);
            (call.result, call.errno) = returned(result);
        })
    }

    pub(crate) fn on(&mut self, kind: CallKind, fd: i32, length: Option<u64>, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.fd = Some(fd);
            call.length = length;
            (call.result, call.errno) = returned(result);
        })
    }

    pub(crate) fn path(&mut self, kind: CallKind, path: &str, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.path = Some(Name::from(path));
            call.mode = Some(0o755);
            (call.result, call.errno) = returned(result);
        })
    }

    pub(crate) fn two(&mut self, kind: CallKind, path: &str, path2: &str, result: i64) -> &mut Self {
        self.call(kind, |call| {
            call.path = Some(Name::from(path));
            call.path2 = Some(Name::from(path2));
            (call.result, call.errno) = returned(result);
        })
    }

    pub(crate) fn write(&self, to: &Path) {
        let metadata = Metadata { complete: true, processes: self.processes.clone(), ..Metadata::default() };
        let mut writer = table::create(to, &metadata).expect("a table");
        for call in &self.calls {
            writer.write(call).expect("a row");
        }
        writer.finish(&metadata).expect("a footer");
    }
}

/// Result and errno of a result that is a negated errno if the call failed.
pub(crate) fn returned(result: i64) -> (Option<i64>, i32) {
    if result < 0 { (Some(-1), -result as i32) } else { (Some(result), 0) }
}

pub(crate) struct Bench(pub(crate) TempDir);

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

    pub(crate) fn rows(&self) -> Vec<CallResult> {
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

pub(crate) fn outcomes(rows: &[CallResult]) -> Vec<CallOutcome> {
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
