use std::collections::BTreeMap;

use iosonar_trace::{Flags, Nanos, Op, Request, Sectors};

use super::*;
use crate::filament::SubmittedRequest;
use crate::program::tests::{on_a_device, open_requests};
use crate::program::{Layout, Settings};

/// A target of 128 GiB.
const SIZE: u64 = 1 << 28;

fn settings(scale: u64, set: &[(&str, &str)]) -> Settings {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Settings { scale, set, ..Settings::new(Layout::Together(Sectors(SIZE))) }
}

/// Each stream's requests on a device that serves each in 1 ms.
fn by_stream(name: &str, settings: &Settings, seconds: f64) -> BTreeMap<String, Vec<SubmittedRequest>> {
    let program = open(name).unwrap();
    let mut streams = BTreeMap::new();
    for (submitted, _) in on_a_device(&program, settings, Nanos::from_secs(seconds)) {
        let name = program.streams()[usize::from(submitted.stream)].name.clone();
        streams.entry(name).or_insert_with(Vec::new).push(submitted);
    }
    streams
}

/// A share of `n` within five standard deviations.
fn assert_share(hits: usize, n: usize, share: f64, what: &str) {
    let (n, hits) = (n as f64, hits as f64);
    assert!((hits - n * share).abs() <= 5.0 * (n * share * (1.0 - share)).sqrt() + 1e-9, "{what}: {hits} of {n}");
}

/// A Poisson count within five standard deviations.
fn assert_count(count: usize, mean: f64, what: &str) {
    assert!((count as f64 - mean).abs() < 5.0 * mean.sqrt(), "{what}: {count} instead of {mean}");
}

fn is_sequential(submitted: &[SubmittedRequest]) -> bool {
    submitted.windows(2).all(|w| w[1].spec.sector.0 == w[0].spec.sector.0 + w[0].spec.sectors.0)
}

#[test]
fn every_program_is_valid_named_as_its_file_and_not_idle() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workloads");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let mut names: Vec<_> = PROGRAMS.iter().map(|(name, _)| format!("{name}.toml")).collect();
    names.sort();
    assert_eq!(files, names.iter().map(|name| name.as_str().into()).collect::<Vec<std::ffi::OsString>>());
    let page = include_str!("../../../../docs/workloads.md");
    for (name, _) in PROGRAMS {
        let program = open(name).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(program.name(), *name);
        assert!(!program.about().is_empty() && !program.about().ends_with('.'), "{name}");
        assert!(program.about().chars().count() <= 110, "{name}: about is too long");
        assert!(page.contains(&format!("### {name}\n")), "docs/workloads.md has no section {name}");
        for (parameter, _) in program.parameters() {
            assert!(page.contains(&format!("`{parameter}`")), "docs/workloads.md: {name} has a parameter {parameter}");
        }
        let streams = by_stream(name, &settings(10, &[]), 1.5);
        assert_eq!(streams.len(), program.streams().len(), "{name}: {:?}", streams.keys());
    }
}

#[test]
fn an_unknown_program_is_refused_with_a_suggestion() {
    assert!(open("tcpb").unwrap_err().contains("; did you mean tpcb?"));
    assert!(open("none.toml").unwrap_err().starts_with("cannot read none.toml: "));
}

#[test]
fn a_transaction_of_tpcb_updates_three_rows_and_forces_the_log() {
    let program = open("tpcb").unwrap();
    let settings = settings(20, &[]);
    let all = by_stream("tpcb", &settings, 50.0).remove("teller").unwrap();
    assert_eq!(program.streams()[0].instances, 10);
    // A transaction each second for each branch; all eight requests of nearly all of them have completed.
    assert_count(all.len() / 8, 20.0 * 50.0, "transactions");
    let (log, history, accounts) = (Sectors(1 << 21).0, Sectors(1 << 21).0, 20 * (16 << 11));
    let ends =
        [log, log + history, log + history + accounts, log + history + accounts + 320, log + history + accounts + 640];
    let device =
        |submitted: &SubmittedRequest| ends.iter().position(|end| submitted.spec.sector.0 < *end).expect("a device");
    let mut counts = BTreeMap::new();
    for submitted in &all {
        let fua = submitted.spec.flags.has(Flags::FUA);
        *counts.entry((device(submitted), submitted.spec.op == Op::Read, fua)).or_insert(0_usize) += 1;
        assert_eq!(submitted.spec.sectors, if fua { Sectors(8) } else { Sectors(16) });
    }
    let kinds: Vec<_> = counts.keys().copied().collect();
    let (read, write) = (true, false);
    assert_eq!(
        kinds,
        [
            (0, write, true),
            (1, write, false),
            (2, write, false),
            (2, read, false),
            (3, write, false),
            (3, read, false),
            (4, write, false),
            (4, read, false)
        ]
    );
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(most - least <= 200, "{counts:?}");
    // Every write of a row follows its read.
    let by_number: BTreeMap<u64, &SubmittedRequest> =
        all.iter().map(|submitted| (submitted.request, submitted)).collect();
    let writes = all.iter().filter(|submitted| device(submitted) >= 2 && submitted.spec.op == Op::Write);
    for write in writes {
        let read = by_number[&write.cause.expect("a read")];
        assert_eq!((read.spec.op, read.spec.sector), (Op::Read, write.spec.sector));
    }
    for appended in [0, 1] {
        let own: Vec<_> = all.iter().filter(|submitted| device(submitted) == appended).copied().collect();
        assert!(is_sequential(&own), "device {appended}");
    }
}

