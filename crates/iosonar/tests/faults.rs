//! Faults that a replay survives: signals, kills, full disks, devices that fail, shrink or hang, low limits, no
//! io_uring, bad loads. Measured rows are kept, missing ones are marked.

use crate::replaying;
use crate::seccomp;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{IoResult, Outcome};

use crate::replaying::{Bench, Finished, MIB, Row, adjacent_requests, read_run, run, signal_tree, wait_until};

/// A load of one minute: longer than any test waits.
pub(crate) fn long(bench: &Bench) -> PathBuf {
    let rows: Vec<Row> =
        (0..60_000).map(|i| (i as f64 / 1e3, i % 100 * 8, 8, if i % 3 == 0 { 'R' } else { 'W' })).collect();
    bench.load(&rows)
}

/// Asserts that the rows are the first requests of the load, each once, completed except for some at the end. At most
/// `missing` of them may be absent: those in flight at the kill.
fn assert_first_rows(rows: &[IoResult], missing: u64) {
    assert!(rows.len() > 10 && rows.len() < 60_000, "{} rows", rows.len());
    let mut numbers: Vec<_> = rows.iter().map(|row| row.request).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "each once");
    assert!(numbers.last().unwrap() + 1 - rows.len() as u64 <= missing, "the first ones");
    for row in rows {
        assert!(matches!(row.outcome, Outcome::Ok | Outcome::Unfinished), "{row:?}");
        assert_eq!(row.scheduled.0, row.request as i64 * 1_000_000);
        assert!(row.outcome != Outcome::Ok || (row.scheduled <= row.issued.unwrap() && row.issued <= row.completed));
    }
}

#[test]
fn a_signal_ends_a_run_with_a_complete_file_marked_incomplete() {
    for (signal, how) in [("INT", "spin"), ("TERM", "hybrid"), ("HUP", "sleep"), ("INT", "inline")] {
        let bench = Bench::new();
        let running = bench.start(&long(&bench), &bench.target(MIB), &["--wait", how]);
        running.signal(signal);
        let ran = running.end().with_code(5);
        assert_first_rows(&ran.rows(), 0);
        assert!(!ran.footer().complete);
        assert_eq!(ran.statistics()["complete"], false);
        assert_eq!(ran.statistics()["requests"], ran.rows().len());
        assert!(ran.stderr.contains("stopping"), "{}", ran.stderr);
        assert!(ran.stdout.contains("cut short"), "{}", ran.stdout);
        assert_eq!(bench.names(), ["a.load", "r.replay.parquet", "target"]);
    }
}

/// A pipeline that never yields a request: it drops all of them, without end.
#[test]
fn a_signal_ends_the_reading_of_a_load_without_a_first_request() {
    for begins in ["--edit=repeat|clip from=1T", "--edit=repeat|select from=9999h to=99999h"] {
        let bench = Bench::new();
        let mut command = bench.command(&long(&bench), &bench.target(MIB), &[begins, "--duration", "3"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id().to_string();
        wait_until("it looks after signals", || catches_term(&id));
        run("kill", &["-TERM".as_ref(), id.as_ref()]);
        let output = iosonar_testing::output_of(child);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("stopped before the replay began"), "{stderr}");
        assert_eq!(bench.names(), ["a.load", "target"]);
    }
}

/// Whether a process has a handler for SIGTERM.
fn catches_term(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).unwrap() >> (15 - 1) & 1 == 1
}

/// As after the terminal was closed, or the parent died.
#[test]
fn a_replay_survives_closed_output_pipes() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(300, 8));
    let mut command = bench.command(&load, &bench.target(MIB), &[]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The read ends of both pipes.
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(0));
    let (rows, footer) = read_run(&bench.path("r.replay.parquet"));
    assert_eq!((rows.len(), footer.complete), (300, true));
}

/// `replay --json > file` on a disk that is full.
#[test]
fn output_that_cannot_be_written_is_an_error_after_the_replay() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(300, 8));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.command(&load, &bench.target(MIB), &["--json"]);
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot write standard output"), "{message}");
    let (rows, footer) = read_run(&bench.path("r.replay.parquet"));
    assert_eq!((rows.len(), footer.complete), (300, true), "what was measured is there");
}

