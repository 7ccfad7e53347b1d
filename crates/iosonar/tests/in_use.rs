//! A target in use is never overwritten, in whatever way it is used or named. After each refusal the target is
//! unchanged.

use crate::replaying;
use crate::syscalls;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, detach, run, wait_until};

/// Asserts that replay and wipe are assert_refused, with and without `--force`, with errors that contain all of
/// `words`.
fn assert_refused(bench: &Bench, target: &Path, words: &[&str]) {
    for more in [&[][..], &["--force"]] {
        bench.replay(&bench.path("a.load"), target, &[&["--overwrite"][..], more].concat()).refused(words);
        wipe(target, more).refused(words);
    }
}

fn wipe(target: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(["device", "wipe"]).arg(target).args(more).output().expect("it runs");
    Finished::of(output, PathBuf::new())
}

fn replayed(bench: &Bench, target: &Path, more: &[&str]) -> Finished {
    let ran = bench.replay(&bench.path("a.load"), target, &[&["--overwrite"][..], more].concat());
    ran.with_code(0)
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.load(&adjacent_requests(10, 8));
    bench
}

/// Another loop device, set up with these options of losetup(8); detached when dropped.
struct Upper(PathBuf);

impl Upper {
    fn new(over: &Path, more: &[&str]) -> Self {
        let output = Command::new("losetup").args(["--find", "--show"]).args(more).arg(over).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Self(String::from_utf8(output.stdout).unwrap().trim().into())
    }
}

impl Drop for Upper {
    fn drop(&mut self) {
        detach(&self.0);
    }
}

fn backing_file(upper: &Upper) -> String {
    format!("attached to {}", upper.0.display())
}

/// A device with two partitions of 16 MiB each, from 1 MiB on.
fn partitioned() -> (LoopDevice, [PathBuf; 2]) {
    let disk = LoopDevice::new(64 * MIB);
    for (number, start) in [("1", "2048"), ("2", "34816")] {
        run("addpart", &[disk.path().as_os_str(), number.as_ref(), start.as_ref(), "32768".as_ref()]);
    }
    let partition = |number| PathBuf::from(format!("{}p{number}", disk.path().display()));
    let partitions = [partition(1), partition(2)];
    (disk, partitions)
}

#[test]
fn a_partition_is_refused_if_its_disk_is_in_use() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, second])) = (bench(), partitioned());
    // A loop device over the sectors of the first partition, opened through the disk.
    let upper = Upper::new(disk.path(), &["--offset=1048576", "--sizelimit=16777216"]);
    run("mkfs.ext4", &["-q".as_ref(), upper.0.as_os_str()]);
    let _mount = Mount::new(bench.path("mounted"), [&upper.0]);
    assert_refused(&bench, &first, &["its disk", &backing_file(&upper)]);
    assert_refused(&bench, disk.path(), &[&backing_file(&upper)]);
    replayed(&bench, &second, &[]);
}

#[test]
fn a_loop_device_is_refused_if_the_device_below_it_is_in_use() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, _])) = (bench(), partitioned());
    // A loop device over a partition, and another one over that.
    let (one, two) = (Upper::new(&first, &[]), Upper::new(disk.path(), &["--offset=1048576", "--sizelimit=16777216"]));
    assert_refused(&bench, &one.0, &["its disk", &backing_file(&two)]);
    drop(two);
    let top = Upper::new(&one.0, &[]);
    replayed(&bench, &top.0, &[]);
    run("mkfs.ext4", &["-q".as_ref(), first.as_os_str()]);
    let mount = Mount::new(bench.path("mounted"), [&first]);
    assert_refused(&bench, &top.0, &["its backing file", "mounted on"]);
    drop(mount);
    // Two loop devices over one file.
    let file = bench.path("file");
    File::create(&file).unwrap().set_len(32 * MIB).unwrap();
    let (low, all) = (Upper::new(&file, &["--sizelimit=16777216"]), Upper::new(&file, &[]));
    assert_refused(&bench, &low.0, &[&backing_file(&all)]);
    drop(all);
    let _high = Upper::new(&file, &["--offset=16777216"]);
    replayed(&bench, &low.0, &[]);
}

