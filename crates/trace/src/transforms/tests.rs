//! Compares each transform with a slow and obvious model, on random loads.

mod joined;
mod late;
mod metadata;
mod positions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::metadata::{Device, Kind, Metadata};
use crate::model::request::Request;
use crate::model::request::{Comm, DeviceId, Flags, Op};
use crate::model::units::{MAX_END_SECTOR, Nanos, Sector, Sectors};
use crate::order::packed::tests::request;

/// A load in memory, for tests.
struct Given {
    requests: std::vec::IntoIter<Request>,
    metadata: Metadata,
}

impl Reader<Request> for Given {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = self.requests.next();
        next.iter().for_each(|request| self.metadata.count_request(request));
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// A load of these requests, on two devices, of which bad lines and a preamble are known.
pub fn load(requests: Vec<Request>) -> Rows {
    let mut metadata = Metadata::new(Kind::Load, "test");
    metadata.devices = ["sda", "sdb"].map(|name| Device { name: name.into(), sectors: None }).to_vec();
    metadata.counts.bad_lines = 7;
    metadata.source.preamble = "Free for all".into();
    Box::new(Given { requests: requests.into_iter(), metadata })
}

/// All requests of a load, and its metadata at the end, which must agree with them.
pub fn all(mut rows: Rows) -> (Vec<Request>, Metadata) {
    let mut requests = Vec::new();
    while let Some(request) = rows.next().unwrap() {
        requests.push(request);
    }
    assert!(rows.next().unwrap().is_none(), "a load that ended returns another request");
    let metadata = rows.metadata().clone();
    let mut counted = Metadata::new(Kind::Load, "");
    requests.iter().for_each(|request| counted.count_request(request));
    assert_eq!(metadata.span, counted.span);
    assert_eq!(metadata.counts.requests, counted.counts.requests);
    assert_eq!(metadata.counts.reads, counted.counts.reads);
    assert_eq!(metadata.counts.bad_lines, 7, "losses of the input are kept");
    assert!(requests.is_sorted_by_key(|request| request.at), "not in the order of time");
    (requests, metadata)
}

/// Up to so many requests in the order of time, within a minute, on two devices of so many sectors.
pub fn requests(most: usize, sectors: u64) -> impl Strategy<Value = Vec<Request>> {
    let places = (0_i64..60_000, 0_u16..2, 0..sectors, 0_u64..64);
    prop::collection::vec((request(), places), 0..most).prop_map(|drawn| {
        let mut requests: Vec<Request> = drawn
            .into_iter()
            .map(|(request, (millis, device, sector, sectors))| Request {
                at: Nanos(millis * 1_000_000),
                device: DeviceId(device),
                sector: Sector(sector),
                sectors: Sectors(sectors),
                // Files hold a name up to its first zero.
                comm: Comm::new(request.comm.as_str()),
                ..request
            })
            .collect();
        requests.sort_by_key(|request| request.at);
        requests
    })
}

fn edited(pipeline: &str, requests: &[Request]) -> Vec<Request> {
    all(parse(pipeline).unwrap().apply(load(requests.to_vec())).unwrap()).0
}

/// The error of a pipeline that fails.
fn failure(pipeline: &str, requests: &[Request]) -> String {
    let run = || -> Result<()> {
        let mut rows = parse(pipeline)?.apply(load(requests.to_vec()))?;
        while rows.next()?.is_some() {}
        Ok(())
    };
    run().unwrap_err().to_string()
}

const SECOND: i64 = 1_000_000_000;

fn seconds(from: f64) -> Nanos {
    Nanos::from_secs(from)
}

proptest! {
    #[test]
    fn select_keeps_a_window_of_time(requests in requests(100, 1000), from in 0_i64..60, length in 1_i64..60) {
        let (start, end) = (from * SECOND, (from + length) * SECOND);
        let model: Vec<Request> = requests.iter().filter(|r| (start..end).contains(&r.at.0)).copied().collect();
        let to = from + length;
        prop_assert_eq!(edited(&format!("select from={from} to={to}"), &requests), model.clone());
        let rebased: Vec<Request> = model.iter().map(|r| Request { at: Nanos(r.at.0 - start), ..*r }).collect();
        prop_assert_eq!(edited(&format!("select from={from}s to={to}s base=zero"), &requests), rebased);
    }

    #[test]
    fn clip_keeps_the_sectors_of_a_region(requests in requests(50, 300), from in 0_u64..200, length in 1_u64..200) {
        let to = from + length;
        let sectors = |r: &Request| (r.sector.0..r.end().0).filter(|s| (from..to).contains(s)).collect::<Vec<_>>();
        let model: Vec<_> = requests.iter().filter(|r| r.sectors.0 == 0 || !sectors(r).is_empty()).collect();
        let cut = edited(&format!("clip from={from}s to={to}s"), &requests);
        prop_assert_eq!(model.len(), cut.len());
        for (model, cut) in model.iter().zip(&cut) {
            prop_assert_eq!(sectors(model), (cut.sector.0..cut.end().0).collect::<Vec<_>>());
            prop_assert_eq!((model.at, model.op), (cut.at, cut.op));
        }
        let moved = edited(&format!("clip from={from}s to={to}s base=zero"), &requests);
        for (cut, moved) in cut.iter().zip(&moved).filter(|(cut, _)| cut.sectors.0 > 0) {
            prop_assert_eq!(cut.sector.0 - from, moved.sector.0);
        }
        let uncut = edited(&format!("clip from={from}s to={to}s crossing=drop"), &requests);
        let inside = |r: &&Request| r.sectors.0 == 0 || r.sector.0 >= from && r.end().0 <= to;
        prop_assert_eq!(uncut, requests.iter().filter(inside).copied().collect::<Vec<_>>());
    }

    #[test]
    fn slip_shifts_each_nth_request_and_all_behind_it(requests in requests(100, 1000), every in 1_usize..20, increase in 0_u64..100) {
        let mut model = requests.clone();
        let mut offset = 0;
        let mut counted = 0;
        for request in &mut model {
            counted += 1;
            if counted >= every {
                offset += increase;
                counted = 0;
            }
            *request = placed(request, request.sector.0 + offset);
        }
        prop_assert_eq!(edited(&format!("slip every={every} increase={increase}s"), &requests), model);
    }

    #[test]
    fn spread_follows_its_formula(requests in requests(100, 1 << 40), quarters in 1_u32..40, align in 1_u64..64, offset in 0_u64..9) {
        let factor = f64::from(quarters) / 4.0;
        let spread = edited(&format!("spread factor={factor} align={align}s offset={offset}s"), &requests);
        for (before, after) in requests.iter().zip(&spread) {
            let s = u128::from(before.sector.0);
            // ⌊s·f / align⌋·align + s mod align + offset, in uncut numbers.
            let model = s * u128::from(quarters) / (4 * u128::from(align)) * u128::from(align) + s % u128::from(align);
            let model = if before.sectors.0 == 0 { s } else { model + u128::from(offset) };
            prop_assert_eq!(u128::from(after.sector.0), model);
            prop_assert_eq!(Request { sector: before.sector, ..*after }, *before);
        }
    }

    #[test]
    fn resize_stays_within_bounds(requests in requests(100, 1000), quarters in 1_u64..40, min in 0_u64..40, more in 1_u64..40) {
        let (factor, max) = (quarters as f64 / 4.0, min + more);
        let resized = edited(&format!("resize factor={factor} min={min}s max={max}s"), &requests);
        for (before, after) in requests.iter().zip(&resized) {
            let model = match before.sectors.0 {
                0 => 0,
                sectors => (sectors * quarters / 4).max(min).max(1).min(max),
            };
            prop_assert_eq!(*after, Request { sectors: Sectors(model), ..*before });
        }
    }

    #[test]
    fn subst_replaces_one_operation(requests in requests(100, 1000), from in 0_usize..5, to in 0_usize..5) {
        let (from, to) = (Op::ALL[from], Op::ALL[to]);
        prop_assume!(from != Op::Flush || to == Op::Flush);
        let replaced = edited(&format!("subst from={} to={}", from.name(), to.name()), &requests);
        for (before, after) in requests.iter().zip(&replaced) {
            prop_assert_eq!(after.op, if before.op == from { to } else { before.op });
            let keeps_flags = before.op != from || from == to;
            prop_assert!(keeps_flags || !after.flags.has(Flags::READAHEAD));
            prop_assert!(!keeps_flags || after == before);
        }
    }

    #[test]
    fn reverse_keeps_times_and_reverses_the_rest(requests in requests(100, 1000)) {
        let times = requests.iter().map(|r| r.at);
        let model: Vec<Request> = requests.iter().rev().zip(times).map(|(r, at)| Request { at, ..*r }).collect();
        prop_assert_eq!(edited("reverse", &requests), model);
        prop_assert_eq!(edited("reverse | reverse", &requests), requests);
    }

    #[test]
    fn scale_multiplies_times(requests in requests(100, 1000), halves in 1_i64..20) {
        let model: Vec<_> = requests.iter().map(|r| Request { at: Nanos(r.at.0 * halves / 2), ..*r }).collect();
        prop_assert_eq!(edited(&format!("scale time={}", halves as f64 / 2.0), &requests), model);
    }

    #[test]
    fn ramped_changes_times_only(requests in requests(100, 1000), slope in 1_u32..20) {
        let ramped = edited(&format!("ramped slope={slope}"), &requests);
        for (before, after) in requests.iter().zip(&ramped) {
            prop_assert_eq!(Request { at: before.at, ..*after }, *before);
        }
    }

    #[test]
    fn repeat_is_the_load_again(requests in requests(50, 1000), times in 1_u64..5, offset in 0_u64..100) {
        let period = 70 * SECOND;
        let mut model = Vec::new();
        for iteration in 0..times {
            model.extend(requests.iter().map(|r| Request {
                at: Nanos(r.at.0 + iteration as i64 * period),
                ..placed(r, r.sector.0 + iteration * offset)
            }));
        }
        let pipeline = format!("repeat times={times} offset={offset}s period=70s");
        prop_assert_eq!(edited(&pipeline, &requests), model.clone());
        // Forever, cut off where the same number of iterations ends: the same.
        let forever = format!("repeat offset={offset}s period=70s | select to={}", 70 * times);
        if !requests.is_empty() {
            prop_assert_eq!(edited(&forever, &requests), model);
        }
    }

    #[test]
    fn sample_by_region_keeps_all_or_nothing(requests in requests(200, 10_000), seed: u32) {
        let kept = edited(&format!("sample share=50% by=region region=1000s seed={seed}"), &requests);
        let region = |r: &Request| (r.device, r.sector.0 / 1000);
        let at_places = |requests: &[Request]| requests.iter().filter(|r| r.sectors.0 > 0).copied().collect::<Vec<_>>();
        let (kept, given) = (at_places(&kept), at_places(&requests));
        let regions: BTreeSet<_> = kept.iter().map(region).collect();
        prop_assert_eq!(kept, given.into_iter().filter(|r| regions.contains(&region(r))).collect::<Vec<_>>());
        prop_assert_eq!(edited("sample share=1", &requests), requests.clone());
        prop_assert_eq!(edited("sample share=0", &requests), []);
    }

    #[test]
    fn derived_sorts_snippets_by_their_rate(requests in requests(200, 1000), outputs in 1_usize..4) {
        // The model: collect, drop the last, sort, deal.
        let mut snippets: BTreeMap<i64, Vec<Request>> = BTreeMap::new();
        for request in &requests {
            snippets.entry(request.at.0 / (10 * SECOND)).or_default().push(*request);
        }
        snippets.pop_last();
        prop_assume!(!snippets.is_empty());
        let mut snippets: Vec<(i64, Vec<Request>)> = snippets.into_iter().collect();
        snippets.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.len()));
        for output in 1..=outputs {
            let mut model = Vec::new();
            for (place, (index, snippet)) in snippets.iter().skip(output - 1).step_by(outputs).enumerate() {
                let shift = (place as i64 - index) * 10 * SECOND;
                model.extend(snippet.iter().map(|r| Request {
                    at: Nanos(r.at.0 + shift), latency: None, queued: None, ..*r
                }));
            }
            prop_assert_eq!(edited(&format!("derived snippet=10 outputs={outputs} output={output}"), &requests), model);
        }
    }

    #[test]
    fn remap_joins_renames_and_drops(requests in requests(50, 1000)) {
        let joined = parse("remap map=sda:disk,1:disk").unwrap().apply(load(requests.clone())).unwrap();
        let (rows, metadata) = all(joined);
        prop_assert_eq!(metadata.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["disk"]);
        let on_first = |r: &Request| Request { device: DeviceId(0), ..*r };
        prop_assert_eq!(rows, requests.iter().map(on_first).collect::<Vec<_>>());
        let second = requests.iter().filter(|r| r.device.0 == 1);
        prop_assert_eq!(edited("remap map=sdb others=drop", &requests), second.map(on_first).collect::<Vec<_>>());
    }

    #[test]
    fn merge_is_sorting_by_time(one in requests(50, 1000), other in requests(50, 1000), offset in -30_i64..30) {
        let directory = tempfile::tempdir().unwrap();
        let file = written(&directory, "other.load.parquet", &other);
        let merged = edited(&format!("merge with={} offset={offset}", file.display()), &one);
        let moved = other.iter().map(|r| Request {
            at: Nanos(r.at.0 + offset * SECOND), device: DeviceId(r.device.0 + 2), ..*r
        });
        let mut model: Vec<Request> = one.iter().copied().chain(moved).collect();
        model.sort_by_key(|r| r.at);
        prop_assert_eq!(merged, model);
    }

    #[test]
    fn adjacent_regions_never_touch(one in requests(50, 1000), other in requests(50, 500)) {
        let directory = tempfile::tempdir().unwrap();
        let file = written(&directory, "other.load.parquet", &other);
        let together = edited(&format!("adjacent with={}", file.display()), &one);
        prop_assert_eq!(together.len(), one.len() + other.len());
        // Regions in the order of load and device, each beginning at a multiple of 8 behind the last.
        let mut start = 0;
        let mut model = Vec::new();
        for (requests, device) in [(&one, 0), (&one, 1), (&other, 0), (&other, 1)] {
            let own: Vec<&Request> = requests.iter().filter(|r| r.device.0 == device).collect();
            model.extend(own.iter().map(|r| (r.at, placed(r, start + r.sector.0).sector.0, r.sectors, r.op)));
            start += own.iter().filter(|r| !r.is_empty()).map(|r| r.end().0).max().unwrap_or(0).next_multiple_of(8);
        }
        let mut got: Vec<_> = together.iter().map(|r| (r.at, r.sector.0, r.sectors, r.op)).collect();
        model.sort();
        got.sort();
        prop_assert_eq!(got, model);
    }

    #[test]
    fn anonymise_permutes_regions_and_processes(requests in requests(100, 5000)) {
        let hidden = edited("anonymise region=100s key=secret", &requests);
        prop_assert_eq!(edited("anonymise region=100s key=secret", &requests), hidden.clone());
        // The model: cut at borders, then map regions and processes one to one.
        let mut cut = Vec::new();
        for request in &requests {
            let mut rest = *request;
            while rest.sector.0 % 100 + rest.sectors.0 > 100 {
                let room = 100 - rest.sector.0 % 100;
                cut.push(Request { sectors: Sectors(room), ..rest });
                rest = Request { sector: rest.sector + Sectors(room), sectors: Sectors(rest.sectors.0 - room), ..rest };
            }
            cut.push(rest);
        }
        prop_assert_eq!(cut.len(), hidden.len());
        let (mut regions, mut pids, mut comms) = (Pairs::default(), Pairs::default(), Pairs::default());
        for (before, after) in cut.iter().zip(&hidden) {
            prop_assert_eq!((before.at, before.sectors, before.op, before.device), (after.at, after.sectors, after.op, after.device));
            if before.sectors.0 == 0 {
                prop_assert_eq!(after.sector.0, 0);
            } else {
                prop_assert_eq!(before.sector.0 % 100, after.sector.0 % 100);
                regions.see((before.device, before.sector.0 / 100), (after.device, after.sector.0 / 100));
            }
            comms.see(before.comm, after.comm);
            pids.see(before.pid, after.pid);
        }
    }
}