#[test]
fn a_file_that_appears_under_the_results_name_is_not_replaced() {
    let bench = Bench::new();
    let running = bench.start(&bench.load(&adjacent_requests(6000, 8)), &bench.target(MIB), &[]);
    // The replay must not end before the other file exists, however slow this thread is.
    signal_tree("STOP", running.id());
    fs::write(bench.path("r.replay.parquet"), "somebody else's").unwrap();
    signal_tree("CONT", running.id());
    let ran = running.end();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("was created during the run") && ran.stderr.contains("iosonar recover"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read(bench.path("r.replay.parquet")).unwrap(), b"somebody else's");
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    let ran = recover(&bench, &[]).with_code(0);
    assert_eq!(ran.rows().len(), 6000);
}

/// Kills a replay; returns its journal.
fn killed(bench: &Bench) -> PathBuf {
    let running = bench.start(&long(bench), &bench.target(MIB), &[]);
    running.signal("KILL");
    let ran = running.end();
    assert_eq!(ran.code, None, "killed");
    assert_eq!(bench.names(), ["a.load", "r.replay.parquet.journal", "target"], "no result under its final name");
    bench.path("r.replay.parquet.journal")
}

fn recover(bench: &Bench, more: &[&str]) -> Finished {
    let output = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .arg("recover")
        .arg(bench.path("r.replay.parquet.journal"))
        .args(more)
        .output()
        .unwrap();
    Finished::of(output, bench.path("r.replay.parquet"))
}

#[test]
fn a_killed_run_is_recovered() {
    let bench = Bench::new();
    let journal = killed(&bench);
    for more in [&[][..], &["--from", "parquet"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("info").arg(&journal).args(more).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains("iosonar recover"), "info names the remedy: {message}");
    }
    let ran = recover(&bench, &[]).with_code(0);
    assert_first_rows(&ran.rows(), 512);
    assert!(!ran.footer().complete);
    let statistics = ran.statistics();
    assert_eq!(statistics["requests"], ran.rows().len());
    assert_eq!(statistics["complete"], false);
    assert!(statistics["latency_us"]["p50"].as_f64().unwrap() > 0.0);
    assert!(statistics["max_in_flight"].as_u64().unwrap() >= 1 && statistics["max_pushed_back"].is_null());
    assert!(ran.stdout.contains(" in flight\n") && !ran.stdout.contains("0 pushed back"), "{}", ran.stdout);
    assert!(ran.stderr.contains("recovered from the journal"), "{}", ran.stderr);
    assert!(ran.stdout.contains("cut short"), "{}", ran.stdout);
    assert!(statistics["verdict"]["sentence"].as_str().unwrap().starts_with("As far as it went"), "{statistics}");
    // Facts known only at the start of the run are kept as well.
    let run = ran.run();
    for key in ["started_unix_ns", "started_monotonic_ns"] {
        assert!(run[key].as_i64().unwrap() > 0, "{key}: {run}");
    }
    assert!(run["machine"]["kernel"].is_string() && run["target"]["sectors"] == 2048, "{run}");
    assert!(run["warnings"].to_string().contains("recovered from the journal"), "{run}");
    assert_eq!(bench.names(), ["a.load", "r.replay.parquet", "target"]);
    recover(&bench, &[]).refused(&["exists"]);
    fs::remove_file(bench.path("r.replay.parquet")).unwrap();
    recover(&bench, &[]).refused(&["journal"]);
}

#[test]
fn a_run_in_progress_is_not_recovered() {
    let bench = Bench::new();
    let running = bench.start(&long(&bench), &bench.target(MIB), &[]);
    recover(&bench, &[]).refused(&["still writing this journal"]);
    // Its journal is not replaced either.
    let other = bench.path("other");
    File::create(&other).and_then(|f| f.set_len(MIB)).unwrap();
    bench.replay(&bench.path("a.load"), &other, &[]).refused(&["still running"]);
    running.signal("INT");
    assert_first_rows(&running.end().with_code(5).rows(), 0);
}

