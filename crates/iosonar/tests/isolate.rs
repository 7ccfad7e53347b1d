//! `replay --isolate`: its changes to the machine end with the run, even if that is killed.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, wait_until};
use iosonar_testing::{Need, left_out, settings_of_the_machine};

const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

fn workers() -> String {
    fs::read_to_string(WORKERS).expect("the CPU mask of the kernel's workers").trim().to_owned()
}

#[test]
fn isolation_changes_the_machine_and_restores_it() {
    if left_out(Need::Root) {
        return;
    }
    let _alone = settings_of_the_machine();
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(3000, 8));
    let any_command = || Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("info").arg(&load).output().unwrap();
    // An earlier, killed run of this test may have left the mask changed.
    any_command();
    let before = workers();
    if available_parallelism().is_ok_and(|n| n.get() == 1) {
        bench.replay(&load, &bench.target(MIB), &["--isolate"]).refused(&["two processors"]);
        return;
    }

    let running = bench.start(&load, &bench.target(16 * MIB), &["--isolate=workers,processors"]);
    wait_until("the workers to be kept off", || workers() != before);
    let ran = running.end().with_code(0);
    assert_eq!(workers(), before);
    let message = ran.run()["isolation"].as_array().unwrap().len();
    assert_eq!(message, 2);
    assert!(ran.stderr.contains("isolation: workers"), "{}", ran.stderr);

    // With autogroup scheduling a nice value counts only within a session, so the session gets priority.
    let session = || fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
    let (as_it_was, is_grouped) = (session(), session_priorities_apply());
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let running = bench.start(&load, &bench.target(16 * MIB), &["--isolate=priority"]);
    if is_grouped {
        wait_until("the session to come first", || session().trim().ends_with(" nice -20"));
    }
    let ran = running.end().with_code(0);
    assert_eq!(session(), as_it_was);
    assert_eq!(ran.stderr.contains("its session has priority over others"), is_grouped, "{}", ran.stderr);

    // After a kill the change remains; the next command restores it.
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let isolated = || {
        let running = bench.start(&load, &bench.target(16 * MIB), &["--isolate=workers,priority"]);
        wait_until("the workers to be kept off", || workers() != before);
        running
    };
    assert!(seen_in_an_attempt(|| {
        let running = isolated();
        running.signal("KILL");
        running.end();
        let is_left = workers() != before && session().trim().ends_with(" nice -20") == is_grouped;
        let next = any_command();
        assert_eq!((workers(), session()), (before.clone(), as_it_was.clone()));
        fs::remove_file(bench.path("r.replay.parquet.journal")).unwrap();
        is_left && String::from_utf8_lossy(&next.stderr).contains("restored ")
    }));

    // If only the worker is killed, its supervisor restores it.
    assert!(seen_in_an_attempt(|| {
        let running = isolated();
        running.kill_worker();
        let ran = running.end();
        assert_eq!(ran.code, None, "killed as well: {}", ran.stderr);
        assert_eq!((workers(), session()), (before.clone(), as_it_was.clone()));
        fs::remove_file(bench.path("r.replay.parquet.journal")).unwrap();
        ran.stderr.contains("restored ")
    }));
}

/// Whether something is seen in one of ten attempts: a command of another test may restore first what was left.
fn seen_in_an_attempt(attempt: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(attempt).take(10).any(|is_seen| is_seen)
}

/// Whether session priorities apply. Not in the session of process 1 (as in a rescue shell, or below an init that
/// starts no session): the kernel gives it no autogroup, and shows an empty file.
fn session_priorities_apply() -> bool {
    let is_on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on.trim() == "1");
    is_on && fs::read_to_string("/proc/self/autogroup").is_ok_and(|group| !group.trim().is_empty())
}

#[test]
fn a_replay_works_in_a_pid_namespace_with_an_outer_session() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let replay = bench.command(&bench.load(&adjacent_requests(20, 8)), &bench.target(MIB), &[]);
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork"]).arg(replay.get_program()).args(replay.get_args());
    let ran = inside.current_dir(replay.get_current_dir().expect("the bench's own")).output().expect("it runs");
    Finished::of(ran, bench.path("r.replay.parquet")).with_code(0).footer();
}
