//! How many requests jobs make, beside fio's own counts.

use iosonar_trace::{Nanos, Sectors};

use super::tests::converted;
use crate::device::on_a_device;
use crate::program::{Layout, Program, Settings};

/// Requests and bytes of a job with this seed.
fn made(program: &Program, seed: u64) -> (f64, f64) {
    let size = program.place(&Settings::new(Layout::Together(Sectors(1 << 30)))).unwrap().sizes();
    let size = Sectors(size.iter().map(|size| size.0).sum());
    let settings = Settings { seed, ..Settings::new(Layout::Together(size)) };
    let all = on_a_device(program, &settings, Nanos::MAX);
    let bytes: u64 = all.iter().map(|(submitted, _)| submitted.spec.sectors.bytes()).sum();
    (all.len() as f64, bytes as f64)
}

/// The counts are those that `bench/fio_counts.py` measured: equal where fio's are always the same, else their means agree.
#[test]
fn jobs_make_as_many_requests_as_fio() {
    let mut wrong = Vec::new();
    for row in include_str!("counts.tsv").lines().filter(|line| !line.starts_with('#')) {
        let [options, requests, deviation, bytes] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let [requests, deviation, bytes] = [requests, deviation, bytes].map(|number| number.parse::<f64>().unwrap());
        let conversion = converted(&format!("[a]\nioengine=psync\n{}\n", options.replace(' ', "\n")));
        let program = Program::parse("job.toml", &conversion.text).unwrap();
        const SEEDS: u64 = 60;
        let all: Vec<_> = (1..=SEEDS).map(|seed| made(&program, seed)).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / SEEDS as f64;
        let found = (mean(|made| made.0), mean(|made| made.1));
        let is_same = deviation > 0.0 || all.iter().all(|made| *made == (requests, bytes));
        // Both means are of some tens of runs.
        let noise = 4.0 * deviation * (1.0_f64 / 40.0 + 1.0 / SEEDS as f64).sqrt();
        // fio's lfsr ends some of its jobs before their first request.
        let most = if options.contains("lfsr") { 0.1 } else { 0.02 };
        let is_near = (found.0 - requests).abs() <= 0.03 * requests + noise && (found.1 / bytes - 1.0).abs() < most;
        if !is_same || !is_near {
            wrong.push(format!("{row}\n    found {:.2} {:.0}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first sectors are those that fio 3.33 logs (write_iolog); a second file is behind the first.
#[test]
fn requests_go_where_fio_sends_them() {
    for (options, sectors) in [
        ("bs=16k size=64k filesize=128k loops=2 rw=read ioengine=libaio", "0 32 64 96 0 32 64 96"),
        ("bs=16k size=64k filesize=128k loops=2 rw=read", "0 32 64 96 128 160 192 224"),
        ("bs=16k filesize=64k offset=16k rw=read", "32 64 96"),
        ("bs=4k size=32k rw=write:8k", "0 24 48 0 24 48 0 24"),
        ("bs=4k size=32k rw=write:2k", "0 12 24 36 48"),
        ("bs=3k size=7777 io_size=12k rw=read", "0 6 0 6"),
        ("bs=4k size=32k filename=x:y rw=write io_size=24k", "0 32 8 40 16 48"),
        ("bs=4k size=40k filename=x:y file_service_type=roundrobin:2 io_size=32k rw=write", "0 8 40 48 16 24 56 64"),
        ("bs=4k size=32k nrfiles=2 rw=read", "0 32 8 40 16 48 24 56"),
        ("bs=4k size=24k filename=x:y rw=write:2k loops=2", "0 24 12 36 0 24 12 36 0 24 12 36"),
        ("bs=4k size=12k rw=trimwrite ioengine=null", "0 0 8 8 16 16"),
        ("bs=4k size=28k thinktime=1 thinktime_blocks=3 rw=read", "0 8 16 24 32 40 48"),
    ] {
        let conversion = converted(&format!("[a]\n{}\n", options.replace(' ', "\n")));
        let program = Program::parse("job.toml", &conversion.text).unwrap();
        let settings = Settings::new(Layout::Together(Sectors(1 << 20)));
        let all = on_a_device(&program, &settings, Nanos::MAX);
        let found: Vec<_> = all.iter().map(|(submitted, _)| submitted.spec.sector.0.to_string()).collect();
        assert_eq!(found.join(" "), sectors, "{options}: {}", conversion.text);
    }
}
