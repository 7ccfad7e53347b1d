//! Transforms: examples, errors, what they record. `models` compares each with a slow and obvious model.

mod joined;
mod late;
mod metadata;
mod models;
mod positions;

use std::collections::BTreeSet;
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
