//! `replay --isolate`: what it arranges on the machine goes away with it, even if it is killed.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod replaying;

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use iosonar_testing::{Need, left_out};
use replaying::{Bench, MIB, side_by_side, wait_until};

const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

fn workers() -> String {
    fs::read_to_string(WORKERS).expect("the kernel tells where its workers may run").trim().to_owned()
}

#[test]
fn the_machine_is_arranged_while_a_replay_runs_and_as_before_afterwards() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let load = bench.load(&side_by_side(3000, 8));
    let any_command = || Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("info").arg(&load).output().unwrap();
    // What an earlier, killed run of this very test may have left is not what is to be found afterwards.
    any_command();
    let before = workers();
    if available_parallelism().is_ok_and(|n| n.get() == 1) {
        bench.replay(&load, &bench.target(MIB), &["--isolate"]).refused(&["two processors"]);
        return;
    }

    let running = bench.begin(&load, &bench.target(16 * MIB), &["--isolate=workers,processors"]);
    wait_until("the workers to be kept off", || workers() != before);
    let ran = running.end().with_code(0);
    assert_eq!(workers(), before);
    let said = ran.footer().run.unwrap()["isolation"].as_array().unwrap().len();
    assert_eq!(said, 2);
    assert!(ran.stderr.contains("isolated: workers"), "{}", ran.stderr);

    // A kill leaves it arranged; whatever is called next puts that right.
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let running = bench.begin(&load, &bench.target(16 * MIB), &["--isolate"]);
    wait_until("the workers to be kept off", || workers() != before);
    running.signal("KILL");
    running.end();
    assert_ne!(workers(), before);
    let next = any_command();
    assert!(String::from_utf8_lossy(&next.stderr).contains("put back"), "{next:?}");
    assert_eq!(workers(), before);
}
