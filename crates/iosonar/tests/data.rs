//! The data that `iosonar replay` writes, as seen by a compressor, by deduplication, and by the kernel's compressing
//! block device (zram).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::replaying::{Bench, Finished, MIB, Row, request};
use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{Op, Outcome};
use serde_json::json;

const BLOCK: usize = 4096;

/// Adjacent writes of 64 KiB that cover `mib` MiB.
fn writes(mib: u64) -> Vec<Row> {
    (0..mib * 16).map(|i| (i as f64 / 1e5, i * 128, 128, 'W')).collect()
}

/// The content of a file of that many MiB that a replay has written completely, and the replay.
fn written(mib: u64, options: &[&str]) -> (Vec<u8>, Finished) {
    let bench = Bench::new();
    let (load, target) = (bench.load(&writes(mib)), bench.target(mib * MIB));
    let ran = bench.replay(&load, &target, &[&["--asap"], options].concat()).with_code(0);
    let run = ran.run();
    assert_eq!(run["data"]["written"]["bytes"], mib * MIB);
    assert!(run["data"]["seed"].is_u64());
    (fs::read(&target).expect("the target"), Finished { stdout: run.to_string(), ..ran })
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 2.0, "{what}: expected {expected} %, found {found:.2} %");
}

/// The share that zstd saves, in percent, compressing units of that many bytes.
fn saved(data: &[u8], unit: usize, level: i32) -> f64 {
    let left: usize = data.chunks(unit).map(|u| zstd::bulk::compress(u, level).unwrap().len().min(u.len())).sum();
    100.0 - left as f64 * 100.0 / data.len() as f64
}

/// The share of duplicate blocks, in percent.
fn duplicates(data: &[u8]) -> f64 {
    let distinct: HashSet<&[u8]> = data.chunks(BLOCK).collect();
    100.0 - distinct.len() as f64 * 100.0 / (data.len() / BLOCK) as f64
}

#[test]
fn written_data_is_as_compressible_and_duplicated_as_asked() {
    let (data, ran) = written(48, &["--compressible", "60", "--dedupe", "25%"]);
    for level in [1, 3] {
        assert_near(saved(&data, BLOCK, level), 60.0, "each block");
        assert_near(saved(&data, 16 * BLOCK, level), 60.0, "each 64 KiB");
    }
    assert_near(duplicates(&data), 25.0, "duplicates");
    let run: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        run["options"]["data"],
        json!({"kind": "random", "random_pct": 40, "filler": "deadbeef", "dedupe_pct": 25})
    );
    assert_eq!(run["data"]["what"], "data that compresses by 60 %, 25 % of the blocks duplicates");
    assert_eq!(
        run["data"]["written"],
        json!({"bytes": 48 * MIB, "blocks": 12288, "duplicates": run["data"]["written"]["duplicates"], "partial_blocks": 0})
    );
    assert!(ran.stderr.contains("compresses by 60 %"), "{}", ran.stderr);
}

#[test]
fn by_default_data_neither_compresses_nor_deduplicates() {
    let (data, ran) = written(16, &["--no-sample"]);
    assert_near(saved(&data, data.len(), 3), 0.0, "the whole");
    assert_eq!(duplicates(&data), 0.0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn fill_random_leaves_zeros() {
    let (data, _) = written(4, &["--fill-random", "25"]);
    let zeros = data.iter().filter(|byte| **byte == 0).count();
    assert_near(zeros as f64 * 100.0 / data.len() as f64, 75.0, "zeros");
}

#[test]
fn data_that_makes_storage_look_faster_is_warned_about() {
    for (what, word, byte) in [("zero", "zeros were written", 0), ("pattern=a5", "the same pattern", 0xa5)] {
        let (data, ran) = written(1, &["--data", what]);
        assert!(data.iter().all(|b| *b == byte));
        assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(word), "{}", ran.stderr);
        assert!(ran.stdout.contains(word), "the result says it as well: {}", ran.stdout);
    }
}

#[test]
fn duplicates_that_the_load_makes_impossible_are_reported() {
    if left_out(Need::Loop) {
        return;
    }
    // Blocks of 512 bytes: with larger ones, requests would be widened.
    let (bench, device) = (Bench::new(), LoopDevice::new(4 * MIB));
    // 4 KiB each, but never aligned to 4 KiB.
    let rows: Vec<Row> = (0..256).map(|i| (i as f64 / 1e5, i * 16 + 1, 8, 'W')).collect();
    let ran = bench.replay(&bench.load(&rows), device.path(), &["--asap", "--dedupe", "50"]).with_code(0);
    assert!(ran.stderr.contains("0 % of the written data is duplicates, not 50 %"), "{}", ran.stderr);
}

/// The target after `iosonar workload run PROGRAM MORE`, and what the run says of its data.
fn written_by(program: &str, text: &str, bytes: u64, more: &[&str]) -> (Vec<u8>, String) {
    let bench = Bench::new();
    let (program, target) = (bench.text(program, text), bench.target(bytes));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["workload", "run"]).arg(program).arg("--target").arg(&target).args(more);
    let output = command.arg("--output").arg(bench.path("r.replay.parquet")).output().expect("it runs");
    let ran = Finished::of(output, bench.path("r.replay.parquet")).with_code(0);
    let what = ran.run()["data"]["what"].as_str().expect("a text").to_owned();
    (fs::read(&target).expect("the target"), what)
}

