//! Files that the formats' own programs made: blktrace 1.3 on Linux 6.1 in an emulated machine (a file system on a virtual
//! disk, written with fsync, read, trimmed, unmounted), and blkparse's text of the same trace.

use std::path::{Path, PathBuf};

use iosonar_trace::{Metadata, Op, Opened, Options, Request, open_files};

fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn load(names: &[&str]) -> (&'static str, Vec<Request>, Metadata) {
    let paths: Vec<PathBuf> = names.iter().map(|name| file(name)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let opened = open_files(&paths, None, &Options::default()).unwrap();
    let Opened::Load(mut reader) = opened.rows else { panic!("not a load") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (opened.format.name, rows, reader.metadata().clone())
}

/// What blkparse counts in the same files, by `awk '$6 == "Q" { print $7 }'`.
const QUEUED: usize = 201;

#[test]
fn binary_and_text_agree() {
    let (format, binary, about) = load(&["linux-6.1.blktrace.0.zst", "linux-6.1.blktrace.1.zst"]);
    assert_eq!(format, "blktrace");
    assert_eq!(binary.len(), QUEUED);
    assert_eq!((about.counts.lost_events, about.counts.unmatched, about.counts.bad_lines), (0, 0, 0));
    assert!(about.complete && about.epoch_unix_ns.is_some());
    assert!(binary.iter().any(|r| r.op == Op::Flush) && binary.iter().any(|r| r.op == Op::Discard));
    assert!(binary.iter().all(|r| r.latency.is_some()));

    let (format, text, about) = load(&["linux-6.1.blkparse.zst"]);
    assert_eq!(format, "blkparse");
    assert_eq!((about.counts.unmatched, about.counts.bad_lines), (0, 0), "{:?}", about.notices);
    // blkparse counts time from its first event, the load from its first request.
    let first = text[0].at;
    let short = |r: &Request| (r.op, r.sector, r.sectors, r.latency, r.queued);
    let of_text: Vec<_> = text.iter().map(|r| (r.at - first, short(r))).collect();
    let of_binary: Vec<_> = binary.iter().map(|r| (r.at, short(r))).collect();
    assert_eq!(of_text, of_binary);
}

/// Found by fuzzing: the library panics at such a footer.
#[test]
fn a_footer_with_a_negative_offset_is_damage() {
    let error = iosonar_trace::open(&file("negative-offset.parquet")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("points outside"), "{error}");
}
