//! Files as targets: which may be overwritten freely, which only with `--force`, and which never.

use crate::replaying;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iosonar_testing::{Need, left_out};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, detach, run};

fn bench() -> Bench {
    let bench = Bench::on_disk();
    bench.load(&adjacent_requests(10, 8));
    bench
}

fn wipe(target: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(["device", "wipe"]).arg(target).args(more).output().expect("it runs");
    Finished::of(output, PathBuf::new())
}

fn replay(bench: &Bench, target: &Path, more: &[&str]) -> Finished {
    bench.replay(&bench.path("a.load"), target, &[&["--overwrite"][..], more].concat())
}

/// Asserts that replay and wipe are assert_refused, and leave the target unchanged.
fn assert_refused(bench: &Bench, target: &Path, more: &[&str], words: &[&str]) {
    let before = fs::read(target).unwrap();
    replay(bench, target, more).refused(words);
    wipe(target, more).refused(words);
    assert!(fs::read(target).unwrap() == before, "{} is untouched", target.display());
}

#[test]
fn a_file_with_data_is_overwritten_only_with_force() {
    let bench = bench();
    let picture = bench.path("victim.png");
    fs::write(&picture, [&b"\x89PNG\r\n\x1a\n"[..], &vec![7; 3 * MIB as usize]].concat()).unwrap();
    assert_refused(&bench, &picture, &[], &["holds data", "--force"]);
    // A single byte in a sparse file.
    let sparse = bench.target(64 << 30);
    use std::os::unix::fs::FileExt;
    File::options().write(true).open(&sparse).unwrap().write_all_at(b"x", 33 << 30).unwrap();
    replay(&bench, &sparse, &[]).refused(&["holds data", "--force"]);
    // `--force` is needed only once.
    replay(&bench, &picture, &["--force"]).with_code(0);
    replay(&bench, &picture, &[]).with_code(0);
    wipe(&picture, &[]).with_code(0);
    // But not for another file in its place.
    let other = bench.path("other.png");
    fs::write(&other, vec![9; 2 * MIB as usize]).unwrap();
    run("cp", &[other.as_os_str(), picture.as_os_str()]);
    assert_refused(&bench, &picture, &[], &["holds data", "--force"]);
}

#[test]
fn files_made_as_targets_are_overwritten_without_force() {
    let bench = bench();
    let zeros = bench.path("zeros");
    fs::write(&zeros, vec![0; 2 * MIB as usize]).unwrap();
    let reserved = bench.path("reserved");
    run("fallocate", &["-l".as_ref(), "2M".as_ref(), reserved.as_os_str()]);
    for target in [bench.target(16 * MIB), zeros, reserved] {
        // Data of the first run is no reason to refuse the second.
        for _ in 0..2 {
            replay(&bench, &target, &[]).with_code(0);
        }
        assert!(fs::read(&target).unwrap().iter().any(|&byte| byte != 0));
        wipe(&target, &[]).with_code(0);
        replay(&bench, &target, &[]).with_code(0);
    }
    let wiped = bench.path("wiped");
    File::create(&wiped).unwrap().set_len(MIB).unwrap();
    wipe(&wiped, &[]).with_code(0);
    replay(&bench, &wiped, &[]).with_code(0);
}

#[test]
fn a_forced_run_that_only_reads_does_not_mark_the_target() {
    let bench = bench();
    let data = bench.text("data", &"x".repeat(2 * MIB as usize));
    let rows: Vec<_> = (0..10).map(|i| (i as f64 / 1e3, i * 8, 8, 'R')).collect();
    let reads = bench.text("reads.load", &replaying::text(&rows));
    bench.replay(&reads, &data, &["--force", "--output", "reads.replay"]).with_code(0);
    assert_refused(&bench, &data, &[], &["--force"]);
}

