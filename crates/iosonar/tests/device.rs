//! `iosonar device` on real devices: in use or not, intact or broken.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, run, wait_until};

fn command(words: &[&OsStr]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.arg("device").args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `iosonar device VERB PATH MORE...`
fn device(verb: &str, path: &Path, more: &[&str]) -> Finished {
    let words: Vec<&OsStr> = [verb.as_ref(), path.as_os_str()].into_iter().chain(more.iter().map(OsStr::new)).collect();
    Finished::of(command(&words).output().expect("it runs"), PathBuf::new())
}

fn json(ran: &Finished) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

/// Writes nonzero data at that byte offset.
fn fill(path: &Path, from: u64, bytes: u64) {
    File::options().write(true).open(path).unwrap().write_all_at(&vec![7; bytes as usize], from).unwrap();
}

/// Restores the machine, also if the test fails.
struct Undo(&'static str, Vec<PathBuf>);

impl Drop for Undo {
    fn drop(&mut self) {
        Command::new(self.0).args(&self.1).status().ok();
    }
}

/// Makes a file system on the device and mounts it until the end of the test.
fn mounted(bench: &Bench, device: &LoopDevice) -> Mount {
    run("mkfs.ext4", &["-q".as_ref(), "-L".as_ref(), "home".as_ref(), device.path().as_os_str()]);
    Mount::new(bench.path("mounted"), [device.path()])
}

#[test]
fn inspect_estimates_the_zero_share_of_a_device() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::new(256 * MIB);
    fill(loop_device.path(), 0, 64 * MIB);
    let found = json(&device("inspect", loop_device.path(), &["--json"]).with_code(0));
    assert_eq!((&found["kind"], found["bytes"].as_u64()), (&"block".into(), Some(256 * MIB)));
    let sample = &found["sample"];
    assert_eq!((sample["samples"].as_u64(), &sample["exact"]), (Some(4096), &false.into()));
    // The sample is stratified: only the stratum at the boundary can fall either way.
    assert!((sample["zero_share"].as_f64().unwrap() - 0.75).abs() < 1e-3, "{sample}");
    let (low, high) = (sample["zero_share_95"][0].as_f64().unwrap(), sample["zero_share_95"][1].as_f64().unwrap());
    assert!(0.7 < low && low < 0.75 && 0.75 < high && high < 0.8, "{sample}");
    assert_eq!(sample["map"], format!("{}{}", "#".repeat(15), ".".repeat(45)));

    let ran = device("inspect", loop_device.path(), &[]).with_code(0);
    for words in
        ["all zero     about 75", "95 % confidence", "is all zeros: reads of never-written areas", "device wipe"]
    {
        assert!(ran.stdout.contains(words), "no {words:?} in {}", ran.stdout);
    }
    let none = json(&device("inspect", loop_device.path(), &["--json", "--samples", "0"]).with_code(0));
    assert!(none["sample"].is_null());
}

#[test]
fn inspect_reports_the_queue_attributes_of_sysfs() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::with_block_size(16 * MIB, 4096);
    let found = json(&device("inspect", loop_device.path(), &["--json"]).with_code(0));
    let name = loop_device.path().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!((&found["disk"]["name"], &found["disk"]["is_partition"]), (&name.clone().into(), &false.into()));
    for (key, file) in [
        ("logical_block_bytes", "logical_block_size"),
        ("physical_block_bytes", "physical_block_size"),
        ("nr_requests", "nr_requests"),
        ("max_sectors_kb", "max_sectors_kb"),
        ("max_hw_sectors_kb", "max_hw_sectors_kb"),
        ("discard_max_bytes", "discard_max_bytes"),
        ("write_zeroes_max_bytes", "write_zeroes_max_bytes"),
        ("wbt_lat_usec", "wbt_lat_usec"),
    ] {
        // Attributes that the kernel lacks are null.
        let expected = fs::read_to_string(format!("/sys/block/{name}/queue/{file}")).ok();
        let expected = expected.and_then(|text| text.trim().parse::<u64>().ok());
        assert_eq!(found["queue"][key].as_u64(), expected, "{key}");
    }
    assert_eq!(found["queue"]["logical_block_bytes"], 4096);
}

