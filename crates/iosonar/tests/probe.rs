//! `iosonar device probe` on storage whose answers are known.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use serde_json::Value;

use crate::data::Zram;
use crate::replaying::{Bench, Finished, MIB, run};

/// `iosonar device probe PATH MORE`
fn probe(path: &Path, more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["device", "probe"]).arg(path).args(more);
    Finished::of(command.output().expect("it runs"), PathBuf::new())
}

fn found(path: &Path, more: &[&str]) -> Value {
    let ran = probe(path, &[&["--json"], more].concat()).with_code(0);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

/// The share of a kind of data that is stored.
fn stored(found: &Value, data: &str) -> f64 {
    let kinds = found["data"].as_array().unwrap();
    kinds.iter().find(|kind| kind["data"] == data).unwrap()["stored_share"].as_f64().unwrap()
}

#[test]
fn zram_suppresses_zeros_and_compresses_but_keeps_duplicates() {
    if left_out(Need::Zram) {
        return;
    }
    let device = Zram::new(64 * MIB);
    let found = found(&device.path(), &["--rounds", "5"]);
    assert_eq!((&found["suppresses_zeros"], &found["compresses"]), (&"yes".into(), &"yes".into()), "{found}");
    assert_eq!((&found["piece_bytes"], &found["space"]), (&(3 * MIB).into(), &"zram's statistics".into()), "{found}");
    assert!((stored(&found, "compressible") - 0.25).abs() < 0.03 && stored(&found, "zeros") == 0.0, "{found}");
    // Times may differ by chance, but never make it a yes.
    assert!(found["deduplicates"] != "yes" && stored(&found, "duplicates") > 0.98, "{found}");
    // All of the area has random data.
    let [bytes, compressed, same] = device.stored();
    assert_eq!((bytes, compressed, same), (63 * MIB, 63 * MIB, 0));
    let ran = probe(&device.path(), &["--rounds", "5", "--size", "21M"]).with_code(0);
    for words in ["suppresses zeros  yes (zeros: 0 % stored)", "compresses        yes (data that is 75 %"] {
        assert!(ran.stdout.contains(words), "no {words:?} in {}", ran.stdout);
    }
}

#[test]
fn a_file_system_that_compresses_is_recognised() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(512 * MIB));
    run("mkfs.btrfs", &["-q".as_ref(), device.path().as_os_str()]);
    let options = ["-o".as_ref(), "compress-force=zstd".as_ref(), device.path().as_os_str()];
    let mount = Mount::new(bench.path("mounted"), options);
    let file = mount.path().join("file");
    File::create(&file).and_then(|file| file.set_len(48 * MIB)).unwrap();
    let cached = found(&file, &["--page-cache", "--rounds", "5"]);
    assert_eq!((&cached["compresses"], &cached["space"]), (&"yes".into(), &"used space of btrfs".into()), "{cached}");
    // Zeros are stored, as compressed data.
    assert_eq!(cached["suppresses_zeros"], "no", "{cached}");
    assert!(stored(&cached, "duplicates") > 0.95 && cached["deduplicates"] != "yes", "{cached}");
    // Whether direct I/O is compressed depends on the kernel; the answer follows what is stored.
    let direct = found(&file, &["--rounds", "5"]);
    assert_eq!(direct["compresses"] == "yes", stored(&direct, "compressible") < 0.95, "{direct}");
}

#[test]
fn a_loop_device_over_a_plain_file_stores_all() {
    if left_out(Need::Loop) {
        return;
    }
    let device = LoopDevice::new(32 * MIB);
    let found = found(device.path(), &["--rounds", "5", "--size", "16M"]);
    for (answer, data) in
        [("suppresses_zeros", "zeros"), ("compresses", "compressible"), ("deduplicates", "duplicates")]
    {
        assert!(stored(&found, data) == 1.0 && ["no", "likely"].contains(&found[answer].as_str().unwrap()), "{found}");
    }
    let data = fs::read(device.backing_file()).unwrap();
    let area = found["bytes"].as_u64().unwrap() as usize;
    assert!(data[area..].iter().all(|byte| *byte == 0), "nothing is written behind the area");
    assert!(data[..area].chunks(64).all(|piece| piece.iter().any(|byte| *byte != 0)));
}

#[test]
fn a_probe_overwrites_only_what_it_may() {
    let bench = Bench::new();
    let precious = bench.path("precious");
    fs::write(&precious, vec![7; 4 << 20]).unwrap();
    probe(&precious, &[]).refused(&["holds data", "--force"]);
    assert!(fs::read(&precious).unwrap().iter().all(|byte| *byte == 7));
    let target = bench.target(4 * MIB);
    for (words, why) in [
        (&["--rounds", "4"][..], "5"),
        (&["--rounds", "100"], "100 rounds need 25.1 MiB; use a larger device, or fewer --rounds"),
        (&["--size", "64k"], "use a larger --size"),
    ] {
        let ran = probe(&target, words).with_code(2);
        assert!(ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
    probe(&target, &["--space", "echo none"]).refused(&["did not print a whole number of bytes"]);
    assert!(fs::read(&target).unwrap().iter().all(|byte| *byte == 0), "nothing was written");
    let found = found(&target, &["--rounds", "5", "--space", "echo 1234"]);
    assert_eq!((&found["space"], stored(&found, "zeros")), (&"`echo 1234`".into(), 1.0));
    // It is a target now.
    probe(&target, &["--rounds", "5"]).with_code(0);
}