/// The length of a journal's header, and of its entries.
fn layout(journal: &Path) -> (u64, u64) {
    let mut start = [0; 16];
    File::open(journal).unwrap().read_exact(&mut start).unwrap();
    (16 + u64::from(u32::from_le_bytes(start[8..12].try_into().unwrap())), 106)
}

#[test]
fn a_journal_cut_within_an_entry_yields_all_entries_before() {
    let bench = Bench::new();
    let journal = killed(&bench);
    let (header, entry) = layout(&journal);
    File::options().write(true).open(&journal).unwrap().set_len(header + 20 * entry + 50).unwrap();
    let ran = recover(&bench, &[]).with_code(0);
    assert_eq!(ran.rows().len(), 20);
    assert!(ran.stderr.contains("1 row is missing: the journal is damaged there"), "{}", ran.stderr);
}

#[test]
fn a_damaged_or_repeated_entry_affects_no_other_entry() {
    let bench = Bench::new();
    let journal = killed(&bench);
    let (header, entry) = layout(&journal);
    let mut bytes = fs::read(&journal).unwrap();
    let at = |number: u64| (header + number * entry) as usize;
    let entries = (bytes.len() as u64 - header) / entry;
    bytes[at(5) + 33] ^= 4;
    bytes.extend_from_within(at(2)..at(4));
    fs::write(&journal, bytes).unwrap();
    let ran = recover(&bench, &[]).with_code(0);
    assert_eq!(ran.rows().len() as u64, entries - 1);
    assert!(ran.stderr.contains("1 row is missing: the journal is damaged there"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 rows are left out: the journal has them a second time"), "{}", ran.stderr);
    assert_eq!((ran.statistics()["requests"].as_u64(), ran.footer().counts.unreadable_rows), (Some(entries - 1), 3));
}

#[test]
fn a_file_that_is_not_a_journal_is_refused_and_kept() {
    let bench = Bench::new();
    for (content, word) in [
        ("", "too short"),
        ("start ; sector; length ; op", "not a journal"),
        ("iosonar\u{2}\0\0\0\u{10}aaaaaaa", "damaged"),
        ("iosonar\u{1}\0\0\0\u{10}aaaaaaa", "another version"),
    ] {
        bench.text("r.replay.parquet.journal", content);
        recover(&bench, &[]).refused(&[word]);
        assert_eq!(bench.names(), ["r.replay.parquet.journal"]);
    }
}

/// A tmpfs of that size; unmounted when dropped.
struct Small(Mount);

impl Small {
    fn new(bench: &Bench, bytes: u64) -> Self {
        let size = format!("size={bytes}");
        Self(Mount::new(bench.path("small"), ["-t", "tmpfs", "-o", &size, "small"]))
    }

    fn output(&self) -> String {
        self.0.path().join("r.replay.parquet").to_string_lossy().into_owned()
    }
}

#[test]
fn room_for_the_journal_is_reserved_at_the_start() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let small = Small::new(&bench, MIB);
    let ran = bench.replay(&long(&bench), &bench.target(MIB), &["--output", &small.output()]);
    ran.refused(&["the journal of 60,000 requests needs", "make room", "--output"]);
    assert_eq!(fs::read_dir(small.0.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_full_disk_ends_the_run_and_keeps_its_rows() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let small = Small::new(&bench, MIB);
    // The length of a load from a pipe is unknown: no room is reserved.
    let rows: Vec<Row> = (0..40_000).map(|i| (i as f64 / 1e4, i % 100 * 8, 8, 'W')).collect();
    let load = bench.load(&rows);
    let mut command = bench.command(Path::new("-"), &bench.target(MIB), &["--output", &small.output()]);
    let output = command.stdin(File::open(load).unwrap()).output().unwrap();
    let ran = Finished::of(output, PathBuf::from(small.output())).with_code(1);
    assert!(ran.stderr.contains("make room") && ran.stderr.contains("iosonar recover"), "{}", ran.stderr);
    let journal = small.0.path().join("r.replay.parquet.journal");
    assert!(journal.exists(), "what was measured is kept");
    let result = bench.path("recovered.replay.parquet");
    let recovered =
        Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("recover").arg(journal).arg("-o").arg(&result).output();
    let recovered = Finished::of(recovered.unwrap(), result).with_code(0);
    let kept = recovered.rows().len();
    assert!(kept > 5000 && kept < 40_000, "{kept}");
    assert!(!recovered.footer().complete);
}

#[test]
fn a_device_that_fails_is_recorded_row_by_row() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(16 * MIB);
    // Half of the device is removed during the run.
    let rows: Vec<Row> =
        (0..6000).map(|i| (i as f64 / 1e3, i % 3000 * 8, 8, if i % 3 == 0 { 'R' } else { 'W' })).collect();
    let running = bench.start(&bench.load(&rows), device.path(), &[]);
    File::options().write(true).open(device.backing_file()).unwrap().set_len(MIB).unwrap();
    run("losetup", &["--set-capacity".as_ref(), device.path().as_os_str()]);
    let ran = running.end().with_code(4);
    let rows = ran.by_request();
    assert!(rows.iter().map(|row| row.request).eq(0..6000), "each once");
    let failed: Vec<_> = rows.iter().filter(|row| row.outcome == Outcome::Error).collect();
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|row| row.errno > 0 && row.bytes_done == 0 && row.completed.is_some()));
    assert_eq!(ran.statistics()["errors"], failed.len());
    assert!(ran.footer().complete, "the run itself was not cut short");
    assert!(ran.stdout.contains("errors"), "{}", ran.stdout);
    assert!(ran.stderr.contains("shrank during the run"), "{}", ran.stderr);
}

