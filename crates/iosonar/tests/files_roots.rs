//! Which directories are roots of `iosonar files`, and that devices below them obey the rules for targets.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iosonar_files::{AT_FDCWD, Call, CallKind, CallResult, Metadata, Name, table};
use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Nanos, Writer as _};
use tempfile::TempDir;

/// A trace that opens a path, writes and closes it; and one that truncates a path.
fn write_trace(to: &Path, opens: &str, flags: i32, truncates: Option<&str>) {
    let metadata = Metadata { complete: true, ..Metadata::default() };
    let mut writer = table::create(to, &metadata).unwrap();
    let call = |at: i64, kind| Call {
        process: 100,
        duration: Some(Nanos(1000)),
        result: Some(0),
        ..Call::new(Nanos(at * 10_000), 100, kind)
    };
    let open = call(0, CallKind::Openat);
    let path = |path: &str| Some(Name::from(path));
    let open = Call { fd: Some(AT_FDCWD), path: path(opens), flags: flags as u64, result: Some(3), ..open };
    let write = Call { fd: Some(3), length: Some(4096), result: Some(4096), ..call(1, CallKind::Write) };
    let sync = Call { fd: Some(3), ..call(2, CallKind::Fsync) };
    let close = Call { fd: Some(3), ..call(3, CallKind::Close) };
    let truncate = truncates.map(|name| Call { path: path(name), length: Some(0), ..call(4, CallKind::Truncate) });
    [open, write, sync, close].iter().chain(&truncate).for_each(|call| writer.write(call).unwrap());
    writer.finish(&metadata).unwrap();
}

struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        iosonar_testing::default_signals();
        let bench = Self(tempfile::tempdir_in("/dev/shm").unwrap());
        write_trace(&bench.trace(), "/d/f", libc::O_CREAT | libc::O_WRONLY, None);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn trace(&self) -> PathBuf {
        self.path("t.calls.parquet")
    }

    fn files(&self, command: &str, root: &Path, more: &[&str]) -> Output {
        let mut files = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        files.args(["files", command]).arg(self.trace()).arg("--root").arg(root).args(more);
        if command == "replay" {
            files.arg("--output").arg(self.result()).args(["--overwrite", "--wait", "hybrid", "--timing", "asap"]);
        }
        files.output().unwrap()
    }

    fn result(&self) -> PathBuf {
        self.path("r.calls-run.parquet")
    }

    fn errors(&self) -> Vec<i32> {
        let mut reader = table::open_run(&self.result()).unwrap();
        let mut rows: Vec<CallResult> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        rows.sort_by_key(|row| row.call);
        rows.iter().map(|row| row.errno).collect()
    }
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn directories_of_the_kernel_are_no_roots() {
    let bench = Bench::new();
    for root in ["/proc", "/proc/self/root/proc/sys", "/sys", "/sys/kernel"] {
        for command in ["replay", "prepare", "check"] {
            let output = bench.files(command, Path::new(root), &["--unprepared"][..usize::from(command == "replay")]);
            let found = message(&output);
            assert_eq!(output.status.code(), Some(1), "{command} {root}: {found}");
            assert!(found.contains("is in a file system of the kernel"), "{command} {root}: {found}");
        }
    }
    let output = bench.files("prepare", Path::new("/proc"), &["--reset", "--instances", "2"]);
    assert!(message(&output).contains("is in a file system of the kernel"), "{}", message(&output));
    let tree = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["files", "record", "--with", "strace", "--tree", "/proc/sys", "--output"])
        .arg(bench.path("x.calls.parquet"))
        .args(["--", "true"])
        .output()
        .unwrap();
    assert!(message(&tree).contains("is in a file system of the kernel"), "{}", message(&tree));
}

#[test]
fn no_root_is_made_in_a_control_group() {
    if left_out(Need::Root) || !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        return;
    }
    let bench = Bench::new();
    let group = Path::new("/sys/fs/cgroup/iosonar-no-root");
    assert_eq!(bench.files("prepare", group, &[]).status.code(), Some(1));
    assert!(!group.exists());
}

