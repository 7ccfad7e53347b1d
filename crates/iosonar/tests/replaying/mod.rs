//! Shared by the tests of `replay` and `recover`: a directory with loads and targets, a run in it, and its result.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use iosonar_testing::output_of;
pub use iosonar_testing::{process_tree, wait_until};
use iosonar_trace::journal::Journal;
use iosonar_trace::{Device, DeviceId, IoResult, Kind, Metadata, Nanos, Op, Opened, Request, Sector, Sectors};
use serde_json::Value;
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;

/// A directory with these files.
pub fn directory_with(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// Runs a system program, which must succeed.
pub fn run(program: &str, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

/// Sends a signal to a process and its descendants, as a terminal does. Some may have ended before their own arrives.
pub fn signal_tree(signal: &str, process: u32) {
    let processes = process_tree(process).into_iter().map(|each| each.to_string());
    let mut kill = Command::new("kill");
    let sent = kill.env("LC_ALL", "C").arg(format!("-{signal}")).args(processes).output().expect("kill");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.lines().all(|line| line.contains("No such process")), "{said}");
}

/// Detaches a loop device, and waits until its last user has closed it.
pub fn detach(device: &Path) {
    let name = device.file_name().expect("a device").to_string_lossy().into_owned();
    let backing_file = || fs::read(format!("/sys/block/{name}/loop/backing_file")).ok();
    let before = backing_file();
    Command::new("losetup").arg("--detach").arg(device).status().ok();
    // A test that failed may still use it.
    if !std::thread::panicking() {
        wait_until("the loop device is free", || before.is_none() || backing_file() != before);
    }
}

/// A row of a load: seconds, sector, sectors, `R` or `W`.
pub type Row = (f64, u64, u64, char);

/// A load in the classic text format.
pub fn text(rows: &[Row]) -> String {
    let lines = rows.iter().map(|(at, sector, sectors, op)| format!("{at:.9} ; {sector} ; {sectors} ; {op}\n"));
    "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n".to_owned() + &lines.collect::<String>()
}

/// Adjacent requests, one each millisecond, every third a read.
pub fn adjacent_requests(requests: u64, sectors: u64) -> Vec<Row> {
    (0..requests).map(|i| (i as f64 / 1e3, i * sectors, sectors, if i % 3 == 0 { 'R' } else { 'W' })).collect()
}

/// A file of ones that is marked as an iosonar target, if its file system has extended attributes.
pub fn marked_target(path: &Path, bytes: u64) {
    fs::write(path, vec![1; bytes as usize]).expect("a file");
    let file = File::open(path).expect("just written");
    file.sync_all().expect("fsync");
    iosonar_device::content::mark(&file);
}

/// A directory in memory for a test's loads, targets and results.
pub struct Bench {
    directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        iosonar_testing::default_signals();
        Self { directory: tempfile::tempdir_in("/dev/shm").expect("a directory in memory") }
    }

    /// The same on a disk, for what file systems in memory cannot do before Linux 6.6.
    pub fn on_disk() -> Self {
        Self { directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Names of the files in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A file with that text.
    pub fn text(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    /// A load of these rows.
    pub fn load(&self, rows: &[Row]) -> PathBuf {
        self.text("a.load", &text(rows))
    }

    /// A load with operations or flags that the classic text cannot represent.
    pub fn parquet(&self, requests: &[Request]) -> PathBuf {
        let path = self.path("a.load.parquet");
        let known = Metadata::new(Kind::Load, "test");
        let mut writer = iosonar_trace::create_load(&path, &known).expect("a load can be written");
        for request in requests {
            writer.write(request).expect("a row");
        }
        writer.finish(&known).expect("a footer");
        path
    }

    /// A load of a host with the devices sda, sdb and sdc, each of 4 MiB.
    pub fn host(&self, requests: &[(u16, Request)]) -> PathBuf {
        let path = self.path("host.load.parquet");
        let mut known = Metadata::new(Kind::Load, "test");
        known.devices = ["sda", "sdb", "sdc"].map(|name| Device { name: name.into(), sectors: Some(8192) }).into();
        let mut writer = iosonar_trace::create_load(&path, &known).expect("a load can be written");
        for &(device, request) in requests {
            writer.write(&Request { device: DeviceId(device), ..request }).expect("a row");
        }
        writer.finish(&known).expect("a footer");
        path
    }

    /// A file to replay on.
    pub fn target(&self, bytes: u64) -> PathBuf {
        let path = self.path("target");
        File::create(&path).and_then(|f| f.set_len(bytes)).expect("a file of that size");
        path
    }

    /// `iosonar replay LOAD --target TARGET --output r.replay.parquet`, not yet started.
    pub fn command(&self, load: &Path, target: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.arg("replay").arg(load).arg("--target").arg(target);
        if !more.contains(&"--output") {
            command.arg("--output").arg(self.path("r.replay.parquet"));
        }
        command.current_dir(self.directory.path()).args(more).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Replays to the end.
    pub fn replay(&self, load: &Path, target: &Path, more: &[&str]) -> Finished {
        Finished::of(self.command(load, target, more).output().expect("a child process"), self.path("r.replay.parquet"))
    }

    /// Starts a replay, and returns when its first eighty requests are in the journal.
    pub fn start(&self, load: &Path, target: &Path, more: &[&str]) -> Running {
        self.start_as("r.replay.parquet", load, target, more)
    }

    /// The same with another name for the result.
    pub fn start_as(&self, result: &str, load: &Path, target: &Path, more: &[&str]) -> Running {
        let child = self.command(load, target, more).spawn().expect("a child process");
        let running = Running { child: Some(child), result: self.path(result) };
        wait_until("the journal has entries", || self.journaled(result) >= 80);
        running
    }

    /// The entries so far of the journal of a running replay.
    pub fn journaled(&self, result: &str) -> usize {
        let directory = tempfile::tempdir().unwrap();
        // The run holds a lock on its journal.
        let copy = directory.path().join("copy.journal");
        if fs::copy(self.path(&format!("{result}.journal")), &copy).is_err() {
            return 0;
        }
        // It is incomplete until its header is written.
        let Ok(mut journal) = Journal::<IoResult>::open(&copy) else { return 0 };
        std::iter::from_fn(|| journal.next_entry().expect("a readable file")).count()
    }
}

/// A replay in progress.
pub struct Running {
    child: Option<Child>,
    result: PathBuf,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("a child process").id()
    }

    pub fn signal(&self, name: &str) {
        run("kill", &[format!("-{name}").as_ref(), self.id().to_string().as_ref()]);
    }

    pub fn end(mut self) -> Finished {
        let child = self.child.take().expect("a child process");
        Finished::of(output_of(child), self.result.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only if the test failed.
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A finished replay: exit code, output and result.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub result: PathBuf,
}

impl Finished {
    pub fn of(output: Output, result: PathBuf) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr), result }
    }

    /// Asserts the exit code.
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Asserts exit code 1 or 2, and an error with all of these words.
    pub fn refused(self, words: &[&str]) -> Self {
        assert!(matches!(self.code, Some(1 | 2)), "{:?}: {}", self.code, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
        self
    }

    pub fn rows(&self) -> Vec<IoResult> {
        read_run(&self.result).0
    }

    pub fn footer(&self) -> Metadata {
        read_run(&self.result).1
    }

    /// The closing statistics from the result's footer.
    pub fn statistics(&self) -> Value {
        self.run()["statistics"].clone()
    }

    /// The `run` entry of the footer, as JSON.
    pub fn run(&self) -> Value {
        serde_json::to_value(self.footer().run.expect("a run")).expect("plain data")
    }

    /// Rows in the order of the load.
    pub fn by_request(&self) -> Vec<IoResult> {
        let mut rows = self.rows();
        rows.sort_by_key(|r| r.request);
        rows
    }
}

/// All rows of a result, and its footer.
pub fn read_run(path: &Path) -> (Vec<IoResult>, Metadata) {
    let Opened::Run(mut reader) = iosonar_trace::open(path).expect("a result was written") else {
        panic!("{} is not a result", path.display());
    };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().expect("a readable row") {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

/// A request of a load in Parquet.
pub fn request(at: f64, op: Op, sector: u64, sectors: u64) -> Request {
    Request::new(Nanos::from_secs(at), op, Sector(sector), Sectors(sectors))
}
