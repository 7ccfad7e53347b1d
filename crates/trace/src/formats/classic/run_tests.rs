//! Results in text lose nothing of the run, and a text that is not whole has no verdict.

use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

use crate::formats::format::Opened;
use crate::formats::support::arbitrary::any_record;
use crate::io::stream::ConversionLoss;
use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::metadata::{Device, Kind, Metadata};
use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

fn read(path: &Path) -> (Vec<IoResult>, Metadata) {
    let Opened::Run(mut reader) = crate::open(path).unwrap() else { panic!("not a run") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

fn write(path: &Path, rows: &[IoResult], metadata: &Metadata) -> ConversionLoss {
    let mut writer = crate::create_run(path, metadata).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.finish(metadata).unwrap()
}

/// The metadata of a replay with a verdict and findings.
pub fn metadata() -> Metadata {
    let mut metadata = Metadata::new(Kind::Replay, "classic");
    metadata.source.path = Some("a.load.gz".into());
    metadata.source.preamble = "free; for all\n1;2;3;R\n# iosonar-run end 1/1 {}".into();
    metadata.devices = vec![Device { name: "sda; b".into(), sectors: Some(7) }, Device::default()];
    metadata.counts.bad_lines = 3;
    metadata.warning("line 17 left out; ERROR");
    metadata.run = serde_json::from_str(include_str!("../../model/run_info/tests/replay.json")).unwrap();
    metadata
}

pub fn row(number: u64, at_ms: i64) -> IoResult {
    let request = Request::new(Nanos(at_ms * 1_000_000), Op::Read, Sector(8 * number), Sectors(8));
    IoResult {
        issued: Some(request.at + Nanos(5000)),
        completed: Some(request.at + Nanos(90_000)),
        bytes_done: 4096,
        outcome: Outcome::Ok,
        ..IoResult::of(&request, number)
    }
}

/// A row with values that its outcome allows.
pub fn consistent(mut row: IoResult) -> IoResult {
    if row.outcome.is_skipped() {
        row.issued = None;
    }
    if row.outcome == Outcome::Unfinished || row.issued.is_none() {
        row.completed = None;
    }
    if row.outcome != Outcome::Error {
        row.errno = 0;
    }
    row
}

pub struct Directory(tempfile::TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A result in text.
    pub fn text(&self, rows: &[IoResult], metadata: &Metadata) -> String {
        let path = self.path("x.replay");
        _ = std::fs::remove_file(&path);
        write(&path, rows, metadata);
        std::fs::read_to_string(path).unwrap()
    }

    pub fn read(&self, text: &str) -> (Vec<IoResult>, Metadata) {
        let path = self.path("y.replay");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }
}

pub fn has_verdict(metadata: &Metadata) -> bool {
    metadata.run.as_ref().and_then(|run| run.statistics.known()).is_some_and(|known| known.verdict().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_that_becomes_text_and_a_table_again_stays_the_same(
        rows in prop::collection::vec(any_record(), 0..20),
        issued in prop::collection::vec((0_u64..9, 0_i64..99, any::<bool>(), 0..DelayReason::ALL.len()), 0..20),
        complete in any::<bool>(),
    ) {
        let directory = Directory::new();
        let [table, text, again] =
            ["a.replay.parquet", "b.replay.gz", "c.replay.parquet"].map(|name| directory.path(name));
        let issued = issued.into_iter().map(|(number, at, pushed_back, reason)| IoResult {
            pushed_back, delay_reason: DelayReason::ALL[reason], ..row(number, at)
        });
        let rows: Vec<IoResult> = rows.into_iter().map(consistent).chain(issued).collect();
        let metadata = Metadata { complete, ..metadata() };
        prop_assert_eq!(write(&table, &rows, &metadata), ConversionLoss::default());
        let (rows, metadata) = read(&table);
        prop_assert_eq!(write(&text, &rows, &metadata).rows, 0);
        let (read_back, of_text) = read(&text);
        prop_assert_eq!(&read_back, &rows);
        prop_assert_eq!(&of_text, &metadata);
        write(&again, &read_back, &of_text);
        prop_assert_eq!(read(&again), (rows, metadata));
    }
}

#[test]
fn only_column_names_and_rows_have_semicolons() {
    let directory = Directory::new();
    let flush = IoResult { op: Op::Flush, sectors: Sectors(0), bytes_done: 0, ..row(2, 2) };
    let dropped = IoResult { issued: None, completed: None, bytes_done: 0, outcome: Outcome::Dropped, ..row(3, 3) };
    let corrupt = IoResult { outcome: Outcome::Corrupt, ..row(4, 4) };
    let failed = IoResult { outcome: Outcome::Error, errno: 5, bytes_done: 0, ..row(5, 5) };
    let short = IoResult { outcome: Outcome::Short, bytes_done: 512, ..row(6, 6) };
    let rows = [row(1, 1), flush, dropped, corrupt, failed, short];
    let text = directory.text(&rows, &metadata());
    let body = text.split_once("orig_start").unwrap().1;
    let csv: Vec<&str> = body.lines().filter(|line| line.contains(';')).collect();
    assert_eq!(csv.len(), 1 + 4, "{text}");
    assert!(csv[1].starts_with("   0.001000000 ;          8 ;   8 ; R ;   0.000005000 ;   0.000085000"), "{text}");
    let lines_of = |word: &str| body.lines().filter(|line| line.contains(word)).count();
    // One is a finding of the final pass.
    assert_eq!(lines_of("VERIFY ERROR: at block "), 2, "{text}");
    assert_eq!(lines_of("ERROR"), 4, "{text}");
    assert!(body.contains("ERROR: bad RIO -1 / 5 at pos 40 (Input/output error)\n"), "{text}");
    assert!(body.contains("INFO: dropping block=24 len=8 mode=R\n"), "{text}");
    assert!(text.contains("INFO: device=/dev/loop1 has blocks=2048 (1024 kB).\n"), "{text}");
    let (back, metadata) = directory.read(&text);
    assert_eq!(back, rows);
    assert!(metadata.complete && has_verdict(&metadata), "{:?}", metadata.warnings);
}

#[test]
fn a_text_cut_anywhere_is_incomplete_and_still_fake() {
    let directory = Directory::new();
    let mut metadata = metadata();
    metadata.run.as_mut().unwrap().fake = String::from("FAKE RESULT: of nothing").into();
    let text = directory.text(&(0..9).map(|number| row(number, number as i64)).collect::<Vec<_>>(), &metadata);
    let first_comment = text.find("# iosonar-run begin").unwrap() + 20;
    for cut in (first_comment..text.len()).step_by(97).chain([text.len() - 1]) {
        let Ok(Opened::Run(mut reader)) = directory.opened(&text[..cut]) else { panic!("not a run") };
        while reader.next().unwrap().is_some() {}
        let metadata = reader.metadata();
        assert!(!metadata.complete && !has_verdict(metadata), "cut at {cut}: {:?}", metadata.warnings);
        assert!(metadata.run.as_ref().unwrap().fake.text().unwrap().starts_with("FAKE"), "cut at {cut}");
    }
}

#[test]
fn metadata_keeps_its_spaces_at_the_ends_of_comment_lines() {
    let directory = Directory::new();
    for shift in ["", "x"] {
        let mut metadata = metadata();
        // Every second byte is a space: one of the shifts has one at the end of a part.
        metadata.run.as_mut().unwrap().warnings = vec![format!("{shift}{}", "a ".repeat(4000))].into();
        let (_, back) = directory.read(&directory.text(&[row(0, 1)], &metadata));
        assert_eq!(back.run.unwrap().warnings, metadata.run.unwrap().warnings, "{shift}");
    }
}

#[test]
fn a_row_whose_time_is_not_a_number_is_counted_as_bad() {
    let directory = Directory::new();
    let text = directory.text(&[row(0, 1), row(1, 2), row(2, 3)], &metadata());
    for damage in ["nan", "\u{663}", "½", "x", ""] {
        let damaged = text.replace("   0.002000000", damage);
        let (rows, back) = directory.read(&damaged);
        let without_metadata = damaged.lines().filter(|line| !line.starts_with("# iosonar"));
        let (plain, plain_back) = directory.read(&without_metadata.map(|line| format!("{line}\n")).collect::<String>());
        assert_eq!((rows.len(), back.counts.bad_lines), (2, 4), "{damage}: {:?}", back.warnings);
        assert_eq!((plain.len(), plain_back.counts.bad_lines), (2, 1), "{damage}: {:?}", plain_back.warnings);
    }
}

impl Directory {
    pub fn opened(&self, text: &str) -> crate::Result<Opened> {
        let path = self.path("z.replay");
        std::fs::write(&path, text).unwrap();
        crate::open(&path)
    }
}

#[test]
fn a_text_with_rows_changed_by_others_has_no_verdict() {
    let directory = Directory::new();
    let rows: Vec<_> = (0..9).map(|number| row(number, 9 - number as i64)).collect();
    let text = directory.text(&rows, &metadata());
    let without_a_row = text.lines().filter(|line| !line.starts_with("   0.004")).map(|line| format!("{line}\n"));
    let (read, metadata) = directory.read(&without_a_row.collect::<String>());
    assert_eq!(read.len(), 8);
    assert!(!metadata.complete && !has_verdict(&metadata), "{:?}", metadata.warnings);
    // Only the rows, as the manual says; nobody knows whether they are all.
    let csv: String = text.lines().filter(|line| line.contains(';')).map(|line| format!("{line}\n")).collect();
    let (read, metadata) =
        directory.read(csv.split_once("orig_start").map(|(_, csv)| format!("orig_start{csv}")).unwrap().as_str());
    assert_eq!(read, rows);
    assert!(!metadata.complete && !has_verdict(&metadata), "{:?}", metadata.warnings);
}

#[test]
fn sorted_rows_keep_their_details_and_the_run_its_verdict() {
    let directory = Directory::new();
    let rows: Vec<_> =
        (0..9).map(|number| IoResult { delay_reason: DelayReason::Depth, ..row(number, 8 - number as i64) }).collect();
    std::fs::write(directory.path("x"), directory.text(&rows, &metadata())).unwrap();
    let sort = Command::new("sort").env("LC_ALL", "C").arg("-n").arg(directory.path("x")).output().unwrap();
    let sorted = String::from_utf8(sort.stdout).unwrap();
    assert!(sorted.trim_start().starts_with("0.000000000 ;"), "{sorted}");
    let (read, metadata) = directory.read(&sorted);
    assert_eq!(read, rows.iter().rev().copied().collect::<Vec<_>>());
    assert!(metadata.complete && has_verdict(&metadata), "{:?}", metadata.warnings);
}

#[test]
fn the_last_line_says_when_the_run_ended() {
    let directory = Directory::new();
    let last_line =
        |rows: &[IoResult], metadata: &Metadata| directory.text(rows, metadata).lines().last().unwrap().to_owned();
    let rows = [row(0, 1), row(1, 7000), row(2, 3000)];
    assert!(
        last_line(&rows, &metadata()).ends_with(" ended at 2025-11-23 10:00:07 UTC"),
        "{}",
        last_line(&rows, &metadata())
    );
    let foreign = "orig_start ; sector; length ; op ;  replay_delay; replay_duration\n\
                   0.5 ; 8 ; 8 ; R ; 0.003 ; 0.001\nblkreplay on /dev/x ended at Fri Nov 20 16:37:53 2026\n";
    let (rows, metadata) = directory.read(foreign);
    assert!(last_line(&rows, &metadata).ends_with(" ended at Fri Nov 20 16:37:53 2026"));
}

#[test]
fn the_reasons_in_results_of_blkreplay_stay_unknown() {
    let directory = Directory::new();
    let foreign = "orig_start ; sector; length ; op ;  replay_delay; replay_duration\n\
                   0.5 ; 8 ; 8 ; R ; 0.003 ; 0.001\nblkreplay on /dev/x ended at some time\n";
    let (rows, metadata) = directory.read(foreign);
    assert_eq!(rows[0].delay_reason, DelayReason::Unknown);
    let text = directory.text(&rows, &metadata);
    assert!(
        text.contains(
            "replay_delay; replay_duration\n   0.500000000 ;          8 ;   8 ; R ;   0.003000000 ;   0.001000000\n"
        ),
        "{text}"
    );
    assert_eq!(directory.read(&text), (rows, metadata));
}

#[test]
fn details_that_are_unknown_doubled_or_untrue_are_damage() {
    let directory = Directory::new();
    let plain = row(0, 1);
    let failed = IoResult { flags: Flags::FUA, device: DeviceId(1), outcome: Outcome::Error, errno: 5, ..row(1, 2) };
    let flush = IoResult { op: Op::Flush, sectors: Sectors(0), bytes_done: 0, ..row(2, 3) };
    let dropped = IoResult { issued: None, completed: None, outcome: Outcome::Dropped, ..row(3, 4) };
    let text = directory.text(&[plain, failed, flush, dropped], &metadata());
    for (good, bad, why) in [
        ("flags=1", "flags=x", "the detail flags has an impossible value"),
        ("device=1", "device=-1", "the detail device has an impossible value"),
        ("request=1 ", "request ", "the detail \"request\" is not name=value"),
        ("request=1 ", "", "the detail request is missing"),
        ("request=1 ", "request=1 request=2 ", "the detail request is there twice"),
        ("request=1 ", "request=1 op=read ", "the detail op is there beside its column"),
        ("flags=1", "flagz=1", "there is no detail \"flagz\""),
        (" outcome=error", "", "a request without an error has an error number"),
        (" errno=5", "", "the detail errno is missing"),
        ("outcome=error errno=5", "outcome=dropped", "a request that was never issued has times"),
        ("outcome=error errno=5", "outcome=unfinished", "a request that never completed has a completion"),
        (" completed_ns=", " completed_nz=", "there is no detail \"completed_nz\""),
        (" completed_ns=3090000", "", "the detail completed_ns is missing"),
        (" issued_ns=3005000", "", "the detail issued_ns is missing"),
        (" issued_ns=3005000", " issued_ns=-", "a request completed that was never issued"),
        (" scheduled_ns=3000000", "", "the detail scheduled_ns is missing"),
        ("run row request=2", "run row", "the detail request is missing"),
        (" op=flush", "", "the detail op is missing"),
        (" sectors=0", "", "the detail sectors is missing"),
        (" outcome=dropped", " outcome=dropped issued_ns=7", "a request that was never issued has times"),
        ("run row request=2", "run rov request=2", "a damaged comment of iosonar"),
    ] {
        let body = text.find("orig_start").unwrap();
        let damaged = format!("{}{}", &text[..body], text[body..].replacen(good, bad, 1));
        assert_ne!(damaged, text, "{good}");
        let line = damaged.lines().zip(text.lines()).position(|(new, old)| new != old).unwrap() + 1;
        let (rows, metadata) = directory.read(&damaged);
        assert_eq!((rows.len(), metadata.counts.bad_lines), (3, 3 + 1), "{bad}: {:?}", metadata.warnings);
        assert!(!metadata.complete && !has_verdict(&metadata));
        let said = format!("line {line} left out: {why}");
        assert!(metadata.warnings.iter().any(|warning| warning.starts_with(&said)), "{said}: {:?}", metadata.warnings);
    }
}

#[test]
fn values_that_contradict_each_other_are_left_out() {
    let directory = Directory::new();
    let impossible = IoResult { outcome: Outcome::Dropped, ..row(1, 2) };
    let left_out = write(&directory.path("x.replay"), &[row(0, 1), impossible], &metadata());
    assert_eq!(left_out.rows, 1);
    assert!(left_out.warnings[0].contains("a request that was never issued has times"), "{left_out:?}");
    // The completion of a request whose latency was impossible was left out before.
    let known = IoResult { completed: None, ..row(0, 1) };
    assert_eq!(directory.read(&directory.text(&[known], &metadata())).0, [known]);
}

#[test]
fn a_text_of_a_later_version_is_refused() {
    let directory = Directory::new();
    let text = directory.text(&[row(0, 1)], &metadata());
    let error = directory.opened(&text.replace("\"schema_version\":3", "\"schema_version\":4")).err().unwrap();
    assert!(error.to_string().contains("use a newer iosonar"), "{error}");
}
