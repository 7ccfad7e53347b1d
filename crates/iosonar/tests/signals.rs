//! Signals: those ignored at the start stay ignored in every command, and a second Ctrl-C ends a replay even if the
//! kernel blocks its worker.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, process_tree, run, signal_tree, wait_until};

fn send(signal: &str, process: u32) {
    run("kill", &[format!("-{signal}").as_ref(), process.to_string().as_ref()]);
}

/// A command started with these signals ignored, as by `nohup`.
fn ignoring(signals: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' {signals}; exec \"$@\""), "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[test]
fn a_replay_continues_after_ignored_signals() {
    for signals in ["HUP", "INT", "TERM", "HUP INT TERM"] {
        let bench = Bench::new();
        let load = bench.load(&adjacent_requests(1500, 8));
        let command = bench.command(&load, &bench.target(16 * MIB), &[]);
        let child = ignoring(signals, &command).spawn().unwrap();
        let journal = bench.path("r.replay.parquet.journal");
        wait_until("the journal is there", || journal.exists() || has_ended(child.id()));
        for signal in signals.split(' ') {
            signal_tree(signal, child.id());
        }
        let output = iosonar_testing::output_of(child);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{signals}: {message}");
        assert!(!message.contains("stopping"), "{signals}: {message}");
    }
}

#[test]
fn wipe_and_slurp_continue_after_ignored_signals() {
    for (pass, bytes) in [("wipe", 256 * MIB), ("slurp", 1024 * MIB)] {
        let bench = Bench::new();
        let target = bench.target(bytes);
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["device", pass]).arg(&target);
        let child = ignoring("HUP INT", &command).spawn().unwrap();
        // Once it reads or writes the file, signal handlers would be in place.
        let is_open = || process_tree(child.id()).into_iter().any(|process| has_open(process, &target));
        wait_until("it has the file open", || is_open() || has_ended(child.id()));
        thread::sleep(Duration::from_millis(10));
        for signal in ["HUP", "INT"] {
            signal_tree(signal, child.id());
        }
        let output = iosonar_testing::output_of(child);
        assert_eq!(output.status.code(), Some(0), "{pass}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A command without an orderly stop ends at once, even with a supervisor.
#[test]
fn inspect_ends_at_the_first_signal() {
    let bench = Bench::new();
    let target = bench.target(1024 * MIB);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["device", "inspect", "--samples", "10000000", "--time", "10m"]).arg(&target);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_open = || process_tree(child.id()).into_iter().any(|process| has_open(process, &target));
    wait_until("it has the file open", is_open);
    send("INT", child.id());
    let output = iosonar_testing::output_of(child);
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
}

pub(crate) fn has_open(process: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == file))
}

fn state(process: u32, thread: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

pub(crate) fn has_ended(process: u32) -> bool {
    matches!(state(process, &process.to_string()), None | Some('Z'))
}

/// Whether a thread of the process is in uninterruptible sleep.
fn hangs(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| state(process, &thread.file_name().to_string_lossy()) == Some('D'))
}

/// A frozen file system, which accepts no writes; thawed when dropped.
struct Frozen(PathBuf);

impl Frozen {
    fn new(mounted: &Path) -> Self {
        run("fsfreeze", &["--freeze".as_ref(), mounted.as_ref()]);
        Self(mounted.to_owned())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        Command::new("fsfreeze").arg("--unfreeze").arg(&self.0).status().ok();
    }
}

/// An ext4 on its own device, with a file of 8 MiB.
struct MountedFile {
    target: PathBuf,
    mount: PathBuf,
    _mounted: Mount,
    _directory: tempfile::TempDir,
    _device: LoopDevice,
}

impl MountedFile {
    fn new() -> Self {
        let device = LoopDevice::new(64 * MIB);
        run("mkfs.ext4", &["-q".as_ref(), device.path().as_ref()]);
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let mounted = Mount::new(directory.path(), [device.path().to_str().unwrap()]);
        let target = directory.path().join("target");
        fs::write(&target, vec![7; 8 << 20]).unwrap();
        run("sync", &[]);
        Self { target, mount: directory.path().to_owned(), _mounted: mounted, _directory: directory, _device: device }
    }
}

/// Starts a replay of some seconds. Standard error goes to a file, as a hanging process would keep a pipe open.
fn start(bench: &Bench, mounted: &MountedFile, more: &[&str]) -> (Child, PathBuf) {
    let load: Vec<Row> = (0..20_000).map(|i| (i as f64 / 1e3, i % 1000 * 16, 8, 'W')).collect();
    let message = bench.path("message");
    let mut command = bench.command(&bench.load(&load), &mounted.target, &[more, &["--force"]].concat());
    let output = File::create(&message).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output);
    (command.spawn().unwrap(), message)
}