#[test]
fn spc1_has_the_mixes_and_regions_of_its_specification() {
    let (bsu, seconds) = (20, 40.0);
    let settings = settings(bsu, &[]);
    let streams = by_stream("spc1", &settings, seconds);
    let asu = |share: f64| (SIZE as f64 * share) as u64;
    let (asu1, asu2, asu3) = (0, asu(0.45), asu(0.9));
    let in_asu =
        |asu: u64, size: u64, from: f64, to: f64| (asu + (size as f64 * from) as u64, asu + (size as f64 * to) as u64);
    let (large, small) = (asu(0.45), asu(0.1));
    for (name, intensity, reads, (first, end)) in [
        ("asu1-1", 0.035, 0.5, in_asu(asu1, large, 0.0, 1.0)),
        ("asu1-2", 0.281, 0.5, in_asu(asu1, large, 0.15, 0.20)),
        ("asu1-3", 0.070, 1.0, in_asu(asu1, large, 0.20, 0.70)),
        ("asu1-4", 0.210, 0.5, in_asu(asu1, large, 0.70, 0.75)),
        ("asu2-1", 0.018, 0.3, in_asu(asu2, large, 0.0, 1.0)),
        ("asu2-2", 0.070, 0.3, in_asu(asu2, large, 0.47, 0.52)),
        ("asu2-3", 0.035, 1.0, in_asu(asu2, large, 0.20, 0.70)),
        ("asu3-1", 0.281, 0.0, in_asu(asu3, small, 0.0, 1.0)),
    ] {
        let all = &streams[name];
        assert_count(all.len(), intensity * 50.0 * bsu as f64 * seconds, name);
        assert_share(all.iter().filter(|submitted| submitted.spec.op == Op::Read).count(), all.len(), reads, name);
        let out =
            all.iter().find(|submitted| submitted.spec.sector.0 + 64 < first || submitted.spec.sector.0 > end + 64);
        assert!(out.is_none(), "{name}: {out:?} is not in {first}..{end}");
        let is_sequential = matches!(name, "asu1-3" | "asu2-3" | "asu3-1");
        for (sectors, share) in [(8, 0.40), (16, 0.24), (32, 0.20), (64, 0.08), (128, 0.08)] {
            let share = if is_sequential { share } else { f64::from(u8::from(sectors == 8)) };
            assert_share(
                all.iter().filter(|submitted| submitted.spec.sectors.0 == sectors).count(),
                all.len(),
                share,
                name,
            );
        }
    }
    let total: usize = streams.values().map(Vec::len).sum();
    assert_count(total, 50.0 * bsu as f64 * seconds, "50 requests per second of each BSU");
}

#[test]
fn log_and_data_forces_a_sequential_log_beside_equal_data() {
    let streams = by_stream("log-and-data", &settings(1, &[("rate", "200")]), 20.0);
    let log = &streams["log"];
    assert!(
        log.iter().all(|submitted| (submitted.spec.op, submitted.spec.flags) == (Op::Write, Flags::FUA))
            && is_sequential(log)
    );
    // 1 ms each, and a pause of 2 ms.
    assert!((log.len() as f64 - 20_000.0 / 3.0).abs() < 400.0, "{}", log.len());
    for number in 1..=6_usize {
        let name = format!("data{number}");
        let data = &streams[&name];
        assert_count(data.len(), 4000.0, &name);
        assert_share(data.iter().filter(|submitted| submitted.spec.op == Op::Read).count(), data.len(), 0.67, &name);
        let first = SIZE / 10 + (number as u64 - 1) * SIZE / 100 * 15;
        let inside = |submitted: &&SubmittedRequest| {
            (first - 800..first + SIZE / 100 * 15 + 800).contains(&submitted.spec.sector.0)
        };
        assert!(data.iter().filter(inside).count() == data.len(), "{name}");
    }
}

