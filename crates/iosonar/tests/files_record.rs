//! `iosonar files record`: the recorded calls are compared with what the command did.

#![allow(unsafe_code, reason = "requests of io_uring refer to memory of the test")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use iosonar_files::tree::Tree;
use iosonar_files::{Call, CallKind, Metadata, Recorder, table};
use iosonar_testing::{Limit, Need, left_out, wait_until};
use iosonar_trace::input::Input;

fn iosonar() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["files", "record"]);
    command
}

pub fn read(trace: &Path) -> (Vec<Call>, Metadata) {
    let mut reader = table::open(Input::open(trace).unwrap()).unwrap();
    let mut calls = Vec::new();
    while let Some(call) = reader.next().unwrap() {
        calls.push(call);
    }
    (calls, reader.metadata().clone())
}

/// Records a shell script in a directory of its own; returns what `iosonar` printed.
fn record(method: &str, script: &str) -> (Output, Vec<Call>, Metadata) {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.calls.parquet");
    let output = iosonar()
        .args(["--with", method, "--output"])
        .arg(&trace)
        .args(["--", "sh", "-c", script])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(trace.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let (calls, metadata) = read(&trace);
    (output, calls, metadata)
}

fn has_strace() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok()
}

fn methods() -> Vec<&'static str> {
    let mut methods = Vec::new();
    if !left_out(Need::Bpf) {
        methods.push("ebpf");
    }
    if has_strace() {
        methods.push("strace");
    }
    methods
}

fn find<'a>(calls: &'a [Call], kind: CallKind, path: &str) -> &'a Call {
    let found = calls
        .iter()
        .find(|call| call.kind == kind && call.path.as_ref().is_some_and(|p| p.as_bytes() == path.as_bytes()));
    found.unwrap_or_else(|| panic!("no {} of {path} in {calls:#?}", kind.name()))
}

#[test]
fn a_command_is_recorded_from_its_first_program_to_its_end() {
    for method in methods() {
        let (output, calls, metadata) = record(method, "echo hello > new; mkdir sub; cat new missing; exit 3");
        assert_eq!(output.status.code(), Some(3), "the exit code is that of the command");
        assert_eq!(output.stdout, b"hello\n");
        assert_eq!((calls[0].kind, calls[0].result), (CallKind::Execve, Some(0)), "{method}");
        assert!(calls.is_sorted_by_key(|call| call.begin));
        let opened = find(&calls, CallKind::Openat, "new");
        assert_eq!((opened.fd, opened.mode), (Some(-100), Some(0o666)));
        assert_eq!(opened.flags & 0o3, libc::O_WRONLY as u64);
        let missing = find(&calls, CallKind::Openat, "missing");
        assert_eq!((missing.result, missing.errno), (Some(-1), libc::ENOENT));
        assert_eq!(find(&calls, CallKind::Mkdir, "sub").mode, Some(0o777));
        let written = calls.iter().filter(|call| call.kind == CallKind::Write && call.thread == opened.thread);
        assert!(written.into_iter().any(|call| call.result == Some(6) && call.length == Some(6)), "{method}");
        let last = calls.iter().rfind(|call| call.thread == calls[0].thread).unwrap();
        assert_eq!((last.kind, last.result, last.duration), (CallKind::ExitGroup, None, None));

        assert_eq!(metadata.counts.calls, calls.len() as u64);
        assert_eq!(metadata.command[..2], ["sh", "-c"]);
        assert_eq!(metadata.recorder, if method == "ebpf" { Recorder::Ebpf } else { Recorder::Strace });
        let [process] = &metadata.processes[..] else { panic!("{:?}", metadata.processes) };
        assert_eq!((process.process, &process.threads[..]), (calls[0].thread, &[calls[0].thread][..]));
        assert!(process.cwd.contains("tmp"), "{}", process.cwd);
        assert!(process.umask.is_some());
        let numbers: Vec<i32> = process.descriptors.iter().map(|descriptor| descriptor.fd).collect();
        assert!(numbers.starts_with(&[0, 1, 2]), "{numbers:?}");
    }
}

