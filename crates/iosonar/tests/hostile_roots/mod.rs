//! Roots with mounts, with the trace in them, and traces whose calls wait for themselves.

use std::fs;
use std::process::{Command, Output};

use crate::hostile::{Bench, text};

/// Runs iosonar in a mount namespace of its own, after `mounts` in a shell.
fn with_mounts(bench: &Bench, mounts: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &format!("{mounts}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_iosonar")).args(arguments).current_dir(bench.path(""));
    command.output().expect("unshare is there")
}

#[test]
fn a_root_with_mounts_that_lead_out_is_refused() {
    if iosonar_testing::left_out(iosonar_testing::Need::Root) {
        return;
    }
    let bench = Bench::new();
    for directory in ["root/in", "root/a", "outside"] {
        fs::create_dir(bench.path(directory)).unwrap();
    }
    fs::write(bench.path("outside/secret"), "untouched").unwrap();
    bench.calls([
        "openat(AT_FDCWD, \"/in/secret\", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3 <0.000001>",
        "openat(AT_FDCWD, \"/in/new\", O_RDWR|O_CREAT, 0644) = 4 <0.000001>",
    ]);
    let replay = ["files", "replay", "t.strace", "--root", "root", "--unprepared", "--overwrite"];
    let replay = [&replay[..], &["--output", "r.calls-run.parquet"]].concat();
    let prepare = ["files", "prepare", "t.strace", "--root", "root"];
    for (mount, problem) in [
        ("mount --bind outside root/in", "its files are those of"),
        ("mount -t proc none root/in", "is a mounted proc"),
    ] {
        for arguments in [&replay[..], &prepare] {
            let output = with_mounts(&bench, mount, arguments);
            assert_eq!(output.status.code(), Some(1), "{mount} {}", text(&output));
            assert!(text(&output).contains(problem), "{}", text(&output));
        }
    }
    assert_eq!(fs::read_to_string(bench.path("outside/secret")).unwrap(), "untouched");
    assert!(!bench.path("outside/new").exists());
    // File systems and directories that are nowhere else may be part of the root.
    for mount in ["mount -t tmpfs none root/in", "mount --bind root/a root/in"] {
        let output = with_mounts(&bench, mount, &replay);
        assert_eq!(output.status.code(), Some(0), "{mount} {}", text(&output));
    }
}

#[test]
fn a_trace_below_the_root_is_not_removed() {
    let bench = Bench::new();
    bench.calls(["mkdir(\"/d\", 0777) = 0 <0.000001>"]);
    bench.expect(&[0], &["files", "prepare", "t.strace", "--root", "new"]);
    fs::copy(bench.path("t.strace"), bench.path("new/t.strace")).unwrap();
    let printed = bench.expect(&[2], &["files", "prepare", "new/t.strace", "--root", "new", "--reset"]);
    assert!(printed.contains("--reset would remove it"), "{printed}");
    assert!(bench.path("new/t.strace").exists());
}

#[test]
fn calls_that_wait_for_their_own_lock_end() {
    let bench = Bench::new();
    bench.calls([
        "openat(AT_FDCWD, \"/f\", O_RDWR|O_CREAT, 0644) = 3 <0.0000005>",
        "openat(AT_FDCWD, \"/f\", O_RDWR|O_CREAT, 0644) = 4 <0.0000005>",
        "flock(3, LOCK_EX) = 0 <0.0000005>",
        "flock(4, LOCK_EX) = 0 <0.0000005>",
        "close(3) = 0 <0.0000005>",
    ]);
    let replay = ["files", "replay", "t.strace", "--root", "root", "--unprepared", "--output", "r.calls-run.parquet"];
    let printed = bench.expect(&[4], &replay);
    assert!(printed.contains("1 flock: failed with EDEADLK"), "{printed}");
}

#[test]
fn a_call_waits_for_a_lock_that_another_thread_releases() {
    let bench = Bench::new();
    let calls = [
        (7, 0, "openat(AT_FDCWD, \"/f\", O_RDWR|O_CREAT, 0644) = 3 <0.000001>"),
        (7, 10, "flock(3, LOCK_EX) = 0 <0.000001>"),
        (8, 20, "openat(AT_FDCWD, \"/f\", O_RDWR) = 3 <0.000001>"),
        (8, 30, "flock(3, LOCK_EX) = 0 <0.050000>"),
        (7, 40_000, "flock(3, LOCK_UN) = 0 <0.000001>"),
    ];
    let line = |&(thread, us, call): &(u32, u32, &str)| format!("{thread} 1795464429.{us:06} {call}\n");
    fs::write(bench.path("t.strace"), calls.iter().map(line).collect::<String>()).unwrap();
    let replay = ["files", "replay", "t.strace", "--root", "root", "--unprepared", "--output", "r.calls-run.parquet"];
    for way in [&["--threads", "pool"], &["--threads", "trace"]] {
        bench.expect(&[0], &[&replay[..], &["--overwrite"], way].concat());
    }
}
