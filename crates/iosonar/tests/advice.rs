//! Warnings before and after a replay, and what the footer keeps of them.

use std::fs;
use std::path::{Path, PathBuf};

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Nanos, Op, Request, Sector, Sectors};
use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, run};

fn name(device: &LoopDevice) -> String {
    device.path().file_name().unwrap().to_string_lossy().into_owned()
}

/// Sets a queue attribute and restores it when dropped: loop devices keep theirs for the next user.
struct QueueAttribute(PathBuf, String);

impl QueueAttribute {
    fn set(device: &LoopDevice, attribute: &str, value: &str) -> Self {
        let path = PathBuf::from(format!("/sys/block/{}/queue/{attribute}", name(device)));
        let text = fs::read_to_string(&path).unwrap();
        let before = text.split(['[', ']']).nth(1).unwrap_or(text.trim()).to_owned();
        fs::write(&path, value).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(path, before)
    }
}

impl Drop for QueueAttribute {
    fn drop(&mut self) {
        fs::write(&self.0, &self.1).ok();
    }
}

fn wipe(target: &Path) {
    run(env!("CARGO_BIN_EXE_iosonar"), &["device".as_ref(), "wipe".as_ref(), target.as_os_str()]);
}

fn of_run(ran: &Finished, key: &str) -> Value {
    ran.run()[key].clone()
}

/// Asserts that the warning is once on standard error, and once in the footer.
fn assert_warned(ran: &Finished, words: &str) {
    assert_eq!(ran.stderr.matches(words).count(), 1, "{words:?} in {}", ran.stderr);
    assert_eq!(of_run(ran, "warnings").to_string().matches(words).count(), 1, "{words:?} in the footer");
}

#[test]
fn a_warning_before_the_run_names_what_spoils_its_result() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(64 * MIB));
    let there = fs::read_to_string(format!("/sys/block/{}/queue/scheduler", name(&device))).unwrap();
    let scheduler = there.split_whitespace().map(|s| s.trim_matches(['[', ']'])).find(|s| *s != "none");
    let _set = scheduler.map(|scheduler| QueueAttribute::set(&device, "scheduler", scheduler));
    let _kib = QueueAttribute::set(&device, "max_sectors_kb", "256");
    let mut rows: Vec<Row> = adjacent_requests(20, 8);
    rows.push((0.03, 500_000, 2048, 'W'));
    let ran = bench.replay(&bench.load(&rows), device.path(), &[]).with_code(0);
    if let Some(scheduler) = scheduler {
        assert_warned(&ran, &format!("the scheduler of {} is {scheduler}", name(&device)));
    }
    assert_warned(&ran, "requests of up to 1 MiB, but the kernel splits requests longer than 256 KiB");
    assert_warned(
        &ran,
        "the load reaches up to 245 MiB, but the target has 64 MiB: requests beyond its end wrap around",
    );
    assert_warned(&ran, "is all zeros: reads of never-written areas are too fast");
    let before = ran.stderr.find("the kernel splits").unwrap();
    assert!(before < ran.stderr.find("expected duration").unwrap(), "before the run: {}", ran.stderr);
}

#[test]
fn a_well_prepared_target_gets_no_warning() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(16 * MIB));
    let _set = QueueAttribute::set(&device, "scheduler", "none");
    // One request each millisecond, up to the end of the device.
    let load = bench.load(&adjacent_requests(100, 320));
    let zero = "all zeros: reads";
    let ran = bench.replay(&load, device.path(), &["--no-sample"]).with_code(0);
    assert!(!ran.stderr.split("reads returned").next().unwrap().contains(zero), "no samples: {}", ran.stderr);
    wipe(device.path());
    let ran = bench.replay(&load, device.path(), &["--overwrite"]).with_code(0);
    for words in [zero, "scheduler", "splits", "wrap", "close together", "returned only zeros"] {
        assert!(!ran.stderr.contains(words), "{words:?} in {}", ran.stderr);
    }
}

/// A discard moves no data, and has its own size limit.
#[test]
fn a_long_discard_gets_no_warning_about_splitting() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(16 * MIB));
    let _kib = QueueAttribute::set(&device, "max_sectors_kb", "256");
    let request = |op, sectors| Request::new(Nanos(0), op, Sector(0), Sectors(sectors));
    let load = bench.parquet(&[request(Op::Discard, 16_384), request(Op::Write, 8)]);
    let ran = bench.replay(&load, device.path(), &["--no-sample"]).with_code(0);
    assert!(!ran.stderr.contains("splits"), "{}", ran.stderr);
}

