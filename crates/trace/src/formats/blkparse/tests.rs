//! Reading and writing of the text.

use crate::formats::support::check::{about, load, recognised_as, written};
use crate::model::request::{Comm, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

const TEXT: &[u8] = b"\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000003000   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000004000   697  P   N [kjournald]
  8,0    3        5     0.000005000   697  Q  FWFS 223498 + 8 [my proc]
  8,0    3        6     0.000006000   697  D   W 223490 + 8 [kjournald]
  8,0    3        7     0.000006500   697  X   R 5 / 9 [kjournald]
  8,0    3        8     0.000007000   697  m   N cfq697 insert_request
  8,0    3        9     0.000008000   697  D   N 24 (12 00 00 00 18 00 ..) [smartd]
  8,0    1        1     0.000106000     0  C   W 223490 + 8 [0]
  8,0    1        2     0.000200000    44  Q FWS [fio]
  8,0    1        3     0.000210000    44  C FWS 0 [0]
  8,0    1        4     0.000220000    43  C WSM 32788 [0]
CPU3 (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,        8KiB
Total (8,0):
Skips: 3 forward (17 -   0.1%)
";

#[test]
fn skips_in_the_summary_are_lost_events() {
    let (rows, about) = load("blkparse", TEXT);
    assert_eq!(recognised_as(TEXT), "blkparse");
    assert_eq!(rows.len(), 3, "{:?}", about.warnings);
    assert_eq!((rows[2].op, rows[2].latency), (Op::Flush, Some(Nanos(10_000))));
    assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0), (1829, Op::Write, 223_490));
    assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(4171)), Some(Nanos(100_000))));
    assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(697), "kjournald"));
    assert_eq!(rows[1].flags, Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC));
    assert_eq!(rows[1].comm.as_str(), "my proc");
    assert_eq!((about.counts.bad_lines, about.counts.lost_events, about.counts.unmatched), (0, 17, 1));
    assert!(about.warnings.iter().any(|n| n.contains("remapped")));
}

#[test]
fn skipped_events_are_parsed_with_any_thousands_separator() {
    let text = String::from_utf8_lossy(TEXT);
    for skips in [
        "1,234 forward (1,002,345 -   0.1%)",
        "1234 forward (1.002.345 - 100,0%)",
        "1 forward (1\u{202f}002\u{202f}345 - 1%)",
    ] {
        let text = text.replace("3 forward (17 -   0.1%)", skips);
        assert_eq!(load("blkparse", text.as_bytes()).1.counts.lost_events, 1_002_345, "{skips}");
    }
}

#[test]
fn messages_about_input_files_are_not_bad_lines() {
    let (events, summary) = TEXT.split_at(TEXT.windows(4).position(|w| w == b"CPU3").unwrap());
    let message: &[u8] = b"Input file p.blktrace.0 added\n";
    for text in [[message, events, summary].concat(), [events, message].concat(), [events, summary, message].concat()] {
        let (rows, about) = load("blkparse", &text);
        assert_eq!((rows.len(), about.counts.bad_lines), (3, 0), "{:?}", about.warnings);
        assert_eq!(recognised_as(&text), "blkparse");
    }
}

#[test]
fn the_command_and_a_ctrl_c_of_a_terminal_are_not_bad_lines() {
    let text = String::from_utf8_lossy(TEXT);
    let command = "# blktrace -d /dev/sda -o - | blkparse -i -";
    for summary in ["^CCPU3 (8,0):", "Events (8,0): 20 entries, 0 skips"] {
        let text = format!("{command}\n{}", text.replace("CPU3 (8,0):", summary).replace("Total (8,0):\n", ""));
        let (rows, about) = load("blkparse", text.as_bytes());
        assert_eq!((rows.len(), about.counts.bad_lines), (3, 0), "{:?}", about.warnings);
    }
}