#[test]
fn low_limits_yield_a_result_or_a_remedy() {
    let bench = Bench::new();
    let load = adjacent_requests(100, 8);
    let path = bench.load(&load);
    let target = bench.target(MIB);
    let limited = |limits: &[&str]| {
        let inner = bench.command(&path, &target, &["--overwrite"]);
        let mut command = Command::new("prlimit");
        command.args(limits).arg(inner.get_program()).args(inner.get_args()).current_dir(bench.path("."));
        Finished::of(command.output().unwrap(), bench.path("r.replay.parquet"))
    };
    // Enough for the standard streams, the files of a run, and little more; then less and less.
    for files in (3..24).rev() {
        let ran = limited(&[&format!("--nofile={files}")]);
        match ran.code {
            Some(0) => assert_eq!(ran.rows().len(), 100),
            Some(1) => assert!(ran.stderr.contains("Too many open files"), "{files}: {}", ran.stderr),
            // The system could not even load the program.
            Some(127) => {}
            code => panic!("{files}: {code:?}: {}", ran.stderr),
        }
        assert!(!bench.path("r.replay.parquet.journal").exists(), "{files}: {}", ran.stderr);
    }
}

#[test]
fn little_locked_memory_only_disables_registered_buffers() {
    if left_out(Need::Root) {
        return;
    }
    let bench = Bench::new();
    let inner = bench.command(&bench.load(&adjacent_requests(100, 8)), &bench.target(MIB), &[]);
    let mut command = Command::new("setpriv");
    // With CAP_IPC_LOCK there is no limit.
    command.args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", "--memlock=65536"]);
    command.arg(inner.get_program()).args(inner.get_args());
    let ran = Finished::of(command.output().unwrap(), bench.path("r.replay.parquet")).with_code(0);
    assert_eq!(ran.rows().len(), 100);
    assert!(ran.stderr.contains("ulimit -l"), "{}", ran.stderr);
}

#[test]
fn the_largest_depth_works() {
    let bench = Bench::new();
    let load = adjacent_requests(100, 8);
    let path = bench.load(&load);
    let target = bench.target(MIB);
    assert_eq!(bench.replay(&path, &target, &["--depth", "65536"]).with_code(0).rows().len(), 100);
}

