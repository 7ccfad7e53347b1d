mod recorded;

use iosonar_trace::params::schema_of;
use iosonar_trace::{DeviceId, Flags, Kind, Metadata, Nanos, Op, Outcome, Reader, Request, Sector, Sectors};

use super::*;
use crate::filament::{Asked, open_load};

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

/// Runs a program on a device that serves each request in 1 ms, any number at a time, until this time: each request with
/// its completion.
pub(crate) fn on_a_device(program: &Program, settings: &Settings, until: Nanos) -> Vec<(Asked, Nanos)> {
    const SERVICE: Nanos = Nanos(1_000_000);
    let mut runtime = program.place(settings).unwrap().runtime().unwrap();
    let (mut now, mut flying, mut all) = (Nanos::ZERO, std::collections::VecDeque::new(), Vec::new());
    while !(runtime.is_done() && flying.is_empty()) {
        while let Some(asked) = runtime.next_due(now) {
            flying.push_back((now + SERVICE, asked));
        }
        let first = flying.front().map(|(at, _)| *at);
        // The last event of a program may submit no request.
        let Some(next) = first.into_iter().chain(runtime.next_at()).min() else { break };
        now = next;
        if now > until {
            break;
        }
        if first == Some(now) {
            let (at, asked) = flying.pop_front().unwrap();
            all.push((asked, at));
            if let Some(ticket) = asked.ticket {
                runtime.completed(ticket, Outcome::Ok, asked.ask.sectors.bytes(), now);
            }
        }
    }
    assert_eq!(runtime.overrun(), None);
    all
}

