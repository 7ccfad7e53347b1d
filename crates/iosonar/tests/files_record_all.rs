//! `iosonar files record --all`: every process, in files that follow one another, with the names of containers.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use iosonar_files::{Call, CallKind, InitialDescriptor};
use iosonar_testing::{Need, left_out};

use crate::files_record::read;

fn iosonar(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["files", "record", "--all", "--output", "t.calls.parquet"]).current_dir(directory);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A shell that runs beside the recording; killed when dropped.
struct Beside(Child);

impl Beside {
    /// Returns when the script has printed a line.
    fn start(script: &str, directory: &Path) -> Self {
        iosonar_testing::default_signals();
        let mut child = Command::new("sh")
            .args(["-c", script])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn every_process_but_the_recorder_is_recorded() {
    if left_out(Need::Bpf) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data"), "line\n".repeat(1000)).unwrap();
    // Its descriptor was opened before; `read` of the shell is one call for each byte.
    let script = "exec 7< data; echo ready; while read -r line <&7; do echo $line >> copy; sleep 0.05; done";
    let beside = Beside::start(script, directory.path());
    // Until the other shell has read a line that it began to read meanwhile.
    let script = "echo hello > new; rm -f copy; until [ $(cat copy 2> /dev/null | wc -l) -gt 1 ]; do sleep 0.1; done";
    let recorder = iosonar(directory.path())
        .args(["--buffer", "256M", "--", "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let own = recorder.id();
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("until the command ends"), "{}", text(&output));
    let (calls, metadata) = read(&directory.path().join("t.calls.parquet"));
    let path = |call: &Call| call.path.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(calls.iter().any(|call| call.kind == CallKind::Openat && path(call) == "new"), "the command");
    let reads = calls.iter().filter(|call| call.process == beside.0.id() && call.kind == CallKind::Read);
    assert!(reads.into_iter().any(|call| call.fd == Some(7) || call.fd == Some(0)), "a process that ran before");
    assert!(calls.iter().all(|call| call.process != own && call.thread != own), "the recorder itself");
    assert!(calls.is_sorted_by_key(|call| call.begin));
    let known = metadata.processes.iter().find(|process| process.process == beside.0.id()).unwrap();
    let opened = known.descriptors.iter().find(|descriptor| descriptor.fd == 7).unwrap();
    assert!(opened.path.ends_with("/data") && known.cwd.contains("tmp"), "{known:?}");
    assert!(metadata.processes.iter().all(|process| process.process != own));
}

/// The parts in a directory, the oldest first.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let names: BTreeSet<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".calls.parquet"))
        .collect();
    names.into_iter().collect()
}

/// Records a shell in parts of a second. On a busy machine events can be lost, and the recorder says so: tries again.
/// Returns whether events were lost each time.
fn recorded_in_parts() -> (tempfile::TempDir, String, bool) {
    for attempt in 1.. {
        let directory = tempfile::tempdir().unwrap();
        // Of an earlier recording with the same name, and of another one.
        fs::write(directory.path().join("t-20120504T140000Z.calls.parquet"), "").unwrap();
        fs::write(directory.path().join("u-20120504T140000Z.tree.parquet"), "").unwrap();
        fs::write(directory.path().join("data"), "x".repeat(4096)).unwrap();
        let script = "exec 7< data; dd bs=100 count=1 <&7 2> /dev/null > /dev/null; cd /; \
                      i=0; while [ $i -lt 75 ]; do cat /etc/hostname > /dev/null; sleep 0.1; i=$((i+1)); done";
        let output = iosonar(directory.path())
            .args(["--rotate", "1s", "--keep", "5", "--buffer", "256M", "--", "sh", "-c", script])
            .output()
            .unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        let names_losses = said.lines().any(|line| line.starts_with("  ") && !line.starts_with("  containers"));
        if !names_losses || attempt == 4 {
            return (directory, said, names_losses);
        }
    }
    unreachable!()
}

#[test]
fn each_part_begins_with_what_the_parts_before_left() {
    if left_out(Need::Bpf) {
        return;
    }
    let (directory, said, has_losses) = recorded_in_parts();
    let data = directory.path().canonicalize().unwrap().join("data").to_str().unwrap().to_owned();
    let parts = parts(directory.path());
    assert_eq!(parts.len(), 5, "{parts:?}");
    assert!(directory.path().join("u-20120504T140000Z.tree.parquet").exists());
    let mut end = None;
    let mut numbers = Vec::new();
    let mut parts_with_shell = 0;
    for path in &parts {
        let (calls, metadata) = read(path);
        let part = metadata.part.clone().unwrap();
        assert!(metadata.complete && metadata.counts.calls == calls.len() as u64);
        numbers.push(part.number);
        if has_losses {
            // Without all events, the order of calls and the processes are only roughly known.
            continue;
        }
        assert!(calls.iter().all(|call| call.begin.0 >= part.from_ns), "{part:?} {said}");
        assert!(end.is_none_or(|end| end < part.from_ns), "{part:?} {end:?} {said}");
        end = calls.last().map(|call| call.begin.0);
        let is_ours = |open: &InitialDescriptor| open.fd == 7 && open.path == data;
        let shell = metadata.processes.iter().find(|process| process.descriptors.iter().any(is_ours));
        let Some(shell) = shell else {
            // On a busy machine parts begin after the shell has ended, before the recorder sees that.
            continue;
        };
        parts_with_shell += 1;
        assert_eq!(parts_with_shell, numbers.len(), "only the last parts may lack the shell: {numbers:?}; {said}");
        assert_eq!((shell.cwd.as_str(), shell.umask.is_some()), ("/", true));
    }
    assert!(has_losses || parts_with_shell >= 2, "{parts_with_shell} of {numbers:?}; {said}");
    assert!(numbers[0] > 1 && numbers.is_sorted(), "{numbers:?}");
    assert!(said.contains("files before it"), "{said}");
    assert_eq!(
        fs::read_dir(directory.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_str().unwrap().starts_with('.'))
            .count(),
        0,
        "no hidden file remains"
    );
}

/// A control group with the name of a container; removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let hierarchy = mounts.lines().find_map(|line| line.strip_prefix("cgroup2 ")?.split(' ').next())?;
        let path = Path::new(hierarchy).join(name);
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}

#[test]
fn calls_in_a_container_have_its_name() {
    if left_out(Need::Bpf) {
        return;
    }
    let id = format!("{:064x}", std::process::id());
    let Some(group) = Group::new(&format!("docker-{id}.scope")) else {
        eprintln!("skipped: no control group of version 2 can be made here");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "cat /etc/hostname > outside; sh -c 'echo $$ > {}/cgroup.procs; cat /etc/hostname > inside'",
        group.0.display()
    );
    let output = iosonar(directory.path()).args(["--", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let short = &id[..12];
    assert!(text(&output).contains(&format!("containers: {short}")), "{}", text(&output));
    let (calls, metadata) = read(&directory.path().join("t.calls.parquet"));
    let container = |path: &str| {
        let opened = calls.iter().find(|call| call.path.as_ref().is_some_and(|p| p.as_bytes() == path.as_bytes()));
        opened.unwrap_or_else(|| panic!("{path}")).container.as_ref().map(ToString::to_string)
    };
    assert_eq!((container("outside"), container("inside").as_deref()), (None, Some(short)));
    let [found] = &metadata.containers[..] else { panic!("{:?}", metadata.containers) };
    assert_eq!((&found.id, found.engine.as_str()), (&id, "docker"));
    let info = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["info", "t.calls.parquet"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains(&format!("containers  {short} (docker)")), "{info}");
    let kept = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["edit", "t.calls.parquet", "c.calls.parquet", &format!("select container={short}")])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(kept.status.success(), "{}", text(&kept));
    let (kept, _) = read(&directory.path().join("c.calls.parquet"));
    assert!(!kept.is_empty() && kept.iter().all(|call| call.container.is_some()));
}

/// Reads and writes pages of a mapped file that is not in the page cache, without reading ahead.
const MAPPED_IO: &str = "\
import mmap, os
fd = os.open('data', os.O_RDWR)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
shared = mmap.mmap(fd, 64 * 4096)
shared.madvise(mmap.MADV_RANDOM)
shared[0], shared[40 * 4096], shared[40 * 4096 + 1]
shared[40 * 4096] = 1
shared[63 * 4096] = 1
private = mmap.mmap(fd, 64 * 4096, mmap.MAP_PRIVATE)
private.madvise(mmap.MADV_RANDOM)
private[20 * 4096] = 1
private[20 * 4096] = 2
os.write(os.open('copy', os.O_WRONLY | os.O_CREAT), memoryview(shared)[50 * 4096:51 * 4096])
";

#[test]
fn page_faults_in_mapped_files_have_rows() {
    if left_out(Need::Bpf) || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for all in [&["--all"][..], &[]] {
        // Not in memory: there, pages are never read.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(directory.path().join("data"), vec![7; 64 * 4096]).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar"))
            .args(["files", "record", "--faults", "--buffer", "256M", "--output", "t.calls.parquet"])
            .args(all)
            .args(["--", "python3", "-c", MAPPED_IO])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success() && text(&output).contains(" page faults"), "{}", text(&output));
        let (calls, metadata) = read(&directory.path().join("t.calls.parquet"));
        let data = directory.path().canonicalize().unwrap().join("data").to_str().unwrap().to_owned();
        let faults: Vec<&Call> = calls.iter().filter(|call| call.kind == CallKind::PageFault).collect();
        assert_eq!(metadata.counts.faults, faults.len() as u64);
        let mut in_data =
            faults.iter().filter(|fault| fault.path.as_ref().is_some_and(|path| path.to_string() == data));
        const WRITE: u64 = 1;
        const MAJOR: Option<i64> = Some(4);
        let found: Vec<_> =
            in_data.clone().map(|fault| (fault.offset.unwrap() / 4096, fault.flags & WRITE, fault.result)).collect();
        // The second access to a page has a fault only if it is the first write; a private page is a copy then.
        let expected =
            [(0, 0, MAJOR), (40, 0, MAJOR), (40, 1, Some(0)), (63, 1, MAJOR), (20, 0, MAJOR), (50, 0, MAJOR)];
        assert_eq!(found, expected, "{:?}", metadata.warnings);
        for fault in in_data.clone() {
            assert!(fault.duration.is_some_and(|duration| duration.0 > 0) && fault.length == Some(4096));
            let mapped = calls.iter().find(|call| call.kind == CallKind::Mmap && call.process == fault.process);
            assert!(mapped.is_some_and(|mapped| mapped.begin < fault.begin), "{fault:?}");
        }
        // The last one while `write` reads the memory.
        let last = in_data.next_back().unwrap();
        let is_that = |call: &&Call| call.kind == CallKind::Write && call.process == last.process;
        let write = calls.iter().filter(is_that).find(|call| call.length == Some(4096)).unwrap();
        assert!(write.begin <= last.begin && last.end() <= write.end(), "{write:?} {last:?}");
        assert!(calls.is_sorted_by_key(|call| call.begin));
        // The program itself is mapped, too.
        assert!(
            faults.iter().any(|fault| fault.path.as_ref().is_some_and(|path| path.to_string().contains("python3")))
        );
        assert!(metadata.warnings.iter().all(|warning| !warning.contains("have no end")), "{:?}", metadata.warnings);
    }
}

#[test]
fn refusals_of_all_and_rotate_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = |arguments: &[&str]| {
        let output = iosonar(directory.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    for (arguments, said) in [
        (&["--with", "strace"][..], "leave --with strace out"),
        (&["--keep", "3"], "add --rotate 1h"),
        (&["--rotate", "0.5s"], "less than a second"),
        (&["--pid", "1"], "cannot be used with"),
        (&["--rotate", "1h", "--tree", "."], "cannot be used with"),
    ] {
        let message = refusal(arguments);
        assert!(message.contains(said), "{arguments:?}: {message}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