#[test]
fn inspect_works_on_devices_in_use() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, loop_device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let mount = mounted(&bench, &loop_device);
    let place = mount.path();
    let found = json(&device("inspect", loop_device.path(), &["--json"]).with_code(0));
    assert_eq!(found["users"], serde_json::json!([format!("mounted on {}", place.display())]));
    assert_eq!(found["signatures"], serde_json::json!(["ext4 \"home\""]));
    assert!(found["sample"]["samples"].as_u64().unwrap() > 0);
    // Its backing file, too; and a file on it reports its disk and file system.
    let behind = json(&device("inspect", loop_device.backing_file(), &["--json"]).with_code(0));
    assert_eq!(behind["users"], serde_json::json!([format!("attached to {}", loop_device.path().display())]));
    let file = place.join("file");
    fs::write(&file, vec![1; 100_000]).unwrap();
    let found = json(&device("inspect", &file, &["--json"]).with_code(0));
    assert_eq!((&found["kind"], &found["mount"]["file_system"]), (&"file".into(), &"ext4".into()));
    assert_eq!(found["disk"]["name"], loop_device.path().file_name().unwrap().to_str().unwrap());
}

#[test]
fn inspect_finds_the_holes_of_a_file() {
    let bench = Bench::new();
    let target = bench.target(16 * MIB);
    fill(&target, 4 * MIB, MIB);
    let found = json(&device("inspect", &target, &["--json"]).with_code(0));
    assert_eq!(found["holes"], serde_json::json!({"count": 2, "bytes": 15 * MIB}));
    assert_eq!((&found["sample"]["exact"], &found["sample"]["zero_share"]), (&true.into(), &(15.0 / 16.0).into()));
    let ran = device("inspect", &target, &[]).with_code(0);
    assert!(ran.stdout.contains("holes        2, 93.8 % of the file; 1 MiB are allocated"), "{}", ran.stdout);
    let tiny = bench.text("tiny", "so little");
    assert!(json(&device("inspect", &tiny, &["--json"]).with_code(0))["sample"].is_null());
}

/// The size after compression by zstd, in bytes.
fn compressed(path: &Path) -> u64 {
    let output = Command::new("zstd").args(["-3", "--long=27", "--stdout", "--quiet"]).arg(path).output().unwrap();
    assert!(output.status.success(), "zstd: {output:?}");
    output.stdout.len() as u64
}

#[test]
fn wipe_writes_incompressible_data_without_duplicate_blocks() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::new(48 * MIB);
    let ran = device("wipe", loop_device.path(), &[]).with_code(0);
    assert!(ran.stderr.contains("48 MiB; overwriting all of it with random data"), "{}", ran.stderr);
    assert!(ran.stdout.contains("50.3 MB in"), "{}", ran.stdout);
    // `--long` finds repetitions within 128 MiB: data repeated each MiB would shrink to a fortieth.
    assert!(compressed(loop_device.backing_file()) >= 48 * MIB);
    let once = fs::read(loop_device.backing_file()).unwrap();
    device("wipe", loop_device.path(), &[]).with_code(0);
    let twice = fs::read(loop_device.backing_file()).unwrap();
    let blocks: HashSet<&[u8]> = once.chunks(4096).chain(twice.chunks(4096)).collect();
    assert_eq!(blocks.len() as u64, 2 * 48 * MIB / 4096, "no duplicate block within a wipe or between two");
    let read = json(&device("slurp", loop_device.path(), &["--json"]).with_code(0));
    assert_eq!((read["zero_share"].as_f64(), read["units"].as_u64()), (Some(0.0), Some(48 * 256)));
}

#[test]
fn wipe_fills_a_file_to_its_last_byte_and_keeps_its_size() {
    let bench = Bench::new();
    let target = bench.target(3 * MIB + 12_345);
    device("wipe", &target, &[]).with_code(0);
    let data = fs::read(&target).unwrap();
    assert_eq!(data.len() as u64, 3 * MIB + 12_345);
    assert!(data.chunks(64).all(|piece| piece.iter().any(|&byte| byte != 0)));
    let read = json(&device("slurp", &target, &["--json"]).with_code(0));
    assert_eq!((read["read_bytes"].as_u64(), &read["complete"]), (Some(3 * MIB + 12_345), &true.into()));
}