#[test]
fn files_of_iosonar_are_never_overwritten() {
    let bench = bench();
    let long = bench.text("long.load", &replaying::text(&adjacent_requests(20_000, 8)));
    let target = bench.target(MIB);
    let result = |name: &str| {
        bench.replay(&long, &target, &["--output", name, "--asap"]).with_code(0);
        bench.path(name)
    };
    let table = result("own.replay.parquet");
    let text = result("own.replay");
    let journal = bench.path("own.journal");
    fs::write(&journal, [&b"iosonar\x02"[..], &[0; 100_000]].concat()).unwrap();
    let cut = bench.path("cut.replay.parquet");
    // Damaged inside, but still a result that may be worth saving.
    let mut bytes = fs::read(&table).unwrap();
    bytes[4..5000].fill(0);
    fs::write(&cut, &bytes).unwrap();
    let packed = |path: &Path, with: &str, ending: &str| {
        let packed = bench.path(&format!("packed-{}.{ending}", path.file_name().unwrap().to_string_lossy()));
        let output = Command::new(with).arg("-c").arg(path).stderr(Stdio::null()).output().unwrap();
        // Padded, so that it is large enough to be a target.
        let mut file = File::create(&packed).unwrap();
        file.write_all(&output.stdout).unwrap();
        file.set_len((output.stdout.len() as u64).max(64 << 10)).unwrap();
        packed
    };
    let all = [
        (packed(&text, "gzip", "gz"), "the result of a replay"),
        (packed(&long, "zstd", "zst"), "a load"),
        // With each compressor.
        (packed(&packed(&long, "gzip", "gz"), "gzip", "gz"), "a load"),
        (packed(&packed(&packed(&journal, "gzip", "gz"), "zstd", "zst"), "gzip", "gz"), "the journal of a replay"),
        (packed(&packed(&table, "gzip", "gz"), "zstd", "zst"), "the result of a replay"),
        (packed(&journal, "gzip", "gz"), "the journal of a replay"),
        (table, "the result of a replay"),
        (text, "the result of a replay"),
        (long, "a load"),
        (journal, "the journal of a replay"),
        (cut, "the result of a replay"),
    ];
    for (file, what) in &all {
        assert_refused(&bench, file, &[], &[what, "never overwritten"]);
        assert_refused(&bench, file, &["--force"], &[what, "never overwritten"]);
    }
}

/// A loop device over a file, detached when dropped.
struct Over(PathBuf);

impl Over {
    fn new(file: &Path, more: &[&str]) -> Self {
        let show = Command::new("losetup").args(["--find", "--show"]).args(more).arg(file).output().unwrap();
        assert!(show.status.success(), "{show:?}");
        Self(PathBuf::from(String::from_utf8(show.stdout).unwrap().trim()))
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        detach(&self.0);
    }
}

#[test]
fn devices_over_files_of_iosonar_are_never_overwritten() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let long = bench.text("long.load", &replaying::text(&adjacent_requests(20_000, 8)));
    bench.replay(&long, &bench.target(MIB), &["--output", "own.replay.parquet", "--asap"]).with_code(0);
    let journal = bench.path("own.journal");
    fs::write(&journal, [&b"iosonar\x02"[..], &[0; 100_000]].concat()).unwrap();
    let never = |device: &Path, what: &str| {
        for more in [&[][..], &["--force"]] {
            assert_refused(&bench, device, more, &[what, "never overwritten", "not even with --force"]);
        }
    };
    let packed = bench.path("long.load.gz");
    fs::write(&packed, Command::new("gzip").arg("-c").arg(&long).output().unwrap().stdout).unwrap();
    for (file, what) in [
        (&long, "a load"),
        (&bench.path("own.replay.parquet"), "the result of a replay"),
        (&journal, "the journal of a replay"),
        (&packed, "a load"),
    ] {
        // The whole, a part of it without the file's signature, and through a second device.
        let whole = Over::new(file, &[]);
        never(&whole.0, what);
        never(&Over::new(&whole.0, &["--offset", "4096"]).0, what);
        drop(whole);
        never(&Over::new(file, &["--offset", "8192"]).0, what);
    }
    // The content of the device is checked as well: for a deleted file, or a load copied to a disk.
    let long_bytes = fs::read(&long).unwrap();
    let table_bytes = fs::read(bench.path("own.replay.parquet")).unwrap();
    for (bytes, what) in [(&long_bytes, "a load"), (&table_bytes, "the result of a replay")] {
        let gone = bench.path("gone");
        fs::write(&gone, bytes).unwrap();
        let device = Over::new(&gone, &[]);
        fs::remove_file(&gone).unwrap();
        never(&device.0, what);
    }
    // Another file that took the name is not the backing file.
    let (blank, moved) = (bench.path("blank"), bench.path("moved"));
    File::create(&blank).unwrap().set_len(MIB).unwrap();
    let device = Over::new(&blank, &[]);
    fs::rename(&blank, &moved).unwrap();
    fs::copy(&long, &blank).unwrap();
    replay(&bench, &device.0, &[]).with_code(0);
    wipe(&device.0, &[]).with_code(0);
}