/// The request at that sector, if it is at any.
fn placed(request: &Request, sector: u64) -> Request {
    Request { sector: if request.sectors.0 == 0 { request.sector } else { Sector(sector) }, ..*request }
}

/// Checks that a map is one to one.
struct Pairs<T> {
    there: HashMap<T, T>,
    back: HashMap<T, T>,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self { there: HashMap::new(), back: HashMap::new() }
    }
}

impl<T: std::hash::Hash + Eq + Copy + std::fmt::Debug> Pairs<T> {
    fn see(&mut self, before: T, after: T) {
        assert_eq!(*self.there.entry(before).or_insert(after), after, "{before:?} became two");
        assert_eq!(*self.back.entry(after).or_insert(before), before, "two became {after:?}");
    }
}

fn written(directory: &tempfile::TempDir, name: &str, requests: &[Request]) -> PathBuf {
    let path = directory.path().join(name);
    let rows = load(requests.to_vec());
    let mut writer = crate::create_load(&path, rows.metadata()).unwrap();
    requests.iter().for_each(|request| writer.write(request).unwrap());
    let mut metadata = rows.metadata().clone();
    metadata.counts.bad_lines = 0;
    writer.finish(&metadata).unwrap();
    path
}

/// One request per second, sequential, 8 sectors each; every third is a write.
fn regular(count: u64) -> Vec<Request> {
    let op = |n| if n % 3 == 0 { Op::Write } else { Op::Read };
    (0..count).map(|n| Request::new(Nanos(n as i64 * SECOND), op(n), Sector(n * 8), Sectors(8))).collect()
}