#[test]
fn a_snapshot_shows_the_tree_before_the_command() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tree")).unwrap();
        fs::write(directory.path().join("tree/old"), "old").unwrap();
        let output = iosonar()
            .args(["--with", method, "--output", "t.calls.parquet", "--tree", "tree"])
            .args(["--", "sh", "-c", "echo new > tree/new; rm tree/old"])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = Tree::load(&directory.path().join("t.tree.parquet")).unwrap();
        let path = |name: &str| directory.path().canonicalize().unwrap().join("tree").join(name).into_os_string();
        assert!(tree.find(path("old").as_encoded_bytes()).is_some());
        assert!(tree.find(path("new").as_encoded_bytes()).is_none());
    }
}

#[test]
fn children_are_followed_from_their_first_call() {
    for method in methods() {
        let (_, calls, _) = record(method, "(cat < /etc/hostname; true) | (cat > copy; true)");
        let forks: Vec<u32> = calls
            .iter()
            .filter(|call| matches!(call.kind, CallKind::Clone | CallKind::Clone3 | CallKind::Fork | CallKind::Vfork))
            .filter_map(|call| call.result.and_then(|result| u32::try_from(result).ok()))
            .collect();
        assert!(forks.len() >= 4, "{method}: {forks:?}");
        for fork in forks {
            let own: Vec<&Call> = calls.iter().filter(|call| call.thread == fork).collect();
            assert!(own.iter().all(|call| call.process == fork || call.process == 0));
            assert_eq!(own.last().map(|call| call.kind), Some(CallKind::ExitGroup), "{method}");
        }
        assert!(calls.iter().any(|call| call.kind == CallKind::Pipe2 || call.kind == CallKind::Pipe));
        let pipe = calls.iter().find(|call| matches!(call.kind, CallKind::Pipe2 | CallKind::Pipe)).unwrap();
        assert_eq!((pipe.fd, pipe.fd2), (Some(3), Some(4)), "{method}");
    }
}

#[test]
fn a_call_that_is_killed_has_no_result() {
    for method in methods() {
        // Killed when it sleeps in the open.
        let script = "mkfifo f; cat f & until read -r _ name state _ < /proc/$!/stat && [ \"$name $state\" = '(cat) S' ]; \
                      do sleep 0.05; done; sleep 0.1; kill $!; wait; cat < /dev/null";
        let (_, calls, metadata) = record(method, script);
        let blocked = find(&calls, CallKind::Openat, "f");
        assert_eq!((blocked.result, blocked.errno), (None, 0), "{method}");
        assert!(metadata.counts.unfinished >= 2, "{method}: the exits of the shell and the second cat");
        assert!(calls.is_sorted_by_key(|call| call.begin), "calls after the blocked one are in order");
    }
}

#[test]
fn a_thread_that_executes_a_program_becomes_the_first_thread() {
    const SCRIPT: &str = "import os, threading, time
threading.Thread(target=lambda: os.execv('/bin/cat', ['cat', '/etc/hostname'])).start()
time.sleep(10)";
    if left_out(Need::Bpf) {
        return;
    }
    let (output, calls, metadata) = record("ebpf", &format!("exec python3 -c \"{SCRIPT}\""));
    assert!(output.status.success());
    let opened = find(&calls, CallKind::Openat, "/etc/hostname");
    assert_eq!(opened.thread, opened.process);
    let executed = calls.iter().rfind(|call| call.kind == CallKind::Execve && call.errno == 0).unwrap();
    assert_eq!(executed.path.as_ref().map(ToString::to_string).as_deref(), Some("/bin/cat"));
    assert_ne!(executed.thread, executed.process, "the thread that called it");
    assert_eq!(metadata.counts.lost_events, 0);
}

