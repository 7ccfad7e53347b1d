#![allow(dead_code, reason = "each test uses some of it")]
//! Traces with very many threads and descriptors, and very long names.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Memory of a command: far less than a trace of a million of anything would need without limits.
const MEMORY_BYTES: u64 = 6 << 30;
/// Processor time of a command in an unoptimised build. With a million descriptors, quadratic work takes hours.
const PROCESSOR_SECONDS: u32 = 300;

/// A directory in memory with a trace and a root.
pub struct Bench(TempDir);

impl Bench {
    pub fn new() -> Self {
        iosonar_testing::default_signals();
        let bench = Self(tempfile::tempdir_in("/dev/shm").expect("a directory in memory"));
        fs::create_dir(bench.path("root")).unwrap();
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes strace text with a call of thread 7 for each line, a microsecond apart.
    pub fn calls<'a>(&self, calls: impl IntoIterator<Item = &'a str>) {
        let mut text = String::new();
        for (at, call) in calls.into_iter().enumerate() {
            _ = writeln!(text, "7 1795464429.{at:09} {call}");
        }
        fs::write(self.path("t.strace"), text).unwrap();
    }

    /// Runs iosonar in the directory with limited memory and processor time.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(&[], env!("CARGO_BIN_EXE_iosonar").as_ref(), arguments)
    }

    pub fn run_with(&self, before: &[&str], program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={MEMORY_BYTES}")).arg(format!("--cpu={PROCESSOR_SECONDS}"));
        command.args(before).arg(program).args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.output().expect("it runs")
    }

    /// Runs iosonar, expects one of these exit codes, and returns what it printed.
    pub fn expect(&self, codes: &[i32], arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = text(&output);
        assert!(
            output.status.code().is_some_and(|code| codes.contains(&code)),
            "{arguments:?}: {}\n{text}",
            output.status
        );
        text
    }

    /// Every command that reads a trace ends in time. Returns what the replay printed.
    pub fn all_commands(&self, replay_codes: &[i32]) -> String {
        let trace = "t.calls.parquet";
        self.expect(&[0], &["convert", "t.strace", trace]);
        self.expect(&[0], &["info", trace]);
        for order in ["conservative", "fs", "thread", "resource"] {
            self.expect(&[0], &["files", "order", trace, "--order", order, "--dot", "/dev/null"]);
        }
        self.expect(&[0, 3], &["files", "check", trace, "--root", "root"]);
        self.expect(&[0], &["files", "prepare", trace, "--root", "root", "--sparse"]);
        let mut printed = String::new();
        for order in ["conservative", "resource"] {
            let replay = ["files", "replay", trace, "--root", "root", "--timing", "asap", "--order", order];
            let to = ["--output", "r.calls-run.parquet", "--overwrite", "--unprepared"];
            printed += &self.expect(replay_codes, &[&replay[..], &to].concat());
        }
        printed
    }
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The limit of open files that a command can get.
fn most_open_files() -> usize {
    let file = fs::read_to_string("/proc/sys/fs/nr_open").unwrap();
    let most: usize = file.trim().parse().unwrap();
    let allowed =
        Command::new("prlimit").arg(format!("--nofile={most}")).arg("true").output().unwrap().status.success();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if allowed { most } else { limit.maximum.map_or(most, |maximum| maximum as usize) }
}

/// Descriptors that end at once take no quadratic time. A replay opens as many files, or says that this is not allowed.
pub fn many_descriptors(many: usize) {
    let bench = Bench::new();
    // Beside standard input, output and error, the replay opens a few files for itself.
    let opens_all = many + 100 <= most_open_files();
    let mut calls: Vec<String> = (0..many)
        .map(|at| format!("openat(AT_FDCWD, \"/f{}\", O_RDONLY) = {} <0.000000500>", at % 10, at + 3))
        .collect();
    let expected = if opens_all { 0 } else { 1 };
    let says_why = |printed: &str| assert!(opens_all || printed.contains("ulimit -n"), "{printed}");
    calls.push("exit_group(0) = ?".into());
    bench.calls(calls.iter().map(String::as_str));
    says_why(&bench.all_commands(&[expected]));
    // Every command follows descriptors in the same way: the replay, into the root that is prepared now, shows that of this end.
    calls.pop();
    calls.push("close_range(3, 4294967295, 0) = 0 <0.000001>".into());
    bench.calls(calls.iter().map(String::as_str));
    let replay = ["files", "replay", "t.strace", "--root", "root", "--timing", "asap", "--order", "resource"];
    let to = ["--output", "r.calls-run.parquet", "--overwrite", "--unprepared"];
    says_why(&bench.expect(&[expected], &[&replay[..], &to].concat()));
}

