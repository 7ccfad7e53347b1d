//! Run modes, end to end: looped, for a duration, perturbed, and each way of waiting.

use crate::replaying;
use std::path::Path;
use std::process::Stdio;

use iosonar_trace::{DelayReason, IoResult, Nanos, Op, Outcome, Request};

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, process_tree, request, run, wait_until};

const MS: i64 = 1_000_000;

fn assert_all_done(rows: &[IoResult]) {
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:?}");
    assert!(rows.iter().all(|row| row.delay().unwrap() >= Nanos::ZERO), "never early");
}

/// Request, iteration and scheduled time in ms, in order of iterations.
fn places(rows: &[IoResult]) -> Vec<(u64, u32, i64)> {
    let mut places: Vec<_> = rows.iter().map(|row| (row.request, row.iteration, row.scheduled.0 / MS)).collect();
    places.sort_by_key(|&(request, iteration, _)| (iteration, request));
    places
}

#[test]
fn a_looped_load_repeats_until_its_duration_ends() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let ran = bench.replay(&load, &bench.target(MIB), &["--loop", "--for", "35ms"]).with_code(0);
    let rows = ran.rows();
    assert_all_done(&rows);
    assert_eq!(places(&rows), (0..35).map(|i| (i % 10, i as u32 / 10, i as i64)).collect::<Vec<_>>());
    assert!(ran.footer().complete, "it ended as it was asked to");
    assert_eq!(ran.statistics()["requests"], 35);
    assert!(ran.stderr.contains("of each iteration"), "{}", ran.stderr);
}

#[test]
fn an_iteration_is_the_window_divided_by_the_speed_up() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let window = ["--start", "0.002", "--end", "0.006", "--speedup", "0.5", "--loop", "--for", "20ms"];
    let rows = bench.replay(&load, &bench.target(MIB), &window).with_code(0).rows();
    assert_eq!(places(&rows), (0..10).map(|i| (i % 4 + 2, i as u32 / 4, i as i64 * 2)).collect::<Vec<_>>());
}

#[test]
fn a_duration_ends_a_run_without_a_loop_as_well() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    let ran = bench.replay(&load, &bench.target(MIB), &["--for", "20ms", "--speedup", "2"]).with_code(0);
    assert!(ran.by_request().iter().map(|row| row.request).eq(0..40));
    assert!(ran.footer().complete);
}

#[test]
fn a_looped_asap_run_ends_with_its_duration() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(50, 8));
    // On a machine under load, a run may begin late and have few requests.
    let ran = std::iter::repeat_with(|| {
        let options = ["--asap", "--loop", "--for", "200ms", "--overwrite"];
        bench.replay(&load, &bench.target(MIB), &options).with_code(0)
    });
    let ran = ran.take(5).find(|ran| ran.rows().len() > 100).expect("a run with more than 100 requests");
    let rows = ran.rows();
    assert_all_done(&rows);
    assert!(ran.footer().complete);
    let places = places(&rows);
    assert!(
        places.iter().enumerate().all(|(i, &(request, iteration, _))| iteration as usize * 50 + request as usize == i)
    );
}

#[test]
fn an_endless_pipeline_ends_with_the_duration() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let ran = bench.replay(&load, &bench.target(MIB), &["--edit", "repeat", "--for", "25ms"]).with_code(0);
    assert_eq!(ran.rows().len(), 25);
}

