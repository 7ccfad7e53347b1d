//! What `iosonar replay` says, as text, as JSON and in the footer of its result.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iosonar_trace::run_info::RunStatistics;
use serde_json::Value;

use crate::replaying::{Bench, MIB, Row, adjacent_requests};

/// The tests of the Python half check values against the schema; this test checks that both have the same keys.
#[test]
fn the_json_output_has_the_keys_of_its_schema() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/replay-statistics.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let ran = bench.replay(&load, &bench.target(MIB), &["--json"]).with_code(0);
    let statistics: Value = serde_json::from_str(&ran.stdout).expect("one object and nothing else");
    assert_eq!(keys(&statistics), keys(&schema["properties"]));
    let named = [("skipped", "skipped"), ("delay_us", "quantiles"), ("within_pct", "within"), ("verdict", "verdict")];
    for (part, name) in named {
        // Only fake results have `kept_times`.
        let expected = keys(&schema["$defs"][name]["properties"]).into_iter().filter(|key| *key != "kept_times");
        assert!(keys(&statistics[part]).into_iter().eq(expected), "{part}: {}", statistics[part]);
    }
    assert_eq!(keys(&statistics["devices"][0]), keys(&schema["$defs"]["device"]["properties"]));
    assert_eq!(keys(&statistics["verdict"]["own"]), keys(&schema["$defs"]["part"]["properties"]));
    assert_eq!(ran.statistics(), statistics, "the result holds the same");

    let verified = bench.replay(&load, &bench.target(MIB), &["--verify", "final", "--overwrite"]).with_code(0);
    let verify = &verified.statistics()["verify"];
    assert_eq!(keys(verify), keys(&schema["$defs"]["verify"]["properties"]));
    assert_eq!(keys(&verify["final"]), keys(&schema["$defs"]["last_pass"]["properties"]));
}

#[test]
fn every_key_of_the_footer_is_documented() {
    let bench = Bench::new();
    let ran =
        bench.replay(&bench.load(&adjacent_requests(100, 8)), &bench.target(MIB), &["--verify", "final"]).with_code(0);
    let info = ran.footer().run.unwrap();
    let (machine, target) = (info.machine.known().unwrap(), info.target.known().unwrap());
    for unknown in [&info.rest, &machine.rest, &target.rest, &info.data.known().unwrap().rest] {
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    assert!(matches!(info.statistics.known(), Some(RunStatistics::Whole(_))), "{info:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    let page = fs::read_to_string(page).unwrap();
    let tables = page.split_once("### `run`").expect("the section on runs").1;
    let names = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let documented: Vec<&str> = names.flat_map(|cell| cell.split(['`', ','])).map(str::trim).collect();
    let run = ran.run();
    for key in keys(&run).into_iter().chain(keys(&run["machine"])) {
        assert!(documented.contains(&key.as_str()), "{key} is missing from docs/schema.md");
    }
}

fn keys(object: &Value) -> Vec<&String> {
    object.as_object().expect("an object").keys().collect()
}

#[test]
fn the_statistics_are_printed_as_in_the_snapshot() {
    let bench = Bench::new();
    let load: Vec<Row> = (0..100)
        .map(|i| (i as f64 / 1e3, i * 24, 8, if i % 4 == 0 { 'R' } else { 'W' }))
        .chain([(0.2, 2044, 8, 'W')])
        .collect();
    let target = bench.target(MIB);
    // Nonzero data, so that reads cause no warning of zeros.
    fs::File::options().write(true).open(&target).unwrap().write_all_at(&vec![1; MIB as usize], 0).unwrap();
    let ran = bench.replay(&bench.load(&load), &target, &["--force"]).with_code(0);
    insta::assert_snapshot!("replay-statistics", masked(&ran.stdout));
    insta::assert_snapshot!("replay-messages", masked(&ran.stderr));
}

#[test]
fn the_footer_has_the_way_of_waiting_and_its_reason() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(20, 8)), bench.target(MIB));
    let chosen = bench.replay(&load, &target, &[]).with_code(0);
    let run = chosen.run();
    let message = format!("waiting between requests: {} ({})", text(&run["wait"]), text(&run["wait_reason"]));
    assert!(chosen.stderr.contains(&message), "{message}\n{}", chosen.stderr);
    // Null if this session has priority over others.
    assert!(run["company"].is_null() || run["company"]["ready"].as_f64().unwrap() >= 0.0, "{run}");
    let asked = bench.replay(&load, &target, &["--wait", "sleep", "--overwrite"]).with_code(0);
    assert!(asked.stderr.contains("waiting between requests: sleep (set with --wait)"), "{}", asked.stderr);
    assert_eq!(asked.run()["company"], Value::Null);
    let asap = bench.replay(&load, &target, &["--asap", "--overwrite"]).with_code(0);
    assert!(!asap.stderr.contains("between requests"), "there are no times to wait for: {}", asap.stderr);
}

