//! Records in both versions and byte orders: merged, truncated, lost and written.

use super::numbers::*;
use super::*;
use crate::formats::format::Options;
use crate::formats::support::check::{about, input, load, recognised_as, rows, written};
use crate::model::request::{Comm, DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

#[derive(Clone, Copy)]
struct Put {
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    categories: u64,
    number: u16,
    pid: u32,
}

const DEVICE: u32 = 8 << MINOR_BITS | 1;

/// A record with the fields of the kernel's structure.
fn record(version: u8, big: bool, put: Put, pdu: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |value: u64, width: usize| {
        let le = value.to_le_bytes();
        let mut part = le[..width].to_vec();
        if big {
            part.reverse();
        }
        bytes.extend(part);
    };
    let action = put.categories << category::SHIFT | u64::from(put.number);
    field((MAGIC | u32::from(version)).into(), 4);
    field(put.sequence.into(), 4);
    field(put.time, 8);
    field(put.sector, 8);
    field(put.bytes.into(), 4);
    if version == 7 {
        field(action, 4);
        field(put.pid.into(), 4);
    } else {
        field(put.pid.into(), 4);
        field(action, 8);
    }
    field(DEVICE.into(), 4);
    field(3, 4);
    field(0, 2);
    field(pdu.len() as u64, 2);
    if version == 8 {
        field(0, 8);
        field(0, 4);
    }
    bytes.extend(pdu);
    bytes
}

fn trace(version: u8, big: bool) -> Vec<u8> {
    let put = |sequence, time, sector, categories, number| Put {
        sequence,
        time,
        sector,
        bytes: 4096,
        categories,
        number,
        pid: 7,
    };
    let secs = if big { 1_600_000_000_u32.to_be_bytes() } else { 1_600_000_000_u32.to_le_bytes() };
    let ns = if big { 5_u32.to_be_bytes() } else { 5_u32.to_le_bytes() };
    let notify = put(0, 1000, 0, category::NOTIFY, notification::TIMESTAMP);
    [
        record(version, big, notify, &[secs, ns].concat()),
        record(version, big, put(0, 1000, 0, category::NOTIFY, notification::PROCESS), b"postgres\0\0\0\0\0\0\0\0"),
        record(version, big, put(0, 1001, 0, category::NOTIFY, notification::MESSAGE), &[b'x'; 300]),
        record(version, big, put(1, 2000, 64, category::QUEUE | category::READ | category::SYNC, event::QUEUE), &[]),
        record(
            version,
            big,
            put(2, 2500, 64, category::ISSUE | category::READ | category::SYNC, event::ISSUE | event::CGROUP),
            &[0; 8],
        ),
        record(
            version,
            big,
            put(5, 3000, 80, category::QUEUE | category::WRITE | category::FLUSH | category::FUA, event::QUEUE),
            &[],
        ),
        record(
            version,
            big,
            put(6, 9000, 64, category::COMPLETE | category::READ | category::SYNC, event::COMPLETE),
            &[],
        ),
    ]
    .concat()
}

#[test]
fn both_versions_are_read_in_both_byte_orders() {
    for (version, big) in [(7, false), (7, true), (8, false), (8, true)] {
        let content = trace(version, big);
        let (rows, about) = load("blktrace", &content);
        assert_eq!(recognised_as(&content), "blktrace");
        assert_eq!(rows.len(), 2);
        let expected = Request {
            flags: Flags::SYNC,
            queued: Some(Nanos(500)),
            latency: Some(Nanos(6500)),
            pid: Some(7),
            comm: Comm::new("postgres"),
            ..Request::new(Nanos(0), Op::Read, Sector(64), Sectors(8))
        };
        assert_eq!(rows[0], expected, "version {version}, big {big}");
        assert_eq!((rows[1].op, rows[1].flags), (Op::Write, Flags::PREFLUSH.with(Flags::FUA)));
        assert_eq!((about.counts.lost_events, about.counts.unmatched), (2, 1));
        assert_eq!(about.devices[0].name, "8,1");
        assert_eq!(about.epoch_unix_ns, Some(1_600_000_000_000_000_005 + 1000));
        assert!(about.complete);
    }
}

#[test]
fn a_request_refused_with_eagain_is_left_out() {
    for (version, big) in [(7, false), (7, true), (8, false), (8, true)] {
        let put = |sequence, number, categories| {
            let put = Put { number, categories: category::READ | categories, ..queued(sequence, 8, 512, 0) };
            record(version, big, put, &[])
        };
        let mut refused = put(2, event::COMPLETE, category::COMPLETE);
        let at = if version == 7 { 44 } else { 48 };
        refused[at..at + 2].copy_from_slice(&if big { (-11_i16).to_be_bytes() } else { (-11_i16).to_le_bytes() });
        let content = [
            put(1, event::QUEUE, category::QUEUE),
            refused,
            put(3, event::QUEUE, category::QUEUE),
            put(4, event::COMPLETE, category::COMPLETE),
        ];
        let (rows, about) = load("blktrace", &content.concat());
        assert_eq!((rows.len(), rows[0].latency), (1, Some(Nanos(1000))), "version {version}, big {big}");
        assert_eq!((about.epoch_unix_ns, about.counts.unmatched), (None, 0));
    }
}

#[test]
fn write_zeroes_have_a_category_in_version_eight() {
    let put = Put {
        sequence: 1,
        time: 5,
        sector: 8,
        bytes: 512,
        categories: category::QUEUE | category::WRITE | category::WRITE_ZEROES,
        number: event::QUEUE,
        pid: 1,
    };
    assert_eq!(load("blktrace", &record(8, false, put, &[])).0[0].op, Op::WriteZeroes);
}

/// A queue event with these categories.
fn queued(sequence: u32, sector: u64, bytes: u32, categories: u64) -> Put {
    let time = 1000 * u64::from(sequence);
    Put { sequence, time, sector, bytes, categories: category::QUEUE | categories, number: event::QUEUE, pid: 1 }
}

#[test]
fn zone_operations_are_counted_and_appends_are_writes() {
    for big in [false, true] {
        let mut content = record(8, big, queued(1, 800, 4096, category::WRITE | category::ZONE_APPEND), &[]);
        for (sequence, bit) in (2..).zip(17..=21) {
            content.extend(record(8, big, queued(sequence, 524_288, 0, category::WRITE | 1 << bit), &[]));
        }
        let driver_command = queued(7, 0, 36, category::READ | category::DRIVER_COMMAND);
        content.extend(record(8, big, driver_command, &[]));
        // The record with the position of the append, then the completion.
        let appended_at = Put {
            number: event::COMPLETE,
            categories: category::WRITE | category::ZONE_APPEND,
            ..queued(8, 800, 4096, 0)
        };
        content.extend(record(8, big, appended_at, &[]));
        let categories = appended_at.categories | category::COMPLETE;
        let completed = Put { categories, sequence: 9, time: 9000, sector: 840, ..appended_at };
        content.extend(record(8, big, completed, &[]));
        let (rows, about) = load("blktrace", &content);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].latency), (Op::Write, 840, Some(Nanos(8000))));
        for said in ["zone operations without data (reset, open, …): 5", "that are driver commands: 1"] {
            assert!(about.warnings.iter().any(|warning| warning.ends_with(said)), "{:?}", about.warnings);
        }
    }
}

