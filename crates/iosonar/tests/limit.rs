//! `iosonar limit` on runs of which it is known what they hold.

use std::process::Command;

use iosonar_trace::{DelayReason, IoResult, Kind, Metadata, Nanos, Op, Outcome, Request, Sector, Sectors};
use serde_json::{Value, json};

/// A request each millisecond, all of them two seconds late, from a run of which this is known. Returns whether `limit`
/// takes it, and what it says.
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
    // Of the load.
    metadata.counts.bad_lines = 3;
    let mut writer = iosonar_trace::create_run(&path, &metadata).unwrap();
    rows.for_each(|row| writer.write(&row).unwrap());
    writer.finish(&metadata).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.arg("limit").args(more).arg(&path).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// A ramp by 100 requests per second each second, on a storage that does 500 per second, one after the other.
fn ramp() -> impl Iterator<Item = IoResult> {
    let mut free_at = Nanos::ZERO;
    (0..8000_u64).map(move |number| {
        // After t seconds 50·t² were demanded.
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
fn more_than_a_storage_did_is_only_kept_up_with_as_long_as_it_may_wait() {
    // Demand exceeds it from 5 s on; a second late is what comes three seconds after that.
    let (_, said, _) = limit_of(json!({}), ramp(), &[]);
    assert!(said.contains("it completed at most 500 in a second; faster requests queued for up to 1 s"), "{said}");
    let (_, said, _) = limit_of(json!({}), ramp(), &["--late", "1ms"]);
    assert!(said.contains("at most 500 in a second\n") && !said.contains("queued"), "{said}");
}

#[test]
fn a_fake_result_is_told_in_front() {
    let run = || json!({"fake": "FAKE RESULT: simulated"});
    let (_, said, _) = limit(run(), DelayReason::Depth, &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("FAKE RESULT: simulated") && lines[1].contains("kept up in no full second"), "{said}");
    let (_, said, _) = limit(run(), DelayReason::Depth, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["fake"], "FAKE RESULT: simulated");
    let (_, said, _) = limit(json!({"fake": null}), DelayReason::Depth, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["fake"], Value::Null);
}

#[test]
fn bad_lines_of_the_load_are_no_damage_of_the_run() {
    let (success, said, warned) = limit(json!({}), DelayReason::Depth, &["--json"]);
    assert!(success && warned.is_empty(), "{warned}");
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["unreadable_rows"], 0);
}

#[test]
fn what_has_no_deadlines_has_no_limit() {
    for (options, how) in [(json!({"asap": true, "closed": null}), "--asap"), (json!({"closed": "never"}), "--closed")]
    {
        let (success, _, said) = limit(json!({"options": options}), DelayReason::Depth, &[]);
        assert!(!success && said.contains(how) && said.contains("no request can be late"), "{said}");
    }
    let (success, _, said) = limit(json!({}), DelayReason::Depth, &["--late", "0"]);
    assert!(!success && said.contains("--late") && said.contains("above zero"), "{said}");
    let (success, _, said) = limit(json!({"options": {"asap": false, "closed": null}}), DelayReason::Depth, &[]);
    assert!(success && said.is_empty(), "{said}");
}

#[test]
fn what_may_not_be_the_storages_limit_is_warned_of() {
    for (delay_reason, why) in
        [(DelayReason::Input, "not read"), (DelayReason::CompletionLog, "write"), (DelayReason::Order, "overlapped")]
    {
        let (success, _, said) = limit(json!({}), delay_reason, &[]);
        assert!(success && said.contains("the first late request") && said.contains(why), "{said}");
    }
    let verdict = json!({"faithful": false, "sentence": "This replay was not faithful."});
    let (_, _, said) = limit(json!({"statistics": {"verdict": verdict}}), DelayReason::None, &[]);
    assert!(said.contains("This replay was not faithful."), "{said}");
}
