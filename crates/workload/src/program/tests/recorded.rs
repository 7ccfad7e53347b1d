//! Streams that are recorded loads.

use std::path::{Path, PathBuf};

use iosonar_trace::{Device, DeviceId, Metadata, Nanos, Op, Request, Sector, Sectors, create_load, open_load};

use super::{Kind, Layout, Program, Settings, on_a_device, open_requests, together};

/// A directory with loads.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, name: &str, devices: &[&str], requests: &[Request]) {
        let mut metadata = Metadata::new(Kind::Load, "test");
        metadata.devices = devices.iter().map(|name| Device { name: (*name).into(), sectors: None }).collect();
        let mut writer = create_load(&self.path(name), &metadata).unwrap();
        requests.iter().for_each(|request| writer.write(request).unwrap());
        writer.finish(&metadata).unwrap();
    }

    fn parse(&self, streams: &str) -> Result<Program, String> {
        let text = format!("name = \"p\"\nabout = \"A test\"\n{streams}");
        Program::parse(self.path("p.toml").to_str().unwrap(), &text)
    }

    /// The only stream, with these keys.
    fn stream(&self, keys: &str) -> Result<Program, String> {
        self.parse(&format!("[[stream]]\nname = \"s\"\n{keys}"))
    }
}

fn request(millis: i64, device: u16, op: Op, sector: u64, sectors: u64) -> Request {
    let at = Nanos(millis * 1_000_000);
    Request { device: DeviceId(device), ..Request::new(at, op, Sector(sector), Sectors(sectors)) }
}

/// Times in milliseconds, and sectors.
fn places(all: &[Request]) -> Vec<(i64, u64)> {
    all.iter().map(|request| (request.at.0 / 1_000_000, request.sector.0)).collect()
}

fn rows(path: &Path) -> Vec<Request> {
    let mut load = open_load(path).unwrap();
    std::iter::from_fn(|| load.next().unwrap()).collect()
}

#[test]
fn a_stream_of_a_load_makes_exactly_its_requests() {
    let directory = Directory::new();
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Discard];
    // Several at a time, more than one wake can ask for.
    let made: Vec<_> = (0..500_u64)
        .map(|n| match ops[n as usize % 4] {
            Op::Flush => request(n as i64 / 20, 0, Op::Flush, 0, 0),
            op => request(n as i64 / 20, 0, op, n * 64, 8 + n % 3 * 8),
        })
        .collect();
    for name in ["a.load.parquet", "a.load.gz"] {
        directory.load(name, &["sda"], &made);
        let program = directory.stream(&format!("load = \"{name}\"")).unwrap();
        let stream = &program.streams()[0];
        assert!(stream.is_open && stream.has_timers && stream.runs_ahead && stream.ends);
        assert_eq!(open_requests(&program, &Settings { scale: 3, ..together() }, 10.0), rows(&directory.path(name)));
        let demand = program.place(&together()).unwrap().demand();
        assert_eq!((demand.largest, demand.reads, demand.writes), (Sectors(24), true, true));
        assert_eq!(
            program
                .place(&together())
                .unwrap()
                .parts(1)
                .map(|(all, ahead)| (all[0].runtime.filaments(), ahead.is_some())),
            Ok((0, true))
        );
    }
}

#[test]
fn times_and_positions_follow_the_keys() {
    let directory = Directory::new();
    let made: Vec<_> = (1..=3).map(|n| request(n * 100, 0, Op::Read, n as u64 * 1000, 8)).collect();
    directory.load("a.load.gz", &["sda"], &made);
    let all = |keys: &str| {
        let program = directory.stream(&format!("load = \"a.load.gz\"\n{keys}")).unwrap();
        places(&open_requests(&program, &together(), 100.0))
    };
    assert_eq!(all("start = \"1s\"\nspeedup = 2"), [(1050, 1000), (1100, 2000), (1150, 3000)]);
    assert_eq!(all("start = \"1s\"\nend = \"1.2s\""), [(1100, 1000)]);
    // A pass lasts 300 ms: 200 ms from the first to the last, and the mean distance.
    let passes = [100, 200, 300, 400, 500, 600];
    assert_eq!(all("passes = 2").iter().map(|(at, _)| *at).collect::<Vec<_>>(), passes);
    assert_eq!(all("passes = 2\nend = \"450ms\"").len(), 4);
    // 1004 sectors from sector 2048: the second request would end at 1000 + 8 of 1004.
    let wrapped = all("region = \"2048s..3052s\"");
    assert_eq!(wrapped, [(100, 2048 + 996), (200, 2048 + 996), (300, 2048 + 992)]);
}

#[test]
fn a_device_of_the_load_goes_to_a_device_of_the_program() {
    let directory = Directory::new();
    let made: Vec<_> = (0..20).map(|n| request(n, n as u16 % 2, Op::Write, n as u64 * 8, 8)).collect();
    directory.load("two.load.parquet", &["sda", "sdb"], &made);
    let devices = "[devices]\nlog = \"1G\"\ndata = \"2G\"\n";
    let stream = "[[stream]]\nname = \"s\"\nload = \"two.load.parquet\"\ndevice = \"data\"\n";
    let program = directory.parse(&format!("{devices}{stream}load_device = \"sdb\"")).unwrap();
    let settings = Settings::new(Layout::Separate(vec![Sectors(1 << 21), Sectors(1 << 22)]));
    let all = open_requests(&program, &settings, 1.0);
    assert_eq!(places(&all), (0..10).map(|n| (2 * n + 1, (2 * n as u64 + 1) * 8)).collect::<Vec<_>>());
    assert!(all.iter().all(|request| request.device == DeviceId(1)));
    let why = directory.parse(&format!("{devices}{stream}")).unwrap_err();
    let expected = "p.toml:6: stream s, load_device: missing: the load has requests of 2 devices (sda, sdb); name one";
    assert!(why.contains(expected), "{why}");
    let why = directory.parse(&format!("{devices}{stream}load_device = \"sdc\"")).unwrap_err();
    assert!(why.contains("p.toml:10: stream s, load_device: the load has no device sdc"), "{why}");
}

