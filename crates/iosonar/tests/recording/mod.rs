//! Shared by the tests of `record` and `check`: devices, requests, and a recording around them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use iosonar_testing::Limit;
use iosonar_trace::{Metadata, Opened, Request};
use tempfile::TempDir;

/// Runs iosonar to its end.
pub fn iosonar(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iosonar")).args(arguments).output().expect("a child process")
}

/// Runs a system program, which must succeed.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

/// All rows of a load, and its footer.
pub fn read_load(path: &Path) -> (Vec<Request>, Metadata) {
    let Opened::Load(mut reader) = iosonar_trace::open(path).expect("a load was written") else {
        panic!("{} is not a load", path.display());
    };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().expect("a readable row") {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

/// The name of this thread in the kernel.
pub fn thread_name() -> String {
    fs::read_to_string("/proc/thread-self/comm").expect("every thread has a name").trim_end().to_owned()
}

/// A recording in progress while the test does I/O.
pub struct Recording {
    child: Child,
    directory: TempDir,
}

impl Recording {
    /// Returns when the recording has started: its command prints a line then.
    pub fn start(arguments: &[&str]) -> Self {
        iosonar_testing::default_signals();
        let directory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_iosonar"))
            .arg("record")
            .args(arguments)
            .arg("--output")
            .arg(directory.path().join("a.load.parquet"))
            .args(["--", "sh", "-c", "echo started; read -r end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child process");
        let mut line = String::new();
        let limit = Limit::new(&child, Duration::from_secs(60));
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        limit.assert_kept();
        if line != "started\n" {
            panic!("the recording did not start: {:?}", iosonar_testing::output_of(child));
        }
        Self { child, directory }
    }

    /// Sends the recorder a signal.
    pub fn signal(&self, name: &str) {
        run("kill", &[&format!("-{name}"), &self.child.id().to_string()]);
    }

    /// Ends the command without waiting for the recorder.
    pub fn end_command(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Stops the recording and reads its file.
    pub fn stop(self) -> (Vec<Request>, Metadata) {
        read_load(&self.keep().path().join("a.load.parquet"))
    }

    /// Stops the recording and returns the directory with `a.load.parquet`.
    pub fn keep(mut self) -> TempDir {
        self.end_command();
        let output = iosonar_testing::output_of(self.child);
        // `read` returns 1 at the end of its input.
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        self.directory
    }
}

/// A device opened with `O_DIRECT`: one request at a time, past the page cache.
pub struct Direct {
    file: File,
}

impl Direct {
    pub fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
        Self { file: file.unwrap_or_else(|e| panic!("{}: {e}", path.display())) }
    }

    pub fn read(&self, offset: u64, bytes: usize) {
        let mut memory = vec![0; bytes + 4096];
        self.file.read_exact_at(aligned(&mut memory, bytes), offset).expect("the device reads");
    }

    pub fn write(&self, offset: u64, bytes: usize) {
        let mut memory = vec![7; bytes + 4096];
        self.file.write_all_at(aligned(&mut memory, bytes), offset).expect("the device writes");
    }

    pub fn flush(&self) {
        self.file.sync_all().expect("the device flushes");
    }
}

/// `O_DIRECT` requires page-aligned memory.
fn aligned(memory: &mut [u8], bytes: usize) -> &mut [u8] {
    let skip = memory.as_ptr().align_offset(4096);
    &mut memory[skip..skip + bytes]
}

/// A compressed device in memory, which is bio-based; removed when dropped.
pub struct Zram {
    number: u32,
    path: PathBuf,
}

impl Zram {
    pub fn new(bytes: u64) -> Self {
        let number = fs::read_to_string("/sys/class/zram-control/hot_add").expect("a new device");
        let number = number.trim().parse().expect("its number");
        fs::write(format!("/sys/block/zram{number}/disksize"), bytes.to_string()).expect("its size");
        Self { number, path: PathBuf::from(format!("/dev/zram{number}")) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        fs::write(format!("/sys/block/zram{}/reset", self.number), "1").ok();
        fs::write("/sys/class/zram-control/hot_remove", self.number.to_string()).ok();
    }
}

/// The kernel's trace of one block layer tracepoint, for one device.
pub struct Tracing {
    tracefs: TempDir,
    instance: PathBuf,
}

impl Tracing {
    pub fn of(tracepoint: &str, device: &Path) -> Self {
        let tracefs = tempfile::tempdir().expect("a directory");
        run("mount", &["-t", "tracefs", "tracefs", &tracefs.path().to_string_lossy()]);
        let instance = tracefs.path().join("instances").join(format!("iosonar-test-{}", std::process::id()));
        let tracing = Self { tracefs, instance };
        fs::create_dir(&tracing.instance).expect("a trace instance");
        let write = |file: &str, text: &str| {
            fs::write(tracing.instance.join(file), text).unwrap_or_else(|e| panic!("tracefs: {file}: {e}"));
        };
        let number = fs::metadata(device).expect("a device").rdev();
        let number = (libc::major(number) << 20) | libc::minor(number);
        let event = format!("events/block/{tracepoint}");
        write("buffer_size_kb", "8192");
        write(&format!("{event}/filter"), &format!("dev == {number}"));
        write(&format!("{event}/enable"), "1");
        tracing
    }

    /// RWBS, sector and length of each line: `… block_rq_issue: 7,0 WS 4096 () 800 + 8 none,0,0 [comm]`.
    pub fn lines(&self) -> Vec<(String, u64, u64)> {
        let text = fs::read(self.instance.join("trace")).expect("the trace");
        let text = String::from_utf8_lossy(&text);
        let line = |line: &str| {
            let (_, fields) = line.split_once(": block_rq_issue: ")?;
            let (what, place) = fields.split_once(") ")?;
            let rwbs = what.split(' ').nth(1)?.to_owned();
            let mut place = place.split(' ');
            let sector = place.next()?.parse().ok()?;
            Some((rwbs, sector, place.nth(1)?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        fs::remove_dir(&self.instance).ok();
        Command::new("umount").arg(self.tracefs.path()).status().ok();
    }
}