#[test]
fn a_job_file_writes_the_data_that_it_asks_for() {
    let fio = "[a]\nrw=write\nbs=64k\nsize=32m\ndirect=1\nbuffer_compress_percentage=60\ndedupe_percentage=25\n";
    let vdbench = "compratio=2.5\ndedupratio=1.3333\ndedupunit=64k\nsd=s,lun=/tmp/x,size=32m\n\
                   wd=w,sd=s,rdpct=0,xfersize=64k,seekpct=eof\nrd=r,wd=w,iorate=max,elapsed=60\n";
    for (name, text) in [("job.fio", fio), ("job.vdb", vdbench)] {
        let (data, what) = written_by(name, text, 32 * MIB, &[]);
        assert_near(saved(&data, 16 * BLOCK, 3), 60.0, name);
        let distinct: HashSet<&[u8]> = data.chunks(16 * BLOCK).collect();
        assert_near(100.0 - distinct.len() as f64 * 100.0 / 512.0, 25.0, name);
        assert_eq!(what, "data that compresses by 60 %, 25 % of the blocks duplicates, in blocks of 64 KiB", "{name}");
    }
    let (data, what) = written_by("job.fio", fio, 32 * MIB, &["--data", "random"]);
    assert_near(saved(&data, 16 * BLOCK, 3), 0.0, "an option overrides the job file");
    assert_eq!((duplicates(&data), what.as_str()), (0.0, "random data"));
}

#[test]
fn each_stream_of_a_program_writes_its_own_data() {
    let stream = |name: &str, keys: &str| {
        format!(
            "[[stream]]\nname = \"{name}\"\nclosed = true\nop = \"write\"\nsizes = \"16k\"\npositions = \"sequential\"\n\
             passes = 1\n{keys}\n"
        )
    };
    let text = format!(
        "name = \"p\"\nabout = \"A program.\"\n{}{}{}",
        stream("a", "region = \"0%..25%\"\ndata = \"pattern=a5\""),
        stream("b", "region = \"25%..50%\"\ndata = \"compressible=90\""),
        stream("c", "region = \"50%..100%\"")
    );
    let (data, what) = written_by("p.toml", &text, 8 * MIB, &[]);
    assert!(data[..2 << 20].iter().all(|byte| *byte == 0xa5));
    assert_near(saved(&data[2 << 20..4 << 20], BLOCK, 3), 90.0, "b");
    assert_near(saved(&data[4 << 20..], BLOCK, 3), 0.0, "c");
    assert_eq!(what, "a: the pattern a5; b: data that compresses by 90 %; c: random data");
}

/// A zram device; removed when dropped.
pub struct Zram(String);

impl Zram {
    pub fn new(bytes: u64) -> Self {
        let number = fs::read_to_string("/sys/class/zram-control/hot_add").expect("a new device");
        let device = Self(number.trim().to_owned());
        fs::write(device.attribute("comp_algorithm"), "lz4").expect("lz4");
        fs::write(device.attribute("disksize"), bytes.to_string()).expect("a size");
        device
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.0))
    }

    fn attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(format!("zram{}", self.0)).join(name)
    }

    /// Bytes stored, their compressed size, and pages not stored because they repeat a single word.
    pub fn stored(&self) -> [u64; 3] {
        let text = fs::read_to_string(self.attribute("mm_stat")).expect("its statistics");
        let all: Vec<u64> = text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        [all[0], all[1], all[5]]
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // udev may still have it open.
        for _ in 0..100 {
            if fs::write("/sys/class/zram-control/hot_remove", &self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_compressing_device_saves_the_requested_share() {
    if left_out(Need::Zram) {
        return;
    }
    let bench = Bench::new();
    let load = bench.load(&writes(16));
    let pages = 16 * MIB / BLOCK as u64;
    let stored = |options: &[&str]| {
        let device = Zram::new(16 * MIB);
        bench.replay(&load, &device.path(), &[&["--asap", "--overwrite"], options].concat()).with_code(0);
        device.stored()
    };
    for share in [50, 66, 90] {
        let [bytes, compressed, same] = stored(&["--compressible", &share.to_string()]);
        assert_eq!((bytes, same), (16 * MIB, 0));
        assert_near(100.0 - compressed as f64 * 100.0 / bytes as f64, f64::from(share), "zram");
    }
    let [bytes, compressed, same] = stored(&[]);
    assert_eq!((bytes, compressed, same), (16 * MIB, 16 * MIB, 0), "random data takes its full size");
    // zram does not compress pages of zeros or of one repeated word, but omits them: compressible data must differ.
    for nothing in ["zero", "pattern=deadbeef"] {
        let [_, compressed, same] = stored(&["--data", nothing]);
        assert_eq!((compressed, same), (0, pages), "{nothing}");
    }
}

#[test]
fn discarded_data_is_removed_from_a_compressing_device() {
    if left_out(Need::Zram) {
        return;
    }
    let bench = Bench::new();
    // Written, then every second MiB discarded.
    let row = |i: u64, op| request(i as f64 / 1e3, op, i % 16 * 2048, 2048);
    let load: Vec<_> = (0..32)
        .filter(|i| *i < 16 || i % 2 == 0)
        .map(|i| row(i, if i < 16 { Op::Write } else { Op::Discard }))
        .collect();
    let load = bench.parquet(&load);
    for more in [&["--engine", "io_uring"][..], &["--sqpoll"], &["--engine", "threads"]] {
        let device = Zram::new(16 * MIB);
        let ran = bench.replay(&load, &device.path(), &[more, &["--overwrite"]].concat()).with_code(0);
        assert!(ran.by_request().iter().all(|row| row.outcome == Outcome::Ok), "{more:?}: {}", ran.stderr);
        assert_eq!(device.stored()[0], 8 * MIB, "{more:?}");
    }
}
