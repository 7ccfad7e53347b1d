//! Who delayed a request, end to end: the device, or the replayer. And times of any length.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use iosonar_trace::{DelayReason, IoResult, Nanos};

use crate::replaying::{Bench, MIB, adjacent_requests, process_tree, run};

fn send(signal: &str, processes: &[u32]) {
    for process in processes {
        run("kill", &[format!("-{signal}").as_ref(), process.to_string().as_ref()]);
    }
}

#[test]
fn a_stopped_replay_is_never_faithful() {
    for (depth, wait) in [("1", "spin"), ("4", "hybrid"), ("64", "sleep"), ("1", "inline")] {
        let bench = Bench::new();
        let load = bench.load(&adjacent_requests(6000, 8));
        let running = bench.start(&load, &bench.target(32 * MIB), &["--depth", depth, "--wait", wait]);
        let processes = process_tree(running.id());
        send("STOP", &processes);
        thread::sleep(Duration::from_millis(500));
        send("CONT", &processes);
        let finished = running.end().with_code(0);
        let verdict = &finished.statistics()["verdict"];
        assert_eq!(verdict["faithful"], false, "depth {depth}, {wait}: {verdict}");
        // What was late by more than a machine under load explains was so by the stop, as the device takes microseconds.
        let rows = finished.rows();
        let late = rows.iter().filter(|row| row.delay().unwrap() > Nanos(250_000_000));
        let (own, held): (Vec<&IoResult>, Vec<&IoResult>) = late.partition(|row| row.is_not_held_back());
        assert!(own.len() > 100 && held.len() * 4 < own.len(), "depth {depth}, {wait}: {}, {}", own.len(), held.len());
    }
}

#[test]
fn in_virtual_time_waits_for_depth_have_delay_reason_depth() {
    let bench = Bench::new();
    // Each 30 ms: 8 at once, which fill the depth for 10 ms, then 7 more, a millisecond apart.
    let at = |i: u64| (i / 15 * 30 + (i % 15).saturating_sub(7)) as f64 / 1e3;
    let rows: Vec<_> = (0..3000).map(|i| (at(i), i * 8, 8, 'R')).collect();
    let simulated = ["--simulate", "constant=10ms", "--virtual-time", "--depth", "8"];
    let ran = bench.replay(&bench.load(&rows), &bench.target(16 * MIB), &simulated).with_code(0);
    let held = ran.rows().iter().filter(|row| row.delay_reason == DelayReason::Depth).count();
    assert_eq!(held, 1400);
    assert!(ran.stdout.contains("verdict          none, as the result is fake: "), "{}", ran.stdout);
    let verdict = &ran.statistics()["verdict"];
    assert!(verdict["faithful"].is_null(), "{verdict}");
    assert!(verdict["sentence"].as_str().unwrap().starts_with("none, as the result is fake: "), "{verdict}");
}

#[test]
fn delays_of_hours_have_their_percentiles() {
    let bench = Bench::new();
    // One each second for a device that takes eleven: the last is 100,000 s late.
    let rows: Vec<_> = (0..10_001).map(|i| (i as f64, i * 8, 8, 'R')).collect();
    let simulated = ["--simulate", "constant=11s", "--virtual-time", "--depth", "1"];
    let ran = bench.replay(&bench.load(&rows), &bench.target(16 * MIB), &simulated).with_code(0);
    let statistics = ran.statistics();
    for (which, latency) in [("delay_us", 0.0), ("latency_from_scheduled_us", 11.0)] {
        for (quantile, seconds) in [("p50", 50_000.0), ("p99", 99_000.0), ("p999", 99_900.0), ("max", 100_000.0)] {
            let found = statistics[which][quantile].as_f64().unwrap() / 1e6;
            assert!((found / (seconds + latency) - 1.0).abs() < 0.002, "{which} {quantile}: {found}");
        }
    }
}

#[test]
fn virtual_time_passes_gaps_of_a_century() {
    let bench = Bench::new();
    let load = bench.load(&[(0.0, 8, 8, 'R'), (3e9, 16, 8, 'R'), (9e9, 24, 8, 'R')]);
    let simulated = ["--simulate", "constant=1ms", "--virtual-time"];
    let ran = bench.replay(&load, &bench.target(MIB), &simulated).with_code(0);
    assert_eq!(ran.rows().len(), 3);
}

#[test]
fn virtual_time_that_does_not_go_on_ends_the_run() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(2000, 8));
    let simulated = ["--simulate", "constant=0", "--virtual-time", "--asap", "--loop", "--for", "10ms"];
    let ran = bench.replay(&load, &bench.target(MIB), &simulated);
    assert!(ran.stderr.contains("virtual time does not go on"), "{}", ran.stderr);
    bench.replay(&load, &bench.target(MIB), &["--simulate", "constant=1ms", "--fit", "reject"]).refused(&["--fit"]);
}

#[test]
fn a_run_with_times_beyond_292_years_is_refused_or_incomplete() {
    let bench = Bench::new();
    let load = bench.load(&(0..100).map(|i| (i as f64, i * 8, 8, 'R')).collect::<Vec<_>>());
    let target = bench.target(MIB);
    let too_long = ["--simulate", "constant=1ms", "--virtual-time", "--speedup", "1e-9"];
    bench.replay(&load, &target, &too_long).refused(&[
        "the last request of the load",
        "292 years",
        "--speedup",
        "--for",
    ]);
    // A pipe is not read before.
    let mut command = bench.command(Path::new("-"), &target, &too_long);
    let piped = command.stdin(File::open(&load).unwrap()).output().unwrap();
    let message = String::from_utf8_lossy(&piped.stderr);
    assert!(piped.status.code() != Some(0) && message.contains("request 10 of the load would be due 292"), "{message}");
}