/// Splits requests by the equal parts of the target in which they are.
fn by_part(all: &[SubmittedRequest], parts: u64) -> Vec<Vec<SubmittedRequest>> {
    let part = SIZE / parts;
    (0..parts).map(|n| all.iter().filter(|submitted| submitted.spec.sector.0 / part == n).copied().collect()).collect()
}

#[test]
fn backup_and_blender_are_sequential_in_each_part_of_the_target() {
    let readers = by_stream("backup", &settings(1, &[]), 1.0).remove("reader").unwrap();
    assert_eq!(readers.len(), 16 * 2 * 1000, "depth / response time");
    assert!(readers.iter().all(|submitted| submitted.spec.op == Op::Read && submitted.spec.sectors.0 == 512));
    assert!(by_part(&readers, 16).iter().all(|reader| reader.len() == 2000 && is_sequential(reader)));
    let machines = by_stream("blender", &settings(1, &[]), 4.0).remove("machine").unwrap();
    // 1 ms each, and a pause of 5 ms.
    assert!((machines.len() as f64 / (64.0 * 4.0 / 0.006) - 1.0).abs() < 0.02, "{}", machines.len());
    assert_share(
        machines.iter().filter(|submitted| submitted.spec.op == Op::Read).count(),
        machines.len(),
        0.7,
        "reads",
    );
    assert!(by_part(&machines, 64).iter().all(|machine| machine.len() > 500 && is_sequential(machine)));
}

#[test]
fn a_checkpoint_writes_for_ten_seconds_of_each_minute() {
    let all = open_requests(&open("checkpoint").unwrap(), &settings(1, &[("writes", "100")]), 180.0);
    let (reads, writes): (Vec<&Request>, Vec<&Request>) = all.iter().partition(|request| request.op == Op::Read);
    assert_count(reads.len(), 300.0 * 180.0, "reads");
    assert_count(writes.len(), 100.0 * 30.0, "writes");
    assert!(all.iter().all(|request| request.sectors.0 == 16));
    assert!(writes.iter().all(|request| request.at.as_secs() % 60.0 < 10.0));
}

#[test]
fn a_delivery_of_mail_ends_with_a_flush() {
    let streams = by_stream("mail", &settings(1, &[]), 100.0);
    let deliveries = &streams["delivery"];
    let directory = SIZE / 20;
    let count = |op, in_directory| {
        let of = |submitted: &&SubmittedRequest| {
            submitted.spec.op == op && (submitted.spec.sector.0 < directory) == in_directory
        };
        deliveries.iter().filter(of).count()
    };
    assert_count(count(Op::Read, true), 2000.0, "reads of the directory");
    for (op, in_directory) in [(Op::Write, false), (Op::Write, true), (Op::Flush, true)] {
        assert!(count(op, in_directory).abs_diff(count(Op::Read, true)) < 5, "{op:?}");
    }
    let flushes = deliveries.iter().filter(|submitted| submitted.spec.op == Op::Flush);
    assert!(flushes.clone().all(|submitted| submitted.spec.sectors.0 == 0 && submitted.cause.is_some()));
    assert_count(streams["reader"].len(), 6000.0, "messages read");
    let large = streams["reader"].iter().filter(|submitted| submitted.spec.sectors.0 == 512).count();
    assert_share(large, streams["reader"].len(), 0.05, "messages of 256 KiB");
    assert!(streams["scan"].len().abs_diff(2000) < 3 && is_sequential(&streams["scan"]));
}

#[test]
fn viewers_of_video_read_at_an_even_rate_and_not_all_at_once() {
    let all = open_requests(&open("video").unwrap(), &settings(1, &[]), 60.0);
    let (reads, writes): (Vec<&Request>, Vec<&Request>) = all.iter().partition(|request| request.op == Op::Read);
    assert!(writes.len().abs_diff(1200) < 3 && writes.iter().all(|request| request.sectors.0 == 2048));
    assert!(writes.windows(2).all(|w| w[1].sector == w[0].end()));
    for second in 20..50 {
        let of_second = reads.iter().filter(|request| request.at.as_secs() as usize == second).count();
        assert!(of_second.abs_diff(100) < 3, "second {second}: {of_second}");
    }
    let mut of_millis = BTreeMap::new();
    reads.iter().for_each(|request| *of_millis.entry(request.at.0 / 1_000_000).or_insert(0) += 1);
    let most = of_millis.values().max();
    assert!(most < Some(&6), "{most:?} requests in one millisecond");
}