#[test]
fn the_rest_of_a_split_request_is_not_another_request() {
    for (version, big) in [(7, false), (7, true), (8, false)] {
        let split = Put { number: event::SPLIT, categories: category::READ, ..queued(2, 0, 1024 * 512, 0) };
        let categories = category::COMPLETE | category::READ;
        let completed = Put { number: event::COMPLETE, categories, ..queued(4, 0, 2048 * 512, 0) };
        let content = [
            record(version, big, queued(1, 0, 2048 * 512, category::READ), &[]),
            record(version, big, split, &1024_u64.to_be_bytes()),
            record(version, big, queued(3, 1024, 1024 * 512, category::READ), &[]),
            record(version, big, completed, &[]),
        ];
        let (rows, about) = load("blktrace", &content.concat());
        assert_eq!((rows.len(), rows[0].sectors.0, about.counts.lost_events), (1, 2048, 0));
    }
}

#[test]
fn records_out_of_time_order_are_not_lost() {
    let put = |sequence, time| record(7, false, Put { time, ..queued(sequence, 8, 512, category::READ) }, &[]);
    let swapped = [put(1, 100), put(2, 300), put(3, 200), put(4, 400)].concat();
    assert_eq!(load("blktrace", &swapped).1.counts.lost_events, 0);
    let gap = [put(1, 100), put(2, 300), put(5, 200), put(6, 400)].concat();
    assert_eq!(load("blktrace", &gap).1.counts.lost_events, 2);
}

#[test]
fn requests_of_length_zero_keep_their_position() {
    let nothing = Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(10), Sectors(0)) };
    let rows = [nothing, Request { at: Nanos(100), op: Op::Write, sector: Sector(11), ..nothing }];
    let (bytes, said) = written("blktrace", &rows, &about(&["8,0"]));
    assert_eq!(said, [""; 0]);
    assert_eq!(load("blktrace", &bytes).0, rows);
    let nowhere = record(7, false, queued(1, u64::MAX, 0, category::READ), &[]);
    assert_eq!(load("blktrace", &nowhere).0[0].sector, Sector(0));
}

