//! Orders to end: what is ignored from the start stays ignored in every command, and a second Ctrl-C ends a replay even where
//! the kernel does not let go of it.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod replaying;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

use replaying::{Bench, MIB, Ran, Row, family, run, side_by_side, wait_until};

fn send(signal: &str, process: u32) {
    run("kill", &[format!("-{signal}").as_ref(), process.to_string().as_ref()]);
}

/// A command that was started with these signals ignored, as by `nohup`.
fn ignoring(signals: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' {signals}; exec \"$@\""), "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[test]
fn a_replay_goes_on_after_signals_that_are_ignored_from_the_start() {
    for signals in ["HUP", "INT", "TERM", "HUP INT TERM"] {
        let bench = Bench::new();
        let load = bench.load(&side_by_side(1500, 8));
        let command = bench.command(&load, &bench.target(16 * MIB), &[]);
        let child = ignoring(signals, &command).spawn().unwrap();
        wait_until("the journal is there", || bench.path("r.replay.parquet.journal").exists());
        for signal in signals.split(' ') {
            family(child.id()).into_iter().for_each(|process| send(signal, process));
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{signals}: {said}");
        assert!(!said.contains("stopping"), "{signals}: {said}");
    }
}

#[test]
fn a_pass_over_a_file_goes_on_after_signals_that_are_ignored_from_the_start() {
    for (pass, bytes) in [("wipe", 256 * MIB), ("slurp", 1024 * MIB)] {
        let bench = Bench::new();
        let target = bench.target(bytes);
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["device", pass]).arg(&target);
        let child = ignoring("HUP INT", &command).spawn().unwrap();
        // When it reads or writes the file it would have begun to listen to signals.
        let is_open = || family(child.id()).into_iter().any(|process| has_open(process, &target));
        wait_until("it has the file open", || is_open() || has_ended(child.id()));
        thread::sleep(Duration::from_millis(10));
        for signal in ["HUP", "INT"] {
            // The supervisor is there until it is waited for; the others may have ended.
            family(child.id()).into_iter().skip(1).filter(|&id| !has_ended(id)).for_each(|id| {
                Command::new("kill").arg(format!("-{signal}")).arg(id.to_string()).output().unwrap();
            });
            send(signal, child.id());
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{pass}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// What has no end of its own for signals ends at once, under its supervisor as well.
#[test]
fn a_look_at_a_device_ends_at_the_first_signal() {
    let bench = Bench::new();
    let target = bench.target(1024 * MIB);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["device", "inspect", "--samples", "10000000", "--time", "10m"]).arg(&target);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_open = || family(child.id()).into_iter().any(|process| has_open(process, &target));
    wait_until("it has the file open", is_open);
    send("INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
}

fn has_open(process: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == file))
}

fn state(process: u32, thread: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

fn has_ended(process: u32) -> bool {
    matches!(state(process, &process.to_string()), None | Some('Z'))
}

/// Whether one of its threads waits in the kernel without being interruptible.
fn hangs(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| state(process, &thread.file_name().to_string_lossy()) == Some('D'))
}

/// A file system that takes no writes, until it is dropped.
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

/// An ext4 of its own, with a file of 8 MiB.
struct Place {
    target: PathBuf,
    mount: PathBuf,
    _mounted: Mount,
    _folder: tempfile::TempDir,
    _device: LoopDevice,
}

impl Place {
    fn new() -> Self {
        let device = LoopDevice::new(64 * MIB);
        run("mkfs.ext4", &["-q".as_ref(), device.path().as_ref()]);
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let mounted = Mount::new(folder.path(), [device.path().to_str().unwrap()]);
        let target = folder.path().join("target");
        fs::write(&target, vec![7; 8 << 20]).unwrap();
        run("sync", &[]);
        Self { target, mount: folder.path().to_owned(), _mounted: mounted, _folder: folder, _device: device }
    }
}

/// Writes for some seconds, and to a file, as a pipe would be held open by what hangs.
fn begin(bench: &Bench, place: &Place, more: &[&str]) -> (Child, PathBuf) {
    let load: Vec<Row> = (0..20_000).map(|i| (i as f64 / 1e3, i % 1000 * 16, 8, 'W')).collect();
    let said = bench.path("said");
    let mut command = bench.command(&bench.load(&load), &place.target, &[more, &["--force"]].concat());
    let output = File::create(&said).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output);
    (command.spawn().unwrap(), said)
}

#[test]
fn a_second_signal_ends_a_replay_on_a_file_system_that_is_frozen() {
    if left_out(Need::Loop) {
        return;
    }
    for more in [&["--engine", "io_uring"][..], &["--engine", "threads"], &["--sqpoll"]] {
        let (bench, place) = (Bench::new(), Place::new());
        let (mut child, said) = begin(&bench, &place, more);
        wait_until("it has begun", || {
            fs::metadata(bench.path("r.replay.parquet.journal")).is_ok_and(|m| m.len() > 40_000)
        });
        let worker = *family(child.id()).last().unwrap();
        let frozen = Frozen::new(&place.mount);
        wait_until("it hangs", || hangs(worker));
        send("INT", child.id());
        wait_until("it has heard that", || fs::read_to_string(&said).unwrap().contains("Ctrl-C again to stop at once"));
        assert!(child.try_wait().unwrap().is_none(), "{more:?}: it waits for what is in flight");
        send("INT", child.id());
        wait_until("the second signal ends it", || has_ended(child.id()));
        let said = fs::read_to_string(&said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(5), "{more:?}: {said}");
        assert!(
            said.contains("hangs in the kernel") && said.contains(&format!("process {worker}")),
            "{more:?}: {said}"
        );
        drop(frozen);
        wait_until("what hung has gone", || !Path::new(&format!("/proc/{worker}")).exists());
    }
}

/// What the terminal sends comes to both processes of a replay, and counts once.
#[test]
fn a_signal_of_the_terminal_counts_once() {
    let bench = Bench::new();
    let load: Vec<Row> = (0..20_000).map(|i| (i as f64 / 1e3, i % 1000 * 16, 8, 'W')).collect();
    let running = bench.begin(&bench.load(&load), &bench.target(16 * MIB), &["--simulate", "constant=400ms"]);
    let process = running.id();
    family(process).into_iter().for_each(|one| send("INT", one));
    let ran = running.end().with_code(5);
    assert_eq!(ran.stderr.matches("stopping").count(), 1, "{}", ran.stderr);
    // Were it two, nothing in flight would have been waited for.
    assert_eq!(ran.statistics()["unfinished"], 0, "{}", ran.stdout);
}

#[test]
fn a_signal_ends_a_replay_that_waits_for_the_first_data_of_a_pipe() {
    for has_writer in [false, true] {
        let bench = Bench::new();
        let pipe = bench.path("pipe");
        run("mkfifo", &[pipe.as_ref()]);
        let child = bench.command(&pipe, &bench.target(16 * MIB), &[]).spawn().unwrap();
        wait_until("the replay has opened the pipe", || family(child.id()).into_iter().any(|one| has_open(one, &pipe)));
        let writer = has_writer.then(|| File::options().write(true).open(&pipe).unwrap());
        family(child.id()).into_iter().for_each(|process| send("INT", process));
        let ran = Ran::of(child.wait_with_output().unwrap(), bench.path("r.replay.parquet")).with_code(1);
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
    writer.write_all(&fs::read(bench.load(&side_by_side(20_000, 8))).unwrap()).unwrap();
    wait_until("the replay has started", || bench.path("r.replay.parquet.journal").exists());
    family(child.id()).into_iter().for_each(|process| send("INT", process));
    let ran = Ran::of(child.wait_with_output().unwrap(), bench.path("r.replay.parquet")).with_code(5);
    assert!(ran.result.exists(), "{}", ran.stderr);
}

#[test]
fn a_signal_ends_a_replay_whose_command_does_not_end() {
    let bench = Bench::new();
    let started = bench.path("started");
    let edit = format!("cmd command=\"cat; touch {}; exec sleep 1000\"", started.display());
    let load = bench.load(&side_by_side(20_000, 8));
    let child = bench.command(&load, &bench.target(16 * MIB), &["--edit", &edit]).spawn().unwrap();
    wait_until("the command waits", || started.exists());
    family(child.id()).into_iter().take(2).for_each(|process| send("INT", process));
    let ran = Ran::of(child.wait_with_output().unwrap(), bench.path("r.replay.parquet")).with_code(1);
    assert!(ran.stderr.contains("stopped before the replay began"), "{}", ran.stderr);
}