#[test]
fn reverse_reads_across_blocks_of_its_temporary_file() {
    let turned = edited("reverse", &regular(3000));
    assert!(turned.iter().enumerate().all(|(n, r)| r.sector.0 == (2999 - n as u64) * 8));
}

#[test]
fn iterations_continue_at_the_mean_distance_of_requests() {
    let times: Vec<f64> = edited("repeat times=3", &regular(4)).iter().map(|r| r.at.as_secs()).collect();
    assert_eq!(times, (0..12).map(f64::from).collect::<Vec<_>>());
    assert_eq!(edited("repeat times=3", &[]), []);
    let two = edited("repeat times=2", &regular(1));
    assert_eq!(two[1].at, seconds(1.0));
    assert!(failure("repeat times=2 period=2s", &regular(4)).contains("longer than the period"));
}

#[test]
fn a_sample_has_about_its_share() {
    let kept = edited("sample share=10% seed=3", &regular(100_000)).len() as f64;
    assert!((kept - 10_000.0).abs() < 5.0 * (100_000.0_f64 * 0.1 * 0.9).sqrt(), "{kept}");
}

#[test]
fn flushes_are_sampled_one_by_one() {
    let flush = |n| Request::new(Nanos(n), Op::Flush, Sector(0), Sectors(0));
    let kept = edited("sample share=50% by=region", &(0..1000).map(flush).collect::<Vec<_>>()).len();
    assert!((400..600).contains(&kept), "{kept}");
}

