//! `iosonar doctor`, on this machine.

use std::fs;
use std::process::{Command, Output};

use iosonar_testing::{Need, left_out, settings_of_the_machine};
use serde_json::Value;

fn doctor(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("doctor").args(words).output().expect("it runs")
}

fn answer(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a JSON object")
}

#[test]
fn doctor_measures_the_floor_and_exits_with_0() {
    let found = answer(&doctor(&["--json"]));
    let checks = found["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 13);
    let states = ["good", "improvable", "missing", "unknown"];
    assert!(checks.iter().all(|check| states.contains(&check["state"].as_str().unwrap())), "{found:#}");
    let floor = found["floor"].as_array().unwrap();
    assert_eq!(floor.iter().map(|floor| floor["wait"].as_str().unwrap()).collect::<Vec<_>>(), ["spin", "sleep"]);
    for floor in floor {
        assert_eq!(floor["times"], 1000, "{floor}");
        let at = |name: &str| floor[name].as_f64().unwrap();
        assert!(0.0 <= at("p50_us") && at("p50_us") <= at("p99_us") && at("p99_us") <= at("max_us"), "{floor}");
    }
    assert!(found["changes"].as_array().unwrap().iter().all(|change| change["tried"].is_null()), "{found:#}");
}

#[test]
fn doctor_says_the_command_of_each_change() {
    let _alone = settings_of_the_machine();
    let json = answer(&doctor(&["--json"]));
    let text = String::from_utf8(doctor(&[]).stdout).unwrap();
    for part in
        ["This machine\n", "\n  io_uring ", "\n  schedulers ", "\n  --wait spin   p50 ", "\n  --wait sleep  p50 "]
    {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    // Neighbours come and go between two calls.
    let lasting = json["changes"].as_array().unwrap().iter().filter(|change| change["check"] != "neighbours");
    for command in lasting.filter_map(|change| change["command"].as_str()) {
        assert!(text.contains(command), "no {command:?} in\n{text}");
    }
}

/// Of settings that trials change.
const SETTINGS: [&str; 4] = [
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/proc/self/autogroup",
];

fn settings() -> Vec<Option<String>> {
    let irqs = fs::read_dir("/proc/irq").unwrap().flatten().map(|irq| irq.path().join("smp_affinity"));
    let mut irqs: Vec<_> = irqs.collect();
    irqs.sort();
    SETTINGS.iter().map(Into::into).chain(irqs).map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn tried_changes_are_measured_and_undone() {
    if left_out(Need::Root) {
        return;
    }
    let _alone = settings_of_the_machine();
    let before = settings();
    let found = answer(&doctor(&["--try", "--json"]));
    assert_eq!(settings(), before);
    for change in found["changes"].as_array().unwrap() {
        let tried = &change["tried"];
        if change["can_be_tried"] == true && tried["not_tried"].is_null() {
            let waits = tried["measured"].as_array().unwrap();
            assert_eq!(waits.len(), 2, "{change:#}");
            assert!(waits.iter().all(|wait| wait["before_us"].as_array().unwrap().len() == 5), "{change:#}");
        } else {
            assert!(tried["not_tried"].is_string(), "{change:#}");
        }
    }
}
