//! `replay --isolate`: its changes to the machine end with the run, even if that is killed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use crate::replaying::{Bench, Finished, MIB, adjacent_requests, run, wait_until};
use iosonar_testing::{Need, left_out, output_of, process_tree, settings_of_the_machine};

const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

/// The program with a directory of its own for the backups of settings, so that no command of another test restores them.
/// It outlives the test: after a killed one, the next restores what that left.
fn apart(inner: &Command) -> Command {
    let mut command = Command::new("unshare");
    let script =
        "mkdir -p /run/iosonar /run/iosonar-tests && mount --bind /run/iosonar-tests /run/iosonar && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

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
    let load = bench.load(&adjacent_requests(6000, 8));
    let any_command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        apart(command.arg("info").arg(&load)).output().unwrap()
    };
    // An earlier, killed run of this test may have left the mask changed.
    any_command();
    let before = workers();
    if available_parallelism().is_ok_and(|n| n.get() == 1) {
        bench.replay(&load, &bench.target(MIB), &["--isolate"]).refused(&["two processors"]);
        return;
    }

    let start = |isolate: &str| {
        let child = apart(&bench.command(&load, &bench.target(32 * MIB), &[isolate])).spawn().unwrap();
        wait_until("the journal has entries", || bench.journaled("r.replay.parquet") >= 80);
        child
    };
    let end = |child: Child| Finished::of(output_of(child), bench.path("r.replay.parquet"));
    let running = start("--isolate=workers,processors");
    wait_until("the workers to be kept off", || workers() != before);
    let ran = end(running).with_code(0);
    assert_eq!(workers(), before);
    let message = ran.run()["isolation"].as_array().unwrap().len();
    assert_eq!(message, 2);
    assert!(ran.stderr.contains("isolation: workers"), "{}", ran.stderr);

    // With autogroup scheduling a nice value counts only within a session, so the session gets priority.
    let session = || fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
    let (as_it_was, is_grouped) = (session(), session_priorities_apply());
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let running = start("--isolate=priority");
    if is_grouped {
        wait_until("the session to come first", || session().trim().ends_with(" nice -20"));
    }
    let ran = end(running).with_code(0);
    assert_eq!(session(), as_it_was);
    assert_eq!(ran.stderr.contains("its session has priority over others"), is_grouped, "{}", ran.stderr);

    // After a kill the change remains; the next command restores it.
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let isolated = || {
        let running = start("--isolate=workers,priority");
        wait_until("the workers to be kept off", || workers() != before);
        running
    };
    let is_restored = || workers() == before && session() == as_it_was;
    let running = isolated();
    kill(running.id());
    end(running);
    assert_ne!(workers(), before);
    assert_eq!(session().trim().ends_with(" nice -20"), is_grouped);
    // The worker, which dies with its supervisor, may hold the lock on its backup for a moment.
    wait_until("a command restores it", || String::from_utf8_lossy(&any_command().stderr).contains("restored "));
    assert!(is_restored(), "{} {}", workers(), session());
    fs::remove_file(bench.path("r.replay.parquet.journal")).unwrap();

    // If only the worker is killed, its supervisor restores it.
    let running = isolated();
    kill(process_tree(running.id())[1]);
    let ran = end(running);
    assert_eq!(ran.code, None, "killed as well: {}", ran.stderr);
    assert!(is_restored(), "{} {}", workers(), session());
    assert!(ran.stderr.contains("restored "), "{}", ran.stderr);
}

fn kill(process: u32) {
    run("kill", &["-KILL".as_ref(), process.to_string().as_ref()]);
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