/// Threads whose calls are all in flight take no quadratic time.
pub fn many_threads_in_flight(many: usize) {
    let bench = Bench::new();
    let mut text = String::from("7 1795464429.0 execve(\"/x\", [\"x\"], 0x7) = 0 <0.0000001>\n");
    let flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD";
    for at in 0..many {
        let (thread, begin) = (100 + at, 1000 + at);
        _ = writeln!(text, "7 1795464429.{begin:09} clone(flags={flags}) = {thread} <0.0000001>");
    }
    // Opens that take long, descriptors that nothing opened, and the ends of the threads.
    let calls = [
        ("openat(AT_FDCWD, \"/f\", O_RDONLY) = ", 3, " <9.0>"),
        ("close(", 5_000_000, ") = 0 <0.0000001>"),
        ("exit(0) = ?", 0, ""),
    ];
    for (step, (before, first, behind)) in calls.into_iter().enumerate() {
        for at in 0..many {
            let (thread, begin) = (100 + at, 100_000_000 * (step + 1) + at);
            let number = if first > 0 { (first + at).to_string() } else { String::new() };
            _ = writeln!(text, "{thread} 1795464429.{begin:09} {before}{number}{behind}");
        }
    }
    fs::write(bench.path("t.strace"), text).unwrap();
    bench.expect(&[0], &["convert", "t.strace", "t.calls.parquet"]);
    bench.expect(&[0, 3], &["files", "check", "t.calls.parquet", "--root", "root"]);
    bench.expect(&[0], &["files", "order", "t.calls.parquet", "--order", "resource", "--dot", "/dev/null"]);
}

/// Threads of unknown origin are searched for a limited time.
pub fn many_threads_of_unknown_origin(many: usize) {
    let bench = Bench::new();
    let lines = (0..many)
        .map(|at| format!("{} 1795464429.{at:09} pread64({}, \"\"..., 10, 0) = 10 <0.0000005>\n", 100 + at, 3 + at));
    fs::write(bench.path("t.strace"), lines.collect::<String>()).unwrap();
    let printed = bench.expect(&[0, 3], &["files", "check", "t.strace", "--root", "root", "--verbose"]);
    assert!(printed.contains("too many threads whose start it does not show"), "{printed}");
}

/// Threads that take over the number of others take no quadratic time.
pub fn threads_that_take_over_numbers(many: usize) {
    let bench = Bench::new();
    let mut text = String::new();
    for at in 0..many {
        _ = writeln!(text, "{} 1795464429.{at:09} pread64(3,  <unfinished ...>", 100 + at);
    }
    let (mut from, mut to) = (100, 1_000_000);
    for at in 0..many {
        _ = writeln!(text, "{to} 1795464430.{at:09} +++ superseded by execve in pid {from} +++");
        (from, to) = (to, from);
    }
    fs::write(bench.path("t.strace"), text).unwrap();
    bench.expect(&[0], &["info", "t.strace"]);
}

/// A file of so many MiB, whose compressed size is a few hundred kilobytes at most.
fn write_zstd(to: &Path, begin: &str, mebibytes: usize, end: &str) {
    let mut encoder = zstd::Encoder::new(fs::File::create(to).unwrap(), 1).unwrap();
    let block = vec![b'a'; 1 << 20];
    use std::io::Write;
    encoder.write_all(begin.as_bytes()).unwrap();
    for _ in 0..mebibytes {
        encoder.write_all(&block).unwrap();
    }
    encoder.write_all(end.as_bytes()).unwrap();
    encoder.finish().unwrap();
}

/// A name that does not end takes no memory.
pub fn endless_name(mebibytes: usize) {
    let bench = Bench::new();
    let good = "7 1795464429.0 close(3) = 0 <0.1>\n";
    for (begin, end, bad_lines) in [
        ("7 1795464429.1 openat(AT_FDCWD, \"/", "\", O_RDONLY) = 3 <0.1>\n", 1),
        ("7 1795464429.1 openat(AT_FDCWD, \"/", "", 0),
        ("7 1795464429.1 openat(AT_FDCWD</", ">, \"a\", O_RDONLY) = 3</b> <0.1>\n", 1),
        ("7 1795464429.1 open(\"/x\", strace: Process 8 attached\n", "\n", 1),
    ] {
        write_zstd(&bench.path("t.strace.zst"), &(good.to_owned() + begin), mebibytes, end);
        let info = ["--as=536870912"];
        let output = bench.run_with(
            &[],
            "prlimit".as_ref(),
            &[&info[..], &[env!("CARGO_BIN_EXE_iosonar"), "info", "t.strace.zst", "--json"]].concat(),
        );
        assert!(output.status.success(), "{begin}: {}", text(&output));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["counts"]["bad_lines"].as_u64(), Some(bad_lines), "{begin}");
        assert_eq!(json["counts"]["calls"].as_u64(), Some(1), "{begin}");
    }
}
