//! What is left of a file that is being written when a signal comes, or when another one gets its name.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

const IOSONAR: &str = env!("CARGO_BIN_EXE_iosonar");

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Comes back when it has begun to write. For ever, if it never does: no test asserts times.
fn begun(folder: &Path) {
    while !names(folder).iter().any(|name| name.ends_with(".partial")) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Makes a load without end, as far as the test goes.
fn generate(program: &[&str], output: &Path, requests: &str) -> Child {
    iosonar_testing::default_signals();
    Command::new(program[0])
        .args(&program[1..])
        .args(["generate", "uniform"])
        .arg(output)
        .args(["--rate", "1M", "--duration", "7d", "--requests", requests])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_hidden_stays_behind_after_a_signal() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = generate(&[IOSONAR], &folder.path().join("a.load.gz"), "1G");
        begun(folder.path());
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
        assert_eq!(names(folder.path()), [""; 0], "after SIG{signal}");
    }
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let nohup = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", IOSONAR];
    let mut child = generate(&nohup, &folder.path().join("a.load.gz"), "1G");
    begun(folder.path());
    send("HUP", &child);
    send("TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("a.load");
    let child = generate(&[IOSONAR], &output, "10M");
    begun(folder.path());
    // It must not be done before the other file is there, however long this thread has to wait for a processor.
    send("STOP", &child);
    fs::write(&output, "somebody else's").unwrap();
    send("CONT", &child);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("appeared meanwhile") && said.contains("a-2.load"), "{said}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "somebody else's");
    assert_eq!(names(folder.path()), ["a-2.load", "a.load"]);
}

/// A file system in memory that is soon full; unmounted when dropped.
struct Small(Mount, #[allow(dead_code, reason = "removed after it was unmounted")] tempfile::TempDir);

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        Self(Mount::new(folder.path(), ["-t", "tmpfs", "-o", "size=64k", "tmpfs"]), folder)
    }
}

fn record(device: &LoopDevice, arguments: &[&str], output: &Path) -> Command {
    iosonar_testing::default_signals();
    let mut command = Command::new(IOSONAR);
    command.arg("record").arg("--device").arg(device.path()).arg("--output").arg(output).args(arguments);
    command.stderr(Stdio::piped());
    command
}

fn device() -> Option<LoopDevice> {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return None;
    }
    Some(LoopDevice::new(16 << 20))
}

#[test]
fn a_recording_that_is_ended_while_it_begins_leaves_nothing_hidden() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = record(&device, &["--", "true"], &folder.path().join("a.load")).spawn().unwrap();
    begun(folder.path());
    send("TERM", &child);
    // Where the command was quicker, the recording is there.
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 143)), "{code:?}");
    assert!(!names(folder.path()).iter().any(|name| name.ends_with(".partial")), "{:?}", names(folder.path()));
}

/// What the one hidden file in a folder holds by now.
struct Kept {
    name: String,
    rows: usize,
    complete: bool,
}

/// Nothing while it is being extended.
fn kept(folder: &Path) -> Option<Kept> {
    let [name] = names(folder).try_into().unwrap();
    assert!(name.ends_with(".partial"), "{name}");
    let (rows, complete) = rows_of(&folder.join(&name)).ok()?;
    Some(Kept { name, rows, complete })
}

/// How many there are, and whether that is all.
fn rows_of(load: &Path) -> iosonar_trace::Result<(usize, bool)> {
    let mut load = iosonar_trace::open_load(load)?;
    let mut rows = 0;
    while load.next()?.is_some() {
        rows += 1;
    }
    Ok((rows, load.metadata().complete))
}

/// Comes back when that many requests of a recording are kept.
fn are_kept(rows: usize, folder: &Path, child: &mut Child) {
    begun(folder);
    while kept(folder).is_none_or(|kept| kept.rows < rows) {
        assert!(child.try_wait().unwrap().is_none(), "the recording ended");
        thread::sleep(Duration::from_millis(20));
    }
}

fn recover(hidden: &Path) -> (Option<i32>, String) {
    let output = Command::new(IOSONAR).arg("recover").arg(hidden).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// A command that reads a few blocks, waits for a line on its standard input, and reads others.
fn reads(device: &LoopDevice, few: u32, others: u32) -> String {
    let read = format!("dd if={} of=/dev/null iflag=direct bs=512 2>&1 count", device.path().display());
    format!("{read}={few}; read line && {read}={others}")
}

#[test]
fn a_recording_whose_disk_is_full_says_so_and_keeps_what_it_has() {
    for name in ["a.load", "a.load.parquet"] {
        let Some(device) = device() else { return };
        let (small, folder) = (Small::new(), tempfile::tempdir().unwrap());
        let done: PathBuf = folder.path().join("done");
        let work = format!("{}; touch {}", reads(&device, 100, 30000), done.display());
        let mut command = record(&device, &["--", "sh", "-c", &work], &small.0.path().join(name));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        are_kept(100, small.0.path(), &mut child);
        child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("kept as") && said.contains("iosonar recover"), "{said}");
        assert!(done.exists(), "the command was waited for");
        let kept = kept(small.0.path()).expect("it can be read");
        assert!(kept.rows >= 100 && said.contains(&kept.name), "{} in {}: {said}", kept.rows, kept.name);
    }
}

