//! The start of a run at a given time, and its progress as JSON.

use crate::replaying;
use std::io::{BufRead, Write};
use std::process::Child;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, process_tree, run, signal_tree, wait_until};
use crate::signals::{has_ended, has_open};

/// Nanoseconds since 1970 UTC, this far from now.
fn in_ms(milliseconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_nanos() as i64 + milliseconds * 1_000_000
}

/// The value of `--start-at` for nanoseconds since 1970 UTC.
fn start_at(unix_ns: i64) -> String {
    format!("{}.{:09}", unix_ns / 1_000_000_000, unix_ns % 1_000_000_000)
}

fn end(child: Child, bench: &Bench) -> Finished {
    Finished::of(iosonar_testing::output_of(child), bench.path("r.replay.parquet"))
}

#[test]
fn a_run_starts_at_the_given_time() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let target = bench.target(MIB);
    // A machine under load may need longer to prepare the run.
    let (wanted, ran) = [1500, 10_000, 60_000]
        .into_iter()
        .find_map(|milliseconds| {
            let wanted = in_ms(milliseconds);
            let ran = bench.replay(&load, &target, &["--grace", "0", "--start-at", &start_at(wanted)]);
            (!ran.stderr.contains("start time passed")).then_some((wanted, ran))
        })
        .expect("a run that was prepared in time");
    let ran = ran.with_code(0);
    let run = ran.run();
    let started = run["started_unix_ns"].as_i64().unwrap();
    assert!((started - wanted).abs() < 50_000_000, "{started} instead of {wanted}");
    assert_eq!(run["options"]["start_at"].as_i64(), Some(wanted));
    assert_eq!(run["typed"]["start-at"], start_at(wanted).as_str());
    assert_eq!(ran.rows().len(), 10);
}

#[test]
fn a_start_time_that_has_passed_is_refused_before_any_output() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let time = start_at(in_ms(-5000));
    let ran = bench.replay(&load, &bench.target(MIB), &["--start-at", &time]).with_code(1);
    ran.refused(&["start time passed", "nothing was written", "choose a later time"]);
    assert_eq!(bench.names(), ["a.load", "target"]);
}

#[test]
fn a_run_waits_until_a_file_has_its_start_time() {
    let bench = Bench::new();
    let (load, target, file) = (bench.load(&adjacent_requests(10, 8)), bench.target(MIB), bench.path("start"));
    let options = ["--progress", "json", "--start-file", file.to_str().unwrap()];
    let mut child = bench.command(&load, &target, &options).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(r#""state":"ready","time_s":null"#)));
    // Without its end, the line is not complete.
    std::fs::write(&file, "17").unwrap();
    thread::sleep(Duration::from_millis(200));
    let wanted = in_ms(8000);
    std::fs::write(&file, start_at(wanted) + "\n").unwrap();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains(r#""state":"run""#)), "{rest:?}");
    let ran = end(child, &bench).with_code(0);
    assert!((ran.run()["started_unix_ns"].as_i64().unwrap() - wanted).abs() < 50_000_000);
    std::fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    bench.replay(&load, &target, &options).with_code(1).refused(&["--start-file", "exists already", "remove it"]);
}

#[test]
fn a_start_time_that_preparation_misses_is_an_error() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    run("mkfifo", &[pipe.as_ref()]);
    let target = bench.target(MIB);
    // Late enough that the first check, before anything is read, passes on a machine under load.
    let time = start_at(in_ms(8000));
    let child = bench.command(&pipe, &target, &["--start-at", &time]).spawn().unwrap();
    // With both directions, this does not wait for a replay that was refused.
    let mut writer = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    wait_until("the replay reads its load, or was refused", || {
        has_ended(child.id()) || process_tree(child.id()).into_iter().any(|process| has_open(process, &pipe))
    });
    thread::sleep(Duration::from_millis(8200));
    writer.write_all(replaying::text(&adjacent_requests(10, 8)).as_bytes()).unwrap();
    drop(writer);
    end(child, &bench).with_code(1).refused(&["start time passed", "before all was prepared"]);
    assert_eq!(bench.names(), ["pipe", "target"]);
    assert!(std::fs::read(target).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn a_start_time_more_than_a_day_ahead_is_refused() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let time = start_at(in_ms(2 * 86_400_000));
    let ran = bench.replay(&load, &bench.target(MIB), &["--start-at", &time]).with_code(1);
    ran.refused(&["2.0 days ahead", "clock"]);
}

#[test]
fn a_start_time_contradicts_repeated_runs() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let time = start_at(in_ms(5000));
    let target = bench.target(MIB);
    bench.replay(&load, &target, &["--start-at", &time, "--repeat", "2"]).with_code(2).refused(&["--repeat"]);
    bench.replay(&load, &target, &["--start-at", "noon"]).with_code(2).refused(&["since 1970 UTC"]);
}

#[test]
fn a_signal_ends_a_run_that_waits_for_its_start() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let time = start_at(in_ms(3_600_000));
    let child = bench.command(&load, &bench.target(MIB), &["--start-at", &time]).spawn().unwrap();
    wait_until("all is prepared", || bench.path("r.replay.parquet.journal").exists());
    signal_tree("INT", child.id());
    let ran = end(child, &bench).with_code(1);
    assert!(ran.stderr.contains("stopped before the replay began"), "{}", ran.stderr);
    assert_eq!(bench.names(), ["a.load", "target"]);
}

#[test]
fn progress_as_json_has_a_line_for_each_state_and_each_second() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(8000, 8));
    let options = ["--grace", "6s", "--progress", "json", "--simulate", "constant=1ms"];
    let ran = bench.replay(&load, &bench.target(32 * MIB), &options).with_code(0);
    let (lines, others): (Vec<&str>, Vec<&str>) = ran.stderr.lines().partition(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut states: Vec<&str> = lines.iter().map(|line| line["state"].as_str().unwrap()).collect();
    states.dedup();
    assert_eq!(states, ["prepare", "wait", "run", "finish"], "{lines:?}");
    let keys: Vec<_> = lines[0].as_object().unwrap().keys().cloned().collect();
    for key in ["state", "time_s", "of_s", "completed", "in_flight", "rate_per_s", "delay_s"] {
        assert!(keys.iter().any(|known| known == key), "{key}: {keys:?}");
    }
    for key in ["demanded", "submitted", "waiting", "bytes", "errors", "dropped", "demanded_per_s", "latency_p50_s"] {
        assert!(keys.iter().any(|known| known == key), "{key}: {keys:?}");
    }
    let of_state = |state: &str| lines.iter().filter(|line| line["state"] == state).collect::<Vec<_>>();
    assert!(of_state("wait")[0]["time_s"].as_f64().unwrap() < 0.0, "{lines:?}");
    assert!(of_state("run").len() >= 2, "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!(last["of_s"], 7.999);
    let (submitted, demanded) = (last["submitted"].as_u64().unwrap(), last["demanded"].as_u64().unwrap());
    assert!(last["completed"].as_u64().unwrap() <= submitted && submitted <= demanded && demanded <= 8000, "{last}");
    // Of the seconds with enough requests: at least what the device takes.
    let p50: Vec<f64> = lines.iter().filter_map(|line| line["latency_p50_s"].as_f64()).collect();
    assert!(p50.iter().all(|p50| *p50 >= 0.001) && p50.iter().any(|p50| *p50 < 1.0), "{lines:?}");
    assert!(last["completed"].as_u64().unwrap() > 1000 && last["delay_s"].is_number(), "{lines:?}");
    assert!(others.iter().any(|line| line.starts_with("FAKE RESULT")), "{others:?}");
}
