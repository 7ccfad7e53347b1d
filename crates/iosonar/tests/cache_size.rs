//! `iosonar cache size`: beside sets built from the definition, and beside simulated caches.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use iosonar_trace::{Op, Opened, Request};
use serde_json::Value;

fn iosonar(directory: &Path, words: &str) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.current_dir(directory).args(words.split(' ')).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn json(directory: &Path, words: &str) -> Value {
    let (succeeds, out, error) = iosonar(directory, words);
    assert!(succeeds, "{words}: {error}");
    serde_json::from_str(&out).expect("an object")
}

/// Blocks of 4 KiB with their times.
fn touches(load: &Path, ops: &[Op]) -> Vec<(i64, u64)> {
    let mut rows = iosonar_trace::open_load(load).unwrap();
    let mut all = Vec::new();
    while let Some(Request { at, op, sector, sectors, .. }) = rows.next().unwrap() {
        let blocks = sector.0 / 8..(sector.0 + sectors.0).div_ceil(8);
        all.extend(blocks.filter(|_| ops.contains(&op)).map(|block| (at.0, block)));
    }
    all
}

/// The blocks of the largest working set within the time to fill so many blocks: a set for each moment.
fn largest(touches: &[(i64, u64)], blocks: u64, bytes_per_s: u64) -> u64 {
    let window = (blocks * 4096 * 1_000_000_000 / bytes_per_s) as i64;
    let ends = touches.iter().enumerate().map(|(index, (end, _))| {
        let within = touches[..=index].iter().rev().take_while(|(at, _)| *at >= end - window);
        within.map(|(_, block)| block).collect::<HashSet<_>>().len() as u64
    });
    ends.max().unwrap_or(0)
}

fn smallest(touches: &[(i64, u64)], from: u64, bytes_per_s: u64) -> u64 {
    (from..).find(|blocks| largest(touches, *blocks, bytes_per_s) <= *blocks).unwrap()
}

#[test]
fn the_smallest_cache_is_that_of_trying_all_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let made = "generate poisson a.load.parquet --rate 400 --size 4k:60,24k:40 --reads 0.6 --positions zipf --span 512k \
                --requests 150";
    assert!(iosonar(directory, made).0);
    for (op, ops) in [("both", &[Op::Read, Op::Write][..]), ("read", &[Op::Read]), ("write", &[Op::Write])] {
        let touches = touches(&directory.join("a.load.parquet"), ops);
        for (speed, bytes_per_s, upper) in [("1M/s", 1 << 20, 20), ("6M/s", 6 << 20, 4), ("40M/s", 40 << 20, 100)] {
            let sizes = "--sizes 4k,64k,1M,4M";
            let upper_bytes = upper * 4096;
            let asked = format!("cache size a.load.parquet --fill-rate {speed} --op {op} --json");
            let found = json(directory, &format!("{asked} {sizes}"));
            assert_eq!(found["smallest"]["blocks"], smallest(&touches, 0, bytes_per_s), "{op} {speed}");
            for (cache, blocks) in found["caches"].as_array().unwrap().iter().zip([1, 16, 256, 1024]) {
                let set = largest(&touches, blocks, bytes_per_s);
                assert_eq!(cache["touched_bytes"], set as f64 * 4096.0, "{op} {speed} {blocks}");
                assert_eq!(cache["serves"], set <= blocks, "{op} {speed} {blocks}");
            }
            let found = json(directory, &format!("{asked} --upper {upper_bytes}"));
            let together = smallest(&touches, upper, bytes_per_s);
            let (serves, lower) = (together == upper, (together - upper) as f64 * 4096.0);
            let inclusive = if serves { 0.0 } else { together as f64 * 4096.0 };
            let upper = &found["upper"];
            assert_eq!((&upper["serves"], &upper["exclusive_bytes"]), (&serves.into(), &lower.into()), "{op} {speed}");
            assert_eq!(upper["inclusive_bytes"], inclusive, "{op} {speed}");
        }
    }
}

/// The number of reads that took each time of `times_us`.
fn reads_by_time(directory: &Path, caches: &str, times_us: &[i64]) -> Vec<usize> {
    std::fs::write(directory.join("device.toml"), format!("[service.constant]\ntime = \"1ms\"\n{caches}")).unwrap();
    let run = "replay a.load.parquet --simulate device.toml --virtual-time --output r.replay.parquet --overwrite";
    let (succeeds, _, error) = iosonar(directory, run);
    assert!(succeeds, "{error}");
    let Opened::Run(mut rows) = iosonar_trace::open(&directory.join("r.replay.parquet")).unwrap() else {
        panic!("a run")
    };
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        all.push((row.completed.unwrap() - row.issued.unwrap()).0 / 1000);
    }
    times_us.iter().map(|time| all.iter().filter(|one| *one == time).count()).collect()
}

#[test]
fn simulated_caches_serve_a_loop_from_the_size_found_on() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    // 256 blocks ten times: more per second than the storage delivers.
    let made = "generate uniform a.load.parquet --rate 100 --reads 1 --positions sequential --span 1M --requests 2560";
    assert!(iosonar(directory, made).0);
    let words = "cache size a.load.parquet --fill-rate 200k/s --upper 256k --sizes 256k,512k,768k,1M --json";
    let found = json(directory, words);
    assert_eq!((&found["smallest"]["blocks"], &found["blocks"]), (&256.into(), &256.into()));
    assert_eq!(found["upper"]["inclusive_bytes"], f64::from(1 << 20));
    assert_eq!(found["upper"]["exclusive_bytes"], f64::from(768 << 10));

    let one = |size: &str| format!("[read_cache]\nsize = \"{size}\"\ntime = \"10us\"\n");
    assert_eq!(reads_by_time(directory, &one("1M"), &[10, 1000]), [2304, 256]);
    assert_eq!(reads_by_time(directory, &one("1020K"), &[10, 1000]), [0, 2560]);
    for cache in found["caches"].as_array().unwrap() {
        let two = format!(
            "[[read_cache]]\nsize = \"256K\"\ntime = \"10us\"\n[[read_cache]]\nsize = {}\ntime = \"50us\"\nexclusive = {}\n",
            cache["bytes"],
            cache["levels"] == "exclusive"
        );
        let hits = if cache["serves"] == true { 2304 } else { 0 };
        assert_eq!(reads_by_time(directory, &two, &[10, 50, 1000]), [0, hits, 2560 - hits], "{cache}");
        assert_eq!(cache["lower_serves"], cache["levels"] == "exclusive" || cache["bytes"] != f64::from(256 << 10));
    }
}

#[test]
fn a_csv_file_has_the_blocks_touched_within_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let made = "generate uniform a.load.parquet --rate 100 --reads 1 --positions sequential --span 1M --requests 2560";
    assert!(iosonar(directory, made).0);
    assert!(iosonar(directory, "cache size a.load.parquet --fill-rate 200k/s --csv a.csv").0);
    let csv = std::fs::read_to_string(directory.join("a.csv")).unwrap();
    assert!(csv.starts_with("cache_bytes,fill_s,touched_bytes\n4096,0.02,"), "{csv}");
}