#[test]
fn wipe_fills_the_part_that_is_asked_for_and_no_other() {
    let bench = Bench::new();
    let bytes = 40 * MIB + 777;
    for (words, from, to, said) in [
        (&["--share", "40%"][..], 0, 16 * MIB, "its first 16 MiB"),
        (&["--range", "3M..5M"], 3 * MIB, 5 * MIB, "2 MiB from sector 6144 on"),
        (&["--range", "25%..50%"], 10 * MIB, 20 * MIB, "10 MiB from sector 20480 on"),
        (&["--range", "..1M"], 0, MIB, "its first 1 MiB"),
        (&["--range", "39M.."], 39 * MIB, bytes, "from sector 79872 on"),
        (&["--share", "100%"], 0, bytes, "all of it"),
    ] {
        let target = bench.path(&words.join(""));
        File::create(&target).and_then(|file| file.set_len(bytes)).unwrap();
        let ran = device("wipe", &target, words).with_code(0);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
        let data = fs::read(&target).unwrap();
        assert_eq!(data.len() as u64, bytes);
        for (number, piece) in data.chunks(512).enumerate() {
            let at = number as u64 * 512;
            assert_eq!(piece.iter().any(|byte| *byte != 0), (from..to).contains(&at), "{words:?}: byte {at}");
        }
    }
}

#[test]
fn a_wiped_range_begins_and_ends_at_blocks() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::with_block_size(16 * MIB, 4096);
    let ran = device("wipe", loop_device.path(), &["--range", "512..1M"]).with_code(2);
    assert!(ran.stderr.contains("byte 512 is not the border of a block of 4 KiB"), "{}", ran.stderr);
    device("wipe", loop_device.path(), &["--range", "4k..1M"]).with_code(0);
    let data = fs::read(loop_device.backing_file()).unwrap();
    let written: Vec<bool> = data.chunks(4096).map(|block| block.iter().any(|byte| *byte != 0)).collect();
    let expected: Vec<bool> = (0..4096).map(|block| (1..256).contains(&block)).collect();
    assert_eq!(written, expected);
}

/// Opened with O_EXCL. After `umount` a copy of the mount in another process's mount namespace may still hold the device.
fn claimed(device: &Path) -> File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut claim = None;
    wait_until("no mount holds the device", || {
        claim = File::options().read(true).write(true).custom_flags(0o200).open(device).ok();
        claim.is_some()
    });
    claim.unwrap()
}

#[test]
fn wipe_refuses_targets_in_use_and_targets_with_data() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, loop_device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let mount = mounted(&bench, &loop_device);
    let place = mount.path();
    for more in [&[][..], &["--force"]] {
        device("wipe", loop_device.path(), more).refused(&["mounted on", &place.display().to_string()]);
        device("wipe", loop_device.backing_file(), more).refused(&["attached to /dev/loop"]);
    }
    drop(mount);
    // Claimed exclusively, as LVM and RAID claim their devices.
    let claim = claimed(loop_device.path());
    device("wipe", loop_device.path(), &["--force"]).refused(&["in use"]);
    drop(claim);
    let before = fs::read(loop_device.backing_file()).unwrap();
    device("wipe", loop_device.path(), &[]).refused(&["contains ext4 \"home\"", "--force"]);
    assert!(fs::read(loop_device.backing_file()).unwrap() == before, "untouched");
    let ran = device("wipe", loop_device.path(), &["--force"]).with_code(0);
    assert!(ran.stderr.contains("with ext4 \"home\"; overwriting all of it"), "{}", ran.stderr);
    let found = json(&device("inspect", loop_device.path(), &["--json"]).with_code(0));
    assert_eq!(found["signatures"], serde_json::json!([]));
}

#[test]
fn an_interrupted_wipe_reports_where_it_stopped() {
    let bench = Bench::new();
    // More than it can write before the signal arrives.
    let target = bench.target(16 << 30);
    let child = command(&["wipe".as_ref(), target.as_os_str()]).spawn().expect("it runs");
    wait_until("something is written", || fs::metadata(&target).unwrap().blocks() > 0);
    run("kill", &["-INT".as_ref(), child.id().to_string().as_ref()]);
    let ran = Finished::of(iosonar_testing::output_of(child), PathBuf::new()).with_code(5);
    assert!(ran.stderr.contains("cut short") && ran.stderr.contains("unchanged from sector"), "{}", ran.stderr);
    let from = ran.stderr.split("from sector ").nth(1).and_then(|text| text.split(' ').next()).unwrap();
    let reached = from.parse::<u64>().expect("a number") * 512;
    assert!(reached > 0 && reached < 16 << 30, "{reached}");
    // The file has data up to the reported sector, and none after it.
    let found = json(&device("inspect", &target, &["--json", "--samples", "0"]).with_code(0));
    assert_eq!(found["holes"], serde_json::json!({"count": 1, "bytes": (16 << 30) - reached}));
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
}