#[test]
fn the_name_of_a_unix_socket_is_a_path() {
    const SCRIPT: &str = "import os, socket
bind = lambda name: socket.socket(socket.AF_UNIX).bind(name)
bind('s'); bind(os.getcwd() + '/' + 'n' * 50); bind('\\0abstract')
socket.socket().bind(('127.0.0.1', 0))";
    for method in methods() {
        let (output, calls, _) = record(method, &format!("exec python3 -c \"{SCRIPT}\""));
        assert!(output.status.success(), "{output:?}");
        let binds: Vec<_> = calls.iter().filter(|call| call.kind == CallKind::Bind).collect();
        let paths: Vec<_> = binds.iter().map(|call| call.path.as_ref().map(ToString::to_string)).collect();
        let [Some(short), Some(long), None, None] = &paths[..] else { panic!("{method}: {paths:?}") };
        assert!(short == "s" && long.starts_with('/') && long.ends_with(&"n".repeat(50)), "{method}: {paths:?}");
        assert!(binds.iter().all(|call| call.fd.is_some_and(|fd| fd > 2) && call.result == Some(0)), "{method}");
    }
}

/// Submits requests and waits for each of them.
fn execute(ring: &mut IoUring, requests: Vec<squeue::Entry>) -> Vec<i32> {
    requests
        .into_iter()
        .map(|request| {
            // SAFETY: the callers keep buffers and paths until the request has completed, which is before this returns.
            unsafe { ring.submission().push(&request) }.unwrap();
            ring.submit_and_wait(1).unwrap();
            ring.completion().next().unwrap().result()
        })
        .collect()
}

