//! Loads of several devices on several targets, and requests that do not fit on a target.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Nanos, Op, Outcome, Request};
use serde_json::{Value, json};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, request, run, wait_until};

fn file(bench: &Bench, name: &str, bytes: u64) -> PathBuf {
    let path = bench.path(name);
    File::create(&path).and_then(|f| f.set_len(bytes)).expect("a file of that size");
    path
}

/// `SRC=DEV`, as the argument of `--target`.
fn on(source: &str, target: &Path) -> PathBuf {
    format!("{source}={}", target.display()).into()
}

/// Numbers of the 4 KiB blocks that are not zero.
fn written(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).expect("the target's bytes");
    let blocks = bytes.chunks(4096).enumerate();
    blocks.filter(|(_, block)| block.iter().any(|&byte| byte != 0)).map(|(number, _)| number).collect()
}

/// The statistics of a device of the load.
fn device(ran: &Finished, number: usize) -> Value {
    ran.statistics()["devices"][number].clone()
}

/// Similar sectors on every device, so that a misdirected request is detected.
fn requests_on_three_devices() -> Vec<(u16, Request)> {
    let write = |device: u16, at: f64, block: u64| (device, request(at, Op::Write, block * 8, 8));
    vec![
        write(0, 0.0, 1),
        write(1, 0.0, 2),
        write(2, 0.0, 3),
        write(0, 0.001, 4),
        write(1, 0.001, 4),
        (1, request(0.002, Op::Read, 32, 8)),
        (2, request(0.002, Op::Flush, 0, 0)),
    ]
}

#[test]
fn requests_go_to_the_target_of_their_device() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let (first, second) = (LoopDevice::new(8 * MIB), LoopDevice::new(4 * MIB));
    let load = bench.host(&requests_on_three_devices());
    // One device by name, one by number.
    let other = format!("0={}", second.path().display());
    let ran = bench.replay(&load, &on("sdb", first.path()), &["-t", &other]).with_code(0);
    assert_eq!(written(first.backing_file()), [2, 4], "sdb");
    assert_eq!(written(second.backing_file()), [1, 4], "sda");

    let statistics = ran.statistics();
    assert_eq!((&statistics["requests"], &statistics["completed"]), (&json!(7), &json!(5)));
    assert_eq!(statistics["skipped"]["excluded"], 2);
    let sdb = device(&ran, 1);
    assert_eq!((&sdb["source"], &sdb["target"]), (&json!("sdb"), &json!(first.path())));
    assert_eq!([&sdb["requests"], &sdb["reads"], &sdb["writes"], &sdb["completed"]], [3, 1, 2, 3]);
    assert_eq!((&sdb["wrap_factor"], &sdb["left_out"]), (&json!(40.0 / 16384.0), &json!(0)));
    assert!(sdb["latency_us"]["max"].as_f64() > Some(0.0) && sdb["latency_us"]["p50"].is_null(), "of three requests");
    let sdc = device(&ran, 2);
    assert_eq!((&sdc["target"], &sdc["left_out"], &sdc["latency_us"]), (&Value::Null, &json!(2), &Value::Null));
    let sum = |key: &str| (0..3).map(|number| device(&ran, number)[key].as_f64().unwrap()).sum::<f64>();
    assert!((sum("iops") - statistics["iops"].as_f64().unwrap()).abs() < 1e-6, "the devices' rates add up");

    let rows = ran.by_request();
    assert!(rows.iter().map(|row| row.device.0).eq([0, 1, 2, 0, 1, 1, 2]));
    assert!(rows.iter().all(|row| (row.device.0 == 2) == (row.outcome == Outcome::Excluded)));
    let footer = ran.footer();
    assert_eq!(footer.devices.len(), 3);
    let run = ran.run();
    let targets = &run["targets"];
    assert_eq!((&targets[0]["sources"], &targets[1]["sources"]), (&json!([1]), &json!([0])));
    assert_eq!(run["target"]["path"], json!(first.path()));
    for message in ["skipping requests to devices without a --target: sdc (device 2)", "warning: skipped 2 requests"] {
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    assert!(ran.stdout.contains("  sdb") && ran.stdout.contains("no --target"), "{}", ran.stdout);
}

#[test]
fn a_target_without_a_name_takes_the_other_devices() {
    let bench = Bench::new();
    let (first, second) = (file(&bench, "first", 4 * MIB), file(&bench, "second", 4 * MIB));
    let load = bench.host(&requests_on_three_devices());
    let ran = bench.replay(&load, &second, &["-t", &format!("sda={}", first.display())]).with_code(0);
    assert_eq!((written(&first), written(&second)), (vec![1, 4], vec![2, 3, 4]));
    assert_eq!(ran.statistics()["completed"], 7);
}