#[test]
fn requests_of_unknown_processes_are_reported() {
    let unknown = Request::new(Nanos(0), Op::Read, Sector(10), Sectors(8));
    let rows = [unknown, Request { comm: Comm::new("fio"), ..unknown }];
    let said = written("blktrace", &rows, &about(&["8,0"])).1;
    assert!(said.len() == 2 && said[0].contains("1 request lost its process"), "{said:?}");
    assert!(said[1].contains("2 requests of unknown processes"), "{said:?}");
}

#[test]
fn empty_files_of_other_cpus_count_as_given() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [0, 1].map(|cpu| directory.path().join(format!("sda.blktrace.{cpu}")));
    std::fs::write(&paths[0], b"").unwrap();
    std::fs::write(&paths[1], trace(7, false)).unwrap();
    let warnings = |paths: &[&std::path::Path]| {
        let (requests, about) = rows(crate::open_files(paths, None, &Options::default()).unwrap().rows);
        assert_eq!(requests.len(), 2);
        about.warnings.into_iter().filter(|warning| warning.contains("file")).collect::<Vec<_>>()
    };
    assert_eq!(warnings(&[&paths[0], &paths[1]]), [""; 0]);
    assert_eq!(warnings(&[&paths[1]]), [""; 0]);
}

#[test]
fn unread_and_missing_files_of_a_trace_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |cpu: u32| directory.path().join(format!("sda.blktrace.{cpu}"));
    for cpu in [0, 2, 3] {
        std::fs::write(path(cpu), trace(7, false)).unwrap();
    }
    let open = |cpus: &[u32]| {
        let paths: Vec<_> = cpus.iter().map(|&cpu| path(cpu)).collect();
        let paths: Vec<_> = paths.iter().map(|path| path.as_path()).collect();
        rows(crate::open_files(&paths, None, &Options::default()).unwrap().rows).1.warnings
    };
    let stem = directory.path().join("sda");
    let not_read =
        format!("only 2 files of 3 were read of the trace: the whole trace is {}.blktrace.*", stem.display());
    let absent = format!("{}.blktrace.1 does not exist: the requests of that CPU are missing", stem.display());
    let warnings = open(&[0, 2]);
    assert!(warnings.contains(&not_read) && warnings.contains(&absent), "{warnings:?}");
    assert!(open(&[0, 2, 3]).contains(&absent));
    std::fs::write(path(1), "").unwrap();
    assert!(!open(&[0, 2, 3]).iter().any(|warning| warning.contains("blktrace.")));
}

#[test]
fn files_of_several_cpus_are_merged() {
    let put = |sequence, time, sector, number, categories| {
        record(
            7,
            false,
            Put { sequence, time, sector, bytes: 512, categories: category::READ | categories, number, pid: 1 },
            &[],
        )
    };
    let one: Vec<u8> = [
        put(1, 100, 1, event::QUEUE, category::QUEUE),
        put(2, 500, 2, event::QUEUE, category::QUEUE),
        // Out of time order.
        put(3, 300, 3, event::QUEUE, category::QUEUE),
    ]
    .concat();
    let other: Vec<u8> =
        [put(1, 200, 1, event::COMPLETE, category::COMPLETE), put(2, 400, 4, event::QUEUE, category::QUEUE)].concat();
    let opened = (FORMAT.open_parts.unwrap())(vec![input(&one), input(&other)], &Options::default()).unwrap();
    let (rows, _) = rows(opened);
    assert_eq!(rows.iter().map(|r| (r.at.0, r.sector.0)).collect::<Vec<_>>(), [(0, 1), (200, 3), (300, 4), (400, 2)]);
    assert_eq!(rows[0].latency, Some(Nanos(100)));
}

/// As from `blktrace -o -`: the buffer of one CPU, then that of the next.
#[test]
fn buffers_of_several_cpus_are_sorted() {
    let put = |time, number, categories| {
        record(7, false, Put { time, number, categories: category::READ | categories, ..queued(0, 8, 512, 0) }, &[])
    };
    let completed = (0..5000).map(|i| put(10 * i + 7, event::COMPLETE, category::COMPLETE));
    let issued = (0..5000).map(|i| put(10 * i, event::ISSUE, category::ISSUE));
    let (read, about) = load("blktrace", &completed.chain(issued).collect::<Vec<_>>().concat());
    assert!(read.len() == 5000 && read.iter().all(|row| row.latency == Some(Nanos(7))));
    assert!(!about.warnings.iter().any(|said| said.contains("out of order")), "{:?}", about.warnings);
    // With a file per CPU, fewer records are read ahead.
    let one: Vec<u8> = (1000..3000).chain([5]).flat_map(|time| put(time, event::ISSUE, category::ISSUE)).collect();
    let other = put(5000, event::ISSUE, category::ISSUE);
    let (_, about) = rows(read::open(vec![input(&one), input(&other)], &Options::default()).unwrap());
    let late = "1 event was more than 1,024 places out of order";
    assert!(about.warnings.iter().any(|said| said.starts_with(late)), "{:?}", about.warnings);
}