fn millis(all: &[(Asked, Nanos)]) -> Vec<i64> {
    all.iter().map(|(asked, _)| asked.at.0 / 1_000_000).collect()
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

const TRANSACTION: &str = r#"
[devices]
log = "10%"
data = "90%"
[[stream]]
name = "t"
device = "data"
closed = true
sizes = "8k"
requests = 12
[[stream.step]]
op = "read"
repeat = 2
[[stream.step]]
op = "write"
same = true
[[stream.step]]
op = "fua"
device = "log"
sizes = "4k"
positions = "append"
wait = false
[[stream.step]]
op = "flush"
device = "log"
"#;

#[test]
fn a_step_waits_for_all_before_it_unless_issued_at_once() {
    let all = on_a_device(&program(TRANSACTION), &together(), Nanos::MAX);
    assert_eq!(all.len(), 15, "a transaction that has begun is finished");
    assert_eq!(millis(&all), [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 10, 11]);
    let log = 16 * GIB / 10 / 8 * 8;
    for (number, transaction) in all.chunks(5).enumerate() {
        let asks: Vec<_> = transaction.iter().map(|(asked, _)| asked.ask).collect();
        let ops: Vec<_> = asks.iter().map(|ask| (ask.op, ask.flags)).collect();
        let (read, write) = ((Op::Read, Flags::NONE), (Op::Write, Flags::NONE));
        assert_eq!(ops, [read, read, write, (Op::Write, Flags::FUA), (Op::Flush, Flags::NONE)]);
        assert_eq!((asks[1].sector, asks[1].sectors), (asks[2].sector, asks[2].sectors), "the same place");
        assert!(asks[..3].iter().all(|ask| ask.sector.0 >= log && ask.sectors == Sectors(16)));
        assert_eq!((asks[3].sector, asks[3].sectors), (Sector(number as u64 * 8), Sectors(8)), "appended");
        assert_eq!((asks[4].sector, asks[4].sectors), (Sector(0), Sectors(0)));
        assert!(asks.iter().all(|ask| ask.device == DeviceId(0)), "side by side on one target");
    }
    let separate = Settings::new(Layout::Separate(vec![Sectors(GIB), Sectors(GIB)]));
    let all = on_a_device(&program(TRANSACTION), &separate, Nanos::MAX);
    let devices: Vec<_> = all[..5].iter().map(|(asked, _)| asked.ask.device.0).collect();
    assert_eq!(devices, [1, 1, 1, 0, 0]);
    let names: Vec<_> = program(TRANSACTION).place(&separate).unwrap().devices().into_iter().map(|d| d.name).collect();
    assert_eq!(names, ["log", "data"], "in the order of the text");
}

#[test]
fn open_transactions_begin_at_their_arrivals_within_the_depth() {
    let text = TRANSACTION.replace("closed = true", "arrivals = \"uniform rate=1k\"").replace("12", "500");
    let begins = |text: &str| -> Vec<i64> {
        let all = on_a_device(&program(text), &together(), Nanos::MAX);
        assert_eq!(all.len(), 500);
        let reads = all.iter().filter(|(asked, _)| asked.ask.op == Op::Read && asked.cause.is_none());
        reads.map(|(asked, _)| asked.at.0 / 1_000_000).collect()
    };
    let free = begins(&text);
    assert_eq!(free.len(), 100);
    assert!(free.windows(2).all(|w| w[1] - w[0] == 1), "one each millisecond: {free:?}");
    // Four at a time, of 4 ms each, keep up; two do not, so others wait for them.
    assert_eq!(begins(&text.replace("sizes = \"8k\"", "sizes = \"8k\"\ndepth = 5")), free);
    assert!(
        on_a_device(&program(&text.replace("sizes = \"8k\"", "sizes = \"8k\"\ndepth = 2")), &together(), Nanos::MAX)
            .last()
            .is_some_and(|(_, at)| at.0 > 195_000_000)
    );
    assert!(!program(&text).streams()[0].is_open, "its requests wait for others");
}

#[test]
fn many_requests_at_once_are_all_issued_at_the_same_time() {
    let text = "[[stream]]\nname = \"s\"\nend = \"10s\"\narrivals = \"uniform rate=2\"\nop = \"write\"\n[[stream.step]]\nrepeat = 100\nwait = false\n";
    let all = open_requests(&program(text), &together(), 9.9);
    assert_eq!(all.len() % 100, 0);
    assert!(all.len() >= 1800 && all.chunks(100).all(|chunk| chunk.iter().all(|request| request.at == chunk[0].at)));
    let closed = text.replace("arrivals = \"uniform rate=2\"", "closed = true\ndepth = 3\nrequests = 600");
    let all = on_a_device(&program(&closed), &together(), Nanos::MAX);
    assert_eq!(all.len(), 600);
    assert!(millis(&all)[..300].iter().all(|at| *at == 0) && millis(&all)[300..].iter().all(|at| *at == 1));
}

#[test]
fn instances_with_regions_of_their_own_do_not_meet() {
    let text = "[[stream]]\nname = \"s\"\ninstances = 4\nclosed = true\nop = \"write\"\npositions = \"sequential\"\nregion = \"25%..75%\"\nown_region = true\nsizes = \"64k\"\nrequests = 10\n";
    let all = on_a_device(&program(text), &together(), Nanos::MAX);
    for instance in 0..4 {
        let first = 16 * GIB / 4 + instance * 2 * GIB;
        let own = all.iter().map(|(asked, _)| asked.ask.sector.0).filter(|s| (first..first + 2 * GIB).contains(s));
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
        let last = all.iter().map(|(asked, _)| asked.ask.sector.0).max().unwrap();
        let first = all.iter().map(|(asked, _)| asked.ask.sector.0).min().unwrap();
        assert_eq!(all.len() as u64, scale * 1000);
        assert!((GIB * (1 + scale)..GIB * (1 + 2 * scale)).contains(&first) && last < GIB * (1 + 2 * scale));
        assert!(last > GIB * (1 + 2 * scale) - GIB / 10);
    }
    let why = program.place(&Settings { scale: 8, ..together() }).err().unwrap();
    assert!(why.contains("p.toml:3: devices: device data ends at sector") && why.contains("smaller --scale"), "{why}");
}

/// The error of a text with this line in its stream.
fn refused(text: &str) -> String {
    Program::parse("p.toml", text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn errors_name_the_file_the_line_and_the_key_and_say_what_to_do() {
    let head = "name = \"p\"\nabout = \"A test\"\n";
    let stream = format!("{head}[[stream]]\nname = \"s\"\narrivals = \"poisson\"\nop = \"read\"\n");
    for (text, expected) in [
        (format!("{head}streams = 5\n"), "p.toml:3: streams: unknown key; did you mean stream?"),
        (head.to_owned(), "p.toml:1: stream: the program has no stream; add [[stream]]"),
        ("about = \"x\"\n".to_owned(), "p.toml:1: name: missing"),
        (format!("{head}stream = 5\n"), "p.toml:3: stream: expected tables; write [[stream]]"),
        (format!("{stream}arivals = 5\n"), "p.toml:7: stream 1, arivals: unknown key; did you mean arrivals?"),
        (
            format!("{stream}closed = true\n"),
            "p.toml:7: stream s, closed: a stream is open (arrivals) or closed, not both",
        ),
        (stream.replace("arrivals = \"poisson\"", ""), "p.toml:3: stream s, arrivals: missing: say when"),
        (
            stream.replace("poisson", "poison"),
            "p.toml:5: stream s, arrivals: unknown arrivals poison; did you mean poisson?",
        ),
        (stream.replace("poisson", "poisson rat=5"), "did you mean rate?"),
        (
            stream.replace("\"read\"", "\"raed\""),
            "p.toml:6: stream s, op: unknown operation `raed`; did you mean read?",
        ),
        (stream.replace("op = \"read\"", ""), "stream s, op: missing: set op = \"read\""),
        (format!("{stream}mix = \"read=1\"\n"), "p.toml:7: stream s, mix: set `op` or `mix`, not both"),
        (format!("{stream}sizes = \"big\"\n"), "p.toml:7: stream s, sizes: `big` is not a length"),
        (format!("{stream}sizes = [4]\n"), "p.toml:7: stream s, sizes: expected a text or a number, found array"),
        (format!("{stream}region = \"50%..20%\"\n"), "p.toml:7: stream s, region: it is empty"),
        (format!("{stream}region = \"9999T\"\n"), "use a smaller region"),
        (
            format!("{stream}sizes = \"64k\"\nregion = \"4k\"\n"),
            "p.toml:7: stream s, sizes: requests of 128 sectors are larger than",
        ),
        (format!("{stream}device = \"tagret\"\n"), "unknown device tagret; did you mean target?"),
        (format!("{stream}think = \"constant value=1\"\n"), "p.toml:7: stream s, think: only a closed stream has it"),
        (format!("{stream}instances = 0\n"), "p.toml:7: stream s, instances: it is 0"),
        (format!("{stream}instances = \"2G\"\n"), "use fewer instances"),
        (format!("{stream}depth = 2\n"), "p.toml:7: stream s, depth: no request of this stream waits"),
        (format!("{stream}start = 5\nend = \"5s\"\n"), "p.toml:8: stream s, end: the stream ends before it starts"),
        (format!("{stream}start = \"$x\"\n"), "p.toml:7: stream s, start: unknown parameter $x"),
        (
            format!("{stream}[[stream.step]]\nsame = true\n"),
            "p.toml:8: stream s, step 1, same: the first step has no request before it",
        ),
        (
            format!("{stream}[[stream.step]]\n[[stream.step]]\nsame = true\nsizes = \"4k\"\n"),
            "p.toml:10: stream s, step 2, sizes: the step has the place",
        ),
        (format!("{stream}[[stream.step]]\nthink = 5\n"), "p.toml:8: stream s, step 1, think: unknown key"),
        (format!("{stream}{}", &stream[head.len()..]), "p.toml:8: stream 2, name: another stream has the name s"),
        (format!("{stream}[devices]\na = \"0%\"\n"), "p.toml:8: devices, a: the share is 0%"),
        (format!("{stream}[devices]\na = \"60%\"\nb = \"60%\"\n"), "devices: device b ends at sector"),
        (
            format!("{stream}[devices]\na = {{ szie = \"1G\" }}\n"),
            "p.toml:8: devices, a, szie: unknown key; did you mean size?",
        ),
        (
            format!("{stream}[devices]\na = \"50%\"\nb = \"50%\"\n"),
            "p.toml:3: stream s, device: missing: the program has several devices",
        ),
        ("name = \n".to_owned(), "p.toml:1: "),
    ] {
        let why = refused(&text);
        assert!(why.contains(expected), "expected: {expected}\nfound: {why}");
    }
}

#[test]
fn more_instances_than_memory_are_refused_before_they_are_made() {
    for keys in ["instances = \"1G\"", "depth = \"1G\"", "instances = \"30k\"\ndepth = \"30k\""] {
        let text = format!("[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n{keys}\n");
        let why = program(&text).place(&together()).unwrap().runtime().err().expect("it is refused");
        assert!(why.contains("p.toml:") && why.contains("of memory, and") && why.contains("smaller scale"), "{why}");
    }
}

#[test]
fn a_parameter_cannot_name_another_one() {
    let why = refused("name = \"p\"\nabout = \"x\"\n[set]\na = \"$b\"\nb = 1\n");
    assert!(why.contains("p.toml:4: set, a: the value of a parameter cannot name another one"), "{why}");
}

/// Letters of the operations, in the order in which they were asked for.
fn letters(all: &[(Asked, Nanos)]) -> String {
    let mut asked: Vec<&Asked> = all.iter().map(|(asked, _)| asked).collect();
    asked.sort_by_key(|asked| (asked.at, asked.request));
    asked.iter().map(|asked| format!("{:?}", asked.ask.op).remove(0)).collect()
}

#[test]
fn a_flush_follows_each_so_many_writes() {
    let until = Nanos::from_secs(1.0);
    let run = |text: &str| on_a_device(&program(&format!("[[stream]]\nname = \"s\"\n{text}")), &together(), until);
    // The last writes of a stream are not flushed, as in fio.
    let closed = "closed = true\nop = \"write\"\nrequests = 8\n";
    assert_eq!(letters(&run(&format!("{closed}flush_every = 1\n"))), "WFWFWFWFWFWFWFW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\n"))), "WWWFWWWFWW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\ndepth = 4\n"))), "WWWFWWWFWW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\nthink = \"constant value=5ms\"\n"))), "WWWFWWWFWW");
    // Within a transaction, too; and of several requests at once.
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\n[[stream.step]]\nrepeat = 8\n"))), "WWWFWWWFWW");
    let at_once = run(&format!("{closed}flush_every = 3\n[[stream.step]]\nrepeat = 8\nwait = false\n"));
    assert_eq!(letters(&at_once), "WWWFWWWFWW");
    // Reads do not count.
    let mixed = letters(&run("closed = true\nmix = \"read=50,write=50\"\nrequests = 200\nflush_every = 4\n"));
    let writes = mixed.replace('R', "");
    assert!(mixed.contains('R') && writes.starts_with("WWWWFWWWWFWWWWF"), "{mixed}");
    let (flushes, writes) = (writes.matches('F').count(), writes.matches('W').count());
    assert!(flushes == writes / 4 || flushes == (writes - 1) / 4, "{mixed}");
}

