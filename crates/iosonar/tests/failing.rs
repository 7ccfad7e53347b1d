//! Targets that fail or disappear during a run, and limits of the process, with every engine that does I/O: each
//! request has a row, and failures are reported.

use crate::replaying;
use crate::shutdown;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::Outcome;

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, marked_target, run};

const ENGINES: [&[&str]; 4] =
    [&["--engine", "io_uring"], &["--sqpoll"], &["--engine", "threads"], &["--engine", "threads", "--workers", "1"]];

#[test]
fn errors_of_requests_are_recorded_and_affect_no_other() {
    if left_out(Need::Loop) {
        return;
    }
    let half = 8 * MIB / 512;
    let rows: Vec<Row> = (0..1000)
        .map(|i| match i % 10 {
            // The second half will be removed: reads there fail.
            9 => (i as f64 / 1e4, half + i * 8, 8, 'R'),
            n => (i as f64 / 1e4, i * 8, 8, if n % 3 == 0 { 'R' } else { 'W' }),
        })
        .collect();
    for more in ENGINES {
        let (bench, device) = (Bench::new(), LoopDevice::new(16 * MIB));
        File::options().write(true).open(device.backing_file()).unwrap().set_len(8 * MIB).unwrap();
        let ran = bench.replay(&bench.load(&rows), device.path(), &[more, &["--no-sample"]].concat()).with_code(4);
        let rows = ran.by_request();
        assert!(rows.iter().map(|row| row.request).eq(0..1000), "{more:?}: each once");
        for row in &rows {
            let (outcome, errno, bytes) = match row.request % 10 {
                9 => (Outcome::Error, libc::EIO, 0),
                _ => (Outcome::Ok, 0, 4096),
            };
            assert_eq!((row.outcome, row.errno, row.bytes_done), (outcome, errno, bytes), "{more:?}: {row:?}");
        }
        assert_eq!(ran.statistics()["errors"], 100);
        assert!(ran.footer().complete, "the run itself was not cut short");
    }
}

#[test]
fn a_target_that_is_removed_during_the_run_fails_row_by_row() {
    if left_out(Need::Loop) {
        return;
    }
    for more in ENGINES {
        let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
        run("mkfs.ext4", &["-q".as_ref(), device.path().as_os_str()]);
        let mounted = Mount::new(bench.path("mounted"), [device.path()]);
        let target = mounted.path().join("target");
        marked_target(&target, 4 * MIB);
        // It must not be over before the shutdown, however slow this thread is.
        let running = bench.start(&bench.load(&adjacent_requests(6000, 1)), &target, more);
        shutdown::shut_down(mounted.path());
        let ran = running.end().with_code(4);
        let rows = ran.by_request();
        assert!(rows.iter().map(|row| row.request).eq(0..6000), "{more:?}: each once");
        let good = rows.iter().filter(|row| row.outcome == Outcome::Ok).count();
        let failed = rows.iter().filter(|row| row.outcome == Outcome::Error && row.errno == libc::EIO).count();
        assert!(good > 0 && failed > 0 && good + failed == 6000, "{more:?}: {good} and {failed}");
        assert_eq!(rows[5999].outcome, Outcome::Error);
        assert_eq!(ran.statistics()["errors"], failed);
        assert!(ran.footer().complete, "the run itself was not cut short");
    }
}

#[test]
fn a_target_file_that_is_unlinked_stays_usable_until_the_end() {
    for more in ENGINES {
        let bench = Bench::new();
        let target = bench.target(2 * MIB);
        let running = bench.start(&bench.load(&adjacent_requests(2000, 1)), &target, more);
        fs::remove_file(&target).unwrap();
        let ran = running.end().with_code(0);
        assert_eq!(ran.rows().iter().filter(|row| row.outcome == Outcome::Ok).count(), 2000, "{more:?}");
    }
}