#[test]
fn a_run_that_was_not_faithful_names_remedies() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(20, 8)), bench.target(MIB));
    // On any machine: requests delayed on purpose are late, which needs no remedy.
    let late = bench.replay(&load, &target, &["--perturb", "delay=20ms"]).with_code(0);
    assert_eq!(late.statistics()["verdict"]["remedies"], serde_json::json!([]));
    assert!(!late.stdout.contains("what to try"), "{}", late.stdout);
    // Whether this run is faithful depends on the machine; the form of its verdict does not.
    let ran = bench.replay(&load, &target, &["--wait", "sleep", "--speedup", "3", "--overwrite"]).with_code(0);
    let verdict = &ran.statistics()["verdict"];
    let remedies = verdict["remedies"].as_array().unwrap();
    assert_eq!(remedies.is_empty(), verdict["faithful"] == true, "{verdict}");
    for (remedy, number) in remedies.iter().zip(1..) {
        let message = format!("{number}. {} (costs: {})", text(&remedy["try"]), text(&remedy["costs"]));
        assert!(ran.stdout.contains(&message), "{message}\n{}", ran.stdout);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Replaces numbers that differ from run to run, and names of directories.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        // Whether requests were held back or late depends on the machine.
        if line.starts_with("  not held back")
            || line.starts_with("  worst")
            || line.starts_with("  drift")
            || line.starts_with("  what to try")
            || line.starts_with("                 ")
            || line.starts_with("waiting between requests")
            || out.contains("\n  within") && line.starts_with("  within")
        {
            continue;
        }
        let line = if line.starts_with("verdict") { "verdict          (what it says)" } else { line };
        let line = if line.starts_with("machine") { "machine          (what it did)" } else { line };
        let is_measured =
            ["completed", "peak", "latency", "  from", "delay", "  within"].iter().any(|name| line.starts_with(name));
        let mut in_number = false;
        let next = line.chars().skip(1).map(Some).chain([None]);
        for (c, next) in line.chars().zip(next) {
            match c {
                // Thousands have commas, and small shares are `<0.1 %`.
                ',' if in_number && next.is_some_and(|c| c.is_ascii_digit()) => {}
                '<' if is_measured => {}
                '0'..='9' | '.' if is_measured => {
                    out.push_str(if in_number { "" } else { "#" });
                    in_number = true;
                }
                _ => {
                    in_number = false;
                    out.push(c);
                }
            }
        }
        out.push('\n');
    }
    let directory = out.split('/').find(|part| part.starts_with(".tmp")).map(str::to_owned);
    let out = directory.map_or(out.clone(), |directory| out.replace(&format!("/dev/shm/{directory}/"), ""));
    // Units change with the numbers.
    ["ms", "µs", "ns"].iter().fold(out, |out, unit| out.replace(&format!("# {unit}"), "# s"))
}
