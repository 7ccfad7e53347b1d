//! Results that were sorted, cut or damaged: each is read as it was, or says what it lost. None becomes a load.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use proptest::prelude::*;

use super::run_tests::{Directory, consistent, has_verdict, metadata, row};
use crate::formats::format::Opened;
use crate::formats::support::arbitrary::any_record;
use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::metadata::Metadata;
use crate::model::request::Op;
use crate::model::run_info::Field;
use crate::model::units::Sectors;

const FAKE: &str = "FAKE RESULT: of nothing";

/// The output of a program that filters lines.
fn filtered(directory: &Directory, text: &str, program: &str, arguments: &[&str]) -> String {
    let path: PathBuf = directory.path("lines");
    std::fs::write(&path, text).unwrap();
    let output = Command::new(program).env("LC_ALL", "C").args(arguments).arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

fn fake_of(metadata: &Metadata) -> Option<&str> {
    metadata.run.as_ref()?.fake.text()
}

fn in_any_order(rows: &[IoResult]) -> BTreeSet<String> {
    rows.iter()
        .enumerate()
        .map(|(number, row)| format!("{row:?} {}", rows[..number].iter().filter(|r| *r == row).count()))
        .collect()
}

/// The sentences that were not in the original.
fn said<'a>(changed: &'a Metadata, original: &Metadata) -> Vec<&'a String> {
    changed.warnings.iter().filter(|warning| !original.warnings.contains(warning)).collect()
}

/// Asserts that a changed text is read as the original, or says what it lost.
fn assert_kept_or_said(directory: &Directory, text: &str, original: &(Vec<IoResult>, Metadata)) {
    let mut reader = match directory.opened(text) {
        Ok(Opened::Run(reader)) => reader,
        Ok(Opened::Load(_)) => panic!("a load: {text}"),
        // From a brace on, the rest may be taken for JSON.
        Err(error) => {
            let said = error.to_string();
            return assert!(
                ["not recognised", "not a trace of requests"].iter().any(|why| said.contains(why)),
                "{said}"
            );
        }
    };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    let (read, was) = (reader.metadata(), &original.1);
    let are_same = in_any_order(&rows) == in_any_order(&original.0);
    let said = said(read, was);
    assert!(are_same && read == was || !said.is_empty(), "{:?} {text}", read.warnings);
    assert!(are_same || !read.complete && !has_verdict(read), "{said:?} {text}");
    let says_fake = said.iter().any(|said| said.contains("fake"));
    assert!(fake_of(was).is_none() || fake_of(read).is_some() || says_fake, "{said:?} {text}");
}

