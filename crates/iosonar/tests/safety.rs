//! Targets that `iosonar replay` must never overwrite, and its errors. After each refusal the target is unchanged, and
//! no journal or result is left.

use crate::replaying;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, run};

/// `O_EXCL`, which claims a block device exclusively.
const EXCLUSIVE: i32 = 0o200;

/// Asserts that a replay is assert_refused, with and without `--force`, with errors that contain all of `words`.
fn assert_refused(bench: &Bench, target: &Path, words: &[&str]) {
    for more in [&[][..], &["--force"]] {
        assert_refused_once(bench, target, more, words);
    }
}

fn assert_refused_once(bench: &Bench, target: &Path, more: &[&str], words: &[&str]) -> Finished {
    let before = bench.names();
    let load = bench.path("a.load");
    let ran = bench.replay(&load, target, more).refused(words);
    assert_eq!(bench.names(), before, "nothing is left behind");
    assert!(ran.stderr.lines().count() == 1, "one line that says it: {}", ran.stderr);
    ran
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.load(&adjacent_requests(10, 8));
    bench
}

fn words(path: &Path) -> &OsStr {
    path.as_os_str()
}

/// Restores the machine, also if the test fails.
struct Undo(&'static str, Vec<PathBuf>);

impl Drop for Undo {
    fn drop(&mut self) {
        Command::new(self.0).args(&self.1).status().ok();
    }
}

#[test]
fn a_mounted_device_is_refused_even_with_force() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(16 * MIB));
    run("mkfs.ext4", &["-q".as_ref(), words(device.path())]);
    let _mount = Mount::new(bench.path("mounted"), [device.path()]);
    assert_refused(&bench, device.path(), &["mounted on", "mounted"]);
    // By another name.
    let link = bench.path("link");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    assert_refused(&bench, &link, &["mounted on"]);
    run("e2label", &[words(device.path()), "still-there".as_ref()]);
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(32 * MIB));
    run("addpart", &[words(device.path()), "1".as_ref(), "2048".as_ref(), "32768".as_ref()]);
    let partition = PathBuf::from(format!("{}p1", device.path().display()));
    run("mkfs.ext4", &["-q".as_ref(), words(&partition)]);
    let mount = Mount::new(bench.path("mounted"), [&partition]);
    assert_refused(&bench, device.path(), &["partition", "mounted on"]);
    assert_refused(&bench, &partition, &["mounted on"]);
    drop(mount);
    assert_refused_once(&bench, &partition, &[], &["contains ext4", "--force"]);
    run("delpart", &[words(device.path()), "1".as_ref()]);
}

#[test]
fn swap_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(16 * MIB));
    run("mkswap", &["-q".as_ref(), words(device.path())]);
    assert_refused_once(&bench, device.path(), &[], &["contains swap", "--force", "wipefs"]);
    // The PATH of a user other than root.
    let mut command = bench.command(&bench.path("a.load"), device.path(), &[]);
    let output = command.env("PATH", "/usr/local/bin:/usr/bin:/bin").output().unwrap();
    Finished::of(output, bench.path("r.replay.parquet")).refused(&["contains swap"]);
    run("swapon", &[words(device.path())]);
    let _undo = Undo("swapoff", vec![device.path().to_owned()]);
    assert_refused(&bench, device.path(), &["in use as swap"]);
}

#[test]
fn the_backing_file_of_a_loop_device_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(16 * MIB));
    let behind = format!("attached to {}", device.path().display());
    assert_refused(&bench, device.backing_file(), &[&behind]);
    // By another name: in the same directory, so that a hard link is possible.
    let hard = device.backing_file().with_extension("hard");
    fs::hard_link(device.backing_file(), &hard).unwrap();
    let _undo = Undo("rm", vec![hard.clone()]);
    assert_refused(&bench, &hard, &[&behind]);
    // A device below a device.
    let output = Command::new("losetup").args(["--find", "--show"]).arg(device.path()).output().unwrap();
    let upper = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let _undo = Undo("losetup", vec!["--detach".into(), upper.clone()]);
    assert_refused(&bench, device.path(), &[&format!("attached to {}", upper.display())]);
}

#[test]
fn a_device_that_is_claimed_exclusively_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(16 * MIB));
    let claim = File::options().read(true).write(true).custom_flags(EXCLUSIVE).open(device.path()).unwrap();
    assert_refused(&bench, device.path(), &["in use"]);
    drop(claim);
    let load = bench.path("a.load");
    bench.replay(&load, device.path(), &[]).with_code(0);
}

#[test]
fn a_signature_is_overwritten_only_with_force() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(64 * MIB));
    let write_at = |at: u64, bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        File::options().write(true).open(device.path()).unwrap().write_all_at(bytes, at).unwrap();
    };
    type Make<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let label = ["-q".as_ref(), "-F".as_ref(), "-L".as_ref(), "home".as_ref(), words(device.path())];
    let makers: [Make<'_>; 4] = [
        ("ext4", Box::new(|| run("mkfs.ext4", &label))),
        ("LVM2_member", Box::new(|| write_at(512, &lvm_label()))),
        ("linux_raid_member", Box::new(|| write_at(4096, &raid_superblock()))),
        ("dos", Box::new(|| write_at(0, &partition_table()))),
    ];
    for (kind, make) in makers {
        run("wipefs", &["--all".as_ref(), "--quiet".as_ref(), words(device.path())]);
        make();
        let before = fs::read(device.path()).unwrap();
        assert_refused_once(&bench, device.path(), &[], &[&format!("contains {kind}"), "--force", "wipefs --all"]);
        assert!(fs::read(device.path()).unwrap() == before, "{kind} is untouched");
        let load = bench.path("a.load");
        let ran = bench.replay(&load, device.path(), &["--force"]).with_code(0);
        fs::remove_file(&ran.result).unwrap();
        assert!(ran.stderr.contains("overwriting its content"), "{}", ran.stderr);
    }
}