#[test]
fn the_directory_of_an_instance_is_no_link() {
    let bench = Bench::new();
    let (root, outside) = (bench.path("root"), bench.path("outside"));
    [&root, &outside].iter().for_each(|path| fs::create_dir(path).unwrap());
    symlink(&outside, root.join("instance-0")).unwrap();
    for command in ["prepare", "check", "replay"] {
        assert_eq!(bench.files(command, &root, &["--instances", "2"]).status.code(), Some(1), "{command}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_copy_of_a_root_is_not_reset() {
    let bench = Bench::new();
    // With extended attributes, and without.
    for dir in ["/dev/shm", "/tmp"] {
        let directory = tempfile::tempdir_in(dir).unwrap();
        let [root, copy, moved] = ["root", "copy", "moved"].map(|name| directory.path().join(name));
        assert!(bench.files("prepare", &root, &[]).status.success());
        assert!(Command::new("cp").arg("-a").args([&root, &copy]).status().unwrap().success());
        for name in [&root, &copy] {
            fs::write(name.join("own"), "precious").unwrap();
        }
        let output = bench.files("prepare", &copy, &["--reset"]);
        assert_eq!(output.status.code(), Some(1), "{}", message(&output));
        assert!(message(&output).contains("a copy of what it made is not either"), "{}", message(&output));
        assert_eq!(fs::read_to_string(copy.join("own")).unwrap(), "precious");
        // The file that marks a root where there are no attributes is copied, too.
        fs::write(copy.join(".iosonar-root"), "1").unwrap();
        assert_eq!(bench.files("prepare", &copy, &["--reset"]).status.code(), Some(1));
        fs::rename(&root, &moved).unwrap();
        assert!(bench.files("prepare", &moved, &["--reset"]).status.success());
        assert!(!moved.join("own").exists());
    }
}

/// The first bytes of a device.
fn beginning(device: &LoopDevice) -> Vec<u8> {
    fs::read(device.backing_file()).unwrap()[..8192].to_vec()
}

#[test]
fn a_block_device_below_the_root_obeys_the_rules_for_targets() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(16 << 20);
    let number = fs::metadata(device.path()).unwrap().rdev();
    assert!(Command::new("mkfs.ext4").arg("-q").arg(device.path()).status().unwrap().success());
    let root = bench.path("root");
    fs::create_dir_all(root.join("d")).unwrap();
    let (major, minor) = (libc::major(number).to_string(), libc::minor(number).to_string());
    let made = Command::new("mknod").arg(root.join("d/f")).args(["b", &major, &minor]).status().unwrap();
    assert!(made.success());
    let replay = |more: &[&str]| {
        let output = bench.files("replay", &root, &[&["--unprepared"], more].concat());
        (bench.errors()[0], message(&output))
    };
    let before = beginning(&device);
    let (errno, _) = replay(&[]);
    assert_eq!((errno, beginning(&device) == before), (libc::ENXIO, true), "without --special-files");
    let mount = Mount::new(bench.path("mounted"), ["-o".as_ref(), "ro".as_ref(), device.path().as_os_str()]);
    let before = beginning(&device);
    for more in [&["--special-files"][..], &["--special-files", "--force"]] {
        let (errno, text) = replay(more);
        assert_eq!((errno, beginning(&device) == before), (libc::EBUSY, true), "{more:?}: {text}");
        assert!(text.contains("/d/f, a node of device") && text.contains("mounted on"), "{text}");
    }
    drop(mount);
    let before = beginning(&device);
    let (errno, text) = replay(&["--special-files"]);
    assert_eq!((errno, beginning(&device) == before), (libc::EBUSY, true), "{text}");
    assert!(text.contains("contains ext4"), "{text}");
    let (errno, text) = replay(&["--special-files", "--force"]);
    assert_eq!((errno, beginning(&device) == before), (0, false), "{text}");
}

#[test]
fn character_devices_with_effects_are_not_opened() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let root = bench.path("root");
    fs::create_dir_all(root.join("d")).unwrap();
    for (minor, expected) in [("1", libc::ENXIO), ("3", 0)] {
        let node = root.join("d/f");
        let _ = fs::remove_file(&node);
        assert!(Command::new("mknod").arg(&node).args(["c", "1", minor]).status().unwrap().success());
        bench.files("replay", &root, &["--unprepared", "--special-files"]);
        assert_eq!(bench.errors()[0], expected, "1:{minor}");
    }
}

#[test]
fn a_proc_mounted_below_the_root_in_a_replay_leads_nowhere() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let (root, outside) = (bench.path("root"), bench.path("outside"));
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(&outside, "precious").unwrap();
    // The calls after the first begin a second later.
    let way = format!("/d/self/root{}", outside.display());
    let metadata = Metadata { complete: true, ..Metadata::default() };
    let mut writer = table::create(&bench.trace(), &metadata).unwrap();
    for (at, path) in [(0, "/start".to_owned()), (1_000_000_000, way.clone()), (1_000_100_000, way)] {
        let call = Call::new(Nanos(at), 100, CallKind::Truncate);
        let (path, duration) = (Some(Name::from(path.as_str())), Some(Nanos(1000)));
        writer.write(&Call { process: 100, path, duration, length: Some(0), result: Some(0), ..call }).unwrap();
    }
    writer.finish(&metadata).unwrap();
    fs::write(root.join("start"), "started").unwrap();
    let mut replay = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["files", "replay"])
        .args([bench.trace().as_os_str(), "--root".as_ref(), root.as_os_str()])
        .args(["--output".as_ref(), bench.result().as_os_str()])
        .args(["--unprepared", "--wait", "hybrid"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while fs::metadata(root.join("start")).unwrap().len() > 0 {
        assert!(replay.try_wait().unwrap().is_none(), "the replay has begun");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mount = Mount::new(root.join("d"), ["-t", "proc", "proc"]);
    iosonar_testing::ended(&mut replay);
    drop(mount);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
    assert_eq!(bench.errors(), [0, libc::ENOENT, libc::ENOENT]);
}