#[test]
fn devices_that_share_a_target_conflict_with_each_other() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let target = LoopDevice::new(4 * MIB);
    // Pairs: on a machine under load, the first of some is complete before the second is due.
    let at_once: Vec<_> = (0..200).map(|i| (i % 2, request(0.0, Op::Write, u64::from(i / 2) * 8, 8))).collect();
    // The same target by another name: it is claimed only once.
    let link = bench.path("link");
    std::os::unix::fs::symlink(target.path(), &link).unwrap();
    let other = on("sdb", &link).display().to_string();
    let ran = bench.replay(&bench.host(&at_once), &on("sda", target.path()), &["-t", &other]).with_code(0);
    let pushed_back = ran.statistics()["pushed_back"].as_u64().unwrap();
    assert!((1..=100).contains(&pushed_back), "{pushed_back}");
    assert_eq!(ran.statistics()["completed"], 200);
    assert_eq!(ran.run()["targets"].as_array().unwrap().len(), 1);
}

#[test]
fn mistakes_in_targets_are_explained_and_change_nothing() {
    let bench = Bench::new();
    let (first, second) = (file(&bench, "first", 4 * MIB), file(&bench, "second.replay.parquet", 4 * MIB));
    let load = bench.host(&requests_on_three_devices());
    let before = bench.names();
    let second_is = |source: &str| on(source, &second).display().to_string();
    let refused = |load: &Path, target: &Path, more: &[&str], words: &[&str]| {
        bench.replay(load, target, more).refused(words);
        assert_eq!(bench.names(), before, "nothing is left behind");
    };
    refused(&load, &on("sdd", &first), &[], &["no device \"sdd\"", "Did you mean sd", "sdc (device 2)"]);
    refused(&load, &on("3", &first), &[], &["no device \"3\""]);
    refused(&load, &on("sda", &first), &["-t", &second_is("0")], &["device 0 of the load already has a target"]);
    refused(&load, &first, &["-t", second.to_str().unwrap()], &["a second target for all devices", "--target sda="]);
    refused(&load, &first, &["-t", &second_is("sda"), "--depth", "each=60000"], &["--depth", "32768 for each of 2"]);
    refused(
        &load,
        &on("sda", &first),
        &["-t", &on("sdb", &load).display().to_string()],
        &["is the load and the target"],
    );
    let output = ["-t", &second_is("sdb"), "--output", second.to_str().unwrap(), "--overwrite"];
    refused(&load, &on("sda", &first), &output, &["is the target, which the result would replace"]);
    // Every target is checked, not only the first.
    run("mkfs.ext4", &["-q".as_ref(), second.as_os_str()]);
    refused(&load, &on("sda", &first), &["-t", &second_is("sdb")], &["second.replay.parquet: contains ext4"]);
    assert_eq!(written(&first), [0_usize; 0]);
}

#[test]
fn fit_rejects_clips_scales_or_wraps() {
    let bench = Bench::new();
    let target = file(&bench, "half", 2 * MIB);
    // On a device of 8192 sectors: at its start, in its middle, and at its end.
    let rows = [0, 4096, 8184].map(|sector| (0, request(0.0, Op::Write, sector, 8)));
    let load = bench.host(&rows);
    let sectors = |ran: &Finished| ran.by_request().iter().map(|row| row.sector.0).collect::<Vec<_>>();
    let replayed = |fit: &str| bench.replay(&load, &target, &["--overwrite", "--fit", fit]);

    let refused =
        replayed("reject").refused(&["sda (device 0) of the load reaches up to sector", "(4 MiB)", "(2 MiB)", "--fit"]);
    assert!(!refused.result.exists() && written(&target).is_empty(), "before anything is written");

    let clipped = replayed("clip").with_code(0);
    assert_eq!((&clipped.statistics()["skipped"]["beyond_end"], written(&target)), (&json!(2), vec![0]));
    assert!(!clipped.stderr.contains("wrapped around"), "{}", clipped.stderr);

    let scaled = replayed("scale").with_code(0);
    assert_eq!((sectors(&scaled), written(&target)), (vec![0, 2048, 4088], vec![0, 256, 511]));
    assert!(scaled.stderr.contains("were scaled to"), "{}", scaled.stderr);
    assert_eq!(scaled.statistics()["wrap_factor"], 2.0, "as far as the load reaches");

    let wrapped = replayed("wrap").with_code(0);
    assert_eq!(sectors(&wrapped), [0, 0, 4088]);
    assert!(wrapped.stderr.contains("wrapped around"), "{}", wrapped.stderr);
    let large = file(&bench, "large", 8 * MIB);
    let ran = bench.replay(&load, &large, &["--overwrite", "--fit", "scale"]).with_code(0);
    assert_eq!(sectors(&ran), [0, 8192, 16368], "scaled up as well");
    bench.replay(&load, &large, &["--overwrite", "--fit", "reject"]).with_code(0);
    bench.replay(Path::new("-"), &large, &["--overwrite", "--fit", "scale"]).refused(&["pipe", "--fit"]);
}

