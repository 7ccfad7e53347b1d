//! `iosonar workload fit` and `iosonar cache fill`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Whether the command succeeds, and its standard output and error.
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

#[test]
fn a_fitted_program_makes_a_load_like_the_original() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let made = "generate poisson a.load.parquet --rate 500 --size 4k:70,64k:30 --positions sequential --requests 5000";
    assert!(iosonar(directory, made).0);
    let found = json(directory, "workload fit a.load.parquet a.toml --json");
    assert_eq!(found["streams"][0]["requests"], 5000);
    assert!(found["mean_difference"].as_f64().unwrap() < 0.1, "{found}");
    let chosen = |part: &str| {
        let candidates = found["streams"][0][part].as_array().unwrap();
        candidates.iter().find(|candidate| candidate["chosen"] == true).unwrap()["kind"].clone()
    };
    assert_eq!((chosen("arrivals"), chosen("positions")), ("poisson".into(), "sequential".into()));
    assert!(iosonar(directory, "workload load a.toml b.load.parquet --for 10s --separate-devices").0);

    let (succeeds, out, _) = iosonar(directory, "workload fit a.load.parquet a.toml --overwrite --requests 1000");
    assert!(succeeds && out.contains("mean difference") && out.contains("* poisson"), "{out}");
}

#[test]
fn random_reads_fill_a_cache_as_the_formula_says() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let found = json(directory, "cache fill --entries 10k --reads 50k --rate 1k --json --csv x.csv");
    let row = &found["rows"][0];
    assert_eq!((&row["reads"], &row["seconds"]), (&10_000.into(), &10.0.into()));
    assert!((row["formula_share"].as_f64().unwrap() - 0.6321).abs() < 1e-3, "{row}");
    assert!((row["simulation"].as_f64().unwrap() - 6321.0).abs() < 250.0, "{row}");
    let csv = std::fs::read_to_string(directory.join("x.csv")).unwrap();
    assert!(csv.starts_with("reads,seconds,formula,simulation,measured\n") && csv.lines().count() == 51, "{csv}");
    let (succeeds, out, _) = iosonar(directory, "cache fill --entries 1000 --zipf 0.9");
    assert!(succeeds && out.contains("full after, on average"), "{out}");
}

#[test]
fn a_load_fills_a_cache_with_the_blocks_it_touches() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    // 256 blocks again and again: an LRU cache of fewer never hits, one of all hits but the first time.
    let made = "generate uniform a.load.parquet --rate 100 --positions sequential --span 1M --requests 2560";
    assert!(iosonar(directory, made).0);
    let found = json(directory, "cache fill a.load.parquet --sizes 512k,1M,2M --json");
    assert_eq!((&found["blocks"], &found["accesses"]), (&256.0.into(), &2560.0.into()));
    let ratios: Vec<f64> =
        found["caches"].as_array().unwrap().iter().map(|cache| cache["hit_ratio"].as_f64().unwrap()).collect();
    assert_eq!(ratios, [0.0, 0.9, 0.9]);
    assert_eq!(found["caches"][2]["full_after_s"], Value::Null);
    // Each request touches one more block: a cache is full after exactly as many, whatever points the curve has.
    let found = json(directory, "cache fill a.load.parquet --sizes 44k,256k,1004k --json");
    let full: Vec<u64> = found["caches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cache| cache["full_after_requests"].as_u64().unwrap())
        .collect();
    assert_eq!(full, [11, 64, 251]);
    let (succeeds, out, _) = iosonar(directory, "cache fill a.load.parquet");
    assert!(succeeds && out.contains("256 different blocks"), "{out}");
}

#[test]
fn requests_of_a_tebibyte_end_in_a_clear_refusal() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    assert!(iosonar(directory, "generate uniform a.load.parquet --rate 100 --size 1T --span 4T --requests 200").0);
    // Of 4 KiB, the first request alone touches too many: none is counted.
    assert!(!iosonar(directory, "cache fill a.load.parquet --block 4k").0);
    assert!(iosonar(directory, "cache fill a.load.parquet --block 1G").0);
    assert!(iosonar(directory, "workload fit a.load.parquet a.toml").0);
}

#[test]
fn a_cache_in_a_run_fills_as_the_formula_says() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let device = "[service.constant]\ntime = \"1ms\"\n[read_cache]\nsize = \"16M\"\ntime = \"10us\"\n";
    std::fs::write(directory.join("device.toml"), device).unwrap();
    let program = "name = \"p\"\nabout = \"x\"\ndevices.target = \"4M\"\n[[stream]]\nname = \"s\"\nclosed = true\n\
                   op = \"read\"\nrequests = 4096\n";
    std::fs::write(directory.join("p.toml"), program).unwrap();
    let run = "workload run p.toml --simulate device.toml --virtual-time --output r.replay.parquet";
    assert!(iosonar(directory, run).0);
    let found = json(directory, "cache fill --entries 1024 --measured r.replay.parquet --hit-latency 100us --json");
    assert_eq!(found["reads"], 4096);
    assert!(found["fake"].as_str().unwrap().contains("simulated"), "{found}");
    for row in found["rows"].as_array().unwrap() {
        let (measured, formula) = (row["measured"].as_f64().unwrap(), row["formula"].as_f64().unwrap());
        // The standard deviation is at most 10.
        assert!((measured - formula).abs() < 45.0, "{row}");
    }
    let (_, out, _) = iosonar(directory, "cache fill --entries 1024 --measured r.replay.parquet --hit-latency 5us");
    assert!(out.starts_with("FAKE RESULT: ") && out.contains("measured") && out.contains("4,096"), "{out}");
    let (succeeds, _, error) =
        iosonar(directory, "cache fill --entries 1024 --block 8k --measured r.replay.parquet --hit-latency 1ms");
    assert!(!succeeds && error.contains("reads 4 KiB, not a block of 8 KiB"), "{error}");
}
