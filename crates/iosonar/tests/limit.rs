//! `iosonar limit` on runs with known content.

use std::process::Command;

use iosonar_trace::{DelayReason, IoResult, Kind, Metadata, Nanos, Op, Outcome, Request, Sector, Sectors};
use serde_json::{Value, json};

/// A run with this footer: a request each millisecond, all of them two seconds late. Returns whether `limit` succeeds,
/// and its standard output and error.
fn limit(run: Value, delay_reason: DelayReason, more: &[&str]) -> (bool, String, String) {
    let rows = (0..3000).map(|number| {
        let request = Request::new(Nanos(number * 1_000_000), Op::Read, Sector(0), Sectors(8));
        let issued = Some(request.at + Nanos(2_000_000_000));
        let outcome = Outcome::Ok;
        IoResult { issued, completed: issued, delay_reason, outcome, ..IoResult::of(&request, number as u64) }
    });
    limit_of(run, rows, more)
}

fn limit_of(run: Value, rows: impl Iterator<Item = IoResult>, more: &[&str]) -> (bool, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.replay.parquet");
    let run = serde_json::from_value(run).unwrap();
    let mut metadata = Metadata { run, ..Metadata::new(Kind::Replay, "test") };
    // Bad lines of the load.
    metadata.counts.bad_lines = 3;
    let mut writer = iosonar_trace::create_run(&path, &metadata).unwrap();
    rows.for_each(|row| writer.write(&row).unwrap());
    writer.finish(&metadata).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.arg("limit").args(more).arg(&path).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// A ramp of 100 requests/s more each second, on a storage that does 500 requests/s, one at a time.
fn ramp() -> impl Iterator<Item = IoResult> {
    let mut free_at = Nanos::ZERO;
    (0..8000_u64).map(move |number| {
        // After t seconds, 50·t² requests were scheduled.
        let request = Request::new(Nanos::from_secs((number as f64 / 50.0).sqrt()), Op::Read, Sector(0), Sectors(8));
        let issued = free_at.max(request.at);
        free_at = issued + Nanos(2_000_000);
        let (issued, completed) = (Some(issued), Some(free_at));
        IoResult {
            issued,
            completed,
            outcome: Outcome::Ok,
            delay_reason: DelayReason::Depth,
            ..IoResult::of(&request, number)
        }
    })
}

#[test]
fn requests_beyond_the_throughput_of_the_storage_queue_up_to_the_limit() {
    // Demand exceeds it from 5 s on; requests scheduled three seconds after that are a second late.
    let (_, message, _) = limit_of(json!({}), ramp(), &[]);
    assert!(
        message.contains("it completed at most 500 in a second; faster requests queued for up to 1 s"),
        "{message}"
    );
    let (_, message, _) = limit_of(json!({}), ramp(), &["--late", "1ms"]);
    assert!(message.contains("at most 500 in a second\n") && !message.contains("queued"), "{message}");
}

#[test]
fn a_fake_result_is_marked_in_the_first_line() {
    let run = || json!({"fake": "FAKE RESULT: simulated"});
    let (_, message, _) = limit(run(), DelayReason::Depth, &[]);
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[0].ends_with("FAKE RESULT: simulated") && lines[1].contains("kept up in no full second"),
        "{message}"
    );
    let (_, message, _) = limit(run(), DelayReason::Depth, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&message).unwrap()["fake"], "FAKE RESULT: simulated");
    let (_, message, _) = limit(json!({"fake": null}), DelayReason::Depth, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&message).unwrap()["fake"], Value::Null);
}

#[test]
fn bad_lines_of_the_load_are_not_damage_of_the_run() {
    let (success, message, stderr) = limit(json!({}), DelayReason::Depth, &["--json"]);
    assert!(success && stderr.is_empty(), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&message).unwrap()["unreadable_rows"], 0);
}

#[test]
fn a_run_without_scheduled_times_has_no_limit() {
    for (options, how) in [(json!({"asap": true, "closed": null}), "--asap"), (json!({"closed": "never"}), "--closed")]
    {
        let (success, _, message) = limit(json!({"options": options}), DelayReason::Depth, &[]);
        assert!(!success && message.contains(how) && message.contains("no request can be late"), "{message}");
    }
    let (success, _, message) = limit(json!({}), DelayReason::Depth, &["--late", "0"]);
    assert!(!success && message.contains("--late") && message.contains("above zero"), "{message}");
    let (success, _, message) = limit(json!({"options": {"asap": false, "closed": null}}), DelayReason::Depth, &[]);
    assert!(success && message.is_empty(), "{message}");
}

#[test]
fn limits_that_may_not_be_the_storage_s_are_warned_about() {
    for (delay_reason, why) in
        [(DelayReason::Input, "not read"), (DelayReason::CompletionLog, "write"), (DelayReason::Order, "overlapped")]
    {
        let (success, _, message) = limit(json!({}), delay_reason, &[]);
        assert!(success && message.contains("the first late request") && message.contains(why), "{message}");
    }
    let verdict = json!({"faithful": false, "sentence": "This replay was not faithful."});
    let (_, _, message) = limit(json!({"statistics": {"verdict": verdict}}), DelayReason::None, &[]);
    assert!(message.contains("This replay was not faithful."), "{message}");
}
