//! `iosonar files replay`: the options that it shares with `iosonar replay`.

use std::fs;
use std::process::Output;

use iosonar_files::{CallOutcome, CallResult, table};
use serde_json::{Value, json};

use crate::files_replaying::{Bench, program};

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The options of the replay in its footer.
fn options(bench: &Bench) -> Value {
    let run = json!(table::open_run(&bench.result()).unwrap().metadata().run);
    run["options"].clone()
}

#[test]
fn old_spellings_mean_what_they_meant() {
    for (old, new, keys) in [
        (&["--factor", "0.5"][..], &["--speedup", "2"][..], &[("speedup", json!(2.0)), ("factor", json!(0.5))][..]),
        (&["--pool", "3"], &["--depth", "3"], &[("depth", json!(3)), ("threads", json!({"pool": 3}))]),
        (&["--timing", "asap"], &["--asap"], &[("timing", json!("asap"))]),
    ] {
        for words in [old, new] {
            let bench = Bench::new();
            let rows = bench.replay(&program(), 0, words);
            assert_eq!(rows.len(), program().calls.len());
            for (key, value) in keys {
                assert_eq!(options(&bench)[key], *value, "{words:?}: {key}");
            }
        }
    }
}

#[test]
fn a_speedup_divides_the_times_of_calls() {
    let scheduled = |words: &[&str]| -> Vec<i64> {
        Bench::new().replay(&program(), 0, words).iter().map(|row| row.scheduled.0).collect()
    };
    let (once, slower) = (scheduled(&[]), scheduled(&["--speedup", "0.25"]));
    assert!(once.iter().zip(&slower).all(|(once, slower)| once * 4 == *slower), "{once:?} {slower:?}");
}

#[test]
fn calls_beyond_the_time_of_for_are_left_out() {
    let calls = |words: &[&str]| Bench::new().replay(&program(), 0, words).len();
    // A call begins every 2 µs.
    assert_eq!(calls(&["--for", "10us"]), 5);
    assert_eq!(calls(&["--for", "10us", "--speedup", "0.5"]), 3);
}

#[test]
fn without_scheduled_times_for_ends_the_issuing() {
    let mut trace = program();
    // The duplicate of a descriptor, which is not issued.
    trace.calls.pop();
    let last = trace.calls.len() as u64 - 1;
    // An hour after the call before it.
    trace.calls.last_mut().unwrap().begin.0 += 3_600_000_000_000;
    let bench = Bench::new();
    let rows = bench.replay(&trace, 0, &["--for", "6s", "--timing", "diff"]);
    let not_reached: Vec<_> = rows.iter().filter(|row| row.outcome == CallOutcome::NotReached).collect();
    assert!(not_reached.iter().all(|row| row.call == last), "{not_reached:?}");
    assert!(rows.len() as u64 - not_reached.len() as u64 >= last, "all calls before it");
    assert_eq!(bench.statistics()["complete"], true);
}

#[test]
fn runs_of_a_series_have_numbered_results() {
    let bench = Bench::new();
    let output = bench.output(&program(), 4, &["--repeat", "2", "--json", "--asap"]);
    let runs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "the files are there in the second run: {runs}");
    for number in ["r.1.calls-run.parquet", "r.2.calls-run.parquet"] {
        assert!(fs::metadata(bench.result().with_file_name(number)).is_ok(), "{number}");
    }
    assert!(!bench.result().exists());
}

#[test]
fn perturbed_calls_are_late_on_purpose_and_the_result_is_fake() {
    let late = |words: &[&str]| {
        let bench = Bench::new();
        let rows = bench.replay(&program(), 0, words);
        let is_late = |row: &CallResult| row.issued.is_none_or(|issued| issued.0 >= 1_000_000);
        assert!(rows.iter().skip(1).all(is_late), "{words:?}: {rows:?}");
        bench.statistics()
    };
    let statistics = late(&["--perturb", "quantize=1ms"]);
    assert_eq!(
        statistics["fake"],
        "FAKE RESULT: issue times were perturbed on purpose (--perturb quantize=1ms, --seed 1)"
    );
    let verdict = &statistics["verdict"];
    assert!(verdict["faithful"].is_null(), "{verdict}");
    let sentence = verdict["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("none, as the result is fake: issue times were perturbed on purpose."), "{sentence}");
}

#[test]
fn progress_is_a_json_object_at_each_change_of_state() {
    let bench = Bench::new();
    let output = bench.output(&program(), 0, &["--progress", "json"]);
    let shown = message(&output);
    let lines: Vec<Value> = shown.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let states: Vec<_> = lines.iter().filter_map(|line| line["state"].as_str()).collect();
    assert_eq!(states.first().zip(states.last()), Some((&"prepare", &"finish")), "{shown}");
    assert!(states.contains(&"wait") && states.contains(&"run"), "{shown}");
    let issued = program().calls.len() as u64 - 1;
    assert!(lines.last().unwrap()["completed"].as_u64().is_some_and(|completed| completed >= issued), "{shown}");
}

#[test]
fn a_replay_starts_at_the_given_time() {
    let bench = Bench::new();
    let passed = bench.output(&program(), 1, &["--start-at", "1767225600"]);
    assert!(message(&passed).contains("the start time passed"), "{}", message(&passed));
    // A machine under load may need longer to prepare the run.
    let (at, output) = [4, 10, 60]
        .into_iter()
        .find_map(|seconds| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
            let at = now + seconds;
            let output = bench.command(&program(), &["--start-at", &at.to_string()]).output().unwrap();
            (!message(&output).contains("start time passed")).then_some((at, output))
        })
        .expect("a run that was prepared in time");
    assert!(output.status.success(), "{}", message(&output));
    assert!(bench.rows().iter().all(|row| row.outcome != CallOutcome::NotReached));
    let started = json!(table::open_run(&bench.result()).unwrap().metadata().run)["started_unix_ns"].as_i64().unwrap();
    assert_eq!((started + 500_000_000) / 1_000_000_000, at as i64);
}
