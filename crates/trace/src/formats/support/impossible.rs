//! Times that no row can have, in all formats.

use proptest::prelude::*;

use super::check::{about, load, written};
use crate::formats::FORMATS;
use crate::formats::format::Format;
use crate::model::io_result::IoResult;
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::{Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

const YEAR: i64 = 31_557_600_000_000_000;

/// Times around the ends of all ranges, and others.
fn any_time() -> impl Strategy<Value = i64> {
    let around = |time: i64| (-3..=3_i64).prop_map(move |by| time.saturating_add(by));
    prop_oneof![around(i64::MAX), around(i64::MIN), around(0), around(YEAR), any::<i64>(), 0..YEAR]
}

fn any_load() -> impl Strategy<Value = Vec<Request>> {
    let row = (any_time(), prop::option::of(any_time()), prop::option::of(any_time()), 0_usize..5);
    let row = row.prop_map(|(at, latency, queued, op)| Request {
        latency: latency.map(Nanos),
        queued: queued.map(Nanos),
        ..Request::new(Nanos(at), Op::ALL[op], Sector(8), Sectors(8))
    });
    prop::collection::vec(row, 1..9)
}

fn writable() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().copied().filter(|format| format.create_load.is_some() && !format.is_for_viewers)
}

/// The rows of a file that was just written, which must not be damaged.
fn read_back(format: &Format, content: &[u8]) -> (Vec<Request>, Metadata) {
    if format.name != "parquet" {
        return load(format.name, content);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.load.parquet");
    std::fs::write(&path, content).unwrap();
    super::check::rows(crate::open(&path).unwrap())
}

/// The rows that a run in classic text has, and the number of its bad lines.
fn run_of(path: &std::path::Path) -> (Vec<IoResult>, u64) {
    let crate::Opened::Run(mut run) = crate::open(path).unwrap() else { panic!("not a run") };
    let rows = std::iter::from_fn(|| run.next().unwrap()).collect();
    (rows, run.metadata().counts.bad_lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_writer_writes_a_row_that_its_reader_refuses(mut rows in any_load()) {
        rows.sort_by_key(|row| row.at);
        for format in writable() {
            let (content, said) = written(format.name, &rows, &about(&["8,0"]));
            if content.is_empty() {
                continue;
            }
            let (read, metadata) = read_back(format, &content);
            let counts = (metadata.counts.bad_lines, metadata.complete);
            prop_assert_eq!(counts, (0, true), "{}: {:?} {:?}", format.name, metadata.warnings, said);
            prop_assert!(read.len() <= rows.len());
        }
    }

    #[test]
    fn what_classic_text_yields_can_be_written_and_read_again(
        rows in prop::collection::vec((0..=i64::MAX, any_time(), any_time()), 1..9),
    ) {
        let second = |ns: i64| {
            let sign = if ns < 0 { "-" } else { "" };
            format!("{sign}{}.{:09}", ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000)
        };
        let line = |(at, queued, latency): &(i64, i64, i64)| {
            format!("{} ; 8 ; 8 ; R ; {} ; {}\n", second(*at), second(*queued), second(*latency))
        };
        let lines: String = rows.iter().map(line).collect();
        let (first, _) = load("classic", format!("start ; sector; length ; op\n{lines}").as_bytes());
        let spans = |row: &Request| [row.latency, row.queued].into_iter().flatten().all(Nanos::is_possible_span);
        prop_assert!(first.iter().all(spans));
        for format in writable() {
            let (content, _) = written(format.name, &first, &about(&["8,0"]));
            if !content.is_empty() {
                let (again, metadata) = read_back(format, &content);
                prop_assert_eq!((again.len(), metadata.counts.bad_lines), (first.len(), 0), "{}", format.name);
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let [text, table] = ["a.replay", "a.replay.parquet"].map(|name| directory.path().join(name));
        std::fs::write(&text, format!("orig_start ; sector; length ; op ; replay_delay; replay_duration\n{lines}")).unwrap();
        let (run, _) = run_of(&text);
        let about = Metadata::new(Kind::Replay, "classic");
        for path in [&table, &text] {
            let mut writer = crate::create_run(path, &about).unwrap();
            run.iter().for_each(|row| writer.write(row).unwrap());
            prop_assert_eq!(writer.finish(&about).unwrap().rows, 0);
            let (again, bad) = run_of(path);
            prop_assert_eq!((&again, bad), (&run, 0));
        }
    }
}

#[test]
fn an_impossible_time_is_left_out_of_every_format_and_counted() {
    let text = b"1.0 ; 10 ; 8 ; R ; 9223372036.854775807 ; 0.001\n2.0 ; 10 ; 8 ; R ; -1.0 ; 40000000.0\n\
                 9223372036.854775807 ; 10 ; 8 ; R\n3.0 ; 10 ; 8 ; R ; 99999999999.0 ; 0.0\n";
    let (rows, metadata) = load("classic", text);
    assert_eq!((rows.len(), metadata.counts.bad_lines, metadata.counts.impossible_times), (3, 1, 4));
    assert_eq!((rows[0].queued, rows[0].latency), (None, Some(Nanos(1_000_000))));
    // A table of another program.
    let far = Request { latency: Some(Nanos(-1)), queued: Some(Nanos(YEAR)), ..rows[0] };
    let (content, _) = written("parquet", &[far], &about(&[""]));
    let (rows, metadata) = read_back(&crate::formats::parquet::FORMAT, &content);
    assert_eq!((rows[0].latency, rows[0].queued), (None, None));
    assert_eq!((metadata.counts.bad_lines, metadata.counts.impossible_times), (0, 2));
    let never = Request { at: Nanos::MAX, ..far };
    for format in writable() {
        let (_, said) = written(format.name, &[never], &about(&["8,0"]));
        assert!(said.iter().any(|said| said.contains("left out")), "{}: {said:?}", format.name);
    }
}

#[test]
fn a_result_keeps_no_impossible_latency_in_any_format() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("a.replay");
    let rows = "1.0 ; 8 ; 8 ; R ; 0.1 ; -0.1\n2.0 ; 8 ; 8 ; R ; 0.1 ; 40000000.0\n\
                2.5 ; 8 ; 8 ; R ; 0.1 ; 18446744073709.33\n3.0 ; 8 ; 8 ; R ; 0.1 ; 0.1\n";
    let columns = "orig_start ; sector; length ; op ; replay_delay; replay_duration\n";
    std::fs::write(&text, format!("{columns}{rows}")).unwrap();
    let rows_of = |path: &std::path::Path| {
        let crate::Opened::Run(mut run) = crate::open(path).unwrap() else { panic!("not a run") };
        let rows: Vec<IoResult> = std::iter::from_fn(|| run.next().unwrap()).collect();
        (rows, run.metadata().counts.clone())
    };
    let (read, counts) = rows_of(&text);
    assert_eq!((counts.requests, counts.bad_lines, counts.impossible_times), (4, 0, 3));
    let latencies: Vec<_> = read.iter().map(|row| row.latency().map(|latency| latency.0)).collect();
    assert_eq!(latencies, [None, None, None, Some(100_000_000)]);
    // A table of another program, and each format again.
    let about = Metadata::new(Kind::Replay, "classic");
    let impossible = IoResult { completed: Some(Nanos(-1)), ..read[3] };
    for name in ["b.replay", "b.replay.parquet"] {
        let path = directory.path().join(name);
        let mut writer = crate::create_run(&path, &about).unwrap();
        writer.write(&impossible).unwrap();
        writer.finish(&about).unwrap();
        let (rows, counts) = rows_of(&path);
        assert_eq!((rows[0].issued, rows[0].completed), (impossible.issued, None), "{name}");
        assert_eq!((counts.bad_lines, counts.impossible_times), (0, 1), "{name}");
    }
}

#[test]
fn a_run_whose_times_cannot_be_added_is_a_bad_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.replay");
    let rows = "1.0 ; 8 ; 8 ; R ; 9223372036.854775807 ; 0.001\n1.0 ; 8 ; 8 ; R ; 0.1 ; 9223372036.854775807\n";
    let columns = "orig_start ; sector; length ; op ; replay_delay; replay_duration\n";
    std::fs::write(&path, format!("{columns}{rows}1.0 ; 8 ; 8 ; R ; 0.1 ; 0.1\n")).unwrap();
    let (rows, bad) = run_of(&path);
    assert_eq!((rows.len(), bad), (2, 1));
}