#[test]
fn reads_of_discarded_sectors_are_no_sign_of_an_empty_target() {
    if left_out(Need::Loop) {
        return;
    }
    let zeros = |discards| {
        let (bench, device) = (Bench::new(), LoopDevice::new(MIB));
        let mut content = vec![0xaa; MIB as usize];
        content[MIB as usize / 2..].fill(0);
        fs::write(device.path(), content).unwrap();
        let at = |ms: i64, op, sector| Request::new(Nanos(ms * 1_000_000), op, Sector(sector), Sectors(64));
        let load = [
            at(0, discards, 0),
            at(1, discards, 1024),
            at(50, Op::Read, 0),
            at(51, Op::Read, 256),
            at(52, Op::Read, 1024),
        ];
        let ran = bench.replay(&bench.parquet(&load), device.path(), &["--no-sample", "--force"]).with_code(0);
        let is_warned = ran.stderr.contains("returned only zeros");
        (ran.statistics()["zero_reads"].as_u64().unwrap(), is_warned)
    };
    assert_eq!([Op::Discard, Op::Read].map(zeros), [(0, false), (2, true)]);
}

#[test]
fn fewer_requests_at_the_device_than_in_flight_are_warned_about() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(64 * MIB));
    let _none = QueueAttribute::set(&device, "scheduler", "none");
    // The kernel makes all others wait.
    let _few = QueueAttribute::set(&device, "nr_requests", "4");
    let load = bench.load(&adjacent_requests(16_000, 8));
    let ran = bench.replay(&load, device.path(), &["--asap", "--depth", "64", "--no-sample"]).with_code(0);
    assert_warned(&ran, &format!("in flight on average, but {} only", name(&device)));
    let (meant, counted) = (of_run(&ran, "mean_in_flight"), of_run(&ran, "device_counters"));
    let elapsed = ran.statistics()["elapsed_s"].as_f64().unwrap();
    let seen = counted[0]["busy_s"].as_f64().unwrap() / elapsed;
    assert!(seen < 8.0 && meant.as_f64().unwrap() > 16.0, "{meant} {counted}");
    assert_eq!(counted[0]["disk"], name(&device));
    // 16000 requests, and those of other processes.
    let all = counted[0]["requests"].as_u64().unwrap() + counted[0]["merged"].as_u64().unwrap();
    assert!(all >= 16_000, "{counted}");
}

#[test]
fn the_footer_describes_the_machine_and_the_queue() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    run("mkfs.ext4", &["-q".as_ref(), device.path().as_os_str()]);
    let mount = Mount::new(bench.path("mounted"), ["-o".as_ref(), "noatime".as_ref(), device.path().as_os_str()]);
    let target = mount.path().join("target");
    fs::write(&target, vec![1; 4 << 20]).unwrap();
    let ran = bench.replay(&bench.load(&adjacent_requests(20, 8)), &target, &["--force"]);
    drop(mount);
    let ran = ran.with_code(0);
    let (target, machine) = (of_run(&ran, "target"), of_run(&ran, "machine"));
    assert_eq!((&target["disk"], &target["mount"]["file_system"]), (&name(&device).into(), &"ext4".into()));
    assert!(target["mount"]["options"].as_str().unwrap().contains("noatime"), "{target}");
    assert_eq!(target["queue"]["logical_block_bytes"], 512);
    let read_trimmed = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    assert_eq!(machine["kernel"], read_trimmed("/proc/sys/kernel/osrelease"));
    assert_eq!(machine["kernel_command_line"], read_trimmed("/proc/cmdline"));
    assert!(machine["limits"]["open_files"].as_u64().unwrap() > 0);
    // Every key is documented in the schema.
    let schema = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md")).unwrap();
    for key in
        machine.as_object().unwrap().keys().chain(["mean_in_flight", "device_counters"].map(str::to_owned).iter())
    {
        assert!(schema.contains(&format!("`{key}`")), "docs/schema.md has no {key}");
    }
}
