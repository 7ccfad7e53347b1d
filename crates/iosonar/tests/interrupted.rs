//! Output files when a signal arrives during writing, or another file gets the name.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use iosonar_testing::{LoopDevice, Mount, Need, left_out, wait_until};

const IOSONAR: &str = env!("CARGO_BIN_EXE_iosonar");

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Waits until a hidden file exists.
fn wait_for_output(directory: &Path) {
    wait_until("there is a hidden file", || names(directory).iter().any(|name| name.ends_with(".partial")));
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts to generate a load that is longer than the test.
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
fn a_signal_leaves_no_hidden_file() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = generate(&[IOSONAR], &directory.path().join("a.load.gz"), "1G");
        wait_for_output(directory.path());
        send(signal, &child);
        assert_eq!(iosonar_testing::ended(&mut child).code(), Some(128 + number));
        assert_eq!(names(directory.path()), [""; 0], "after SIG{signal}");
    }
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let nohup = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", IOSONAR];
    let mut child = generate(&nohup, &directory.path().join("a.load.gz"), "1G");
    wait_for_output(directory.path());
    send("HUP", &child);
    send("TERM", &child);
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(128 + 15));
}

#[test]
fn a_file_that_appears_during_writing_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("a.load");
    let child = generate(&[IOSONAR], &output, "10M");
    wait_for_output(directory.path());
    // The output must not be complete before the other file exists, however slow this thread is.
    send("STOP", &child);
    fs::write(&output, "another file").unwrap();
    send("CONT", &child);
    let ended = iosonar_testing::output_of(child);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{message}");
    assert!(message.contains("appeared meanwhile") && message.contains("a-2.load"), "{message}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "another file");
    assert_eq!(names(directory.path()), ["a-2.load", "a.load"]);
}