#[test]
fn perturbed_requests_are_late_and_marked_and_never_early() {
    let bench = Bench::new();
    let target = bench.target(32 * MIB);
    // On a machine under load, most may be late for another reason.
    let load = bench.load(&adjacent_requests(6000, 8));
    let ran = bench.replay(&load, &target, &["--perturb", "quantize=20ms"]).with_code(0);
    let rows = ran.by_request();
    assert_all_done(&rows);
    for row in &rows {
        assert_eq!(row.scheduled.0, row.request as i64 * MS, "the load's own time");
        let boundary = (row.scheduled.0 + 20 * MS - 1) / (20 * MS) * 20 * MS;
        assert!(row.issued.unwrap().0 >= boundary, "{row:?}");
        assert!(boundary == row.scheduled.0 || row.delay_reason != DelayReason::None, "{row:?}");
    }
    assert!(rows.iter().filter(|row| row.delay_reason == DelayReason::Perturbed).count() > 100);
    assert!(ran.run()["fake"].as_str().unwrap().contains("perturbed on purpose"));
    let load = bench.load(&adjacent_requests(200, 8));
    let ran = bench.replay(&load, &target, &["--perturb", "delay=1ms", "--seed", "7", "--overwrite"]).with_code(0);
    let rows = ran.by_request();
    assert_all_done(&rows);
    assert!(rows.iter().map(|row| row.request).eq(0..200), "each once");
    bench.replay(&load, &target, &["--perturb", "jitter=1ms", "--overwrite"]).with_code(2);
}

#[test]
fn with_every_way_of_waiting_no_request_is_early_or_lost() {
    let bench = Bench::new();
    let rows: Vec<Row> = (0..50).map(|i| (i as f64 / 500.0, i * 8, 8, 'W')).collect();
    let load = bench.load(&rows);
    let target = bench.target(MIB);
    for wait in ["spin", "hybrid", "sleep", "inline"] {
        let ran = bench.replay(&load, &target, &["--wait", wait, "--overwrite"]).with_code(0);
        assert_all_done(&ran.rows());
        assert_eq!(ran.rows().len(), 50);
        assert_eq!(ran.run()["options"]["wait"], wait);
    }
}

#[test]
fn the_earlier_name_of_a_way_of_waiting_still_works() {
    let bench = Bench::new();
    let ran = bench.replay(&bench.load(&[(0.0, 0, 8, 'W')]), &bench.target(MIB), &["--wait", "work"]).with_code(0);
    let run = ran.run();
    assert_eq!([&run["options"]["wait"], &run["typed"]["wait"], &run["wait"]], ["inline"; 3]);
}

#[test]
fn a_closed_loop_issues_after_a_completion() {
    let bench = Bench::new();
    // All at once, and then nothing for an hour: without think times neither matters.
    let rows: Vec<Row> = (0..200).map(|i| (if i < 100 { 0.0 } else { 3600.0 }, i * 8, 8, 'W')).collect();
    let target = bench.target(MIB);
    let ran = bench.replay(&bench.load(&rows), &target, &["--closed=no-think", "--depth", "4"]).with_code(0);
    let rows = ran.by_request();
    assert_all_done(&rows);
    assert!(rows.iter().map(|row| row.request).eq(0..200), "each once");
    assert_eq!(ran.statistics()["max_in_flight"], 4);
    assert_eq!(ran.run()["options"]["closed"], "never");
    // With think times, the 2 ms between two requests count from the completion of the earlier one.
    let rows: Vec<Row> = (0..20).map(|i| (i as f64 / 500.0, i * 8, 8, 'W')).collect();
    let ran = bench.replay(&bench.load(&rows), &target, &["--closed", "--depth", "1", "--overwrite"]).with_code(0);
    let rows = ran.by_request();
    assert_all_done(&rows);
    for (row, next) in rows.iter().zip(&rows[1..]) {
        assert_eq!(next.scheduled.0, row.completed.unwrap().0 + 2 * MS, "{next:?}");
    }
    bench.replay(&bench.path("a.load"), &target, &["--closed", "--asap"]).with_code(2);
    let words = ["--closed=no-think", "--speedup", "2", "--overwrite"];
    bench.replay(&bench.path("a.load"), &target, &words).refused(&["--speedup changes the times of the load"]);
}