#[test]
fn another_output_after_a_summary_continues_in_time() {
    let other = b"\
  8,16   0        1     0.000000000   697  A   R 100 + 8 <- (8,17) 36
  8,16   0        2     0.000001000   697  Q   R 100 + 8 [a]
  8,16   0        3     0.000002000   697  C   R 100 + 8 [0]
CPU0 (8,16):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB
Skips: 1 forward (2 -   0.1%)
";
    let (alone, _) = load("blkparse", TEXT);
    let (rows, about) = load("blkparse", &[TEXT, other].concat());
    assert_eq!((rows.len(), &rows[..3]), (4, &alone[..]));
    // At the time of the last event of the first output.
    assert_eq!((rows[3].at, rows[3].latency), (Nanos(220_000), Some(Nanos(1000))));
    assert_eq!((about.counts.lost_events, about.counts.time_jumps, about.counts.bad_lines), (19, 1, 0));
    assert!(about.warnings.iter().any(|n| n.contains("another output")), "{:?}", about.warnings);
    assert_eq!(about.devices.len(), 2);
}

#[test]
fn appends_are_writes_and_other_zone_operations_are_counted() {
    let text = b"\
  8,0    0        1     0.000000000   697  I   N 36 (12 00 00 00 24 00) [smartctl]
  8,0    0        2     0.000000100   697  D   R 36 (12 00 00 00 24 00) [smartctl]
  8,0    0        3     0.000000200   697  D   W 36 [smartctl]
  8,0    0        4     0.000000300     0  C   R (12 00 00 00 24 00) [0]
  8,0    0        5     0.000000400     0  C   W [0]
  8,0    0        6     0.000001000   697  Q   R 100 + 8 [a]
  8,0    0        7     0.000001500   697  Q  ZA 800 + 8 [a]
  8,0    0        8     0.000001500   697  ZP   N [a]
  8,0    0        9     0.000002000   697  Q  ZR [a]
  8,0    0       10     0.000002000   697  D ZRA 0 + 524288 [a]
";
    let (rows, about) = load("blkparse", text);
    assert_eq!(about.counts.bad_lines, 0, "{:?}", about.warnings);
    let found: Vec<_> = rows.iter().map(|row| (row.op, row.sector.0)).collect();
    assert_eq!(found, [(Op::Read, 100), (Op::Write, 800)]);
    for said in ["that are driver commands: 5", "zone operations without data (reset, open, …): 2"] {
        assert!(about.warnings.iter().any(|warning| warning.ends_with(said)), "{:?}", about.warnings);
    }
}

#[test]
fn requests_of_length_zero_keep_their_position() {
    let nothing =
        Request { pid: Some(1), latency: Some(Nanos(10)), ..Request::new(Nanos(0), Op::Read, Sector(10), Sectors(0)) };
    let rows = [
        nothing,
        Request { at: Nanos(100), op: Op::Write, sector: Sector(11), ..nothing },
        Request { at: Nanos(200), op: Op::Discard, sector: Sector(12), ..nothing },
    ];
    let (text, said) = written("blkparse", &rows, &about(&["8,0"]));
    assert_eq!(said, [""; 0]);
    assert_eq!(load("blkparse", &text).0, rows, "{}", String::from_utf8_lossy(&text));
}

#[test]
fn requests_of_unknown_processes_are_reported() {
    let rows = [Request::new(Nanos(0), Op::Read, Sector(10), Sectors(8))];
    let (_, said) = written("blkparse", &rows, &about(&["8,0"]));
    assert!(said.len() == 1 && said[0].contains("1 request of unknown processes"), "{said:?}");
}

#[test]
fn control_characters_in_the_name_of_a_process_are_replaced() {
    let rows = [Request {
        pid: Some(7),
        comm: Comm::new("a\nb\x1b[2J"),
        ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8))
    }];
    let (text, said) = written("blkparse", &rows, &about(&["8,0"]));
    assert!(said.len() == 1 && said[0].contains("1 request is of processes whose names"), "{said:?}");
    let (back, read) = load("blkparse", &text);
    assert_eq!((back[0].comm.as_str(), read.counts.bad_lines), ("a?b?[2J", 0));
}

#[test]
fn a_written_text_is_read_back_unchanged() {
    let request = Request {
        flags: Flags::SYNC,
        pid: Some(7),
        comm: Comm::new("a b"),
        queued: Some(Nanos(5)),
        latency: Some(Nanos(1000)),
        ..Request::new(Nanos(100), Op::Write, Sector(8), Sectors(16))
    };
    let rows = [
        request,
        Request { at: Nanos(200), op: Op::Discard, latency: None, queued: None, ..request },
        Request { at: Nanos(300), op: Op::Flush, sector: Sector(0), sectors: Sectors(0), ..request },
        Request { at: Nanos(400), op: Op::WriteZeroes, sector: Sector(99), ..request },
    ];
    let (text, said) = written("blkparse", &rows, &about(&["8,0"]));
    assert_eq!(said, [""; 0]);
    let (back, read) = load("blkparse", &text);
    assert_eq!(back, rows);
    assert_eq!(read.devices[0].name, "8,0");
}