/// The label of an LVM physical volume in its on-disk format, with LVM's CRC-32 variant.
fn lvm_label() -> [u8; 512] {
    let mut label = [0; 512];
    label[..8].copy_from_slice(b"LABELONE");
    label[8] = 1;
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].fill(b'a');
    let bit = |crc: u32| (crc >> 1) ^ (if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
    let crc =
        label[20..].iter().fold(0xf597_a6cf_u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc)));
    label[16..20].copy_from_slice(&crc.to_le_bytes());
    label
}

/// The superblock of a Linux RAID member, version 1.2; its checksum is the sum of its words.
fn raid_superblock() -> [u8; 256] {
    let mut block = [0; 256];
    block[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    block[4] = 1;
    block[80..88].copy_from_slice(&8192_u64.to_le_bytes());
    block[144] = 8;
    let sum: u64 = block.chunks(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap()))).sum();
    block[216..220].copy_from_slice(&((sum & 0xffff_ffff) + (sum >> 32)).to_le_bytes()[..4]);
    block
}

/// A DOS partition table with one partition.
fn partition_table() -> [u8; 512] {
    let mut table = [0; 512];
    table[446 + 4] = 0x83;
    table[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&4096_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    table
}

#[test]
fn a_file_with_a_file_system_is_overwritten_only_with_force() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    run("mkfs.ext4", &["-q".as_ref(), words(&target)]);
    assert_refused_once(&bench, &target, &[], &["contains ext4", "--force"]);
    bench.replay(&bench.path("a.load"), &target, &["--force"]).with_code(0);
}

#[test]
fn unusable_targets_are_refused_with_a_remedy() {
    let bench = bench();
    assert_refused(&bench, &bench.path("nowhere"), &["no such device", "lsblk"]);
    let directory = bench.path("directory");
    fs::create_dir(&directory).unwrap();
    assert_refused(&bench, &directory, &["neither a block device nor a regular file"]);
    assert_refused(&bench, Path::new("/dev/null"), &["neither a block device nor a regular file"]);
    let empty = bench.text("empty", "");
    assert_refused(&bench, &empty, &["too small for a block"]);
}

#[test]
fn a_read_only_device_is_refused() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (bench(), LoopDevice::new(16 * MIB));
    run("blockdev", &["--setro".as_ref(), words(device.path())]);
    // A loop device would stay read-only for its next user.
    let _undo = Undo("blockdev", vec!["--setrw".into(), device.path().to_owned()]);
    assert_refused(&bench, device.path(), &["read-only", "blockdev --setrw"]);
}

#[test]
fn a_result_is_replaced_only_with_overwrite() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    bench.text("r.replay.parquet", "precious");
    assert_refused_once(&bench, &target, &[], &["exists", "--overwrite"]);
    assert_eq!(fs::read_to_string(bench.path("r.replay.parquet")).unwrap(), "precious");
    let ran = bench.replay(&bench.path("a.load"), &target, &["--overwrite"]).with_code(0);
    assert_eq!(ran.rows().len(), 10);
}

#[test]
fn a_journal_of_an_earlier_run_is_kept() {
    let bench = bench();
    let target = bench.target(16 * MIB);
    bench.text("r.replay.parquet.journal", "what a killed run left");
    for more in [&[][..], &["--overwrite"]] {
        assert_refused_once(&bench, &target, more, &["earlier run that was killed", "iosonar recover"]);
    }
    assert_eq!(fs::read_to_string(bench.path("r.replay.parquet.journal")).unwrap(), "what a killed run left");
}

#[test]
fn load_target_and_result_must_be_different_files() {
    let bench = bench();
    let target = bench.path("target.replay.gz");
    File::create(&target).and_then(|f| f.set_len(MIB)).unwrap();
    // Large enough to be a target.
    let load = bench.text("b.load", &replaying::text(&adjacent_requests(1000, 8)));
    let text = fs::read(&load).unwrap();
    bench.replay(&load, &load, &["--force"]).refused(&["the load and the target"]);
    let hard = bench.path("hard.load");
    fs::hard_link(&load, &hard).unwrap();
    bench.replay(&load, &hard, &["--force"]).refused(&["the load and the target"]);
    let names = bench.names();
    let output = |path: &Path| {
        let path = path.to_string_lossy().into_owned();
        bench.replay(&load, &target, &["--output", &path, "--overwrite"])
    };
    output(&load).refused(&["is the load, which the result would replace"]);
    output(&target).refused(&["is the target, which the result would replace"]);

    assert_eq!(fs::read(&load).unwrap(), text);
    assert_eq!(bench.names(), names);
}