#[test]
fn a_wipe_on_a_full_disk_reports_where_it_stopped() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let mount = Mount::new(bench.path("small"), ["-t", "tmpfs", "-o", "size=8m", "none"]);
    let target = mount.path().join("target");
    File::create(&target).and_then(|f| f.set_len(64 * MIB)).unwrap();
    let ran = device("wipe", &target, &[]).refused(&["No space left", "overwritten; unchanged"]);
    assert!(!ran.stdout.contains("MB/s"), "{}", ran.stdout);
}

#[test]
fn slurp_names_unreadable_regions() {
    if left_out(Need::Loop) {
        return;
    }
    // A loop device with direct I/O, over a file on a file system: reads beyond the end of its truncated file fail.
    let (bench, below) = (Bench::new(), LoopDevice::new(64 * MIB));
    let mount = mounted(&bench, &below);
    let place = mount.path();
    let file = place.join("file");
    fs::write(&file, vec![7; 16 << 20]).unwrap();
    let show = Command::new("losetup").args(["--direct-io=on", "--find", "--show"]).arg(&file).output().unwrap();
    let broken = PathBuf::from(String::from_utf8(show.stdout).unwrap().trim());
    let _undo = Undo("losetup", vec!["--detach".into(), broken.clone()]);
    let whole = json(&device("slurp", &broken, &["--json"]).with_code(0));
    assert_eq!((&whole["failures"], &whole["zero_share"]), (&serde_json::json!([]), &0.0.into()));

    File::options().write(true).open(&file).unwrap().set_len(16 * MIB - 300 * 1024).unwrap();
    let read = json(&device("slurp", &broken, &["--json"]).with_code(4));
    let failures = read["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "adjacent failures are one region: {read}");
    assert_eq!((&failures[0]["at"], &failures[0]["bytes"]), (&(16 * MIB - 300 * 1024).into(), &(300 * 1024).into()));
    assert_eq!((&read["failed_bytes"], &read["read_bytes"]), (&(300 * 1024).into(), &(16 * MIB - 300 * 1024).into()));
    let ran = device("slurp", &broken, &[]).with_code(4);
    assert!(ran.stdout.contains("errors    300 KiB in 1 region"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("error: 300 KiB at sector 32168 (byte 16470016): Input/output error"),
        "{}",
        ran.stderr
    );
}

#[test]
fn slurp_counts_zeroes_of_a_device_in_use() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::new(16 * MIB);
    fill(loop_device.path(), MIB, 4 * MIB);
    let _claim = File::open(loop_device.path()).unwrap();
    for more in [&["--json"][..], &["--json", "--page-cache"]] {
        let read = json(&device("slurp", loop_device.path(), more).with_code(0));
        assert_eq!((read["zero_units"].as_u64(), read["units"].as_u64()), (Some(12 * 256), Some(16 * 256)));
        assert_eq!(read["page_cache"], more.len() == 2);
    }
    let ran = device("slurp", loop_device.path(), &[]).with_code(0);
    assert!(ran.stdout.contains("all zero  75.0 % (3,072 of 4,096 blocks of 4 KiB)"), "{}", ran.stdout);
}

#[test]
fn a_scheduler_is_shown_and_set() {
    if left_out(Need::Loop) {
        return;
    }
    let loop_device = LoopDevice::new(16 * MIB);
    let name = loop_device.path().file_name().unwrap().to_string_lossy().into_owned();
    let sysfs = || fs::read_to_string(format!("/sys/block/{name}/queue/scheduler")).unwrap();
    let there: Vec<String> = sysfs().split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect();
    // A loop device would keep the scheduler for its next user.
    device("scheduler", loop_device.path(), &["none"]).with_code(0);
    for scheduler in there.iter().filter(|name| *name != "none") {
        let ran = device("scheduler", loop_device.path(), &[scheduler]).with_code(0);
        assert!(ran.stdout.contains(&format!(": {scheduler}, was none")), "{}", ran.stdout);
        assert!(sysfs().contains(&format!("[{scheduler}]")));
        let ran = device("scheduler", loop_device.path(), &[]).with_code(0);
        assert!(ran.stdout.contains(&format!(": {scheduler}; available: {}", there.join(", "))), "{}", ran.stdout);
        let found = device("inspect", loop_device.path(), &["--samples", "0"]).with_code(0);
        assert!(found.stdout.contains(&format!("is {scheduler}, which can reorder")), "{}", found.stdout);
        device("scheduler", loop_device.path(), &["none"]).with_code(0);
    }
    device("scheduler", loop_device.path(), &["fastest"]).refused(&["no scheduler", "\"fastest\"", "available: none"]);
    device("scheduler", loop_device.backing_file(), &[]).refused(&["not a block device"]);
}
