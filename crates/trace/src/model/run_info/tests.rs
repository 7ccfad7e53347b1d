//! A footer is kept unchanged, whichever program wrote it.

use serde_json::{Value, json};

use super::{Field, FindingKind, OptionValue, RunInfo, RunStatistics, TargetKind};

/// The object `run` as a replay writes it.
const OF_A_REPLAY: &str = include_str!("tests/replay.json");

fn read(run: Value) -> RunInfo {
    serde_json::from_value(run).expect("every object is a run")
}

fn written(run: &RunInfo) -> Value {
    serde_json::to_value(run).expect("plain data")
}

fn of_a_replay() -> Value {
    serde_json::from_str(OF_A_REPLAY).unwrap()
}

#[test]
fn every_key_of_a_replay_has_a_field() {
    let run = read(of_a_replay());
    assert_eq!(written(&run), of_a_replay());
    let targets = run.targets.list();
    assert!(run.rest.is_empty() && run.machine.known().unwrap().rest.is_empty() && targets[0].rest.is_empty());
    assert_eq!(targets[0].kind.value(), Some(TargetKind::Block));
    assert_eq!(run.findings.list()[0].kind, FindingKind::Stale);
    let statistics = run.statistics.known().unwrap();
    assert!(matches!(statistics, RunStatistics::Whole(_)), "{statistics:?}");
    assert_eq!((statistics.requests(), statistics.verdict().unwrap().faithful), (Some(200), Some(false)));
    assert_eq!(statistics.unfaithful(), Some("This replay was not faithful."));
    assert_eq!((run.option("depth").integer(), run.is_asap()), (Some(512_u64), false));
    assert_eq!((run.overwrites(), run.option("force")), (false, &OptionValue::Flag(true)));
}

/// Missing keys, null, and values of another type remain distinct.
#[test]
fn unknown_keys_and_types_are_kept_and_not_used() {
    let run = json!({"fake": null, "engine": 7, "started_unix_ns": "x", "targets": [{"sectors": -1, "colour": "red"}],
                     "options": {"new": {"deep": [1, -1, 0.5, u64::MAX]}}, "warnings": ["a", 7], "later": {"x": null}});
    let found = read(run.clone());
    assert_eq!(written(&found), run);
    assert_eq!(found.load, Field::Missing);
    assert_eq!((found.fake.text(), found.engine.text(), found.started_unix_ns.value()), (None, None, None));
    assert_eq!((found.targets.list()[0].sectors.value(), found.warnings.list().len()), (None, 0));
    assert!(matches!(found.option("new"), OptionValue::Map(_)) && *found.option("old") == OptionValue::Null);
}

#[test]
fn statistics_of_other_programs_are_read_by_key() {
    let verdict = json!({"faithful": false, "sentence": "Too late."});
    let run = read(json!({"statistics": {"requests": 7, "dropped": "x", "verdict": verdict}}));
    let statistics = run.statistics.known().unwrap();
    assert_eq!((statistics.requests(), statistics.dropped()), (Some(7), None));
    assert_eq!((statistics.unfaithful(), statistics.verdict()), (Some("Too late."), None));
}

/// Collects the JSON pointers of a value and of all values in it.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let children: Vec<_> = match value {
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(all) => all.iter().enumerate().map(|(key, value)| (key.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    children.into_iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), found));
}

#[test]
fn values_of_another_type_are_kept_under_any_key() {
    let whole = of_a_replay();
    let mut all = Vec::new();
    pointers(&whole, "", &mut all);
    for pointer in all.iter().filter(|pointer| !pointer.is_empty()) {
        for odd in
            [json!(null), json!(true), json!(-1), json!(u64::MAX), json!(1e300), json!("x"), json!([[7]]), json!({})]
        {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = odd;
            let again = written(&read(changed.clone()));
            assert!(same(&again, &changed), "{pointer}: {again:#}");
        }
    }
}

/// Whether two values are equal; integers equal floats of the same value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