#[test]
fn the_backing_file_of_a_loop_device_is_found_by_its_inode() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let directory = bench.path("directory");
    fs::create_dir(&directory).unwrap();
    for name in ["plain", "a b\\040\tc", "line\nend", "x (deleted)"] {
        let (file, hard) = (directory.join(name), bench.path("hard"));
        File::create(&file).unwrap().set_len(16 * MIB).unwrap();
        let upper = Upper::new(&file, &[]);
        assert_refused(&bench, &file, &[&backing_file(&upper)]);
        fs::hard_link(&file, &hard).unwrap();
        fs::remove_file(&file).unwrap();
        assert_refused(&bench, &hard, &[&backing_file(&upper)]);
        drop(upper);
        fs::remove_file(&hard).unwrap();
    }
    // After another file system was mounted over it, the path is reachable only through this descriptor.
    let (file, hard) = (directory.join("covered"), bench.path("hard"));
    File::create(&file).unwrap().set_len(16 * MIB).unwrap();
    let upper = Upper::new(&file, &[]);
    fs::hard_link(&file, &hard).unwrap();
    let _mount = Mount::new(&directory, ["-t", "tmpfs", "none"]);
    assert_refused(&bench, &hard, &[&backing_file(&upper)]);
}

/// A file system on a device, for what files in memory cannot be.
fn on_disk(bench: &Bench) -> (Mount, LoopDevice) {
    let device = LoopDevice::new(128 * MIB);
    run("mkfs.ext4", &["-q".as_ref(), device.path().as_os_str()]);
    (Mount::new(bench.path("disk"), [device.path()]), device)
}

#[test]
fn a_swap_file_of_any_name_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    struct Off(PathBuf);
    impl Drop for Off {
        fn drop(&mut self) {
            Command::new("swapoff").arg(&self.0).status().ok();
        }
    }
    let bench = bench();
    let (mount, _device) = on_disk(&bench);
    let file = mount.path().join("a swap\tfile\\040");
    fs::write(&file, vec![0; 16 * MIB as usize]).unwrap();
    run("chmod", &["600".as_ref(), file.as_os_str()]);
    run("mkswap", &["-q".as_ref(), file.as_os_str()]);
    run("swapon", &[file.as_os_str()]);
    let _off = Off(file.clone());
    assert_refused(&bench, &file, &["in use as swap"]);
}

#[test]
fn a_file_that_is_mounted_without_a_loop_device_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let (mount, _device) = on_disk(&bench);
    let (image, place) = (mount.path().join("an image"), mount.path().join("there"));
    fs::write(&image, syscalls::erofs()).unwrap();
    fs::create_dir(&place).unwrap();
    if !syscalls::mount_erofs(&image, &place) {
        eprintln!("left out: this kernel mounts no files");
        return;
    }
    struct Unmounted(PathBuf);
    impl Drop for Unmounted {
        fn drop(&mut self) {
            Command::new("umount").arg(&self.0).status().ok();
        }
    }
    let _unmounted = Unmounted(place);
    assert_refused(&bench, &image, &["mounted on"]);
    // Mounted in the mount namespace of another process.
    let away = Command::new("unshare").args(["--mount", "sleep", "60"]).spawn().unwrap();
    let away = Killed(away);
    let name = format!("/proc/{}/comm", away.0.id());
    wait_until("it has its own mounts", || fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n"));
    drop(_unmounted);
    assert_refused(&bench, &image, &["mounted on", "in the mount namespace of sleep"]);
    drop(away);
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_file_that_another_process_has_open_for_writing_is_refused() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let me = format!("(process {})", std::process::id());
    let open = File::options().append(true).open(&target).unwrap();
    assert_refused(&bench, &target, &["open for writing by", &me]);
    drop(open);
    // The descriptor is closed, the mapping is not.
    let mapped = syscalls::Mapped::new(&File::options().read(true).write(true).open(&target).unwrap());
    assert_refused(&bench, &target, &["mapped for writing by", &me]);
    drop(mapped);
    // A reader only causes a warning.
    let open = File::open(&target).unwrap();
    let ran = replayed(&bench, &target, &[]);
    assert!(ran.stderr.contains("open for reading by") && ran.stderr.contains(&me), "{}", ran.stderr);
    // Unless it holds a lock.
    syscalls::lock_for_reading(&open);
    assert_refused(&bench, &target, &["locked by", "fcntl"]);
    drop(open);
    let open = File::open(&target).unwrap();
    rustix::fs::flock(open.as_fd(), rustix::fs::FlockOperation::LockShared).unwrap();
    assert_refused(&bench, &target, &["locked by", "flock", &me]);
    drop(open);
    let ran = replayed(&bench, &target, &[]);
    assert!(!ran.stderr.contains("open for"), "{}", ran.stderr);
}

