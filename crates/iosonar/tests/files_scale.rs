//! `iosonar files scale`: what ends it early, what it refuses, and what its commands get.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::files_replaying::{Bench, program};
use crate::replaying::run;

/// A measurement of the trace in the directory of a bench, with one and two instances.
fn command(bench: &Bench, words: &[&str]) -> Command {
    program().write(&bench.0.path().join("t.calls.parquet"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.current_dir(bench.0.path()).args(["files", "scale", "t.calls.parquet", "--output", "t.scale.parquet"]);
    if !words.contains(&"--root") {
        command.arg("--root").arg(bench.root());
    }
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

fn table(bench: &Bench) -> PathBuf {
    bench.0.path().join("t.scale.parquet")
}

/// Waits for the number of a process in a file.
fn process(bench: &Bench) -> String {
    let path = bench.0.path().join("process");
    loop {
        match fs::read_to_string(&path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn check_that_nothing_is_left(bench: &Bench, process: &str) {
    // A zombie has no command line.
    let runs = || fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|words| !words.is_empty());
    for _ in 0..1000 {
        if !runs() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!runs(), "{process} runs on");
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 0);
}

#[test]
fn a_signal_ends_all_instances_and_keeps_what_was_measured() {
    let bench = Bench::new();
    let sleeps = "sleep 600 & test {instance} = 0 && echo $! > process; wait";
    let running = command(&bench, &["--instances", "2", "--program", sleeps]).spawn().unwrap();
    let sleep = process(&bench);
    run("kill", &["-TERM".as_ref(), running.id().to_string().as_ref()]);
    let output = running.wait_with_output().unwrap();
    let said = said(&output);
    assert!(output.status.code() == Some(5) && said.contains("has what was measured before"), "{said}");
    assert!(table(&bench).is_file());
    check_that_nothing_is_left(&bench, &sleep);
}

#[test]
fn a_failing_instance_ends_the_others() {
    let bench = Bench::new();
    let fails = "if test {instance} = 0; then echo $$ > process; exec sleep 600; fi
                 until test -s process; do sleep 0.01; done; exit 3";
    let output = command(&bench, &["--instances", "2", "--program", fails]).output().unwrap();
    let said = said(&output);
    assert!(output.status.code() == Some(1) && said.contains("instance 1: exit status: 3"), "{said}");
    assert!(table(&bench).is_file() && said.contains("has what was measured before"), "{said}");
    check_that_nothing_is_left(&bench, &process(&bench));
}

#[test]
fn what_a_failing_instance_started_ends_with_it() {
    let bench = Bench::new();
    for (instances, fails) in [
        ("1", "sleep 600 2> /dev/null & echo $! > process; exit 3"),
        // An instance that ended well before another one failed.
        (
            "2",
            "if test {instance} = 0; then sleep 600 2> /dev/null & echo $! > process; exit 0; fi
             until test -s process; do sleep 0.01; done; kill -KILL $$",
        ),
    ] {
        let _ = fs::remove_file(bench.0.path().join("process"));
        let words = ["--instances", instances, "--program", fails, "--overwrite"];
        let output = command(&bench, &words).output().unwrap();
        let said = said(&output);
        let how = if instances == "1" { "instance 0: exit status: 3" } else { "instance 1: signal: 9 (SIGKILL)" };
        assert!(output.status.code() == Some(1) && said.contains(how), "{said}");
        check_that_nothing_is_left(&bench, &process(&bench));
    }
}

#[test]
fn directories_are_prepared_with_the_options_of_the_replay() {
    let bench = Bench::new();
    let text = "7 1700000000.000000 openat(AT_FDCWD, \"sub/a\", O_RDONLY) = 3 <0.000010>\n7 1700000000.000100 close(3) = 0 <0.000005>\n";
    fs::write(bench.0.path().join("t.strace"), text).unwrap();
    fs::write(bench.0.path().join("map"), "/home /srv\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.current_dir(bench.0.path()).args(["files", "scale", "t.strace", "--instances", "1,2", "--root"]);
    command.arg(bench.root()).args(["--program", "test -f {root}/srv/u/sub/a", "-o", "t.scale.parquet", "--overwrite"]);
    let output = command.args(["--", "--cwd", "/home/u", "--map=map"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    fs::write(bench.0.path().join("map"), "/home /srv/{instance}\n").unwrap();
    let output = command.arg("--map=map").output().unwrap();
    let said = said(&output);
    assert!(output.status.code() == Some(2) && said.contains("a map with {instance}"), "{said}");
}

#[test]
fn roots_with_spaces_and_braces_are_one_word_for_the_shell() {
    for root in ["my root", "r{instance}", "it's"] {
        let bench = Bench::new();
        fs::create_dir(bench.0.path().join(root)).unwrap();
        let words = ["--root", root, "--instances", "2", "--program", "cd {root} && cd \"{root}/.\" && cd '{root}'"];
        let output = command(&bench, &words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{root}: {}", said(&output));
    }
}
