//! What is in use is never overwritten, however it is used and whatever it is called. After each refusal the target holds what
//! it held.

#[allow(unsafe_code, reason = "system calls that no library wraps")]
mod kernel;
#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod replaying;

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

use replaying::{Bench, MIB, Ran, run, side_by_side};

/// A replay and a wipe that must be refused, with and without `--force`, in words that hold all of `words`.
fn refused(bench: &Bench, target: &Path, words: &[&str]) {
    for more in [&[][..], &["--force"]] {
        bench.replay(&bench.path("a.load"), target, &[&["--overwrite"][..], more].concat()).refused(words);
        wipe(target, more).refused(words);
    }
}

fn wipe(target: &Path, more: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(["device", "wipe"]).arg(target).args(more).output().expect("it runs");
    Ran::of(output, PathBuf::new())
}

fn replayed(bench: &Bench, target: &Path, more: &[&str]) -> Ran {
    let ran = bench.replay(&bench.path("a.load"), target, &[&["--overwrite"][..], more].concat());
    ran.with_code(0)
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.load(&side_by_side(10, 8));
    bench
}

/// Another loop device, set up with these words of losetup(8) until it is dropped.
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
        Command::new("losetup").arg("--detach").arg(&self.0).status().ok();
    }
}

fn behind(upper: &Upper) -> String {
    format!("attached to {}", upper.0.display())
}

/// Two partitions, of 16 MiB each, from 1 MiB on.
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
fn a_partition_is_refused_where_its_disk_is_used() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, second])) = (bench(), partitioned());
    // A loop device over what is the first partition, but by way of the disk.
    let upper = Upper::new(disk.path(), &["--offset=1048576", "--sizelimit=16777216"]);
    run("mkfs.ext4", &["-q".as_ref(), upper.0.as_os_str()]);
    let _mount = Mount::new(bench.path("mounted"), [&upper.0]);
    refused(&bench, &first, &["its disk", &behind(&upper)]);
    refused(&bench, disk.path(), &[&behind(&upper)]);
    replayed(&bench, &second, &[]);
}

#[test]
fn a_loop_device_is_refused_where_what_it_stands_on_is_used() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, _])) = (bench(), partitioned());
    // Over a partition, and another one over that.
    let (one, two) = (Upper::new(&first, &[]), Upper::new(disk.path(), &["--offset=1048576", "--sizelimit=16777216"]));
    refused(&bench, &one.0, &["its disk", &behind(&two)]);
    drop(two);
    let top = Upper::new(&one.0, &[]);
    replayed(&bench, &top.0, &[]);
    run("mkfs.ext4", &["-q".as_ref(), first.as_os_str()]);
    let mount = Mount::new(bench.path("mounted"), [&first]);
    refused(&bench, &top.0, &["its backing file", "mounted on"]);
    drop(mount);
    // Two over one file.
    let file = bench.path("file");
    File::create(&file).unwrap().set_len(32 * MIB).unwrap();
    let (low, all) = (Upper::new(&file, &["--sizelimit=16777216"]), Upper::new(&file, &[]));
    refused(&bench, &low.0, &[&behind(&all)]);
    drop(all);
    let _high = Upper::new(&file, &["--offset=16777216"]);
    replayed(&bench, &low.0, &[]);
}

#[test]
fn what_stands_behind_a_loop_device_is_found_by_its_inode() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let folder = bench.path("folder");
    fs::create_dir(&folder).unwrap();
    for name in ["plain", "a b\\040\tc", "line\nend", "x (deleted)"] {
        let (file, hard) = (folder.join(name), bench.path("hard"));
        File::create(&file).unwrap().set_len(16 * MIB).unwrap();
        let upper = Upper::new(&file, &[]);
        refused(&bench, &file, &[&behind(&upper)]);
        fs::hard_link(&file, &hard).unwrap();
        fs::remove_file(&file).unwrap();
        refused(&bench, &hard, &[&behind(&upper)]);
        drop(upper);
        fs::remove_file(&hard).unwrap();
    }
    // Covered by another file system, it has a path only here.
    let (file, hard) = (folder.join("covered"), bench.path("hard"));
    File::create(&file).unwrap().set_len(16 * MIB).unwrap();
    let upper = Upper::new(&file, &[]);
    fs::hard_link(&file, &hard).unwrap();
    let _mount = Mount::new(&folder, ["-t", "tmpfs", "none"]);
    refused(&bench, &hard, &[&behind(&upper)]);
}

/// A file system on a disk of its own: there are things that no file in memory can be.
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
    refused(&bench, &file, &["in use as swap"]);
}