#[test]
fn the_short_programs_have_their_depth_rate_and_order() {
    let reads = by_stream("random-reads", &settings(1, &[("depth", "7")]), 1.0).remove("reads").unwrap();
    assert_eq!(reads.len(), 7000);
    assert!(reads.iter().all(|submitted| submitted.spec.op == Op::Read && submitted.spec.sectors.0 == 8));
    let mix = by_stream("random-mix", &settings(1, &[]), 40.0).remove("mix").unwrap();
    assert_count(mix.len(), 20_000.0, "requests");
    assert_share(mix.iter().filter(|submitted| submitted.spec.op == Op::Read).count(), mix.len(), 0.7, "reads");
    assert_share(mix.iter().filter(|submitted| submitted.spec.sectors.0 == 128).count(), mix.len(), 0.3, "64 KiB");
    let writes = by_stream("sequential-writes", &settings(1, &[]), 1.0).remove("writes").unwrap();
    assert!(writes.len() == 1000 && is_sequential(&writes) && writes[0].spec.sectors.0 == 2048);
}

#[test]
fn a_lookup_in_the_btree_descends_to_a_child_of_the_page_before() {
    const FIRST: [u64; 4] = [0, 1, 201, 40_201];
    let place = |submitted: &SubmittedRequest| {
        let page = submitted.spec.sector.0 / 16;
        let level = FIRST.partition_point(|first| *first <= page) - 1;
        (level, page - FIRST[level])
    };
    let all = by_stream("btree", &settings(1, &[]), 20.0).remove("client").unwrap();
    let by_number: BTreeMap<_, _> = all.iter().map(|submitted| (submitted.request, submitted)).collect();
    let (mut descents, mut inserts) = (0, 0);
    for submitted in &all {
        let Some(cause) = submitted.cause.and_then(|cause| by_number.get(&cause)) else { continue };
        let ((level, node), (from, parent)) = (place(submitted), place(cause));
        if submitted.spec.op == Op::Read {
            assert!(cause.spec.op == Op::Read && level > from, "{submitted:?} after {cause:?}");
            assert_eq!(node / 200_u64.pow((level - from) as u32), parent);
            descents += 1;
        } else if submitted.spec.sector == cause.spec.sector {
            assert_eq!((level, cause.spec.op), (3, Op::Read));
            inserts += 1;
        }
    }
    assert!(descents > 10_000, "{descents}");
    let lookups = all.iter().filter(|submitted| submitted.spec.op == Op::Read && place(submitted).0 == 3).count();
    assert_share(inserts, lookups, 0.1, "inserts");
}

#[test]
fn the_lsm_tree_writes_full_memtables_and_merges_full_levels() {
    let program = open("lsm").unwrap();
    let mut all: Vec<_> = on_a_device(&program, &settings(1, &[]), Nanos::from_secs(3.5));
    all.sort_by_key(|(submitted, _)| submitted.request);
    let mut records = 0;
    let mut tree = Vec::new();
    for (submitted, _) in all {
        if submitted.stream == 0 {
            assert_eq!(
                (submitted.spec.op, submitted.spec.flags, submitted.spec.sectors),
                (Op::Write, Flags::FUA, Sectors(8))
            );
            records += 1;
        } else {
            tree.push((records, submitted.spec));
        }
    }
    // 1024 records of 4 KiB fill a memtable, and four memtables the first level.
    let first = tree[0].1.sector.0;
    for (n, (records, spec)) in tree[..64].iter().enumerate() {
        assert_eq!((spec.op, spec.sector.0, spec.sectors.0), (Op::Write, first + n as u64 * 512, 512));
        let full = 1024 * (n / 16 + 1);
        assert!((full..full + 100).contains(records), "memtable {} after {records} records", n / 16);
    }
    let merge = &tree[64..192];
    let sectors = |op| {
        let mut all: Vec<_> = merge.iter().filter(|(_, spec)| spec.op == op).map(|(_, spec)| spec.sector.0).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(sectors(Op::Read), (0..64).map(|n| first + n * 512).collect::<Vec<_>>());
    // The next level lies behind twice the size of the first one.
    assert_eq!(sectors(Op::Write), (0..64).map(|n| first + 2 * 64 * 512 + n * 512).collect::<Vec<_>>());
}