/// The command as a user who may have at most that many threads. The superuser has no such limit.
fn with_threads(bench: &Bench, inner: &Command, threads: usize) -> Command {
    fs::set_permissions(bench.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    // In a place that this user can read.
    let program = bench.path("iosonar");
    // Copied by another process: a child that another test starts meanwhile would inherit a copy open for writing.
    replaying::run("cp", &[inner.get_program(), program.as_os_str()]);
    let mut command = Command::new("setpriv");
    // A different user for each limit: threads of an earlier command that are still ending do not count.
    let user = 64_000 + threads;
    let (user_id, group_id) = (format!("--reuid={user}"), format!("--regid={user}"));
    command.args([&user_id, &group_id]).args(["--clear-groups", "prlimit", &format!("--nproc={threads}")]);
    command.arg(program).args(inner.get_args()).current_dir(bench.path("."));
    command
}

#[test]
fn a_run_with_few_threads_allowed_succeeds_or_explains() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    // Many at once, so that more workers are needed than the limit allows.
    let rows: Vec<Row> = (0..2000).map(|i| ((i / 200) as f64 / 1e2, i * 8, 8, 'R')).collect();
    let (load, target) = (bench.load(&rows), bench.target(16 * MIB));
    fs::set_permissions(&target, fs::Permissions::from_mode(0o666)).unwrap();
    for threads in [1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 45] {
        let inner = bench.command(&load, &target, &["--engine", "threads", "--workers", "400", "--overwrite"]);
        let ran = with_threads(&bench, &inner, threads).output().unwrap();
        let ran = Finished::of(ran, bench.path("r.replay.parquet"));
        match ran.code {
            Some(0) => {
                assert_eq!(ran.rows().len(), 2000);
                assert!(ran.stderr.contains("ulimit -u"), "{threads}: {}", ran.stderr);
            }
            // Too few for the supervisor, the worker and the program that looks for file systems.
            Some(1) if threads < 20 => {
                let is_reported =
                    ["ulimit -u", "Resource temporarily unavailable"].iter().any(|word| ran.stderr.contains(word));
                assert!(is_reported, "{threads}: {}", ran.stderr);
            }
            code => panic!("{threads}: {code:?}: {}", ran.stderr),
        }
        assert!(!bench.path("r.replay.parquet.journal").exists(), "{threads}: {}", ran.stderr);
    }
}

#[test]
fn the_threads_engine_needs_few_files_and_little_locked_memory() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(100, 8)), bench.target(MIB));
    let inner = bench.command(&load, &target, &["--engine", "threads", "--overwrite"]);
    for files in (3..24).rev() {
        let ran = limited(&bench, &inner, &format!("--nofile={files}"));
        match ran.code {
            Some(0) => assert_eq!(ran.rows().len(), 100),
            Some(1) => assert!(ran.stderr.contains("Too many open files"), "{files}: {}", ran.stderr),
            // The program could not even be loaded.
            Some(127) => {}
            code => panic!("{files}: {code:?}: {}", ran.stderr),
        }
    }
    // The threads engine registers neither files nor buffers.
    let ran = limited(&bench, &inner, "--memlock=0").with_code(0);
    assert_eq!(ran.rows().len(), 100);
    assert!(!ran.stderr.contains("ulimit -l"), "{}", ran.stderr);
}

fn limited(bench: &Bench, inner: &Command, limit: &str) -> Finished {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", limit]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(bench.path("."));
    Finished::of(command.output().unwrap(), bench.path("r.replay.parquet"))
}

#[test]
fn unusable_numbers_of_workers_are_refused_or_cost_nothing() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(100, 8)), bench.target(MIB));
    let threads = |workers: &str| {
        let more = ["--engine", "threads", "--workers", workers, "--depth", "65536", "--overwrite"];
        bench.replay(&load, Path::new(&target), &more)
    };
    assert_eq!(threads("65536").with_code(0).rows().len(), 100);
    for workers in ["0", "65537"] {
        threads(workers).refused(&["--workers", "65536"]);
    }
}