#[test]
fn a_truncated_file_is_read_up_to_its_last_whole_record() {
    let content = trace(7, false);
    for cut in [content.len() - 1, content.len() - 48, content.len() - 60] {
        let (rows, about) = load("blktrace", &content[..cut]);
        assert!(!rows.is_empty());
        assert_eq!(about.complete, cut == content.len() - 48, "{cut}");
    }
    let garbage = [content, vec![7; 100]].concat();
    let (rows, about) = load("blktrace", &garbage);
    assert_eq!((rows.len(), about.complete), (2, false));
}

#[test]
fn a_written_trace_is_read_back_unchanged() {
    let request = Request {
        flags: Flags::SYNC,
        pid: Some(7),
        comm: Comm::new("fio"),
        queued: Some(Nanos(5)),
        latency: Some(Nanos(1000)),
        ..Request::new(Nanos(0), Op::Write, Sector(8), Sectors(16))
    };
    let rows = [
        request,
        Request { at: Nanos(200), op: Op::Discard, latency: None, queued: None, device: DeviceId(1), ..request },
        Request { at: Nanos(300), op: Op::Flush, sector: Sector(0), sectors: Sectors(0), ..request },
        Request {
            at: Nanos(400),
            flags: Flags::PREFLUSH.with(Flags::FUA),
            sector: Sector(99),
            comm: Comm::new("x"),
            ..request
        },
    ];
    let mut known = about(&["8,0", "253,17"]);
    known.epoch_unix_ns = Some(1_600_000_000_123_456_789);
    let (bytes, said) = written("blktrace", &rows, &known);
    assert_eq!(said, [""; 0]);
    let (back, read) = load("blktrace", &bytes);
    assert_eq!(back, rows);
    assert_eq!(read.devices, known.devices);
    assert_eq!(read.epoch_unix_ns, known.epoch_unix_ns);
    assert_eq!((read.counts.lost_events, read.counts.unmatched), (0, 1));
}

#[test]
fn a_flush_with_a_length_is_left_out_as_it_would_be_a_write() {
    let flush = Request::new(Nanos(7), Op::Flush, Sector(8), Sectors(16));
    let rows = [Request::new(Nanos(5), Op::Read, Sector(8), Sectors(8)), flush];
    let (bytes, said) = written("blktrace", &rows, &about(&["8,0"]));
    assert!(said.iter().any(|line| line.contains("1 request")), "{said:?}");
    assert_eq!(load("blktrace", &bytes).0.len(), 1);
}

#[test]
fn files_of_different_traces_are_reported() {
    let trace = |start_s: i64, sector| {
        let about = crate::Metadata { epoch_unix_ns: Some(start_s * 1_000_000_000), ..about(&["8,0"]) };
        written("blktrace", &[Request::new(Nanos(5), Op::Read, Sector(sector), Sectors(8))], &about).0
    };
    let said = |files: &[Vec<u8>]| {
        let inputs = files.iter().map(|file| input(file)).collect();
        let (read, about) = rows(read::open(inputs, &Options::default()).unwrap());
        assert_eq!(read.len(), files.len());
        about.warnings.into_iter().filter(|warning| warning.contains("different traces")).collect::<Vec<_>>()
    };
    let different = said(&[trace(1_600_000_000, 8), trace(1_600_000_000, 16), trace(1_600_000_090, 24)]);
    assert!(different.len() == 1 && different[0].contains("90.000000000 s"), "{different:?}");
    assert_eq!(said(&[trace(1_600_000_000, 8), trace(1_600_000_001, 16)]), [""; 0]);
}

#[test]
fn requests_of_4_gib_and_more_are_split() {
    let latency = Some(Nanos(1000));
    let discard = Request {
        pid: Some(1),
        latency,
        queued: Some(Nanos(5)),
        ..Request::new(Nanos(0), Op::Discard, Sector(8), Sectors((1 << 33) / 512))
    };
    let (bytes, said) = written("blktrace", &[discard], &about(&["8,0"]));
    assert!(said.len() == 1 && said[0].contains("1 request of 4 GiB and more was split"), "{said:?}");
    let (rows, _) = load("blktrace", &bytes);
    let longest = (1 << 23) - 2048;
    assert_eq!(rows.iter().map(|row| row.sectors.0).collect::<Vec<_>>(), [longest, longest, 4096]);
    assert!(rows.iter().all(|row| row.latency == latency), "{rows:?}");
}