/// The speed of the machine is not asserted, only that it is measured and reported.
#[test]
fn calibration_needs_neither_load_nor_target() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iosonar"));
    // A slow way of waiting: the search is short.
    let output = command.args(["replay", "--calibrate", "--wait", "sleep", "--json"]).output().unwrap();
    let ran = Finished::of(output, "none".into()).with_code(0);
    let message: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object and nothing else");
    let steps = message["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["rate"], &message["wait"]), (&1000.0.into(), &"sleep".into()));
    for step in steps {
        let own = step["verdict"]["own"]["requests"].as_f64().unwrap();
        let all = own + step["verdict"]["device"]["requests"].as_f64().unwrap();
        assert!((all - 2.0 * step["rate"].as_f64().unwrap()).abs() <= 1.0, "every request has its row: {step}");
    }
    assert!(message["sentence"].as_str().unwrap().contains("requests/s"), "{message}");
    let bench = Bench::new();
    bench.replay(&bench.load(&adjacent_requests(1, 8)), &bench.target(MIB), &["--calibrate"]).with_code(2);
}

#[test]
fn a_killed_calibration_leaves_no_journal() {
    let bench = Bench::new();
    let directory = bench.path("tmp");
    std::fs::create_dir(&directory).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["replay", "--calibrate", "--wait", "sleep"]).env("TMPDIR", &directory).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_one_open = |process: u32| {
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|file| file.starts_with(&directory))
    };
    let mut worker = None;
    wait_until("its journal is open", || {
        worker = process_tree(child.id()).into_iter().find(|process| has_one_open(*process));
        worker.is_some()
    });
    run("kill", &["-KILL".as_ref(), worker.unwrap().to_string().as_ref()]);
    iosonar_testing::ended(&mut child);
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn repeated_runs_have_a_result_each() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(20, 8));
    let target = bench.target(MIB);
    let ran = bench.replay(&load, &target, &["--repeat", "3"]).with_code(0);
    let results = ["r.1.replay.parquet", "r.2.replay.parquet", "r.3.replay.parquet"];
    assert_eq!(bench.names(), [&["a.load"], &results[..], &["target"]].concat());
    for result in results {
        let (rows, footer) = replaying::read_run(&bench.path(result));
        assert!(rows.len() == 20 && footer.complete);
    }
    assert!(ran.stderr.contains("run 3 of 3"), "{}", ran.stderr);
    assert!(ran.stderr.contains("later runs find") && ran.stderr.contains("iosonar device wipe"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning: --repeat").count(), 1, "said once for the series: {}", ran.stderr);
    // Whether the runs were faithful depends on the machine.
    let is_faithful = ran.stdout.contains("faithful       3 of 3\n");
    assert_eq!(ran.stdout.matches("what to try").count(), usize::from(!is_faithful), "{}", ran.stdout);
    assert!(ran.stdout.contains("variance of 3 runs") && ran.stdout.contains("(spread "), "{}", ran.stdout);
    // No run starts if the result of one could not be written.
    std::fs::remove_file(bench.path(results[0])).unwrap();
    bench.replay(&load, &target, &["--repeat", "3"]).refused(&["r.2.replay.parquet exists", "--overwrite"]);
    assert!(!bench.path(results[0]).exists());
    let ran = bench.replay(&load, &target, &["--repeat", "2", "--overwrite", "--json"]).with_code(0);
    let all: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one array and nothing else");
    assert!(all.as_array().unwrap().iter().all(|run| run["completed"] == 20) && all[1].is_object());
}

#[test]
fn later_runs_of_a_series_wait_as_the_first() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(20, 8));
    bench.replay(&load, &bench.target(MIB), &["--engine", "null", "--repeat", "3"]).with_code(0);
    let runs = [1, 2, 3].map(|number| {
        let (_, footer) = replaying::read_run(&bench.path(&format!("r.{number}.replay.parquet")));
        let run = footer.run.unwrap();
        (run.wait.text().unwrap().to_owned(), run.wait_reason.text().unwrap().to_owned())
    });
    assert!(runs.iter().all(|(wait, _)| *wait == runs[0].0), "{runs:?}");
    assert!(runs[1..].iter().all(|(_, reason)| reason == "as in the first run of the series"), "{runs:?}");
}