#[test]
fn without_io_uring_the_threads_engine_runs_with_a_warning() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    let replay = |more: &[&str]| {
        let mut command = bench.command(&load, &bench.target(MIB), more);
        seccomp::deny_io_uring(&mut command);
        Finished::of(command.output().unwrap(), bench.path("r.replay.parquet"))
    };
    let advice = ["cannot set up io_uring", "kernel.io_uring_disabled", "seccomp"];
    // `--engine io_uring` gets io_uring, or an error.
    for named in [&["--engine", "io_uring"][..], &["--sqpoll"], &["--poll"]] {
        if named != ["--poll"] {
            replay(named).refused(&advice);
        } else {
            replay(named).refused(&["--poll"]);
        }
        assert_eq!(bench.names(), ["a.load", "target"], "nothing is left behind");
    }
    let ran = replay(&[]).with_code(0);
    assert_eq!(ran.rows().len(), 100);
    for word in advice.into_iter().chain(["a thread pool"]) {
        assert!(ran.stderr.contains(word), "no {word:?} in: {}", ran.stderr);
    }
    let run = ran.run();
    assert_eq!((&run["engine"], &run["fake"]), (&"threads".into(), &serde_json::Value::Null));
    let warnings = run["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|text| text.as_str().unwrap().contains("a thread pool")), "{warnings:?}");
}

#[test]
fn bad_loads_are_refused_by_name() {
    let bench = Bench::new();
    let target = bench.target(MIB);
    let mut noise = vec![0_u8; 5000];
    File::open("/dev/urandom").unwrap().read_exact(&mut noise).unwrap();
    noise[0] = 1;
    fs::write(bench.path("noise"), noise).unwrap();
    bench.text("empty", "");
    bench.text("only-columns", &replaying::text(&[]));
    bench.text("only-bad", "start ; sector; length ; op\n-1 ; 0 ; 8 ; R\n");
    let names = bench.names();
    for (load, word) in [
        ("empty", "it is empty"),
        ("noise", "not recognised"),
        ("nowhere", "No such file"),
        ("only-columns", "no request to replay"),
        ("only-bad", "no request to replay"),
    ] {
        let ran = bench.replay(Path::new(load), &target, &[]).refused(&[load, word]);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches(word).count(), 1, "message once: {}", ran.stderr);
        assert_eq!(bench.names(), names);
    }
}

#[test]
fn odd_loads_are_replayed_as_far_as_possible() {
    let bench = Bench::new();
    let text = "start ; sector; length ; op\n0.0 ; 0 ; 8 ; R\n0.002 ; 8 ; 8 ; W\n0.001 ; 16 ; 8 ; W\n-1 ; 0 ; 8 ; R\n\
                0.003 ; 99999999999999999999 ; 8 ; R\n0.004 ; 0 ; 99999999999999 ; W\n99999999999999 ; 0 ; 8 ; W\n\
                0.005 ; -8 ; 8 ; R\n0.006 ; 18014398509481976 ; 8 ; R\n";
    let ran = bench.replay(&bench.text("odd.load", text), &bench.target(MIB), &["--duration", "1"]).with_code(0);
    let rows: Vec<_> = ran.by_request().iter().map(|r| (r.source_sector.0, r.outcome)).collect();
    let (ok, beyond) = (Outcome::Ok, Outcome::BeyondEnd);
    // Unsorted: rows after a jump back in time are shifted.
    assert_eq!(rows[..4], [(0, ok), (8, ok), (16, ok), (0, beyond)]);
    let scheduled: Vec<_> = ran.by_request().iter().map(|row| row.scheduled).collect();
    assert!(scheduled.is_sorted(), "time goes on");
    assert!(ran.statistics()["bad_lines"].as_u64().unwrap() >= 4);
    let warnings = ran.footer().warnings.join("\n");
    assert!(warnings.contains("time goes back") && warnings.contains("negative"), "{warnings}");
}