/// A small tmpfs that fills up soon; unmounted when dropped.
struct Small(Mount, #[allow(dead_code, reason = "removed after it was unmounted")] tempfile::TempDir);

impl Small {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        Self(Mount::new(directory.path(), ["-t", "tmpfs", "-o", "size=64k", "tmpfs"]), directory)
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
fn a_recording_stopped_at_its_start_leaves_no_hidden_file() {
    let Some(device) = device() else { return };
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = record(&device, &["--", "true"], &directory.path().join("a.load")).spawn().unwrap();
    wait_for_output(directory.path());
    send("TERM", &child);
    // If the command ended first, the recording exists.
    let code = iosonar_testing::ended(&mut child).code();
    assert!(matches!(code, Some(0 | 143)), "{code:?}");
    assert!(!names(directory.path()).iter().any(|name| name.ends_with(".partial")), "{:?}", names(directory.path()));
}

/// The rows in the only hidden file of a directory.
struct Kept {
    name: String,
    rows: usize,
    complete: bool,
}

/// `None` while it is being extended.
fn kept(directory: &Path) -> Option<Kept> {
    let mut names = names(directory);
    // The undo file is there only while the other is extended.
    names.retain(|name| !name.ends_with(".partial.end"));
    let [name] = names.try_into().unwrap();
    assert!(name.ends_with(".partial"), "{name}");
    let (rows, complete) = rows_of(&directory.join(&name)).ok()?;
    Some(Kept { name, rows, complete })
}

/// The number of rows, and whether the load is complete.
fn rows_of(load: &Path) -> iosonar_trace::Result<(usize, bool)> {
    let mut load = iosonar_trace::open_load(load)?;
    let mut rows = 0;
    while load.next()?.is_some() {
        rows += 1;
    }
    Ok((rows, load.metadata().complete))
}

/// Waits until that many requests of a recording are in the hidden file.
fn wait_for_rows(rows: usize, directory: &Path, child: &mut Child) {
    wait_for_output(directory);
    wait_until("the rows are kept", || {
        assert!(child.try_wait().unwrap().is_none(), "the recording ended");
        kept(directory).is_some_and(|kept| kept.rows >= rows)
    });
}

fn recover(hidden: &Path) -> (Option<i32>, String) {
    let output = Command::new(IOSONAR).arg("recover").arg(hidden).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// A command that reads `few` blocks, waits for a line on its standard input, and reads `others`.
fn reads(device: &LoopDevice, few: u32, others: u32) -> String {
    let read = format!("dd if={} of=/dev/null iflag=direct bs=512 2>&1 count", device.path().display());
    format!("{read}={few}; read line && {read}={others}")
}

#[test]
fn a_recording_on_a_full_disk_fails_and_keeps_its_rows() {
    for name in ["a.load", "a.load.parquet"] {
        let Some(device) = device() else { return };
        let (small, directory) = (Small::new(), tempfile::tempdir().unwrap());
        let done: PathBuf = directory.path().join("done");
        let work = format!("{}; touch {}", reads(&device, 100, 30000), done.display());
        let mut command = record(&device, &["--", "sh", "-c", &work], &small.0.path().join(name));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        wait_for_rows(100, small.0.path(), &mut child);
        child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        let output = iosonar_testing::output_of(child);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("kept as") && message.contains("iosonar recover"), "{message}");
        assert!(done.exists(), "the command ran to its end");
        let kept = kept(small.0.path()).expect("a readable file");
        assert!(kept.rows >= 100 && message.contains(&kept.name), "{} in {}: {message}", kept.rows, kept.name);
    }
}

#[test]
fn a_killed_recording_leaves_a_readable_file() {
    for name in ["a.load.zst", "a.load.parquet"] {
        let Some(device) = device() else { return };
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let work = reads(&device, 100, 1);
        let mut command = record(&device, &["--", "sh", "-c", &work], &directory.path().join(name));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        wait_for_rows(100, directory.path(), &mut child);
        let hidden = directory.path().join(&names(directory.path())[0]);
        let (code, message) = recover(&hidden);
        assert!(code == Some(1) && message.contains("still being written"), "{message}");
        child.kill().unwrap();
        iosonar_testing::ended(&mut child);
        let kept = kept(directory.path()).expect("a readable file");
        assert_eq!((kept.rows, kept.complete), (100, false));
        let (code, message) = recover(&hidden);
        assert!(code == Some(0) && message.contains(": 100 requests"), "{message}");
        assert_eq!(names(directory.path()), [name]);
    }
}

#[test]
fn a_recording_that_fails_keeps_its_rows() {
    let Some(device) = device() else { return };
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = directory.path().join("a.load");
    let mut command = record(&device, &["--", "sh", "-c", &reads(&device, 100, 1)], &output);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    wait_for_rows(100, directory.path(), &mut child);
    // poll(2) fails if it gets more files than RLIMIT_NOFILE allows; here that is the wait for the ring.
    let allowed = Command::new("prlimit").args(["--nofile=0:0", "--pid", &child.id().to_string()]).status();
    assert!(allowed.unwrap().success());
    let mut message = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = message.find(|line| line.starts_with("iosonar: ")).expect("an error at once");
    assert!(first.contains("the command continues") && first.contains("wait for events"), "{first}");
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let rest: String = message.collect();
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(1), "{rest}");
    assert!(rest.contains("has everything until then"), "{rest}");
    assert_eq!(names(directory.path()), ["a.load"]);
    assert_eq!(rows_of(&output).unwrap().0, 100);
}

#[test]
fn recover_refuses_other_files_and_names_the_right_ones() {
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("a.load");
    fs::write(&other, "").unwrap();
    let (code, message) = recover(&other);
    assert!(code == Some(2) && message.contains("RESULT.journal") && message.contains(".partial"), "{message}");
}

/// With a full disk, a user wants the result on another file system; a rename cannot do that.
#[test]
fn an_output_on_another_file_system_is_refused_with_a_remedy() {
    if left_out(Need::Root) {
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let other = Mount::new(directory.path().join("other"), ["-t", "tmpfs", "tmpfs"]);
    let hidden = directory.path().join(".a.load.AbCdEf.partial");
    fs::write(&hidden, "0.000000000 ; 0 ; 8 ; R\n").unwrap();
    let output = other.path().join("a.load");
    let ran = Command::new(IOSONAR).arg("recover").arg(&hidden).arg("-o").arg(&output).output();
    let ran = ran.unwrap();
    let message = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && message.contains("different file systems"), "{message}");
    assert!(hidden.exists() && !output.exists());
}

#[test]
fn a_recording_that_ends_before_its_command_is_reported_at_once() {
    let Some(device) = device() else { return };
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let arguments = ["--duration", "0.1", "--", "sh", "-c", "read -r end; exit 7"];
    let mut child =
        record(&device, &arguments, &directory.path().join("a.load")).stdin(Stdio::piped()).spawn().unwrap();
    let mut message = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(message.any(|line| line.contains("recording ended after --duration")));
    assert!(message.any(|line| line.contains("a.load: ")), "the result is reported before the command ends");
    drop(child.stdin.take());
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(7));
    let text = fs::read_to_string(directory.path().join("a.load")).unwrap();
    assert!(text.starts_with("Recorded by iosonar: loop"), "{text}");
}

#[test]
fn a_device_that_loses_its_medium_is_reported() {
    let Some(device) = device() else { return };
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, backing) = (device.path().display(), device.backing_file().display());
    let work = format!("truncate -s 0 {backing} && losetup --set-capacity {path}");
    let when = ["no longer had a medium when the recording ended", "had no medium when the recording began"];
    for (name, when) in ["a.load", "b.load"].into_iter().zip(when) {
        let output = record(&device, &["--", "sh", "-c", &work], &directory.path().join(name)).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.contains(when), "{message}");
    }
}

#[test]
fn an_output_name_without_a_format_is_refused() {
    let Some(device) = device() else { return };
    for name in ["-", "/dev/shm/a.recording"] {
        let output = record(&device, &["--duration", "1"], Path::new(name)).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(".load.parquet") || message.contains(".parquet"), "{message}");
        assert!(!message.contains("--to"), "{message}");
    }
}