#[test]
fn reads_only_writes_nothing_even_on_a_mounted_device() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, target) = (Bench::new(), LoopDevice::new(16 * MIB));
    run("mkfs.ext4", &["-q".as_ref(), target.path().as_os_str()]);
    let mount = Mount::new(bench.path("mounted"), ["-o".as_ref(), "ro,noload".as_ref(), target.path().as_os_str()]);
    let before = fs::read(target.backing_file()).unwrap();
    let load = bench.load(&adjacent_requests(90, 8));
    bench.replay(&load, target.path(), &[]).refused(&["mounted on"]);
    let ran = bench.replay(&load, target.path(), &["--reads-only"]);
    drop(mount);
    let ran = ran.with_code(0);
    assert!(ran.stderr.contains("reads only") && ran.stderr.contains("mounted on"), "{}", ran.stderr);
    assert!(ran.stderr.contains("60 of 90 requests are not reads"), "{}", ran.stderr);
    let statistics = ran.statistics();
    assert_eq!((&statistics["completed"], &statistics["skipped"]["excluded"]), (&json!(30), &json!(60)));
    assert!(fs::read(target.backing_file()).unwrap() == before, "nothing was written");
    // On a read-only device, the kernel would refuse any write.
    run("blockdev", &["--setro".as_ref(), target.path().as_os_str()]);
    let ran = bench.replay(&load, target.path(), &["--overwrite", "--reads-only"]);
    run("blockdev", &["--setrw".as_ref(), target.path().as_os_str()]);
    ran.with_code(0);
}

#[test]
fn depth_per_target_and_output_offset_are_in_the_result() {
    let bench = Bench::new();
    let (first, second) = (file(&bench, "first", 4 * MIB), file(&bench, "second", 4 * MIB));
    let requests: Vec<_> = (0..400).map(|i| ((i % 2) as u16, request(0.0, Op::Write, i * 8, 8))).collect();
    let load = bench.host(&requests);
    let other = on("sdb", &second).display().to_string();
    let more = ["-t", &other, "--depth", "each=2", "--output-offset", "5000", "--verbose", "--ahead-time", "0.1"];
    let ran = bench.replay(&load, &on("sda", &first), &more).with_code(0);
    assert!(ran.statistics()["max_in_flight"].as_u64() <= Some(4), "{}", ran.statistics());
    let options = ran.run()["options"].clone();
    assert_eq!((&options["depth"], &options["depth_for"]), (&json!(2), &json!("each")));
    assert_eq!(options["targets"], json!([on("sda", &first), other]));
    let rows = ran.rows();
    assert!(rows.iter().all(|row| row.scheduled == Nanos::from_secs(5000.0) && row.issued >= Some(row.scheduled)));
    assert!(rows.iter().all(|row| row.ready > Some(Nanos::from_secs(4000.0))), "all times of a row");
    assert!(ran.statistics()["elapsed_s"].as_f64() < Some(5000.0), "durations are not shifted");
}

#[test]
fn a_recovered_run_has_statistics_by_device() {
    let bench = Bench::new();
    let (first, second) = (file(&bench, "first", 4 * MIB), file(&bench, "second", 2 * MIB));
    // A hundred at once, and one much later.
    let begin = (0..100).map(|i| ((i % 2) as u16, request(0.0, Op::Write, i * 8, 8)));
    let load = bench.host(&begin.chain([(0, request(500.0, Op::Write, 0, 8))]).collect::<Vec<_>>());
    let other = on("sdb", &second).display().to_string();
    let running = bench.start(&load, &on("sda", &first), &["-t", &other]);
    let journal = bench.path("r.replay.parquet.journal");
    wait_until("all that is due is in the journal", || bench.journaled("r.replay.parquet") == 100);
    running.signal("KILL");
    let killed = running.end();
    let mut recover = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = recover.arg("recover").arg(&journal).output().expect("it runs");
    let ran = Finished::of(output, killed.result).with_code(0);
    let sdb = device(&ran, 1);
    assert_eq!((&sdb["source"], &sdb["target"]), (&json!("sdb"), &json!(second)));
    assert_eq!((&sdb["requests"], &sdb["wrap_factor"]), (&json!(50), &json!(800.0 / 4096.0)));
}