#[test]
fn a_file_that_is_mounted_without_a_loop_device_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let (mount, _device) = on_disk(&bench);
    let (image, place) = (mount.path().join("an image"), mount.path().join("there"));
    fs::write(&image, kernel::erofs()).unwrap();
    fs::create_dir(&place).unwrap();
    if !kernel::mount_erofs(&image, &place) {
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
    refused(&bench, &image, &["mounted on"]);
    // Mounted where only another process sees it.
    let away = Command::new("unshare").args(["--mount", "sleep", "60"]).spawn().unwrap();
    let away = Killed(away);
    thread::sleep(Duration::from_millis(300));
    drop(_unmounted);
    refused(&bench, &image, &["mounted on", "in the mount namespace of sleep"]);
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
fn a_file_that_another_program_writes_is_refused() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let me = format!("(process {})", std::process::id());
    let open = File::options().append(true).open(&target).unwrap();
    refused(&bench, &target, &["open for writing by", &me]);
    drop(open);
    // The descriptor is closed, the mapping is not.
    let mapped = kernel::Mapped::new(&File::options().read(true).write(true).open(&target).unwrap());
    refused(&bench, &target, &["mapped for writing by", &me]);
    drop(mapped);
    // Who only reads is warned of.
    let open = File::open(&target).unwrap();
    let ran = replayed(&bench, &target, &[]);
    assert!(ran.stderr.contains("open for reading by") && ran.stderr.contains(&me), "{}", ran.stderr);
    // Unless he has locked it.
    kernel::lock_for_reading(&open);
    refused(&bench, &target, &["locked by", "fcntl"]);
    drop(open);
    let open = File::open(&target).unwrap();
    rustix::fs::flock(open.as_fd(), rustix::fs::FlockOperation::LockShared).unwrap();
    refused(&bench, &target, &["locked by", "flock", &me]);
    drop(open);
    let ran = replayed(&bench, &target, &[]);
    assert!(!ran.stderr.contains("open for"), "{}", ran.stderr);
}

#[test]
fn a_file_that_a_thread_with_descriptors_of_its_own_writes_is_refused() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let ((begun, is_begun), (end, is_ended)) = (mpsc::channel(), mpsc::channel::<()>());
    let path = target.clone();
    let thread = thread::spawn(move || {
        kernel::own_descriptors();
        let _open = File::options().append(true).open(path).unwrap();
        begun.send(()).unwrap();
        is_ended.recv().unwrap_err();
    });
    is_begun.recv().unwrap();
    refused(&bench, &target, &["open for writing by"]);
    drop(end);
    thread.join().unwrap();
    replayed(&bench, &target, &[]);
}

#[test]
fn a_leased_file_is_refused_without_waiting_for_it() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let open = File::open(&target).unwrap();
    kernel::lease(&open);
    refused(&bench, &target, &["leased to", &format!("(process {}", std::process::id())]);
}

#[test]
fn a_device_that_another_program_writes_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, (disk, [first, second])) = (bench(), partitioned());
    let me = format!("(process {})", std::process::id());
    let open = File::options().write(true).open(&first).unwrap();
    refused(&bench, &first, &["open for writing by", &me]);
    refused(&bench, disk.path(), &["its partition", "open for writing by", &me]);
    replayed(&bench, &second, &[]);
    drop(open);
    let open = File::options().write(true).open(disk.path()).unwrap();
    refused(&bench, &first, &["its disk", "open for writing by", &me]);
    drop(open);
    let _open = File::open(&first).unwrap();
    let ran = replayed(&bench, &first, &[]);
    assert!(ran.stderr.contains("open for reading by") && ran.stderr.contains(&me), "{}", ran.stderr);
}

#[test]
fn two_replays_on_one_file_exclude_each_other() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    let long = bench.text("long.load", &replaying::text(&side_by_side(60_000, 8)));
    let more = ["--verify=final", "--output", "long.replay.parquet"];
    let running = bench.begin_as("long.replay.parquet", &long, &target, &more);
    refused(&bench, &target, &["open for writing by iosonar (process "]);
    running.signal("INT");
    let ran = running.end().with_code(5);
    assert_eq!(ran.statistics()["verify"]["mismatches"], 0, "{}", ran.statistics()["verify"]);
    replayed(&bench, &target, &[]);
}

#[test]
fn a_link_that_leads_elsewhere_meanwhile_changes_nothing() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, free, precious) = (bench(), LoopDevice::new(32 * MIB), LoopDevice::new(32 * MIB));
    run("mkfs.ext4", &["-q".as_ref(), precious.path().as_os_str()]);
    let before = fs::read(precious.path()).unwrap();
    let (link, next) = (bench.path("link"), bench.path("next"));
    symlink(free.path(), &link).unwrap();
    let over = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
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
                _ => refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(fs::read(precious.path()).unwrap() == before, "{done} were done, {refused} refused");
    assert!(done > 0 && refused > 0, "{done} were done, {refused} refused");
}
