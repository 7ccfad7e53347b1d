pub(crate) mod device;
mod ends;
mod errors;
mod recorded;
mod transactions;

use iosonar_trace::params::schema_of;
use iosonar_trace::{DeviceId, Flags, Kind, Metadata, Nanos, Op, Reader, Request, Sector, Sectors};

pub(crate) use device::on_a_device;

use super::*;
use crate::filament::{SubmittedRequest, open_load};

/// 1 GiB.
const GIB: u64 = 1 << 21;

pub(crate) fn together() -> Settings {
    Settings::new(Layout::Together(Sectors(16 * GIB)))
}

fn program(text: &str) -> Program {
    Program::parse("p.toml", &format!("name = \"p\"\nabout = \"A test\"\n{text}")).unwrap_or_else(|why| panic!("{why}"))
}

/// The open part of a program, up to this time.
pub(crate) fn open_requests(program: &Program, settings: &Settings, seconds: f64) -> Vec<Request> {
    let (runtime, _) = program.place(settings).unwrap().open_part().unwrap();
    let mut load = open_load(runtime, Nanos::from_secs(seconds), Metadata::new(Kind::Load, "test"));
    let mut all = Vec::new();
    while let Some(request) = load.next().unwrap() {
        all.push(request);
    }
    assert_eq!((load.left_out(), load.overrun()), (0, None));
    all
}

fn millis(all: &[(SubmittedRequest, Nanos)]) -> Vec<i64> {
    all.iter().map(|(submitted, _)| submitted.at.0 / 1_000_000).collect()
}

#[test]
fn a_program_of_one_open_stream_asks_for_what_generate_writes() {
    for (arrivals, positions) in [("poisson rate=500", "zipf"), ("on-off", "streams count=4"), ("bursts", "hotspots")] {
        let text = format!(
            "[[stream]]\nname = \"s\"\narrivals = \"{arrivals}\"\npositions = \"{positions}\"\nsizes = \"4k:70,64k:30\"\nmix = \"read=70,write=30\""
        );
        let mut recipe = crate::Recipe::new(arrivals, positions).unwrap();
        recipe.sizes = "4k:70,64k:30".parse().unwrap();
        recipe.mix = "read=70,write=30".parse().unwrap();
        recipe.span = Sectors(16 * GIB);
        recipe.duration = Nanos::from_secs(20.0);
        recipe.seed = 7;
        let mut load = recipe.generate().unwrap();
        let mut generated = Vec::new();
        while let Some(request) = load.next().unwrap() {
            generated.push(request);
        }
        assert!(generated.len() > 100);
        assert_eq!(open_requests(&program(&text), &Settings { seed: 7, ..together() }, 20.0), generated, "{arrivals}");
    }
}

#[test]
fn instances_and_streams_depend_on_the_seed_alone() {
    let one = "[[stream]]\nname = \"a\"\narrivals = \"poisson rate=100\"\nop = \"read\"\ninstances = 3\n";
    let two = format!("{one}[[stream]]\nname = \"b\"\narrivals = \"poisson rate=100\"\nop = \"write\"\n");
    let (one, two) = (program(one), program(&two));
    let all = open_requests(&one, &together(), 100.0);
    assert!((all.len() as f64 - 30_000.0).abs() < 5.0 * 30_000_f64.sqrt(), "{}", all.len());
    assert_eq!(all, open_requests(&one, &together(), 100.0));
    assert_ne!(all, open_requests(&one, &Settings { seed: 2, ..together() }, 100.0));
    let mut first = open_requests(&two, &together(), 100.0);
    first.retain(|request| request.op == Op::Read);
    assert_eq!(first, all, "another stream changes nothing");
    let mut places: Vec<u64> = all.iter().map(|request| request.sector.0).collect();
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 29_000, "no two instances draw the same positions: {}", places.len());
    let more = open_requests(&one, &Settings { scale: 4, ..together() }, 10.0);
    assert!((more.len() as f64 - 12_000.0).abs() < 5.0 * 12_000_f64.sqrt(), "{}", more.len());
}

#[test]
fn a_closed_stream_keeps_its_depth_and_thinks_between_requests() {
    let text = "[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n";
    let until = Nanos::from_secs(0.1);
    let all = on_a_device(&program(text), &together(), until);
    assert_eq!(millis(&all), (0..100).collect::<Vec<_>>());
    assert!(all.windows(2).all(|w| w[1].0.cause == Some(w[0].0.request)));
    for depth in [2, 8, 33] {
        let all = on_a_device(&program(&format!("{text}depth = {depth}\n")), &together(), until);
        assert_eq!(all.len(), depth * 100, "depth / response time");
    }
    let all = on_a_device(&program(&format!("{text}think = \"constant value=9ms\"\ndepth = 2\n")), &together(), until);
    assert_eq!(
        millis(&all),
        [9, 9, 19, 19, 29, 29, 39, 39, 49, 49, 59, 59, 69, 69, 79, 79, 89, 89, 99, 99][..20].to_vec()[..all.len()]
    );
    assert!(all.len() >= 18);
    let all = on_a_device(&program(&format!("{text}rate_limit = 200\nrequests = 7\n")), &together(), until);
    assert_eq!(millis(&all), [0, 5, 10, 15, 20, 25, 30]);
    let all = on_a_device(&program(&format!("{text}start = \"50ms\"\nend = \"60ms\"\n")), &together(), until);
    assert_eq!(millis(&all), (50..60).collect::<Vec<_>>());
}