#[test]
fn a_signal_ends_all_repeated_runs() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(60_000, 8));
    let running = bench.start_as("r.1.replay.parquet", &load, &bench.target(MIB), &["--repeat", "9"]);
    running.signal("INT");
    let ran = running.end().with_code(5);
    assert!(ran.stderr.contains("8 of 9 runs not started"), "{}", ran.stderr);
    assert!(!ran.footer().complete);
    assert_eq!(bench.names(), ["a.load", "r.1.replay.parquet", "target"]);
}

#[test]
fn by_dependencies_a_load_takes_as_long_as_its_program_would() {
    let bench = Bench::new();
    // Two threads, each of which pauses for 1 ms after a response that took 0.5 to 1.5 ms.
    let mut requests: Vec<Request> = (1..3)
        .flat_map(|pid| {
            let mut at = Nanos(pid * 100_000);
            (0..200_i64).map(move |n| {
                let latency = Nanos(500_000 + n * 7919 % 1000 * 1000);
                let made = request(at.as_secs(), Op::Read, n as u64 * 8, 8);
                at = at + latency + Nanos(1_000_000);
                Request { latency: Some(latency), pid: Some(pid as u32), ..made }
            })
        })
        .collect();
    requests.sort_by_key(|request| request.at);
    let load = bench.parquet(&requests);
    for (device, seconds) in [("constant=4ms", 1.0), ("constant=100us", 0.22)] {
        let more = ["--simulate", device, "--virtual-time", "--closed=dependencies", "--overwrite"];
        let ran = bench.replay(&load, Path::new("none"), &more).with_code(0);
        assert!(
            ran.stderr.contains("398 of 400 requests wait for another one (398 found by process"),
            "{}",
            ran.stderr
        );
        let elapsed = ran.statistics()["elapsed_s"].as_f64().unwrap();
        assert!((elapsed / seconds - 1.0).abs() < 0.01, "{device}: {elapsed}");
        let rows = ran.by_request();
        for row in rows.iter().filter(|row| row.cause.is_some()) {
            let before = &rows[row.cause.unwrap() as usize];
            assert_eq!(row.scheduled, before.completed.unwrap() + Nanos(1_000_000), "{row:?}");
        }
        assert_eq!(ran.run()["dependencies"]["by_process"], 398);
    }
    let without = bench.load(&adjacent_requests(10, 8));
    let refused = |load: &Path, more: &[&str], why: &str| {
        let words = [&["--simulate", "constant=1ms", "--overwrite", "--closed=dependencies"], more].concat();
        bench.replay(load, Path::new("none"), &words).refused(&[why]);
    };
    refused(&without, &[], "has no latencies");
    refused(&load, &["--loop", "--for", "1s"], "without --loop");
    refused(&load, &["--speedup", "2"], "from which --closed=dependencies infers");
}

/// A number without unit is in seconds; every option for a time accepts every unit.
#[test]
fn times_are_accepted_in_any_unit() {
    let bench = Bench::new();
    let load = bench.load(&(0..100).map(|i| (i as f64 / 50.0, i * 8, 8, 'R')).collect::<Vec<_>>());
    for options in [
        "--start 500ms --end 1500ms",
        "--start 0.5 --duration 1s",
        "--start 500000us --end 0.025m",
        "--start 5e-1 --end 1500000000ns",
        "--for 1s --grace 20ms --ahead-time 2s --output-offset 1h",
    ] {
        let simulated = ["--simulate", "constant=1us", "--virtual-time", "--overwrite"];
        let words: Vec<&str> = options.split(' ').chain(simulated).collect();
        bench.replay(&load, Path::new("none"), &words).with_code(0);
    }
}