#[test]
fn a_recording_that_is_killed_leaves_a_file_that_can_be_read() {
    for name in ["a.load.zst", "a.load.parquet"] {
        let Some(device) = device() else { return };
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let work = reads(&device, 100, 1);
        let mut command = record(&device, &["--", "sh", "-c", &work], &folder.path().join(name));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        are_kept(100, folder.path(), &mut child);
        let hidden = folder.path().join(&names(folder.path())[0]);
        let (code, said) = recover(&hidden);
        assert!(code == Some(1) && said.contains("still being written"), "{said}");
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = kept(folder.path()).expect("it can be read");
        assert_eq!((kept.rows, kept.complete), (100, false));
        let (code, said) = recover(&hidden);
        assert!(code == Some(0) && said.contains(": 100 requests"), "{said}");
        assert_eq!(names(folder.path()), [name]);
    }
}

#[test]
fn a_recording_that_the_system_lets_down_keeps_what_it_has() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = folder.path().join("a.load");
    let mut command = record(&device, &["--", "sh", "-c", &reads(&device, 100, 1)], &output);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    are_kept(100, folder.path(), &mut child);
    // poll(2) refuses to wait for more files than a process may open; here it waits for the ring.
    let allowed = Command::new("prlimit").args(["--nofile=0:0", "--pid", &child.id().to_string()]).status();
    assert!(allowed.unwrap().success());
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = said.find(|line| line.starts_with("iosonar: ")).expect("it is told of at once");
    assert!(first.contains("the command continues") && first.contains("wait for events"), "{first}");
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let rest: String = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("has everything until then"), "{rest}");
    assert_eq!(names(folder.path()), ["a.load"]);
    assert_eq!(rows_of(&output).unwrap().0, 100);
}

#[test]
fn what_can_be_recovered_is_told_to_whoever_names_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("a.load");
    fs::write(&other, "").unwrap();
    let (code, said) = recover(&other);
    assert!(code == Some(2) && said.contains("RESULT.journal") && said.contains(".partial"), "{said}");
}

/// Where a disk is full, one wants the name elsewhere; only a copy could be there.
#[test]
fn a_name_on_another_file_system_is_refused_with_what_to_do() {
    if left_out(Need::Root) {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let other = Mount::new(folder.path().join("other"), ["-t", "tmpfs", "tmpfs"]);
    let hidden = folder.path().join(".a.load.AbCdEf.partial");
    fs::write(&hidden, "0.000000000 ; 0 ; 8 ; R\n").unwrap();
    let output = other.path().join("a.load");
    let ran = Command::new(IOSONAR).arg("recover").arg(&hidden).arg("-o").arg(&output).output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && said.contains("different file systems"), "{said}");
    assert!(hidden.exists() && !output.exists());
}

#[test]
fn a_command_that_outlives_its_recording_is_told_of() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let arguments = ["--duration", "0.1", "--", "sh", "-c", "read -r end; exit 7"];
    let mut child = record(&device, &arguments, &folder.path().join("a.load")).stdin(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("recording ended after --duration")));
    assert!(said.any(|line| line.contains("a.load: ")), "the recording is told of before the command's end");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let text = fs::read_to_string(folder.path().join("a.load")).unwrap();
    assert!(text.starts_with("Recorded by iosonar: loop"), "{text}");
}

#[test]
fn a_device_whose_medium_goes_is_told_of() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, backing) = (device.path().display(), device.backing_file().display());
    let work = format!("truncate -s 0 {backing} && losetup --set-capacity {path}");
    for (name, when) in [("a.load", "any more when the recording ended"), ("b.load", "when the recording began")] {
        let output = record(&device, &["--", "sh", "-c", &work], &folder.path().join(name)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("had no medium") && said.contains(when), "{said}");
    }
}

#[test]
fn the_name_of_a_recording_tells_its_format() {
    let Some(device) = device() else { return };
    for name in ["-", "/dev/shm/a.recording"] {
        let output = record(&device, &["--duration", "1"], Path::new(name)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(".load.parquet") || said.contains(".parquet"), "{said}");
        assert!(!said.contains("--to"), "{said}");
    }
}
