//! Reading and writing of whole files.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::io::stream::ConversionLoss;
use crate::model::io_result::IoResult;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

fn input(content: &[u8]) -> Input {
    Input::from_reader(Path::new("x.load"), Box::new(Cursor::new(content.to_vec())), None).unwrap()
}

fn load(content: &[u8]) -> (Vec<Request>, Metadata) {
    let Opened::Load(mut reader) = open(input(content)).unwrap() else { panic!("not a load") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

fn run(content: &[u8]) -> (Vec<IoResult>, Metadata) {
    let Opened::Run(mut reader) = open(input(content)).unwrap() else { panic!("not a run") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

fn request(at: i64, op: Op, sector: u64, sectors: u64) -> Request {
    Request::new(Nanos(at), op, Sector(sector), Sectors(sectors))
}

const COLUMNS: &str = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";

#[test]
fn preambles_inside_the_file_are_not_bad_lines() {
    let preamble = "Copyright nobody\n\nfree; as in text\n####\n";
    let text = format!("{preamble}{COLUMNS}1;2;3;R\n{preamble}{COLUMNS}2;3;4;W\nstart of a story\n3;4;5;RA\n");
    let (rows, metadata) = load(text.as_bytes());
    assert_eq!(
        rows,
        [
            request(1_000_000_000, Op::Read, 2, 3),
            request(2_000_000_000, Op::Write, 3, 4),
            request(3_000_000_000, Op::Read, 4, 5)
        ]
    );
    assert_eq!(metadata.source.preamble, preamble.trim_end());
    assert_eq!(metadata.counts.bad_lines, 1, "{:?}", metadata.warnings);
    assert!(metadata.warnings[0].contains("line 13"), "{:?}", metadata.warnings);
    assert!(metadata.complete);
}

#[test]
fn bad_lines_are_reported_and_counted() {
    let (rows, metadata) = load(b"1;2;3;R\n2;x;3;R\nINFO: fine\n\n# fine\n3;2;3;Q\n4;2;3;W\n");
    assert_eq!(rows.len(), 2);
    assert_eq!(metadata.counts.bad_lines, 2);
    assert!(metadata.warnings[0].starts_with("line 2 "), "{:?}", metadata.warnings);
    assert!(metadata.warnings[1].starts_with("line 6 "), "{:?}", metadata.warnings);
    let (_, metadata) = load(&[b"1;2;3;R\n".to_vec(), b"2;x;3;R\n".repeat(5000)].concat());
    assert_eq!(metadata.counts.bad_lines, 5000);
    assert!(metadata.warnings.len() <= 100);
}

#[test]
fn times_after_a_backward_jump_are_shifted() {
    let (rows, metadata) = load(b"5;0;1;R\n7;0;1;R\n5;0;1;R\n6;0;1;R\n1;0;1;R\n");
    let seconds: Vec<i64> = rows.iter().map(|r| r.at.0 / 1_000_000_000).collect();
    assert_eq!(seconds, [5, 7, 7, 8, 8]);
    assert_eq!(metadata.counts.time_jumps, 2);
    assert!(metadata.warnings[0].contains("line 3"), "{:?}", metadata.warnings);
}

#[test]
fn a_load_that_ends_within_a_line_is_not_complete() {
    let whole = b"1;2;3;R;0.0;0.0\n2;300;4;W;0.0;0.0\n";
    assert!(load(whole).1.complete);
    for cut in 17..whole.len() {
        let (rows, metadata) = load(&whole[..cut]);
        assert!(!metadata.complete, "cut at {cut}");
        assert_eq!(metadata.counts.bad_lines, 0);
        assert_eq!(rows.len(), if cut < 16 + 8 + 1 { 1 } else { 2 }, "cut at {cut}");
    }
}

#[test]
fn damage_is_reported_once_even_in_a_file_without_rows() {
    let whole = zstd::encode_all(&b"# of nothing\n#\n"[..], 1).unwrap();
    let (rows, metadata) = load(&whole[..whole.len() - 1]);
    assert_eq!((rows.len(), metadata.complete, metadata.warnings.len()), (0, false, 1), "{:?}", metadata.warnings);
}

const RESULT: &str = "\
Copyright nobody

blkreplay on /dev/loop1 started at Fri Nov 20 16:37:53 2026

INFO: dry_run=0
INFO: device=/dev/loop1 has blocks=4194304 (2097152 kB).
orig_start ; sector; length ; op ;  replay_delay; replay_duration
ERROR: bad input count=0, line='Copyright
'
  35.966352168 ;    3227872 ;   8 ; W ;   0.003217746 ;   0.003004786
VERIFY ERROR: something
  35.5 ;    2241128 ;  40 ; r ;   0.003382365 ;   0.000847797
--------------------------------------
# total     requests          :  3
# completed requests          :  2
wraparound factor:   15.161
blkreplay on /dev/loop1 ended at Fri Nov 20 16:37:53 2026

INFO: dry_run=0
";

#[test]
fn a_result_is_read_as_a_run() {
    let (rows, metadata) = run(RESULT.as_bytes());
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].delay(), Some(Nanos(3_217_746)));
    assert_eq!(rows[0].latency(), Some(Nanos(3_004_786)));
    assert!(!rows[0].pushed_back && rows[1].pushed_back);
    assert_eq!((rows[1].op, rows[1].request), (Op::Read, 1));
    assert_eq!(metadata.source.preamble, "Copyright nobody");
    assert!(metadata.complete, "{:?}", metadata.warnings);
    assert_eq!(metadata.counts.bad_lines, 0, "{:?}", metadata.warnings);
    assert_eq!(metadata.counts.unmatched, 1);
    let run = serde_json::to_value(metadata.run).unwrap();
    assert_eq!(run["target"]["path"], "/dev/loop1");
    assert_eq!(run["target"]["sectors"], 4_194_304);
    assert_eq!(run["statistics"]["wrap_factor"], 15.161);
    assert_eq!(run["fake"], serde_json::Value::Null);
}

#[test]
fn a_result_without_statistics_or_some_rows_is_cut_short() {
    let end = RESULT.find(" ended at").unwrap();
    for cut in [end, RESULT.find("-----").unwrap(), RESULT.find("0.000847797").unwrap() + 4] {
        assert!(!run(&RESULT.as_bytes()[..cut]).1.complete);
    }
    let without_a_row = RESULT.replace("  35.5 ;    2241128 ;  40 ; r ;   0.003382365 ;   0.000847797\n", "");
    assert!(!run(without_a_row.as_bytes()).1.complete);
}

#[test]
fn results_of_a_dry_run_are_marked_as_fake() {
    let (_, metadata) = run(RESULT.replace("dry_run=0", "dry_run=1").as_bytes());
    assert!(metadata.run.unwrap().fake.text().unwrap().contains("FAKE"));
}

#[test]
fn files_without_rows_and_column_names_are_not_recognised() {
    for content in [&b""[..], b"\0\xff\x07garbage", b"just text\n"] {
        assert!(matches!(crate::formats::of_content(&input(content)), Err(Error::Format { .. })));
    }
}

fn written_load(rows: &[Request], metadata: &Metadata) -> (String, ConversionLoss) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.load");
    let mut writer = crate::create_load(&path, metadata).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    let loss = writer.finish(metadata).unwrap();
    (std::fs::read_to_string(path).unwrap(), loss)
}

#[test]
fn columns_are_aligned() {
    let rows = [request(1_500_000_000, Op::Read, 2, 3), request(3_599_890_074_831, Op::Write, 7_971_176, 1024)];
    let (text, loss) = written_load(&rows, &Metadata::new(crate::Kind::Load, "classic"));
    assert!(
        text.ends_with(
            "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n   1.500000000 ;          2 ;   3 ; R ;   \
             0.000000000 ;   0.000000000\n3599.890074831 ;    7971176 ; 1024 ; W ;   0.000000000 ;   0.000000000\n"
        ),
        "{text}"
    );
    assert_eq!(loss, ConversionLoss::default());
}

#[test]
fn a_load_in_text_keeps_what_it_lacks() {
    let mut metadata = Metadata::new(crate::Kind::Load, "x");
    let rows = [request(0, Op::Read, 2, 3)];
    assert!(!written_load(&rows, &metadata).0.contains('#'));
    (metadata.complete, metadata.counts.requests) = (false, 1);
    for (number, count) in (1..).zip([
        &mut metadata.counts.bad_lines,
        &mut metadata.counts.unreadable_rows,
        &mut metadata.counts.time_jumps,
        &mut metadata.counts.lost_events,
        &mut metadata.counts.unmatched,
        &mut metadata.counts.unmatched_completions,
        &mut metadata.counts.impossible_times,
    ]) {
        *count = number;
    }
    let (text, loss) = written_load(&rows, &metadata);
    assert_eq!(loss, ConversionLoss::default());
    let comment = text.lines().last().unwrap();
    assert!(comment.starts_with("# iosonar-load ") && !comment.contains(';'), "{comment}");
    let (read, back) = load(text.as_bytes());
    assert_eq!((&read[..], back.counts.losses(), back.complete), (&rows[..], metadata.counts.losses(), false));
    // Wherever `sort` moves the line, and in a file of two loads.
    let (_, sorted) = load(format!("{comment}\n{}", text.replace(comment, "#")).as_bytes());
    assert_eq!(sorted.counts, back.counts);
    let (_, twice) = load(text.repeat(2).as_bytes());
    assert_eq!((twice.counts.bad_lines, twice.counts.impossible_times), (2, 14), "{:?}", twice.warnings);
}

#[test]
fn losses_of_a_load_are_reported() {
    let rows = [
        Request { device: crate::DeviceId(1), ..request(-5, Op::Read, 2, 3) },
        request(0, Op::Flush, 0, 0),
        Request { latency: Some(Nanos(1)), ..request(5, Op::Write, 2, 3) },
    ];
    let (text, loss) = written_load(&rows, &Metadata::new(crate::Kind::Load, "x"));
    assert_eq!((loss.rows, loss.warnings.len()), (1, 3), "{loss:?}");
    let none = Request { latency: Some(Nanos::ZERO), ..request(0, Op::Read, 2, 3) };
    let warnings = written_load(&[none], &Metadata::new(crate::Kind::Load, "x")).1.warnings;
    assert!(warnings[0].contains("1 request lost its original latency"), "{warnings:?}");
    let back = load(text.as_bytes()).0;
    assert_eq!(back, [request(0, Op::Read, 2, 3), Request { latency: Some(Nanos(1)), ..request(10, Op::Write, 2, 3) }]);
}

#[test]
fn delay_and_duration_of_a_load_are_those_of_the_original() {
    let text = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration (guessed)\n\
                0.5 ; 8 ; 8 ; R ; 0.0 ;   0.000250000\n\
                # cannot find request 16:8:R at 0.6, faking a replacement\n\
                0.6 ; 16 ; 8 ; W ; 0.0 ; 0.0\n\
                0.7 ; 16 ; 8 ; W ; 0.003 ; 0.001\n\
                0.8 ; 16 ; 8 ; W\n\
                0.9 ; 16 ; 8 ; W ; ? ; -1\n\
                1.0 ; 16 ; 8 ; W ; 0.0 ; 0.123";
    let (rows, metadata) = load(text.as_bytes());
    let times: Vec<_> = rows.iter().map(|row| [row.queued, row.latency].map(|time| time.map_or(0, |t| t.0))).collect();
    // The last line may lack digits.
    assert_eq!(times, [[0, 250_000], [0, 0], [3_000_000, 1_000_000], [0, 0], [0, 0], [0, 0]]);
    assert_eq!(metadata.counts.bad_lines, 0, "{:?}", metadata.warnings);
}

#[test]
fn the_text_has_no_queueing_times_before_those_of_the_load() {
    let row = Request { queued: Some(Nanos(7)), latency: Some(Nanos(9)), ..request(5, Op::Read, 2, 3) };
    let mut metadata = Metadata::new(crate::Kind::Load, "x");
    let (text, loss) = written_load(&[row], &metadata);
    assert!(text.contains("op ;  replay_delay; replay_duration\n"), "{text}");
    assert_eq!((load(text.as_bytes()).0, loss), (vec![row], ConversionLoss::default()));
    metadata.request_time = crate::RequestTime::Issued;
    let (text, loss) = written_load(&[row], &metadata);
    assert_eq!(load(text.as_bytes()).0, [Request { queued: None, ..row }]);
    assert!(loss.warnings[0].contains("1 request lost its original latency or queueing time"), "{loss:?}");
}

#[test]
fn a_written_run_is_read_back_unchanged() {
    let (rows, metadata) = run(RESULT.as_bytes());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.replay.gz");
    let mut writer = crate::create_run(&path, &metadata).unwrap();
    for row in &rows {
        writer.write(row).unwrap();
    }
    assert_eq!(writer.finish(&metadata).unwrap(), ConversionLoss::default());
    let Opened::Run(mut reader) = crate::open(&path).unwrap() else { panic!("not a run") };
    for row in rows {
        assert_eq!(reader.next().unwrap(), Some(row));
    }
    assert_eq!(reader.next().unwrap(), None);
    assert!(reader.metadata().complete, "{:?}", reader.metadata());
}

#[test]
fn warnings_of_the_end_are_added_once() {
    let without_rows = RESULT.lines().filter(|line| !line.starts_with("  35")).map(|line| format!("{line}\n"));
    for text in [RESULT.to_owned(), without_rows.collect()] {
        let Opened::Run(mut reader) = open(input(text.as_bytes())).unwrap() else { panic!("not a run") };
        while reader.next().unwrap().is_some() {}
        let said = reader.metadata().warnings.clone();
        assert!(reader.next().unwrap().is_none());
        assert_eq!(reader.metadata().warnings, said);
        assert_eq!(said.iter().filter(|warning| warning.contains("never completed")).count(), 1, "{said:?}");
    }
}

#[test]
fn a_result_opened_as_a_load_is_sorted_by_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.replay");
    std::fs::write(&path, RESULT).unwrap();
    let mut reader = crate::open_load(&path).unwrap();
    let first = reader.next().unwrap().unwrap();
    assert_eq!((first.at.0, first.sector.0), (35_500_000_000, 2_241_128));
    assert_eq!(reader.next().unwrap().unwrap().at.0, 35_966_352_168);
    assert_eq!(reader.next().unwrap(), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(content in prop::collection::vec(any::<u8>(), 0..400), text in "[0-9.;RWx\n #]{0,200}") {
        for bytes in [content, text.into_bytes()] {
            load(&bytes);
            run(&[b"orig_start;sector\n".to_vec(), bytes].concat());
        }
    }

    #[test]
    fn a_written_load_is_read_back_unchanged(
        rows in prop::collection::vec(
            ((0_i64..1 << 50, any::<bool>(), 0_u64..1 << 53, 0_u64..1 << 40), prop::option::of(1_i64..31_557_600_000_000_000),
             prop::option::of(1_i64..31_557_600_000_000_000)),
            0..50,
        ),
        preamble in "[ -~\n]{0,100}",
    ) {
        let mut rows: Vec<Request> = rows
            .into_iter()
            .map(|((at, read, sector, sectors), queued, latency)| {
                let op = if read { Op::Read } else { Op::Write };
                let [queued, latency] = [queued, latency].map(|time| time.map(Nanos));
                Request { queued, latency, ..request(at, op, sector, sectors) }
            })
            .collect();
        rows.sort_by_key(|r| r.at);
        let mut metadata = Metadata::new(crate::Kind::Load, "classic");
        metadata.source.preamble = preamble;
        let (text, said) = written_load(&rows, &metadata);
        prop_assert_eq!(said, ConversionLoss::default());
        let (back, metadata) = load(text.as_bytes());
        prop_assert_eq!(back, rows);
        prop_assert!(metadata.complete);
        prop_assert_eq!(metadata.counts.bad_lines, 0);
    }
}