#[test]
fn a_running_process_is_recorded_with_its_requests_of_io_uring() {
    if left_out(Need::Bpf) {
        return;
    }
    // In a process of its own, without the children of other tests.
    const ALONE: &str = "IOSONAR_TEST_RECORDS_ITSELF";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "files_record::a_running_process_is_recorded_with_its_requests_of_io_uring"]);
        assert!(alone.env(ALONE, "1").status().unwrap().success());
        return;
    }
    iosonar_testing::default_signals();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.calls.parquet");
    let file = File::create_new(directory.path().join("data")).unwrap();
    file.set_len(5000).unwrap();
    let mut ring = IoUring::new(8).unwrap();
    let pid = std::process::id().to_string();
    let mut recorder = iosonar()
        .args(["--with", "ebpf", "--pid", &pid, "--output"])
        .arg(&trace)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let limit = Limit::new(&recorder, Duration::from_secs(60));
    let mut messages = BufReader::new(recorder.stderr.take().unwrap());
    messages.read_line(&mut line).unwrap();
    assert_eq!(line, format!("recording process {pid}; Ctrl-C ends the recording\n"));
    let fd = types::Fd(file.as_raw_fd());
    let [path, renamed] =
        ["made", "moved"].map(|name| CString::new(directory.path().join(name).as_os_str().as_bytes()).unwrap());
    let data = [7_u8; 4096];
    let here = types::Fd(libc::AT_FDCWD);
    let results = execute(
        &mut ring,
        vec![
            opcode::Write::new(fd, data.as_ptr(), 4096).offset(8192).build(),
            opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            opcode::OpenAt::new(here, path.as_ptr()).flags(libc::O_CREAT | libc::O_RDWR).mode(0o640).build(),
            opcode::RenameAt::new(here, path.as_ptr(), here, renamed.as_ptr()).build(),
            opcode::UnlinkAt::new(here, path.as_ptr()).build(),
            opcode::Fallocate::new(fd, 100).offset(65536).build(),
            opcode::Read::new(fd, data.as_ptr().cast_mut(), 100).offset(u64::MAX).build(),
        ],
    );
    execute(&mut ring, vec![opcode::Close::new(types::Fd(results[2])).build()]);
    thread::sleep(Duration::from_millis(100));
    Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
    messages.read_to_string(&mut line).unwrap();
    assert!(recorder.wait().unwrap().success(), "{line}");
    limit.assert_kept();
    let tree = Tree::load(&directory.path().join("t.tree.parquet")).unwrap();
    let data =
        tree.find(directory.path().canonicalize().unwrap().join("data").as_os_str().as_bytes()).expect("it was open");
    assert_eq!(tree.entry(data).bytes, 5000);

    let (calls, metadata) = read(&trace);
    let requests: Vec<&Call> = calls.iter().filter(|call| call.is_uring).collect();
    let kinds: Vec<&str> = requests.iter().map(|call| call.kind.name()).collect();
    let expected = ["pwrite64", "fdatasync", "openat", "renameat2", "unlinkat", "fallocate", "read", "close"];
    assert_eq!(kinds, expected, "{:?}", metadata.warnings);
    for (request, result) in requests.iter().zip(&results) {
        let (value, errno) = if *result < 0 { (-1, -result) } else { (*result, 0) };
        assert_eq!((request.result, request.errno), (Some(value.into()), errno), "{}", request.kind.name());
        assert_eq!(request.process, std::process::id());
        assert!(request.duration.is_some_and(|duration| duration.0 > 0));
    }
    let [write, _, open, rename, unlink, fallocate, read, close] = &requests[..] else { unreachable!() };
    assert_eq!((write.fd, write.offset, write.length), (Some(file.as_raw_fd()), Some(8192), Some(4096)));
    assert_eq!(open.path.as_ref().map(|path| path.as_bytes()), Some(path.as_bytes()));
    assert_eq!((open.mode, open.flags & libc::O_CREAT as u64), (Some(0o640), libc::O_CREAT as u64));
    assert_eq!(rename.path2.as_ref().map(|path| path.as_bytes()), Some(renamed.as_bytes()));
    assert_eq!((unlink.fd, unlink.errno), (Some(libc::AT_FDCWD), libc::ENOENT));
    assert_eq!((fallocate.offset, fallocate.length), (Some(65536), Some(100)));
    assert_eq!((read.offset, read.length, read.fd), (None, Some(100), Some(file.as_raw_fd())));
    assert_eq!(close.fd, Some(results[2]));
    assert_eq!(metadata.counts.uring, 8);
    let [process] = &metadata.processes[..] else { panic!("{:?}", metadata.processes) };
    assert!(process.threads.len() > 1 && process.descriptors.iter().any(|d| d.path.ends_with("/data")));
    fs::remove_file(&trace).unwrap();
}

/// What `iosonar` prints when it refuses.
fn refusal(arguments: &[&str]) -> (Option<i32>, String) {
    let output = iosonar().args(arguments).env("PATH", "/nonexistent").output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_command_that_does_not_exist_leaves_no_trace() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let output = iosonar()
            .args(["--with", method, "--output", "t.calls.parquet", "--", "/nonexistent/program"])
            .current_dir(directory.path())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("/nonexistent/program"), "{message}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{method}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.calls.parquet");
    let to = trace.to_str().unwrap();
    let (code, message) = refusal(&["--output", to]);
    assert!(code == Some(2) && message.contains("--pid"), "{message}");
    let (code, message) = refusal(&["--output", to, "tar", "-cf", "x.tar", "d"]);
    let tip = "tip: put `--` before the command: iosonar files record … -- tar -cf x.tar d";
    assert!(code == Some(2) && message.contains(tip), "{message}");
    let (code, message) = refusal(&["--output", "t.parquet", "--", "true"]);
    assert!(code == Some(2) && message.contains(".calls.parquet"), "{message}");
    let (code, message) = refusal(&["--with", "strace", "--output", to, "--", "true"]);
    assert!(code == Some(1) && message.contains("apt install strace"), "{message}");
    if !left_out(Need::Bpf) {
        let (code, message) = refusal(&["--with", "ebpf", "--output", to, "--pid", "4194304"]);
        assert!(code == Some(1) && message.contains("there is no process 4194304"), "{message}");
    }
    assert!(!trace.exists());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "no hidden file remains");
    fs::write(&trace, "mine").unwrap();
    let (code, message) = refusal(&["--output", to, "--", "true"]);
    assert!(code == Some(1) && message.contains("exists"), "{message}");
}