#[test]
fn instances_with_regions_of_their_own_do_not_meet() {
    let text = "[[stream]]\nname = \"s\"\ninstances = 4\nclosed = true\nop = \"write\"\npositions = \"sequential\"\nregion = \"25%..75%\"\nown_region = true\nsizes = \"64k\"\nrequests = 10\n";
    let all = on_a_device(&program(text), &together(), Nanos::MAX);
    for instance in 0..4 {
        let first = 16 * GIB / 4 + instance * 2 * GIB;
        let own =
            all.iter().map(|(submitted, _)| submitted.spec.sector.0).filter(|s| (first..first + 2 * GIB).contains(s));
        assert!(own.eq((0..10).map(|n| first + n * 128)), "{instance}");
    }
}

#[test]
fn parameters_replace_their_names_in_texts() {
    let text = "[set]\nrate = 100\nop = \"read\"\n[[stream]]\nname = \"s\"\narrivals = \"uniform rate=$rate\"\nmix = \"$op=1\"\n";
    let program = program(text);
    assert_eq!(program.parameters(), [("rate".to_owned(), "100".to_owned()), ("op".to_owned(), "read".to_owned())]);
    assert!((998..=1001).contains(&open_requests(&program, &together(), 10.0).len()));
    let set = |name: &str, value: &str| Settings { set: vec![(name.into(), value.into())], ..together() };
    assert!((1998..=2001).contains(&open_requests(&program, &set("rate", "200"), 10.0).len()));
    assert!(
        program.place(&set("rates", "5")).err().unwrap().contains("p has no parameter `rates`; did you mean rate?")
    );
    let why = program.place(&set("rate", "0")).err().unwrap();
    assert!(why.starts_with("p.toml:8: stream s, arrivals: ") && why.contains("not a rate"), "{why}");
}

#[test]
fn a_placement_has_the_streams_of_its_parameters() {
    let text = "[set]\ncount = 3\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\ninstances = \"$count\"\n";
    let program = program(text);
    assert_eq!(program.streams()[0].instances, 3);
    let settings = Settings { scale: 2, set: vec![("count".into(), "5".into())], ..together() };
    let placement = program.place(&settings).unwrap();
    assert_eq!((placement.streams()[0].instances, placement.runtime().unwrap().filaments()), (10, 10));
}

#[test]
fn sizes_of_devices_grow_with_the_scale_if_the_program_says_so() {
    let text = "[devices]\nlog = \"1G\"\ndata = { size = \"2G\", per_scale = true }\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\ndevice = \"data\"\nregion = \"50%..\"\nrequests = 1000\n";
    let program = program(text);
    for scale in 1..4 {
        let all = on_a_device(&program, &Settings { scale, ..together() }, Nanos::MAX);
        let last = all.iter().map(|(submitted, _)| submitted.spec.sector.0).max().unwrap();
        let first = all.iter().map(|(submitted, _)| submitted.spec.sector.0).min().unwrap();
        assert_eq!(all.len() as u64, scale * 1000);
        assert!((GIB * (1 + scale)..GIB * (1 + 2 * scale)).contains(&first) && last < GIB * (1 + 2 * scale));
        assert!(last > GIB * (1 + 2 * scale) - GIB / 10);
    }
    let why = program.place(&Settings { scale: 8, ..together() }).err().unwrap();
    assert!(why.contains("p.toml:3: devices: device data ends at sector") && why.contains("smaller --scale"), "{why}");
}

/// After a change of the keys: `IOSONAR_UPDATE_SCHEMA=1 cargo test --workspace the_schema`.
#[test]
fn the_schema_in_the_documentation_has_all_keys() {
    let mut schema = schema_of(PROGRAM);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "A program of `iosonar workload`, in TOML".into();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/workload.json");
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("IOSONAR_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap_or_default() == text, "docs/schemas/workload.json is out of date");
}

#[test]
fn the_documentation_describes_every_key() {
    let text = include_str!("../../../../docs/workloads.md");
    for key in PROGRAM.iter().chain(DEVICE).chain(STREAM).chain(STEP) {
        assert!(text.contains(&format!("`{}`", key.name)), "docs/workloads.md does not mention `{}`", key.name);
    }
}