#[test]
fn devices_with_commas_in_their_names_can_be_remapped() {
    let names = |map: &str| {
        let mut metadata = Metadata::new(Kind::Load, "blkparse");
        let device = |name: &str| Device { name: name.into(), sectors: None };
        metadata.devices = ["7,1", "7,2", "7", "7,1:x"].map(device).to_vec();
        let rows = Box::new(Given { requests: Vec::new().into_iter(), metadata });
        let rows = parse(&format!("remap others=drop map={map}")).unwrap().apply(rows).map_err(|e| e.to_string());
        rows.map(|rows| rows.metadata().devices.iter().map(|device| device.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names("7,1:sda,7,2:sdb").unwrap(), ["sda", "sdb"]);
    assert_eq!(names("7,2,7:sdc").unwrap(), ["7,2", "sdc"]);
    assert_eq!(names("7,1:7,2,7,2").unwrap(), ["7,2"]);
    assert_eq!(names("0:sda,3").unwrap(), ["sda", "7,1:x"]);
    assert_eq!(names("7,1:x:sdd").unwrap(), ["sdd"]);
}

#[test]
fn missing_completions_are_counted_among_the_remaining_requests() {
    // Every second request completes; five do not.
    let mut requests = regular(10);
    requests.iter_mut().step_by(2).for_each(|request| request.latency = Some(Nanos(1)));
    for (pipeline, unmatched) in [
        ("slip", 5),
        ("select to=5", 2),
        ("select to=5 | reverse", 2),
        ("clip from=8s to=40s", 2),
        ("sample share=0", 0),
        ("select from=1 to=2", 0),
        ("remap map=0 others=drop", 5),
        ("derived snippet=3", 0),
        ("cmd", 0),
    ] {
        let mut metadata = load(Vec::new()).metadata().clone();
        metadata.counts.unmatched = 5;
        let rows = Box::new(Given { requests: requests.clone().into_iter(), metadata });
        let (_, metadata) = all(parse(pipeline).unwrap().apply(rows).unwrap());
        assert_eq!(metadata.counts.unmatched, unmatched, "{pipeline}");
    }
}

#[test]
fn derived_reports_the_rates_of_its_snippets() {
    let mut requests = regular(30);
    requests
        .extend((0..50).map(|n| Request::new(seconds(30.0 + f64::from(n) / 10.0), Op::Read, Sector(0), Sectors(8))));
    let rows = parse("derived snippet=5s outputs=2 output=1").unwrap().apply(load(requests.clone())).unwrap();
    let (_, metadata) = all(rows);
    // The last snippet, with the fifty, is dropped. 6 others remain, 3 of them here.
    assert_eq!(metadata.warnings, ["derived: 3 snippets of 5 s, as IOPS@SECOND: 1@0 1@10 1@20"]);
    assert!(failure("derived", &requests).contains("shorter"));
}

#[test]
fn process_numbers_beyond_those_of_linux_are_permuted() {
    let mut requests = regular(2);
    (requests[0].pid, requests[1].pid) = (Some(4_194_304), Some(i32::MAX as u32));
    let hidden = edited("anonymise region=8s key=secret", &requests);
    for (before, after) in requests.iter().zip(&hidden) {
        assert!(after.pid != before.pid && (4_194_304..1 << 31).contains(&after.pid.unwrap()), "{after:?}");
    }
}

#[test]
fn requests_without_length_do_not_extend_a_region() {
    let far = Request::new(Nanos(1), Op::Write, Sector(1_000_000_000), Sectors(0));
    let requests = [Request::new(Nanos(0), Op::Write, Sector(0), Sectors(8)), far];
    let rows = parse("adjacent").unwrap().apply(load(requests.to_vec())).unwrap();
    assert_eq!(rows.metadata().devices[0].sectors, Some(8));
}

#[test]
fn cmd_passes_the_load_through_a_shell_command() {
    let requests = regular(3000);
    let reads: Vec<Request> = requests.iter().filter(|r| r.op == Op::Read).copied().collect();
    assert_eq!(edited("cmd command='grep -v \"; W ;\"'", &requests), reads);
    assert_eq!(edited("cmd", &requests), requests);
    // Closing the input early is no failure; a nonzero exit status is.
    assert_eq!(edited("cmd command='head -n 12'", &regular(30_000)).len(), 12 - header_lines());
    assert!(failure("cmd command='cat; exit 3'", &requests).contains("exit status: 3"));
    assert!(failure("cmd command='no-such-command'", &requests).contains("exit status: 127"));
    // A consumer that stops early ends the command and does not wait for it.
    assert_eq!(edited("cmd command='cat; sleep 1000' | select to=5", &requests).len(), 5);
}

/// Lines of classic text before the rows: the preamble and the names of the columns.
fn header_lines() -> usize {
    2
}

#[test]
fn the_preamble_records_the_pipeline_and_keeps_the_licence() {
    let pipeline = parse("select to=5 | slip  every=2").unwrap();
    let (_, metadata) = all(pipeline.apply(load(regular(10))).unwrap());
    assert_eq!(metadata.source.preamble, "Free for all\nEdited by iosonar: select to=5 | slip every=2");
}

#[test]
fn anonymise_removes_the_origin() {
    let mut requests = regular(10);
    requests[3].comm = Comm::new("payroll");
    let (rows, metadata) = all(parse("anonymise key=hunter2").unwrap().apply(load(requests)).unwrap());
    let text = format!("{metadata:?}{rows:?}");
    for secret in ["hunter2", "sda", "Free", "payroll"] {
        assert!(!text.contains(secret), "{secret} is not removed: {text}");
    }
    let once = edited("anonymise region=8s", &regular(1000));
    assert_ne!(once, edited("anonymise region=8s", &regular(1000)), "the key is always the same");
}

#[test]
fn settings_of_transforms_before_anonymise_are_not_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(&directory, "acme.load.parquet", &regular(3));
    let pipeline = format!(
        "merge with={0} | remap map=sdb:ACME-prod | adjacent with={0} | cmd command='cat #acme' | anonymise key=acme | \
         slip every=2 | anonymise region=8s | select to=5",
        file.display()
    );
    let pipeline = parse(&pipeline).unwrap();
    let settings = serde_json::to_string(&pipeline).unwrap();
    assert!(!settings.to_lowercase().contains("acme"), "of a replay: {settings}");
    let (_, metadata) = all(pipeline.apply(load(regular(10))).unwrap());
    assert!(!format!("{metadata:?}").to_lowercase().contains("acme"), "{metadata:?}");
    assert_eq!(
        metadata.source.preamble,
        "Edited by iosonar: merge | remap | adjacent | cmd | anonymise | slip | anonymise region=8s | select to=5"
    );
}

#[test]
fn every_example_parses() {
    for transform in TRANSFORMS {
        let form = &transform.form;
        assert_eq!(parse(form.example).unwrap().to_string(), form.example);
        assert!(form.example.starts_with(form.name));
    }
    let names: BTreeSet<_> = TRANSFORMS.iter().map(|transform| transform.form.name).collect();
    assert_eq!(names.len(), TRANSFORMS.len(), "two of the same name");
}

#[test]
fn invalid_settings_are_explained() {
    for (pipeline, expected) in [
        ("slipp", "did you mean slip?"),
        ("slip evry=5", "did you mean every?"),
        ("select from=10 to=5", "must be later than from"),
        ("clip from=10s to=10s", "clip: to must be greater than from"),
        ("slip every=0", "slip: every must be at least 1"),
        ("resize min=10s max=5s", "max (default 65536 sectors"),
        ("adjacent with=", "an empty file name"),
        ("append with=", "an empty file name"),
        ("subst from=X", "no operation `X`"),
        ("scale", "scale needs time=NUMBER"),
        ("derived outputs=2 output=3", "from 1 to 2"),
        ("repeat | reverse", "never ends"),
        ("repeat times=0", "times must be at least 1"),
        ("merge with=a,b,c offset=1,2", "2 offsets for 3 loads"),
        ("anonymise key=", "anonymise: the key is empty"),
        ("anonymise key=' '", "anonymise: the key is empty"),
        ("", "nothing"),
    ] {
        let error = parse(pipeline).unwrap_err().to_string();
        assert!(error.contains(expected), "{pipeline}: {error}");
    }
    for (pipeline, expected) in [
        ("remap map=sdc:x", "the load has no device `sdc`; its numbers go from 0 to 1; did you mean sd"),
        ("remap map=sda:", "`sda:` is not of the form OLD:NEW"),
        ("remap map=sda,,sdb", "`` is not of the form OLD:NEW"),
        ("remap map=0:x,0:y", "`0:x,0:y` lists the device `sda` twice"),
        ("remap map=1,sdb:y", "lists the device `sdb` twice"),
    ] {
        let error = failure(pipeline, &[]);
        assert!(error.contains(expected), "{pipeline}: {error}");
    }
    assert!(failure("remap map=sda others=drop,", &[]).contains("did you mean drop?"));
    assert!(failure("merge with=/nowhere/x.load", &[]).contains("/nowhere/x.load"));
}

proptest! {
    #[test]
    fn the_parser_never_panics(text in "[a-z =|'0-9.,:-]{0,60}") {
        _ = parse(&text);
    }

    /// Positions, lengths and times up to the limits of their types.
    #[test]
    fn transforms_never_panic(
        drawn in prop::collection::vec((request(), any::<(u64, u64, i64)>(), 0_u16..3), 0..20), which in 0..TRANSFORMS.len(),
    ) {
        let mut requests: Vec<Request> = drawn
            .into_iter()
            .map(|(request, (sector, sectors, at), device)| Request {
                at: Nanos(at),
                device: DeviceId(device),
                sector: Sector(sector),
                // Bounded, because `anonymise` cuts requests into regions.
                sectors: Sectors(sectors % (1 << 24)),
                ..request
            })
            .collect();
        requests.sort_by_key(|request| request.at);
        let example = TRANSFORMS[which].form.example;
        if !example.contains("with=") {
            let Ok(mut rows) = parse(example).unwrap().apply(load(requests.clone())) else { return Ok(()) };
            while rows.next().is_ok_and(|next| next.is_some()) {}
        }
        let Ok(mut rows) = parse("adjacent").unwrap().apply(load(requests)) else { return Ok(()) };
        while rows.next().is_ok_and(|next| next.is_some()) {}
    }
}

#[test]
fn requests_moved_out_of_range_are_refused_by_number() {
    let directory = tempfile::tempdir().unwrap();
    let file =
        written(&directory, "other.load.parquet", &[Request::new(Nanos(1 << 60), Op::Read, Sector(0), Sectors(8))]);
    let merge = format!("merge with={} offset=100000d", file.display());
    let append = format!("scale time=3e9 | append with={}", file.display());
    for (pipeline, expected) in [
        ("spread factor=1e18", "spread: factor= moves request 2 out of range: a load holds sectors up to"),
        ("spread offset=18014398509481975s", "spread: offset= moves request 2 "),
        ("scale time=1e12", "scale: time= moves request 2 "),
        ("scale time=1e12", "times within 292 years of its zero"),
        ("repeat times=3 period=100000d", "repeat: period= or times= moves request 9 "),
        ("repeat times=3 offset=9007199254740992s", "repeat: offset= or times= moves request 9 "),
        ("slip every=2 increase=18014398509481983s", "slip: increase= moves request 2 "),
        ("resize factor=1e18 max=18014398509481984s", "resize: factor= or min= moves request 1 "),
        (merge.as_str(), "merge: offset= moves request 1 "),
        (append.as_str(), "append: with= moves request 5 "),
    ] {
        let error = failure(pipeline, &regular(4));
        assert!(error.contains(expected), "{pipeline}: {error}");
    }
    let late = [Request { at: Nanos(SECOND * 86_400), ..regular(1)[0] }];
    assert!(failure("select from=-106751d to=106751d base=zero", &late).contains("select: base= moves request 1 "));
    // The last sector is valid.
    assert_eq!(edited("spread factor=1 offset=18014398509481975s", &regular(1))[0].end().0, MAX_END_SECTOR);
}

#[test]
fn endless_pipelines_are_known() {
    assert!(parse("repeat").unwrap().is_endless());
    assert!(parse("repeat | slip").unwrap().is_endless());
    assert!(!parse("repeat times=2").unwrap().is_endless());
    assert!(!parse("repeat | select to=1h | reverse").unwrap().is_endless());
}

#[test]
fn docs_transforms_md_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/transforms.md");
    let expected_text = documentation();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &expected_text).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == expected_text, "docs/transforms.md is out of date: run this test with UPDATE_DOCS=1");
}