#[test]
fn a_load_and_a_closed_stream_run_together() {
    let directory = Directory::new();
    let made: Vec<_> = (0..50).map(|n| request(n * 2, 0, Op::Write, n as u64 * 8, 8)).collect();
    directory.load("a.load.parquet", &["sda"], &made);
    let closed = "[[stream]]\nname = \"c\"\nclosed = true\nop = \"read\"\nrequests = 100\n";
    let load = "[[stream]]\nname = \"s\"\nload = \"a.load.parquet\"\n";
    let program = directory.parse(&format!("{closed}{load}")).unwrap();
    let all = on_a_device(&program, &together(), Nanos::MAX);
    let of = |number| {
        all.iter()
            .filter(move |(submitted, _)| submitted.stream == number)
            .map(|(submitted, _)| submitted.at.0 / 1_000_000)
    };
    assert_eq!(of(0).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    assert_eq!(of(1).collect::<Vec<_>>(), (0..100).step_by(2).collect::<Vec<_>>());
}

#[test]
fn keys_that_a_load_does_not_have_are_refused() {
    let directory = Directory::new();
    directory.load("a.load.gz", &["sda"], &[request(0, 0, Op::Read, 0, 64)]);
    for (keys, expected) in [
        ("load = \"b.load.gz\"", "p.toml:5: stream s, load: cannot read"),
        ("load = \"-\"", "p.toml:5: stream s, load: name the file of a load"),
        ("load = \"a.load.gz\"\ninstances = 2", "p.toml:6: stream s, instances: a load is one sequence"),
        ("load = \"a.load.gz\"\nafter = \"x\"", "p.toml:6: stream s, after: the times of a load do not wait"),
        ("load = \"a.load.gz\"\nper_scale = true", "p.toml:6: stream s, per_scale: --scale does not"),
        ("load = \"a.load.gz\"\nscript = \"x.lua\"", "p.toml:6: stream s, script: a stream is a load or a script"),
        ("load = \"a.load.gz\"\nsizes = \"4k\"", "p.toml:6: stream s, sizes: the load says what"),
        ("load = \"a.load.gz\"\nregion = \"16k\"", "p.toml:6: stream s, region: the load has a request of 32 KiB, but"),
        ("load = \"a.load.gz\"\npasses = 0", "p.toml:6: stream s, passes: it is 0"),
        ("closed = true\nop = \"read\"\nspeedup = 2", "p.toml:7: stream s, speedup: only a stream that is a load"),
    ] {
        let why = directory.stream(keys).unwrap_err();
        assert!(why.contains(expected), "{keys}: {why}");
    }
    let after = "load = \"a.load.gz\"\n[[stream]]\nname = \"b\"\nclosed = true\nop = \"read\"\nafter = \"s\"";
    assert!(directory.stream(after).unwrap_err().contains("stream s is a load, which does not wait for its requests"));
}

#[test]
fn a_damaged_load_ends_the_program_at_the_damage() {
    let directory = Directory::new();
    let made: Vec<_> = (0..200_000).map(|n| request(n, 0, Op::Read, n as u64 * 7919 % 1_000_000 * 8, 8)).collect();
    directory.load("a.load.parquet", &["sda"], &made);
    let path = directory.path("a.load.parquet");
    let program = directory.stream("load = \"a.load.parquet\"").unwrap();
    // The footer, which the check reads, stays whole.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (mut runtime, _) = program.place(&together()).unwrap().open_part().unwrap();
    let mut count = 0;
    while let Some(at) = runtime.next_at() {
        count += usize::from(runtime.next_due(at).is_some());
    }
    assert!(count < made.len(), "{count}");
    let why = runtime.overrun().expect("it failed").to_string();
    assert!(why.contains("p.toml:5: stream s, load: ") && why.contains("a.load.parquet: "), "{why}");
}

#[test]
fn a_load_that_was_cut_short_is_a_warning() {
    let directory = Directory::new();
    let made: Vec<_> = (0..5000).map(|n| request(n, 0, Op::Read, n as u64 * 7919 % 1000 * 8, 8)).collect();
    directory.load("a.load.gz", &["sda"], &made);
    let bytes = std::fs::read(directory.path("a.load.gz")).unwrap();
    std::fs::write(directory.path("cut.load.gz"), &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(directory.stream("load = \"a.load.gz\"").unwrap().warnings(), [""; 0]);
    let program = directory.stream("load = \"cut.load.gz\"").unwrap();
    let warnings = program.warnings().join("\n");
    assert!(warnings.contains("cut.load.gz is incomplete: its recording or conversion was cut short"), "{warnings}");
    let submitted = open_requests(&program, &together(), 10.0).len();
    assert!((1..5000).contains(&submitted), "{submitted}");
}