/// Starts a recording of a shell script in the directory; returns when the file `ready` exists.
fn start(method: &str, script: &str, directory: &Path, more: &[&str]) -> Child {
    let child = iosonar()
        .args(["--with", method, "--output", "t.calls.parquet"])
        .args(more)
        .args(["--", "bash", "-c", script])
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command goes on", || directory.join("ready").exists());
    child
}

/// Waits up to a minute for a recorder, which is killed if it does not end.
fn end_of(recorder: &mut Child) -> ExitStatus {
    let limit = Limit::new(recorder, Duration::from_secs(60));
    let status = recorder.wait().unwrap();
    limit.assert_kept();
    status
}

/// A script that writes 40 lines, half of them after the file `go` exists.
const WRITER: &str = "for i in {1..20}; do echo $i >> lines; done; : > ready
while [ ! -e go ]; do sleep 0.01; done
for i in {21..40}; do echo $i >> lines; done; mkdir done";

fn lines(directory: &Path) -> usize {
    fs::read_to_string(directory.join("lines")).unwrap_or_default().lines().count()
}

#[test]
fn a_command_runs_on_after_the_duration_of_its_recording() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = start(method, WRITER, directory.path(), &["--duration", "1s"]);
        // The trace has its name when the recording has ended; the recorder waits for the command.
        wait_until("the trace is there", || directory.path().join("t.calls.parquet").exists());
        fs::write(directory.path().join("go"), "").unwrap();
        assert_eq!(end_of(&mut recorder).code(), Some(0), "{method}");
        assert_eq!(lines(directory.path()), 40, "{method}");
    }
}

#[test]
fn a_command_that_is_terminated_with_its_recorder_can_save() {
    let script =
        "trap 'for i in {1..40}; do echo $i >> lines; done; exit 7' TERM; : > ready; while :; do sleep 0.01; done";
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = start(method, script, directory.path(), &[]);
        Command::new("kill").args(["-TERM", &recorder.id().to_string()]).status().unwrap();
        assert_eq!(end_of(&mut recorder).code(), Some(7), "{method}: the handler has run");
        assert_eq!(lines(directory.path()), 40, "{method}");
        assert!(!read(&directory.path().join("t.calls.parquet")).0.is_empty());
    }
}

#[test]
fn a_second_interrupt_ends_the_recording_not_the_command() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = start(method, WRITER, directory.path(), &[]);
        wait_until("the trace is there", || {
            Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
            thread::sleep(Duration::from_millis(50));
            directory.path().join("t.calls.parquet").exists()
        });
        fs::write(directory.path().join("go"), "").unwrap();
        assert_eq!(end_of(&mut recorder).code(), Some(0), "{method}");
        assert_eq!(lines(directory.path()), 40, "{method}");
    }
}

#[test]
fn a_process_that_outlives_the_command_runs_on() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let script = format!("({WRITER}) & while [ ! -e ready ]; do sleep 0.01; done");
        let mut recorder = start(method, &script, directory.path(), &[]);
        assert_eq!(end_of(&mut recorder).code(), Some(0), "{method}");
        fs::write(directory.path().join("go"), "").unwrap();
        wait_until("the process goes on", || directory.path().join("done").exists());
        assert_eq!(lines(directory.path()), 40, "{method}");
    }
}

#[test]
fn a_command_runs_on_if_its_recorder_is_killed() {
    for method in methods() {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = start(method, WRITER, directory.path(), &[]);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        fs::write(directory.path().join("go"), "").unwrap();
        wait_until("the command goes on", || directory.path().join("done").exists());
        assert_eq!(lines(directory.path()), 40, "{method}");
    }
}
