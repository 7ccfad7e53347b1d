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
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.replay.parquet");
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
fn the_answer_is_the_sustained_rate_not_what_a_queue_absorbs() {
    let (_, message, _) = limit_of(json!({}), ramp(), &[]);
    assert!(message.contains("sustained 500 requests per second (95 % interval 500 … 500)"), "{message}");
    assert!(message.contains("completed at most 500 in a second"), "{message}");
    let (_, message, _) = limit_of(json!({}), ramp().take(1000), &[]);
    assert!(message.contains("kept up to the end, with up to"), "{message}");
}

#[test]
fn a_window_has_the_requests_that_are_due_in_it() {
    let (_, object, _) = limit_of(json!({}), ramp(), &["--json", "--from", "2", "--to", "4s"]);
    let object: Value = serde_json::from_str(&object).unwrap();
    // 50·t² requests are due before t.
    assert_eq!((&object["requests"], &object["window"]), (&json!(600), &json!({"from_s": 2.0, "to_s": 4.0})));
    for (words, message) in
        [(["--from", "1h"].as_slice(), "no request in this window"), (&["--from", "2m", "--to", "1m"], "not before")]
    {
        let (succeeds, _, error) = limit_of(json!({}), ramp(), words);
        assert!(!succeeds && error.contains(message), "{error}");
    }
}

/// The device, its load, and the rate that it sustains: by its description, or by the theory of queues.
const KNOWN: &[(&str, &str, &[&str], f64)] = &[
    ("constant=2ms servers=1", "64", &["ramp", "--growth", "10", "--duration", "2m"], 500.0),
    ("constant=5ms servers=1", "1", &["ramp", "--growth", "5", "--duration", "2m"], 200.0),
    ("constant=2ms servers=1", "512", &["bursts", "--duration", "90s"], 500.0),
    ("exponential=2ms servers=1", "64", &["ramp", "--growth", "10", "--duration", "2m"], 500.0),
    ("exponential=1ms servers=1", "256", &["poisson", "--rate", "1300", "--duration", "1m"], 1000.0),
    ("exponential=10ms servers=1", "8", &["ramp", "--growth", "2", "--duration", "3m"], 100.0),
    ("exponential=8ms servers=4", "64", &["ramp", "--growth", "10", "--duration", "2m"], 500.0),
    // A seek takes 3.0 + 8.3 / 2 ms in the mean here, over a span of 100 GiB of 4 TB.
    ("hdd", "64", &["ramp", "--growth", "20", "--duration", "1m"], 161.0),
    ("bucket.toml", "64", &["ramp", "--growth", "5", "--duration", "3m"], 100.0),
    ("stalls.toml", "64", &["ramp", "--growth", "10", "--duration", "2m"], 425.0),
];

#[test]
fn the_limits_of_known_devices_are_found_within_five_percent() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let bucket = "[service.constant]\ntime = \"100us\"\n[[limit]]\niops = 100\nburst_requests = 8000\n";
    std::fs::write(file("bucket.toml"), bucket).unwrap();
    let stalls = "servers = 1\n[service.constant]\ntime = \"2ms\"\n[stall]\nevery = \"10s\"\nlasts = \"1500ms\"\n";
    std::fs::write(file("stalls.toml"), stalls).unwrap();
    let iosonar = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(args).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for (device, depth, load, sustained) in KNOWN {
        let (kind, options) = load.split_first().unwrap();
        let generate = [&["generate", kind, "x.load.parquet", "--overwrite", "--span", "100G"], options].concat();
        iosonar(&generate);
        let on =
            ["--simulate", device, "--depth", depth, "--virtual-time", "--output", "x.replay.parquet", "--overwrite"];
        iosonar(&[&["replay", "x.load.parquet"], &on[..]].concat());
        let limit: Value = serde_json::from_slice(&iosonar(&["limit", "--json", "x.replay.parquet"])).unwrap();
        let found = limit["sustained_per_second"].as_f64().unwrap_or_default();
        assert!((found / sustained - 1.0).abs() < 0.05, "{device} {load:?}: {found} for {sustained}: {limit}");
    }
}

#[test]
fn a_storage_that_keeps_up_sustains_at_least_its_demand() {
    let directory = tempfile::tempdir().unwrap();
    let iosonar = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(args).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    iosonar(&["generate", "poisson", "x.load.parquet", "--rate", "400", "--duration", "1m"]);
    let on = ["--simulate", "exponential=2ms servers=1", "--virtual-time", "--output", "x.replay.parquet"];
    iosonar(&[&["replay", "x.load.parquet"], &on[..]].concat());
    let message = iosonar(&["limit", "x.replay.parquet"]);
    assert!(message.contains("kept up to the end, with up to 4"), "{message}");
}

#[test]
fn a_fake_result_is_marked_in_the_first_line() {
    let run = || json!({"fake": "FAKE RESULT: simulated"});
    let (_, message, _) = limit(run(), DelayReason::Depth, &[]);
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].ends_with("FAKE RESULT: simulated") && lines[1].contains("not known"), "{message}");
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