/// Rows of all kinds, whose details say that the reason for a delay is known.
fn any_rows() -> impl Strategy<Value = Vec<IoResult>> {
    let any = prop::collection::vec(any_record(), 0..6);
    let usual = prop::collection::vec((0_u64..9, 0_i64..3, 0..DelayReason::ALL.len(), 0..5), 0..12);
    (any, usual).prop_map(|(any, usual)| {
        let usual = usual.into_iter().map(|(number, at, reason, kind)| {
            let plain = IoResult { delay_reason: DelayReason::ALL[reason], ..row(number, at * 700) };
            match kind {
                0 => IoResult { op: Op::Flush, sectors: Sectors(0), bytes_done: 0, ..plain },
                1 => IoResult { outcome: Outcome::Error, errno: 5, bytes_done: 0, ..plain },
                2 => IoResult { ready: Some(plain.scheduled), submitted: plain.completed, in_flight: 3, ..plain },
                _ => plain,
            }
        });
        let known = |row: &IoResult| row.delay_reason != DelayReason::Unknown;
        any.into_iter().map(consistent).chain(usual).filter(known).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_changed_result_is_the_same_or_says_what_it_lost(
        rows in any_rows(), is_fake in any::<bool>(), place in any::<prop::sample::Index>(), letter in any::<prop::sample::Index>(),
    ) {
        let directory = Directory::new();
        let mut metadata = metadata();
        if is_fake {
            metadata.run.as_mut().unwrap().fake = String::from(FAKE).into();
        }
        let text = directory.text(&rows, &metadata);
        let original = directory.read(&text);
        prop_assert_eq!(in_any_order(&original.0), in_any_order(&rows));
        for order in [&["-n"][..], &["-rn"], &["-t;", "-k2n"], &["-t;", "-k4"], &[]] {
            let sorted = filtered(&directory, &text, "sort", order);
            let (rows, metadata) = directory.read(&sorted);
            prop_assert_eq!(in_any_order(&rows), in_any_order(&original.0), "{:?}", metadata.warnings);
            prop_assert_eq!(&metadata, &original.1, "sort {:?}", order);
        }
        let all: Vec<&str> = text.lines().collect();
        let at = place.index(all.len());
        for changed in [
            lines(all[at..].iter().copied()),
            lines(all[..at].iter().copied()),
            lines(all[..at].iter().chain(&all[at + 1..]).copied()),
            lines(all[at..].iter().chain(&all[..at]).copied()),
            String::from_utf8_lossy(&text.as_bytes()[place.index(text.len())..]).into_owned(),
            filtered(&directory, &text, "grep", &["-v", "^#"]),
            filtered(&directory, &text, "grep", &["-E", "^ *[0-9]"]),
            filtered(&directory, &text, "sort", &["-nu"]),
            filtered(&directory, &text, "cut", &["-d;", "-f1-6"]),
        ] {
            let is_plain = !changed.contains("request=") && !changed.contains("iosonar");
            if !is_plain {
                assert_kept_or_said(&directory, &changed, &original);
            }
        }
        // A letter of a name of the details.
        let body = text.find("orig_start").unwrap();
        let names: Vec<usize> = text.match_indices("=").map(|(at, _)| at).filter(|&at| {
            let line = text[..at].rsplit('\n').next().unwrap();
            at > body && (line.contains("; request") || line.starts_with("# iosonar-run row "))
        }).collect();
        if !names.is_empty() {
            let end = *place.get(&names);
            let start = text[..end].rfind(' ').unwrap() + 1;
            let at = start + letter.index(end - start);
            let damaged = format!("{}z{}", &text[..at], &text[at + 1..]);
            let line = text[..at].lines().count();
            let (rows, metadata) = directory.read(&damaged);
            prop_assert_eq!((rows.len() + 1, metadata.complete), (original.0.len(), false));
            let place = format!("line {line} left out: ");
            prop_assert!(metadata.warnings.iter().any(|said| said.starts_with(&place)), "{:?}", metadata.warnings);
        }
    }
}

#[test]
fn a_result_that_is_cut_in_its_column_names_is_no_load() {
    let directory = Directory::new();
    let delayed = IoResult { delay_reason: DelayReason::Depth, ..row(1, 700) };
    for rows in [&[row(0, 0), delayed][..], &[row(0, 0)]] {
        let text = directory.text(rows, &metadata());
        let original = directory.read(&text);
        let names = text.find("orig_start").unwrap();
        for cut in names..names + text[names..].find('\n').unwrap() {
            assert_kept_or_said(&directory, &text[cut..], &original);
        }
    }
}

/// A result of blkreplay.
fn foreign(rows: u64) -> String {
    let row = |number| format!("   {number}.000000000 ;   8 ;   8 ; W ;   0.003217746 ;   0.003004786\n");
    format!(
        "FAKE RESULT: of blkreplay\nblkreplay on /dev/x started at noon\n\nINFO: dry_run=0\n\
         orig_start ; sector; length ; op ;  replay_delay; replay_duration\n{}\
         # total     requests          :  {rows}\n# completed requests          :  {rows}\n\
         blkreplay on /dev/x ended at one\n",
        (0..rows).map(row).collect::<String>()
    )
}

#[test]
fn a_sorted_result_of_blkreplay_is_a_result() {
    let directory = Directory::new();
    for order in [&["-n"][..], &["-rn"], &[]] {
        let (rows, metadata) = directory.read(&filtered(&directory, &foreign(3), "sort", order));
        assert_eq!((rows.len(), metadata.complete), (3, true), "{order:?} {:?}", metadata.warnings);
        assert_eq!(fake_of(&metadata), Some("FAKE RESULT: of blkreplay"), "{order:?}");
    }
    let end = filtered(&directory, &foreign(3), "tail", &["-n", "4"]);
    let (rows, metadata) = directory.read(&end);
    assert!(rows.len() == 1 && !metadata.complete, "{:?}", metadata.warnings);
    assert!(metadata.warnings.iter().any(|said| said.contains("whether it is fake")), "{:?}", metadata.warnings);
}

#[test]
fn a_result_that_shows_itself_too_late_is_refused() {
    let directory = Directory::new();
    let sorted = filtered(&directory, &foreign(2000), "sort", &["-rn"]);
    let Ok(Opened::Load(mut reader)) = directory.opened(&sorted) else { panic!("recognised") };
    let error = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a load: {:?}", reader.metadata().warnings),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("line 2000 shows that this is a result"), "{error}");
    // As it says.
    let (rows, metadata) = directory.read(&format!("orig_start ; sector\n{sorted}"));
    assert_eq!((rows.len(), fake_of(&metadata)), (2000, Some("FAKE RESULT: of blkreplay")));
}

#[test]
fn rows_with_times_but_no_names_may_be_of_a_result() {
    let directory = Directory::new();
    let warnings = |text: &str| {
        let Ok(Opened::Load(mut reader)) = directory.opened(text) else { panic!("not a load") };
        while reader.next().unwrap().is_some() {}
        reader.metadata().warnings.clone()
    };
    let rows = filtered(&directory, &foreign(3), "grep", &["W"]);
    assert!(warnings(&rows)[0].contains("if they are of a result"), "{:?}", warnings(&rows));
    assert_eq!(warnings(&rows.replace("0.003217746", "0.0").replace("0.003004786", "0.0")), [""; 0]);
    assert_eq!(warnings(&format!("start ; sector; length ; op\n{rows}")), [""; 0]);
    let both = warnings(&format!("start ; sector; length ; op\n{rows}{}", foreign(3)));
    assert!(both[0].starts_with("line 9 is of a result"), "{both:?}");
}

#[test]
fn two_results_in_one_file_keep_the_mark_of_either() {
    let directory = Directory::new();
    let real = directory.text(&[row(0, 1)], &metadata());
    let mut marked = metadata();
    marked.run.as_mut().unwrap().fake = String::from(FAKE).into();
    let fake = directory.text(&[row(0, 2)], &marked);
    for text in [format!("{fake}{real}"), format!("{real}{fake}")] {
        for text in [filtered(&directory, &text, "sort", &["-n"]), text] {
            let (rows, metadata) = directory.read(&text);
            assert_eq!((rows.len(), fake_of(&metadata)), (2, Some(FAKE)), "{:?}", metadata.warnings);
            assert!(!metadata.complete && !has_verdict(&metadata));
            assert!(metadata.warnings.iter().any(|said| said.contains("several runs")), "{:?}", metadata.warnings);
        }
    }
}

#[test]
fn requests_in_comments_are_no_missing_rows() {
    let directory = Directory::new();
    let flush = IoResult { op: Op::Flush, sectors: Sectors(0), bytes_done: 0, ..row(2, 2) };
    let rows = [row(1, 1), flush, IoResult { request: 3, ..flush }, row(4, 4)];
    let mut metadata = metadata();
    metadata.run.as_mut().unwrap().statistics = Field::Missing;
    let text = directory.text(&rows, &metadata);
    let without =
        |start: &[&str]| lines(text.lines().filter(|line| !start.iter().any(|start| line.starts_with(start))));
    for start in [&["# iosonar-run begin", "# iosonar-run end"][..], &["# iosonar-run end"]] {
        let (read, metadata) = directory.read(&without(start));
        assert_eq!((&read[..], metadata.counts.unmatched), (&rows[..], 0));
        let counted = metadata.warnings.iter().find(|said| said.contains("requests have no row"));
        assert_eq!(counted, None);
    }
    let (_, metadata) = directory.read(&without(&["# iosonar-run"]));
    assert!(
        metadata.warnings.iter().any(|said| said.starts_with("2 of 4 requests have no row")),
        "{:?}",
        metadata.warnings
    );
}

#[test]
fn a_sorted_text_that_becomes_text_again_keeps_its_mark() {
    let directory = Directory::new();
    let mut marked = metadata();
    marked.run.as_mut().unwrap().fake = String::from(FAKE).into();
    let text = directory.text(&[row(0, 0), row(1, 1)], &marked);
    let sorted = filtered(&directory, &text, "sort", &["-n"]);
    let path = directory.path("again.replay");
    let Ok(Opened::Run(mut reader)) = directory.opened(&sorted) else { panic!("not a run") };
    let mut writer = crate::create_run(&path, reader.metadata()).unwrap();
    while let Some(row) = reader.next().unwrap() {
        writer.write(&row).unwrap();
    }
    writer.finish(reader.metadata()).unwrap();
    let again = std::fs::read_to_string(path).unwrap();
    assert!(again.lines().any(|line| line == FAKE), "{again}");
}
