//! Records in both versions and byte orders, merged, cut, lost and written.

use super::*;
use crate::formats::Options;
use crate::formats::check::{about, input, load, recognised_as, rows, written};
use crate::request::{Comm, DeviceId, Flags, Op, Request};
use crate::units::{Nanos, Sector, Sectors};

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

/// A record as the kernel's structure has it, field by field.
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
fn both_versions_in_both_byte_orders() {
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
fn zeros_of_version_eight_have_a_category() {
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
        // Not quite in order.
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

#[test]
fn a_cut_file_gives_what_is_whole() {
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
fn written_and_read() {
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