#[test]
fn files_of_the_run_itself_cannot_be_the_target() {
    let bench = bench();
    let other = bench.text("m.load", &replaying::text(&adjacent_requests(1000, 8)));
    let before = fs::read(&other).unwrap();
    let (hard, link) = (bench.path("hard"), bench.path("link"));
    fs::hard_link(&other, &hard).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    for target in [&other, &hard, &link] {
        for edit in ["merge with=m.load", "slip | append with=a.load,m.load | adjacent with=hard"] {
            let words = ["a load that --edit joins", "choose another --target"];
            replay(&bench, target, &["--force", "--edit", edit]).refused(&words);
        }
    }
    // The journal, and the results of later runs.
    let journal = bench.path("r.replay.parquet.journal");
    File::create(&journal).unwrap().set_len(MIB).unwrap();
    replay(&bench, &journal, &["--force"]).refused(&["the run's journal", "--output"]);
    fs::remove_file(&journal).unwrap();
    let later = bench.path("r.2.replay.parquet");
    File::create(&later).unwrap().set_len(MIB).unwrap();
    replay(&bench, &later, &["--force", "--repeat", "2"]).refused(&["is the target"]);
    // The result must not replace a load that is merged.
    let target = bench.target(MIB);
    let more = ["--edit", "merge with=m.load", "--output", "m.replay.gz"];
    fs::rename(&other, bench.path("m.replay.gz")).unwrap();
    std::os::unix::fs::symlink("m.replay.gz", &other).unwrap();
    replay(&bench, &target, &more).refused(&["a load that --edit joins"]);
    assert!(fs::read(&other).unwrap() == before);
}

#[test]
fn a_device_over_a_file_of_the_run_cannot_be_the_target() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = bench();
    let load = bench.text("long.load", &replaying::text(&adjacent_requests(1000, 8)));
    let before = fs::read(&load).unwrap();
    let show = Command::new("losetup").args(["--find", "--show"]).arg(&load).output().unwrap();
    let device = PathBuf::from(String::from_utf8(show.stdout).unwrap().trim());
    let ran = bench.replay(&load, &device, &["--force"]);
    let merged = replay(&bench, &device, &["--force", "--edit", "merge with=long.load"]);
    run("losetup", &["--detach".as_ref(), device.as_os_str()]);
    ran.refused(&["backed by", "the load"]);
    merged.refused(&["backed by", "a load that --edit joins"]);
    assert!(fs::read(&load).unwrap() == before);
}

#[test]
fn the_error_does_not_suggest_a_file_below_dev() {
    let bench = bench();
    for target in ["/dev/nope", "/dev/shm/no-such-file", "/dev/disk/by-id/nope"] {
        let ran = replay(&bench, Path::new(target), &[]).refused(&["no such device", "lsblk"]);
        assert!(!ran.stderr.contains("fallocate"), "{}", ran.stderr);
        let ran = wipe(Path::new(target), &[]).refused(&["no such device", "lsblk"]);
        assert!(!ran.stderr.contains("fallocate"), "{}", ran.stderr);
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = directory.path().join("nowhere.img");
    replay(&bench, &target, &[]).refused(&["no such device or file", &format!("fallocate -l 1G {}", target.display())]);
    // Nor for a device without a medium.
    if left_out(Need::Root) {
        return;
    }
    // The kernel assigns this number to no device.
    let device = bench.path("device");
    run("mknod", &[device.as_os_str(), "b".as_ref(), "60".as_ref(), "0".as_ref()]);
    let ran = replay(&bench, &device, &[]).refused(&["device"]);
    assert!(!ran.stderr.contains("fallocate"), "{}", ran.stderr);
}
