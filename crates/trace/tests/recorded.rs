//! Files written by the programs of each format; `data/README.md` lists the commands.

use std::path::{Path, PathBuf};

use iosonar_trace::formats::Action;
use iosonar_trace::{Flags, Metadata, Op, Opened, Options, Request, open_files};

fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn load(names: &[&str]) -> (&'static str, Vec<Request>, Metadata) {
    load_from(names, None)
}

/// Format, requests and metadata. Requests are taken from `action`, if it is given.
fn load_from(names: &[&str], action: Option<Action>) -> (&'static str, Vec<Request>, Metadata) {
    let paths: Vec<PathBuf> = names.iter().map(|name| file(name)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let opened = open_files(&paths, None, &Options { action, ..Options::default() }).unwrap();
    let Opened::Load(mut reader) = opened.rows else { panic!("not a load") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (opened.format.name, rows, reader.metadata().clone())
}

/// The number of queued requests in the output of blkparse, by `awk '$6 == "Q" { print $7 }'`.
const QUEUED: usize = 201;

#[test]
fn blktrace_and_blkparse_files_have_the_same_requests() {
    let (format, binary, about) = load(&["linux-6.1.blktrace.0.zst", "linux-6.1.blktrace.1.zst"]);
    assert_eq!(format, "blktrace");
    assert_eq!(binary.len(), QUEUED);
    assert_eq!((about.counts.lost_events, about.counts.unmatched, about.counts.bad_lines), (0, 0, 0));
    assert!(about.complete && about.epoch_unix_ns.is_some());
    assert!(binary.iter().any(|r| r.op == Op::Flush) && binary.iter().any(|r| r.op == Op::Discard));
    assert!(binary.iter().all(|r| r.latency.is_some()));

    let (format, text, about) = load(&["linux-6.1.blkparse.zst"]);
    assert_eq!(format, "blkparse");
    assert_eq!((about.counts.unmatched, about.counts.bad_lines), (0, 0), "{:?}", about.warnings);
    // blkparse counts time from its first event, the load from its first request.
    let first = text[0].at;
    let short = |r: &Request| (r.op, r.sector, r.sectors, r.latency, r.queued);
    let of_text: Vec<_> = text.iter().map(|r| (r.at - first, short(r))).collect();
    let of_binary: Vec<_> = binary.iter().map(|r| (r.at, short(r))).collect();
    assert_eq!(of_text, of_binary);
}

fn count(rows: &[Request], op: Op) -> usize {
    rows.iter().filter(|row| row.op == op).count()
}

/// The same I/O in the output of three programs: 8 writes of 64 KiB, 24 reads of 4 KiB, 6 writes of 4 KiB with a flush and
/// FUA each, a discard of 1 MiB, and the flushes when the device is closed.
#[test]
fn files_of_perf_bpftrace_and_ftrace_have_the_requests_of_dd() {
    for name in ["linux-6.18.perf-script.zst", "linux-6.18.bpftrace.zst", "linux-6.18.ftrace.zst"] {
        let (format, rows, about) = load_from(&[name], Some(Action::Queue));
        assert_eq!(format, "tracepoints");
        let counts = (about.counts.unmatched, about.counts.bad_lines, about.counts.lost_events);
        assert_eq!(counts, (0, 0, 0), "{name}: {:?}", about.warnings);
        assert_eq!([Op::Read, Op::Write, Op::Discard, Op::Flush].map(|op| count(&rows, op)), [24, 14, 1, 6], "{name}");
        let places = |op: Op| rows.iter().filter(move |row| row.op == op).map(|row| (row.sector.0, row.sectors.0));
        let writes = (0..8).map(|i| (i * 128, 128)).chain((0..6).map(|i| (4096 + i * 8, 8)));
        assert!(places(Op::Write).eq(writes), "{name}");
        assert!(places(Op::Read).eq((0..24).map(|i| (i * 8, 8))), "{name}");
        assert!(places(Op::Discard).eq([(2048, 2048)]), "{name}");
        assert_eq!(rows.iter().filter(|row| row.flags.has(Flags::FUA)).count(), 6, "{name}");
        assert!(rows.iter().all(|row| row.latency.is_some_and(|latency| latency.0 > 0)), "{name}");
        assert!(rows.iter().all(|row| row.pid.is_some() && !row.comm.as_str().is_empty()), "{name}");
        let (_, driver, _) = load_from(&[name], Some(Action::Issue));
        // The kernel splits each write with FUA into a write and two flushes; the write remains one.
        assert_eq!([Op::Read, Op::Write, Op::Discard].map(|op| count(&driver, op)), [24, 14, 1], "{name}");
    }
}

/// The same I/O.
#[test]
fn both_forms_of_the_blk_tracer_have_the_requests_of_dd() {
    for name in ["linux-6.18.ftrace-blk.zst", "linux-6.18.ftrace-blk-classic.zst"] {
        let (format, rows, about) = load_from(&[name], Some(Action::Queue));
        assert_eq!(format, "ftrace-blk");
        assert_eq!((about.counts.unmatched, about.counts.bad_lines), (0, 0), "{name}: {:?}", about.warnings);
        // Counted by awk.
        assert_eq!([Op::Read, Op::Write, Op::Discard, Op::Flush].map(|op| count(&rows, op)), [24, 14, 1, 7], "{name}");
        let writes = (0..8).map(|i| (i * 128, 128)).chain((0..6).map(|i| (4096 + i * 8, 8)));
        let places = |op: Op| rows.iter().filter(move |row| row.op == op).map(|row| (row.sector.0, row.sectors.0));
        assert!(places(Op::Write).eq(writes) && places(Op::Read).eq((0..24).map(|i| (i * 8, 8))), "{name}");
        assert!(rows.iter().all(|row| row.latency.is_some_and(|latency| latency.0 > 0) && row.pid.is_some()), "{name}");
    }
}

#[test]
fn a_file_of_trace_cmd_has_the_requests_of_dd() {
    let (format, rows, about) = load(&["linux-6.1.trace-cmd.zst"]);
    assert_eq!(format, "tracepoints");
    assert_eq!((about.counts.bad_lines, about.counts.lost_events), (0, 0), "{:?}", about.warnings);
    let names: Vec<&str> = about.devices.iter().map(|device| device.name.as_str()).collect();
    let of_loop: Vec<Request> = rows.into_iter().filter(|row| names[usize::from(row.device.0)] == "7,0").collect();
    assert_eq!((count(&of_loop, Op::Read), count(&of_loop, Op::Write), of_loop.len()), (100, 40, 140));
    assert!(of_loop.iter().all(|row| row.latency.is_some()));
    assert!(of_loop.iter().all(|row| row.comm.as_str() == "dd"));
}

/// Both logs are of the same run of fio. Only the iolog has flushes, only the latency log has latencies.
#[test]
fn iolog_and_latency_log_of_fio_have_the_same_requests() {
    let (format, queued, about) = load(&["fio-3.33.iolog"]);
    assert_eq!((format, about.counts.bad_lines), ("fio-iolog", 0));
    let (format, done, about) = load(&["fio-3.33.latency.log"]);
    assert_eq!((format, about.counts.bad_lines), ("fio-latency", 0));
    let extent = |row: &Request| (row.op, row.sector, row.sectors);
    let mut of_iolog: Vec<_> = queued.iter().filter(|row| row.op != Op::Flush).map(extent).collect();
    let mut of_latency_log: Vec<_> = done.iter().map(extent).collect();
    of_iolog.sort_unstable();
    of_latency_log.sort_unstable();
    assert_eq!(of_iolog.len(), 40);
    assert_eq!(of_iolog, of_latency_log);
    assert_eq!(count(&queued, Op::Flush), 4);
    assert!(done.iter().all(|row| row.latency.is_some()));
}

#[test]
fn commands_to_the_driver_in_a_file_of_biosnoop_are_left_out() {
    let (format, rows, about) = load(&["linux-6.1.biosnoop.zst"]);
    assert_eq!((format, about.counts.bad_lines), ("biosnoop", 0), "{:?}", about.warnings);
    // Counted by awk. The 30 commands to the driver have no position, and the flushes have no length either.
    assert_eq!([Op::Read, Op::Write, Op::Flush].map(|op| count(&rows, op)), [299, 190, 20]);
    assert!(
        about.warnings.iter().any(|warning| warning.ends_with("driver commands left out: 30")),
        "{:?}",
        about.warnings
    );
    assert!(rows.iter().all(|row| row.latency.is_some() && row.queued.is_some() && row.pid.is_some()));
    assert_eq!(about.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["sda"]);
}

/// Version 2 of the log has no times: all requests are at time zero.
#[test]
fn a_log_of_an_older_fio_is_read() {
    let (format, rows, about) = load(&["fio-3.25.iolog"]);
    assert_eq!((format, about.counts.bad_lines), ("fio-iolog", 0), "{:?}", about.warnings);
    assert_eq!([Op::Read, Op::Write, Op::Flush].map(|op| count(&rows, op)), [20, 20, 3]);
    let first = (rows[0].op, rows[0].sector.bytes(), rows[0].sectors.bytes());
    assert_eq!(first, (Op::Write, 61_440, 4096));
    assert!(rows.iter().all(|row| row.at.0 == 0 && row.sectors.bytes() == if row.op == Op::Flush { 0 } else { 4096 }));
}

/// Found by fuzzing: the Parquet library panics on such a footer.
#[test]
fn a_footer_with_a_negative_offset_is_reported_as_damage() {
    let error = iosonar_trace::open(&file("negative-offset.parquet")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("damaged Parquet: its footer"), "{error}");
}