#[test]
fn a_file_open_in_an_unshared_descriptor_table_is_refused() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let ((started, has_started), (end, is_ended)) = (mpsc::channel(), mpsc::channel::<()>());
    let path = target.clone();
    let thread = thread::spawn(move || {
        syscalls::own_descriptors();
        let _open = File::options().append(true).open(path).unwrap();
        started.send(()).unwrap();
        is_ended.recv().unwrap_err();
    });
    has_started.recv().unwrap();
    assert_refused(&bench, &target, &["open for writing by"]);
    drop(end);
    thread.join().unwrap();
    replayed(&bench, &target, &[]);
}

#[test]
fn a_file_with_a_lease_is_refused_without_waiting() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let open = File::open(&target).unwrap();
    syscalls::lease(&open);
    assert_refused(&bench, &target, &["leased to", &format!("(process {}", std::process::id())]);
}

#[test]
fn a_device_that_another_process_writes_to_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, second])) = (bench(), partitioned());
    let me = format!("(process {})", std::process::id());
    let open = File::options().write(true).open(&first).unwrap();
    assert_refused(&bench, &first, &["open for writing by", &me]);
    assert_refused(&bench, disk.path(), &["its partition", "open for writing by", &me]);
    replayed(&bench, &second, &[]);
    drop(open);
    let open = File::options().write(true).open(disk.path()).unwrap();
    assert_refused(&bench, &first, &["its disk", "open for writing by", &me]);
    drop(open);
    let _open = File::open(&first).unwrap();
    let ran = replayed(&bench, &first, &[]);
    assert!(ran.stderr.contains("open for reading by") && ran.stderr.contains(&me), "{}", ran.stderr);
}

#[test]
fn two_replays_on_one_file_exclude_each_other() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let long = bench.text("long.load", &replaying::text(&adjacent_requests(60_000, 8)));
    let more = ["--verify=final", "--output", "long.replay.parquet"];
    let running = bench.start_as("long.replay.parquet", &long, &target, &more);
    assert_refused(&bench, &target, &["open for writing by iosonar (process "]);
    running.signal("INT");
    let ran = running.end().with_code(5);
    assert_eq!(ran.statistics()["verify"]["mismatches"], 0, "{}", ran.statistics()["verify"]);
    replayed(&bench, &target, &[]);
}

#[test]
fn a_symbolic_link_that_changes_during_the_checks_does_no_harm() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, free, precious) = (bench(), LoopDevice::new(32 * MIB), LoopDevice::new(32 * MIB));
    run("mkfs.ext4", &["-q".as_ref(), precious.path().as_os_str()]);
    let before = fs::read(precious.path()).unwrap();
    let (link, next) = (bench.path("link"), bench.path("next"));
    symlink(free.path(), &link).unwrap();
    let over = AtomicBool::new(false);
    let (mut done, mut assert_refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for to in [precious.path(), free.path()] {
                    symlink(to, &next).unwrap();
                    fs::rename(&next, &link).unwrap();
                    thread::sleep(Duration::from_millis(4));
                }
            }
        });
        let load = bench.path("a.load");
        for number in 0..60 {
            let ran = match number % 4 {
                0 => wipe(&link, &[]),
                _ => bench.replay(&load, &link, &["--overwrite", "--asap"]),
            };
            match ran.code {
                Some(0) => done += 1,
                _ => assert_refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(fs::read(precious.path()).unwrap() == before, "{done} were done, {assert_refused} assert_refused");
    assert!(done > 0 && assert_refused > 0, "{done} were done, {assert_refused} assert_refused");
}