#[test]
fn a_request_with_only_an_issue_time_has_no_queue_event() {
    let issued = Request {
        pid: Some(7),
        latency: Some(Nanos(1000)),
        ..Request::new(Nanos(500), Op::Write, Sector(8), Sectors(16))
    };
    let rows = [issued, Request { at: Nanos(600), queued: Some(Nanos(50)), sector: Sector(99), ..issued }];
    let about = crate::Metadata { request_time: crate::RequestTime::Issued, ..about(&["8,0"]) };
    for (format, warnings) in [("blkparse", 0), ("blktrace", 1)] {
        let (trace, said) = written(format, &rows, &about);
        assert_eq!(said.iter().filter(|said| said.contains("has no event Q")).count(), warnings, "{said:?}");
        let (back, read) = load(format, &trace);
        // Requests are taken from D, the most frequent event. The zero of a binary trace is arbitrary.
        let zero = back[0].at.0 - 500;
        let back: Vec<_> = back.iter().map(|row| Request { at: Nanos(row.at.0 - zero), ..*row }).collect();
        assert_eq!((&back[..], read.request_time), (&rows[..], about.request_time), "{format}");
    }
    let early = Request { at: Nanos(20), queued: Some(Nanos(50)), ..issued };
    let (_, said) = written("blkparse", &[early], &about);
    assert!(said.len() == 2 && said[0].contains("1 request was queued before time zero"), "{said:?}");
    assert!(said[1].ends_with("read the blkparse output with `--action D`"), "{said:?}");
}

#[test]
fn a_request_refused_with_eagain_is_left_out() {
    let text = b"\
  8,0    0        1     0.000000000   697  Q   R 100 + 8 [io]
  8,0    0        2     0.000001000   697  C   R 100 + 8 [65525]
  8,0    0        3     0.000050000   697  Q   R 100 + 8 [io]
  8,0    0        4     0.000060000   697  D   R 100 + 8 [io]
  8,0    0        5     0.000090000     0  C   R 100 + 8 [0]
";
    let (rows, about) = load("blkparse", text);
    let found: Vec<_> = rows.iter().map(|row| (row.at.0, row.latency.unwrap().0)).collect();
    assert_eq!((found, about.counts.unmatched), (vec![(50_000, 30_000)], 0));
    assert!(about.warnings.iter().any(|said| said.ends_with("queued again: 1")), "{:?}", about.warnings);
}

/// As from `blktrace -o - | blkparse -i -`: the buffer of one CPU, then that of the next.
#[test]
fn buffers_of_several_cpus_are_sorted() {
    let line = |cpu, at: u32, action| format!("8,0 {cpu} {at} 0.{at:09} 1 {action} R 100 + 8 [{cpu}]\n");
    let completed: String = (0..2000).map(|i| line(0, 10 * i + 7, "C")).collect();
    let issued: String = (0..2000).map(|i| line(1, 10 * i, "D")).collect();
    let (rows, about) = load("blkparse", (completed + &issued).as_bytes());
    assert!(rows.len() == 2000 && rows.iter().all(|row| row.latency == Some(Nanos(7))));
    assert!(!about.warnings.iter().any(|said| said.contains("out of order")), "{:?}", about.warnings);
}

#[test]
fn the_rest_of_a_split_request_is_not_another_request() {
    let text = b"\
  8,0    0        1     0.000000000   697  Q   R 0 + 2048 [a]
  8,0    0        2     0.000001000   697  X   R 0 / 1024 [a]
  8,0    0        3     0.000002000   697  Q   R 1024 + 1024 [a]
  8,0    0        4     0.000003000     0  C   R 0 + 2048 [0]
";
    let (rows, about) = load("blkparse", text);
    assert_eq!((rows.len(), rows[0].sectors.0, about.counts.bad_lines), (1, 2048, 0));
}
