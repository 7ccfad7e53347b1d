//! `iosonar convert` and `iosonar info`, as a user runs them.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use super::replaying::directory_with as directory;

pub const LOAD: &str = "\
Some preamble

start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
0.5 ; 8 ; 16 ; RA ; 0.0 ; 0.0
0.75 ; 800 ; 8 ; W ; 0.0 ; 0.0
oops
1.5 ; 0 ; 1 ; w ; 0.0 ; 0.0
";

const RESULT: &str = "\
orig_start ; sector; length ; op ;  replay_delay; replay_duration
   1.000000000 ;          8 ;   8 ; W ;   0.000003000 ;   0.000100000
   0.000000000 ;         16 ;   8 ; r ;   0.000001000 ;   2.000000000
# completed requests          :      2
blkreplay on /dev/null ended at noon
";

fn iosonar(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.current_dir(directory).args(arguments);
    command
}

/// Standard error; asserts success or failure.
fn stderr_of(directory: &TempDir, arguments: &[&str], success: bool) -> String {
    let output = iosonar(directory, arguments).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), success, "iosonar {arguments:?}: {message}");
    message
}

fn info(directory: &TempDir, file: &str) -> Value {
    let output = iosonar(directory, &["info", file, "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn unreadable_rows_of_a_table_are_not_counted_as_requests() {
    let directory = directory(&[]);
    for (name, kept) in [("v1.replay.parquet", "x.replay.gz"), ("v2.load.parquet", "x.load.parquet")] {
        let damaged = format!("{}/../trace/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        let found = info(&directory, &damaged);
        assert_eq!((&found["counts"]["requests"], &found["unreadable_rows"]), (&4.into(), &1.into()), "{name}");
        assert_eq!(found["span"]["last_ns"], 2000, "{name}");
        for output in [kept, "y.load.parquet"] {
            let words = stderr_of(&directory, &["convert", &damaged, output, "--overwrite"], true);
            assert!(words.contains("is damaged: 1 row unreadable, left out"), "{words}");
            assert!(words.contains(&format!("{output}: 4 requests (1 read, 1 write, 2 others)")), "{words}");
            let converted = info(&directory, output);
            let counts = (&converted["counts"]["requests"], &converted["unreadable_rows"]);
            assert_eq!(counts, (&4.into(), &1.into()), "{name} {output}");
        }
    }
}

#[test]
fn a_damaged_load_keeps_its_losses_on_the_way_through_text() {
    let directory = directory(&[]);
    let damaged = format!("{}/../trace/tests/golden/v2.load.parquet", env!("CARGO_MANIFEST_DIR"));
    let before = info(&directory, &damaged);
    stderr_of(&directory, &["convert", &damaged, "a.load.gz"], true);
    stderr_of(&directory, &["edit", "a.load.gz", "b.load", "select from=0s"], true);
    let said = stderr_of(&directory, &["convert", "b.load", "c.load.parquet"], true);
    assert!(said.contains("is damaged: 1 row unreadable"), "{said}");
    for name in ["a.load.gz", "b.load", "c.load.parquet"] {
        let found = info(&directory, name);
        assert_eq!((&found["unreadable_rows"], &found["complete"]), (&1.into(), &before["complete"]), "{name}");
        for key in ["bad_lines", "unmatched", "lost_events", "time_jumps"] {
            assert_eq!(found["counts"][key], before["counts"][key], "{name}: {key}");
        }
    }
    for foreign in ["x.spc", "x.iolog", "x.blkparse", "x.blktrace.0"] {
        let said = stderr_of(&directory, &["convert", "c.load.parquet", foreign], true);
        assert!(said.contains("does not store") && said.contains("what the load lacks (1 unreadable row"), "{said}");
    }
}

#[test]
fn text_to_parquet_and_back_gives_the_same_rows() {
    let directory = directory(&[("a.load", LOAD)]);
    stderr_of(&directory, &["convert", "a.load", "b.load.parquet"], true);
    stderr_of(&directory, &["convert", "b.load.parquet", "c.load.gz"], true);
    stderr_of(&directory, &["convert", "c.load.gz", "d.load.zst"], true);
    stderr_of(&directory, &["convert", "d.load.zst", "e.txt"], true);
    let text = fs::read_to_string(directory.path().join("e.txt")).unwrap();
    let columns = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0";
    let rows = [
        "   0.500000000 ;          8 ;  16 ; R ;   0.000000000 ;   0.000000000",
        "   0.750000000 ;        800 ;   8 ; W ;   0.000000000 ;   0.000000000",
        "   1.500000000 ;          0 ;   1 ; W ;   0.000000000 ;   0.000000000",
    ];
    let lost = "# iosonar-load {\"bad_lines\":1}";
    assert_eq!(text, format!("Some preamble\n{columns}\n{}\n{lost}\n", rows.join("\n")));
}

#[test]
fn the_format_is_recognised_by_content_not_by_name() {
    let directory = directory(&[("a.parquet", LOAD)]);
    let words = stderr_of(&directory, &["convert", "a.parquet", "b.load"], true);
    assert!(words.contains("[classic]"), "{words}");
}

#[test]
fn pipes_carry_every_format() {
    let directory = directory(&[]);
    let parquet = iosonar(&directory, &["convert", "-", "-", "--to", "parquet"]).write_stdin(LOAD).output().unwrap();
    assert!(parquet.stdout.starts_with(b"PAR1"));
    let text =
        iosonar(&directory, &["convert", "-", "-", "--to", "classic"]).write_stdin(parquet.stdout).output().unwrap();
    assert!(String::from_utf8(text.stdout).unwrap().contains("   0.500000000 ;          8 ;  16 ; R ;"));
}

#[test]
fn a_run_converts_to_a_run_or_a_load() {
    let directory = directory(&[("a.replay", RESULT)]);
    stderr_of(&directory, &["convert", "a.replay", "b.replay.parquet"], true);
    let run = info(&directory, "b.replay.parquet");
    assert_eq!(run["kind"], "replay");
    assert_eq!(run["latency_us"]["max"].as_f64().unwrap().round(), 2_000_000.0);
    assert_eq!((&run["pushed_back"], &run["outcomes"]["ok"]), (&1.into(), &2.into()));
    stderr_of(&directory, &["convert", "b.replay.parquet", "c.load"], true);
    let text = fs::read_to_string(directory.path().join("c.load")).unwrap();
    let first = text.lines().find(|line| line.contains("0.000000000 ;         16 ;")).expect("sorted by time");
    assert!(first.ends_with(" ;   2.000000000"), "the latencies are those of the run: {first}");
    assert!(text.ends_with("   1.000000000 ;          8 ;   8 ; W ;   0.000000000 ;   0.000100000\n"), "{text}");
}

#[test]
fn info_counts_the_requests_of_a_load() {
    let directory = directory(&[("a.load", LOAD)]);
    let load = info(&directory, "a.load");
    assert_eq!(load["counts"]["requests"], 3);
    assert_eq!(load["counts"]["bad_lines"], 1);
    assert_eq!(load["span"]["max_end_sector"], 808);
    assert_eq!(load["duration_s"], 1.0);
    assert_eq!(load["requests_per_s"], 3.0);
    assert_eq!(load["bytes"]["read"], 8192);
    assert_eq!(load["format"]["name"], "classic");
    assert_eq!(load["complete"], true);
    let text = iosonar(&directory, &["info", "a.load"]).output().unwrap().stdout;
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn info_takes_the_options_of_convert() {
    let events = "\
  8,0    3        1     0.000001000   697  Q   W 64 + 8 [x]
  8,0    3        2     0.000002000   697  Q   W 72 + 8 [x]
  8,0    3        3     0.000003000   697  D   W 64 + 16 [x]
";
    let directory = directory(&[("b.blkparse", events)]);
    let requests = |more: &[&str]| {
        let arguments = [&["info", "b.blkparse", "--json"], more].concat();
        let output = iosonar(&directory, &arguments).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["counts"]["requests"].clone()
    };
    assert_eq!(requests(&[]), 2);
    assert_eq!(requests(&["--action", "D"]), 1);
}

#[test]
fn a_truncated_file_is_reported_as_cut_short() {
    let directory = directory(&[("a.load", &LOAD[..LOAD.len() - 20])]);
    assert_eq!(info(&directory, "a.load")["complete"], false);
    stderr_of(&directory, &["convert", "a.load", "b.load.parquet"], true);
    assert_eq!(info(&directory, "b.load.parquet")["complete"], false);
}

#[test]
fn an_existing_file_is_replaced_only_with_overwrite() {
    let directory = directory(&[("a.load", LOAD), ("b.load", "the only copy of a trace")]);
    let kept = || fs::read_to_string(directory.path().join("b.load")).unwrap();
    stderr_of(&directory, &["convert", "a.load", "b.load"], false);
    stderr_of(&directory, &["generate", "poisson", "b.load", "--duration", "1s"], false);
    stderr_of(&directory, &["edit", "a.load", "b.load", "reverse"], false);
    assert_eq!(kept(), "the only copy of a trace");
    stderr_of(&directory, &["convert", "a.load", "b.load", "--overwrite"], true);
    assert_eq!(info(&directory, "b.load")["counts"]["requests"], 3);
}

#[test]
fn a_load_of_impossible_times_becomes_a_whole_table() {
    let load = "1.0 ; 10 ; 8 ; R ; 9223372036.854775807 ; 0.001\n2.0 ; 10 ; 8 ; R ; 0.1 ; 0.001\n\
                9223372036.854775807 ; 10 ; 8 ; R ; 0 ; 0\n";
    let directory = directory(&[("a.load", load)]);
    let said = stderr_of(&directory, &["convert", "a.load", "a.load.parquet"], true);
    assert!(said.contains("1 time of a request left out as impossible"), "{said}");
    let found = info(&directory, "a.load.parquet");
    assert_eq!((&found["counts"]["requests"], &found["unreadable_rows"]), (&2.into(), &0.into()), "{found}");
    assert_eq!((&found["counts"]["impossible_times"], &found["counts"]["bad_lines"]), (&1.into(), &1.into()));
}