#[test]
fn a_second_signal_ends_a_replay_on_a_frozen_file_system() {
    if left_out(Need::Loop) {
        return;
    }
    for more in [&["--engine", "io_uring"][..], &["--engine", "threads"], &["--sqpoll"]] {
        let (bench, mounted) = (Bench::new(), MountedFile::new());
        let (mut child, stderr) = start(&bench, &mounted, more);
        wait_until("the replay has begun", || {
            fs::metadata(bench.path("r.replay.parquet.journal")).is_ok_and(|m| m.len() > 40_000)
        });
        let worker = *process_tree(child.id()).last().unwrap();
        let frozen = Frozen::new(&mounted.mount);
        wait_until("the worker hangs", || hangs(worker));
        send("INT", child.id());
        wait_until("the signal arrived", || {
            fs::read_to_string(&stderr).unwrap().contains("Ctrl-C again to stop at once")
        });
        assert!(child.try_wait().unwrap().is_none(), "{more:?}: the replay waits for requests in flight");
        send("INT", child.id());
        wait_until("the second signal ends the replay", || has_ended(child.id()));
        let message = fs::read_to_string(&stderr).unwrap();
        assert_eq!(iosonar_testing::ended(&mut child).code(), Some(5), "{more:?}: {message}");
        assert!(
            message.contains("hangs in the kernel") && message.contains(&format!("process {worker}")),
            "{more:?}: {message}"
        );
        drop(frozen);
        wait_until("the worker has ended", || !Path::new(&format!("/proc/{worker}")).exists());
    }
}

/// A signal of the terminal reaches both processes of a replay, and counts once.
#[test]
fn a_signal_of_the_terminal_counts_once() {
    let bench = Bench::new();
    let load: Vec<Row> = (0..20_000).map(|i| (i as f64 / 1e3, i % 1000 * 16, 8, 'W')).collect();
    let running = bench.start(&bench.load(&load), &bench.target(16 * MIB), &["--simulate", "constant=400ms"]);
    let process = running.id();
    signal_tree("INT", process);
    let ran = running.end().with_code(5);
    assert_eq!(ran.stderr.matches("stopping").count(), 1, "{}", ran.stderr);
    // If it counted twice, the replay would not have waited for requests in flight.
    assert_eq!(ran.statistics()["unfinished"], 0, "{}", ran.stdout);
}

#[test]
fn a_signal_ends_a_replay_that_waits_for_data_of_a_pipe() {
    for has_writer in [false, true] {
        let bench = Bench::new();
        let pipe = bench.path("pipe");
        run("mkfifo", &[pipe.as_ref()]);
        let child = bench.command(&pipe, &bench.target(16 * MIB), &[]).spawn().unwrap();
        wait_until("the replay has opened the pipe", || {
            process_tree(child.id()).into_iter().any(|one| has_open(one, &pipe))
        });
        let writer = has_writer.then(|| File::options().write(true).open(&pipe).unwrap());
        signal_tree("INT", child.id());
        let ran = Finished::of(iosonar_testing::output_of(child), bench.path("r.replay.parquet")).with_code(1);
        assert!(ran.stderr.contains("stopped before the replay began"), "{}", ran.stderr);
        assert_eq!(bench.names(), ["pipe", "target"]);
        drop(writer);
    }
}

#[test]
fn a_signal_ends_a_replay_whose_pipe_brings_nothing_more() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    run("mkfifo", &[pipe.as_ref()]);
    let child = bench.command(&pipe, &bench.target(16 * MIB), &[]).spawn().unwrap();
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    // More than is read before the first request goes out.
    writer.write_all(&fs::read(bench.load(&adjacent_requests(20_000, 8))).unwrap()).unwrap();
    wait_until("the replay has started", || bench.path("r.replay.parquet.journal").exists());
    signal_tree("INT", child.id());
    let ran = Finished::of(iosonar_testing::output_of(child), bench.path("r.replay.parquet")).with_code(5);
    assert!(ran.result.exists(), "{}", ran.stderr);
}

#[test]
fn a_signal_ends_a_replay_whose_command_does_not_end() {
    let bench = Bench::new();
    let started = bench.path("started");
    let edit = format!("cmd command=\"cat; touch {}; exec sleep 1000\"", started.display());
    let load = bench.load(&adjacent_requests(20_000, 8));
    let child = bench.command(&load, &bench.target(16 * MIB), &["--edit", &edit]).spawn().unwrap();
    wait_until("the command waits", || started.exists());
    // As Ctrl-C does, but not to the command. The second may have ended before its own signal arrives.
    let processes = process_tree(child.id()).into_iter().take(2).map(|process| process.to_string());
    Command::new("kill").arg("-INT").args(processes).stderr(Stdio::null()).status().unwrap();
    let ran = Finished::of(iosonar_testing::output_of(child), bench.path("r.replay.parquet")).with_code(1);
    assert!(ran.stderr.contains("stopped before the replay began"), "{}", ran.stderr);
}