#[test]
fn a_flush_of_an_open_stream_comes_when_its_write_has_completed() {
    let text =
        "[[stream]]\nname = \"s\"\narrivals = \"uniform rate=100\"\nop = \"write\"\nrequests = 6\nflush_every = 2\n";
    let all = on_a_device(&program(text), &together(), Nanos::from_secs(1.0));
    assert_eq!(letters(&all), "WWFWWFWWF");
    let mut asked = all.iter().map(|(asked, _)| asked.at.0).collect::<Vec<_>>();
    asked.sort_unstable();
    // A request takes a millisecond on this device.
    assert_eq!(asked[2] - asked[1], 1_000_000);
    // A load has no completions: the flush has the time of the write.
    let requests = open_requests(&program(text), &together(), 1.0);
    assert_eq!(requests.iter().map(|r| format!("{:?}", r.op).remove(0)).collect::<String>(), "WWFWWFWWF");
    assert_eq!((requests[2].at, requests[2].sectors), (requests[1].at, Sectors(0)));
}

#[test]
fn a_stream_ends_after_its_bytes() {
    for kind in ["closed = true", "arrivals = \"uniform rate=1000\""] {
        let text = format!(
            "[[stream]]\nname = \"s\"\n{kind}\nop = \"write\"\nsizes = \"4k:50,12k:50\"\nregion = \"1M\"\n\
             positions = \"random-map\"\nbytes = \"1M\"\n"
        );
        let all = on_a_device(&program(&text), &together(), Nanos::from_secs(10.0));
        let mut sectors: Vec<u64> =
            all.iter().flat_map(|(asked, _)| asked.ask.sector.0..asked.ask.sector.0 + asked.ask.sectors.0).collect();
        sectors.sort_unstable();
        assert!(sectors.iter().copied().eq(0..2048), "{kind}");
        // Requests of 8 KiB on average would be 128; the map makes them shorter.
        assert!((135..220).contains(&all.len()), "{}", all.len());
    }
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

#[test]
fn a_transaction_is_one_of_the_steps_with_weights() {
    let program = program(
        "[[stream]]\nname = \"s\"\nclosed = true\ndepth = 4\nrequests = 20_000\npositions = \"sequential\"\n\
         [[stream.step]]\nop = \"read\"\nweight = 3\nregion = \"1G\"\n\
         [[stream.step]]\nop = \"write\"\nweight = 1\nregion = \"1G..2G\"\nsizes = \"64k\"",
    );
    let all = on_a_device(&program, &together(), Nanos::MAX);
    let (reads, writes): (Vec<_>, Vec<_>) = all.iter().map(|(asked, _)| asked.ask).partition(|ask| ask.op == Op::Read);
    assert_eq!(reads.len() + writes.len(), 20_000);
    // Five standard deviations of a binomial count.
    assert!((reads.len() as f64 - 15_000.0).abs() < 5.0 * (20_000.0_f64 * 0.75 * 0.25).sqrt(), "{}", reads.len());
    // Each step has positions of its own.
    assert!(reads.iter().zip(0..).all(|(ask, n)| ask.sector.0 == n * 8 % GIB));
    assert!(writes.iter().zip(0..).all(|(ask, n)| ask.sector.0 == GIB + n * 128 % GIB));
}

#[test]
fn weights_of_some_steps_alone_are_refused() {
    let refused = |steps: &str| {
        let text =
            format!("name = \"p\"\nabout = \"A\"\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n{steps}");
        Program::parse("p.toml", &text).unwrap_err()
    };
    let why = refused("[[stream.step]]\nweight = 1\n[[stream.step]]");
    assert!(why.starts_with("p.toml:9: stream s, step 2, weight: missing"), "{why}");
    let why = refused("[[stream.step]]\nweight = 1\nrepeat = 2");
    assert!(why.starts_with("p.toml:9: stream s, step 1, repeat: a step with a weight"), "{why}");
    let why = refused("[[stream.step]]\nweight = 0");
    assert!(why.contains("step 1, weight"), "{why}");
}

#[test]
fn a_stream_begins_when_the_streams_before_it_have_ended() {
    let program = program(
        "[[stream]]\nname = \"fill\"\nclosed = true\ndepth = 3\ninstances = 2\nop = \"write\"\nrequests = 30\n\
         [[stream]]\nname = \"trim\"\narrivals = \"uniform rate=100\"\nop = \"discard\"\nend = \"105ms\"\n\
         [[stream]]\nname = \"read\"\nclosed = true\ninstances = 3\nop = \"read\"\nrequests = 5\nafter = \"fill, trim\"\nstart = \"7ms\"\n\
         [[stream]]\nname = \"open\"\narrivals = \"uniform rate=1k\"\nop = \"flush\"\nrequests = 2\nafter = \"read\"\nend = \"10ms\"",
    );
    assert_eq!(program.streams().iter().map(|stream| stream.is_open).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(
        program.streams().iter().map(|stream| stream.has_timers).collect::<Vec<_>>(),
        [false, true, false, true]
    );
    let all = on_a_device(&program, &together(), Nanos::MAX);
    let of = |number: u16| all.iter().filter(move |(asked, _)| asked.stream == number);
    let ended = |number| of(number).map(|(_, at)| *at).max().unwrap();
    let began = |number| of(number).map(|(asked, _)| asked.at).min().unwrap();
    assert_eq!([0, 1, 2, 3].map(|number| of(number).count()), [60, 11, 15, 2]);
    // An open stream has ended when its last request was asked for.
    let (last_arrival, filled) = (of(1).map(|(asked, _)| asked.at).max().unwrap(), ended(0));
    assert_eq!(began(2), last_arrival.max(filled) + Nanos(7_000_000));
    assert_eq!(began(3), ended(2));
}

#[test]
fn a_stream_can_be_followed_by_many() {
    let followers: String = (0..40)
        .map(|n| format!("[[stream]]\nname = \"f{n}\"\nclosed = true\nop = \"read\"\nrequests = 2\nafter = \"a\"\n"))
        .collect();
    let program =
        program(&format!("[[stream]]\nname = \"a\"\narrivals = \"uniform\"\nop = \"read\"\nrequests = 1\n{followers}"));
    assert_eq!(on_a_device(&program, &together(), Nanos::MAX).len(), 81);
}

#[test]
fn the_open_part_has_streams_after_open_ones() {
    let program = program(
        "[[stream]]\nname = \"a\"\narrivals = \"uniform rate=10\"\nop = \"read\"\nrequests = 3\n\
         [[stream]]\nname = \"b\"\narrivals = \"uniform rate=10\"\nop = \"write\"\nafter = \"a\"\nrequests = 2",
    );
    let times: Vec<i64> = open_requests(&program, &together(), 10.0).iter().map(|r| r.at.0 / 1_000_000).collect();
    assert_eq!(times, [0, 100, 200, 200, 300]);
}

#[test]
fn an_order_that_no_run_can_keep_is_refused() {
    let refused =
        |streams: &str| Program::parse("p.toml", &format!("name = \"p\"\nabout = \"A\"\n{streams}")).unwrap_err();
    let endless = "[[stream]]\nname = \"a\"\nclosed = true\nop = \"read\"\n";
    let after = "[[stream]]\nname = \"b\"\nclosed = true\nop = \"read\"\nafter = \"a\"\n";
    assert!(refused(&format!("{endless}{after}")).starts_with("p.toml:11: stream b, after: stream a never ends"));
    assert!(refused(&format!("{after}{endless}")).contains("no stream above this one has the name a; there is none"));
}

#[test]
fn passes_cover_the_region() {
    let count = |keys: &str| {
        let program = program(&format!("[[stream]]\nname = \"s\"\nclosed = true\nregion = \"1M\"\npasses = 2\n{keys}"));
        on_a_device(&program, &together(), Nanos::MAX).len()
    };
    assert_eq!(count("op = \"read\""), 512);
    assert_eq!(count("op = \"read\"\ninstances = 4\nown_region = true\nalign = \"4k\""), 512);
    assert_eq!(count("op = \"write\"\n[[stream.step]]\nrepeat = 4\n[[stream.step]]\nop = \"flush\""), 640);
    assert_eq!(count("op = \"discard\"\n[[stream.step]]\n[[stream.step]]\nop = \"write\"\nsame = true"), 1024);
    let weighted = "[[stream.step]]\nop = \"read\"\nweight = 1\n[[stream.step]]\nop = \"write\"\nweight = 1";
    assert_eq!(count(weighted), 512);
    assert_eq!(count(&weighted.replace("op = \"write\"", "op = \"write\"\nregion = \"1M..2M\"")), 1024);
}
