//! `iosonar workload run`, and `iosonar replay --program`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, Sector, Sectors};

use crate::replaying::{Bench, Finished, MIB, adjacent_requests};

/// `iosonar workload run PROGRAM --output r.replay.parquet MORE`, to the end.
fn run(bench: &Bench, program: &str, more: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.args(["workload", "run", program, "--output"]).arg(bench.path("r.replay.parquet")).args(more);
    let output = command.current_dir(bench.path("")).output().expect("a child process");
    Finished::of(output, bench.path("r.replay.parquet"))
}

/// The message of a run that is refused.
fn refused(bench: &Bench, program: &str, more: &[&str]) -> String {
    run(bench, program, more).with_code(2).stderr
}

fn stream(name: &str, keys: &str) -> String {
    format!("[[stream]]\nname = \"{name}\"\n{keys}\n")
}

fn program(bench: &Bench, text: &str) -> String {
    bench.text("p.toml", &format!("name = \"p\"\nabout = \"A program.\"\n{text}")).display().to_string()
}

const VIRTUAL: [&str; 2] = ["--virtual-time", "--simulate"];

#[test]
fn closed_throughput_is_depth_divided_by_response_time() {
    let bench = Bench::new();
    for (instances, depth) in [(1, 1), (4, 2), (16, 1)] {
        let keys = format!("closed = true\nop = \"read\"\ninstances = {instances}\ndepth = {depth}");
        let text = program(&bench, &stream("c", &keys));
        let ran =
            run(&bench, &text, &[&VIRTUAL[..], &["constant=2ms servers=16", "--for", "4s", "--overwrite"]].concat());
        let rows = ran.with_code(0).rows();
        let expected = 4.0 * f64::from(instances * depth) / 0.002;
        assert!((rows.len() as f64 / expected - 1.0).abs() < 0.01, "{} of {expected}", rows.len());
    }
}

#[test]
fn a_run_of_more_than_ten_billion_requests_is_refused() {
    let bench = Bench::new();
    for (keys, span, is_refused) in [
        ("arrivals = \"uniform rate=1G\"", "1m", true),
        ("arrivals = \"poisson rate=1M\"\ninstances = 1000", "1m", true),
        ("arrivals = \"uniform rate=1G\"", "10us", false),
        ("arrivals = \"uniform rate=1G\"\nrequests = 1000", "1m", false),
        ("arrivals = \"uniform rate=1G\"\nbytes = \"4M\"", "1m", false),
        ("arrivals = \"uniform rate=1G\"\nend = \"10us\"", "1m", false),
        ("arrivals = \"uniform rate=100\"", "1s", false),
    ] {
        let text = program(&bench, &stream("o", &format!("{keys}\nop = \"read\"")));
        for time in [&VIRTUAL[..], &["--simulate"]] {
            let more = [time, &["constant=1us", "--for", span, "--overwrite"]].concat();
            match is_refused {
                true => {
                    let why = refused(&bench, &text, &more);
                    assert!(why.contains("p: the run would have about "), "{why}");
                }
                false if time.len() == 2 => drop(run(&bench, &text, &more).with_code(0)),
                false => {}
            }
        }
    }
}

#[test]
fn only_the_command_line_limits_a_closed_program() {
    let bench = Bench::new();
    let text = program(&bench, &stream("c", "closed = true\nop = \"read\"\ninstances = 2\ndepth = 1024"));
    for (more, at_once) in [
        (&[][..], 2048),
        (&["--depth", "512"], 512),
        (&["--bottleneck", "100"], 100),
        (&["--depth", "64", "--bottleneck", "4096"], 64),
    ] {
        let words = [&VIRTUAL[..], &["constant=10ms servers=4096", "--for", "200ms", "--overwrite"], more].concat();
        let ran = run(&bench, &text, &words).with_code(0);
        let most = ran.rows().iter().map(|row| row.in_flight).max();
        assert_eq!(most, Some(at_once), "{more:?}");
        let says = ran.stderr.contains("the program may have 2,048 requests at a time");
        assert_eq!(says, at_once < 2048, "{more:?}: {}", ran.stderr);
    }
}

#[test]
fn only_an_open_program_gets_growing_delays_in_an_overload() {
    let bench = Bench::new();
    let more = [&VIRTUAL[..], &["constant=2ms servers=1", "--for", "4s", "--depth", "8", "--overwrite"]].concat();
    let delays = |keys: &str| -> Vec<f64> {
        let ran = run(&bench, &program(&bench, &stream("s", keys)), &more).with_code(0);
        ran.by_request().iter().map(|row| row.delay().expect("it was issued").as_secs()).collect()
    };
    let open = delays("arrivals = \"uniform rate=1000\"\nop = \"read\"");
    // Each second, 1000 requests come and 500 are served.
    for (number, delay) in open.iter().enumerate().skip(100).step_by(500) {
        let expected = number as f64 / 1000.0;
        assert!((delay - expected).abs() < 0.05, "request {number}: {delay} s instead of {expected} s");
    }
    let closed = delays("closed = true\nop = \"read\"\ndepth = 8");
    assert!(closed.iter().all(|delay| *delay < 1e-6), "{closed:?}");
}

#[test]
fn rows_name_their_stream_and_the_request_that_caused_them() {
    let bench = Bench::new();
    let target = bench.target(4 * MIB);
    let steps = "[[stream.step]]\nop = \"write\"\nsizes = \"8k\"\n[[stream.step]]\nop = \"read\"\nsame = true";
    let text = program(
        &bench,
        &(stream(
            "pairs",
            &format!("closed = true\nrequests = 40\ninstances = 2\nthink = \"constant value=1ms\"\n{steps}"),
        ) + &stream("open", "arrivals = \"uniform rate=200\"\nop = \"read\"\nend = \"100ms\"")),
    );
    // Both streams end by themselves.
    let ran = run(&bench, &text, &["--target", &target.display().to_string()]).with_code(0);
    let rows = ran.by_request();
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{rows:?}");
    let by_number: HashMap<u64, &IoResult> = rows.iter().map(|row| (row.request, row)).collect();
    let (pairs, open): (Vec<&IoResult>, Vec<&IoResult>) = rows.iter().partition(|row| row.stream == Some(0));
    assert_eq!((pairs.len(), pairs.iter().filter(|row| row.op == Op::Read).count()), (80, 40));
    for read in pairs.iter().filter(|row| row.op == Op::Read) {
        let write = by_number[&read.cause.expect("a write caused it")];
        assert_eq!((write.op, write.sector, write.sectors), (Op::Write, read.sector, read.sectors));
        assert!(write.completed.unwrap() <= read.scheduled && read.scheduled <= read.issued.unwrap());
    }
    // Between the transactions there is a think time, so a timer asks for the write.
    assert!(pairs.iter().filter(|row| row.op == Op::Write).all(|row| row.cause.is_none()));
    assert!(open.len() >= 19 && open.iter().all(|row| row.stream == Some(1) && row.cause.is_none()), "{open:?}");
    assert!(fs::read(&target).unwrap().iter().any(|&byte| byte != 0), "data was written");
    let footer = ran.run();
    assert_eq!(footer["program"]["name"], "p");
    assert_eq!(footer["program"]["streams"][0]["instances"], 2);
    assert_eq!(footer["program"]["streams"][1]["open"], true);
    assert!(footer["load"].is_null() && footer["program"]["text"].as_str().unwrap().contains("[[stream]]"));
}

#[test]
fn a_load_and_a_program_run_on_one_clock() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    let text = program(&bench, &stream("beside", "arrivals = \"uniform rate=500\"\nop = \"read\""));
    let ran = bench.replay(
        &load,
        Path::new("none"),
        &["--simulate", "constant=100us", "--virtual-time", "--program", &text, "--for", "100ms"],
    );
    let rows = ran.with_code(0).rows();
    let (of_program, of_load): (Vec<&IoResult>, Vec<&IoResult>) = rows.iter().partition(|row| row.stream.is_some());
    assert_eq!(of_load.len(), 100);
    assert!(of_load.iter().all(|row| row.scheduled == Nanos(row.request as i64 * 1_000_000) && row.cause.is_none()));
    assert!((48..=50).contains(&of_program.len()), "{}", of_program.len());
}

#[test]
fn requests_of_a_program_follow_the_last_of_the_whole_load() {
    let bench = Bench::new();
    let text_load = bench.load(&adjacent_requests(100, 8));
    let requests = (0..100).map(|number| Request::new(Nanos(number * 1_000_000), Op::Read, Sector(0), Sectors(8)));
    let table = bench.parquet(&requests.collect::<Vec<_>>());
    let text = program(&bench, &stream("beside", "closed = true\ndepth = 2\nop = \"read\""));
    let (pipe, unknown) = (PathBuf::from("/dev/stdin"), 1 << 40);
    for (load, window, numbers) in [
        (&text_load, "--for 250ms", 100),
        (&text_load, "--for 250ms --start 20ms", 100),
        (&text_load, "--for 250ms --loop", 100),
        (&text_load, "--for 250ms --start 20ms --end 70ms", unknown),
        (&text_load, "--for 50ms", unknown),
        (&table, "--for 50ms", 100),
        (&table, "--for 50ms --start 20ms", 100),
        (&table, "--for 250ms --start 20ms --end 70ms", 100),
        (&table, "--for 50ms --edit reverse", unknown),
        (&pipe, "--for 50ms", unknown),
    ] {
        let words = ["--simulate", "constant=3ms", "--virtual-time", "--overwrite", "--program", &text];
        let window: Vec<_> = window.split(' ').collect();
        let mut command = bench.command(load, &bench.path("none"), &[&words[..], &window[..]].concat());
        let mut source = Command::new("cat").arg(&text_load).stdout(Stdio::piped()).spawn().unwrap();
        let output = command.stdin(source.stdout.take().unwrap()).output().unwrap();
        source.wait().unwrap();
        let rows = Finished::of(output, bench.path("r.replay.parquet")).with_code(0).rows();
        let (of_program, of_load): (Vec<&IoResult>, Vec<&IoResult>) = rows.iter().partition(|row| row.stream.is_some());
        assert!(of_load.iter().all(|row| row.request < 100) && of_load.len() >= 30, "{window:?}");
        let first = of_program.iter().map(|row| row.request).min();
        assert_eq!(first, Some(numbers), "{window:?}");
        let caused: Vec<_> = rows.iter().filter_map(|row| Some((row, row.cause?))).collect();
        assert!(caused.len() > 10, "{window:?}: {}", caused.len());
        for (row, cause) in caused {
            let causes: Vec<&IoResult> = rows.iter().filter(|other| other.request == cause).collect();
            let [one] = &causes[..] else { panic!("{window:?}: {cause} is {causes:?}") };
            assert!(one.stream.is_some() && one.completed.unwrap() <= row.scheduled, "{window:?}: {row:?} {one:?}");
        }
    }
}

#[test]
fn each_device_of_a_program_may_have_a_target_of_its_own() {
    let bench = Bench::new();
    let (log, data) = (bench.path("log"), bench.path("data"));
    fs::write(&log, vec![0; MIB as usize]).unwrap();
    fs::write(&data, vec![0; 2 * MIB as usize]).unwrap();
    let text = "[devices]\nlog = \"10%\"\ndata = \"90%\"\n".to_owned()
        + &stream("log", "closed = true\nrequests = 10\nop = \"write\"\npositions = \"append\"\ndevice = \"log\"")
        + &stream("data", "closed = true\nrequests = 20\nop = \"write\"\ndevice = \"data\"");
    let text = program(&bench, &text);
    let (log, data) = (format!("log={}", log.display()), format!("data={}", data.display()));
    let ran = run(&bench, &text, &["--target", &log, "--target", &data, "--force"]).with_code(0);
    let of_device = |device: u16| ran.rows().iter().filter(|row| row.device.0 == device).count();
    assert_eq!((of_device(0), of_device(1)), (10, 20));
    assert!(ran.stderr.contains("overwriting its content; for log (device 0)"), "{}", ran.stderr);
    let statistics = &ran.run()["statistics"]["devices"];
    assert_eq!((&statistics[0]["source"], &statistics[1]["source"]), (&"log".into(), &"data".into()));
    let written = fs::read(bench.path("log")).unwrap();
    assert!(
        written[..40_960].chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)),
        "the whole target is the log's"
    );
    let why = refused(&bench, &text, &["--target", &log, "--overwrite"]);
    assert!(why.contains("device data of p has no target: add --target data=PATH"), "{why}");
}

#[test]
fn a_target_that_is_only_read_is_not_called_overwritten() {
    let bench = Bench::new();
    let target = bench.target(MIB).display().to_string();
    for (op, fate) in [("read", "reads only"), ("write", "overwriting its content")] {
        let text = program(&bench, &stream("s", &format!("closed = true\nrequests = 10\nop = \"{op}\"")));
        let ran = run(&bench, &text, &["--target", &target, "--force", "--overwrite"]).with_code(0);
        assert!(ran.stderr.contains(&format!("; {fate}: program p")), "{}", ran.stderr);
    }
}

#[test]
fn the_same_seed_makes_the_same_run_in_virtual_time() {
    let bench = Bench::new();
    let rows = |seed: &str| {
        let more = [&VIRTUAL[..], &["hdd", "--for", "8s", "--seed", seed, "--overwrite"]].concat();
        run(&bench, "log-and-data", &more).with_code(0).rows()
    };
    let first = rows("7");
    assert!(first.len() > 500);
    assert_eq!(first, rows("7"));
    assert_ne!(first, rows("8"));
}

/// Requests of a closed program are due at the very moment when others complete, which they may overlap or share a queue with.
#[test]
fn a_replayed_closed_program_has_the_latencies_of_its_run() {
    let bench = Bench::new();
    let more = [&VIRTUAL[..], &["hdd", "--for", "10s", "--scale", "4", "--set", "think=exponential mean=1s"]].concat();
    let ran = run(&bench, "tpcb", &more).with_code(0).by_request();
    assert!(ran.iter().filter(|row| row.pushed_back).count() > 100, "tellers wait for each other's pages");
    fs::rename(bench.path("r.replay.parquet"), bench.path("program.replay.parquet")).unwrap();
    let again =
        bench.replay(&bench.path("program.replay.parquet"), Path::new("none"), &[&VIRTUAL[..], &["hdd"]].concat());
    let again = again.with_code(0).by_request();
    let times = |rows: &[IoResult]| -> Vec<_> { rows.iter().map(|row| (row.sector, row.op, row.latency())).collect() };
    assert_eq!(times(&ran), times(&again));
}

#[test]
fn a_program_the_target_cannot_take_ends_with_a_warning() {
    let bench = Bench::new();
    let text = program(&bench, &stream("s", "closed = true\nop = \"write\""));
    let target = bench.target(MIB).display().to_string();
    let ran = run(&bench, &text, &["--target", &target, "--for", "1h", "--reads-only"]).with_code(5);
    assert!(ran.stderr.contains("the program ended early: the target cannot take its requests"), "{}", ran.stderr);
}

/// A stream that is a script; its first line is line 6 of the program.
fn script(name: &str, code: &str) -> String {
    format!("[[stream]]\nname = \"{name}\"\ncode = '''\n{code}'''\n")
}

#[test]
fn a_script_without_completions_keeps_its_times() {
    let bench = Bench::new();
    let code = "local n = 0\nfunction start() wake_in(0.001) end\nfunction timer()\n  n = n + 1\n  if n == 200 then stop() end\n  write(n * 4096, 4096)\n  wake_in(0.001)\nend\n";
    let text = program(&bench, &script("s", code));
    let more: [&[&str]; 2] = [&["--fake-io"], &["--virtual-time", "--simulate", "constant=1ms"]];
    for more in more {
        let ran = run(&bench, &text, &[more, &["--for", "1s", "--overwrite"]].concat()).with_code(0);
        let rows = ran.by_request();
        assert_eq!(rows.len(), 200);
        for (n, row) in (1..).zip(&rows) {
            assert_eq!((row.scheduled, row.sector.0), (Nanos(n * 1_000_000), n as u64 * 8));
            assert_eq!((row.request, row.stream, row.cause), (n as u64 - 1, Some(0), None));
        }
    }
}

#[test]
fn a_failed_script_ends_the_program_and_keeps_its_results() {
    let bench = Bench::new();
    let ahead = "local n = 0\nfunction start() wake_in(0.01) end\nfunction timer()\n  n = n + 1\n  if n == 5 then error('no more') end\n  read(0, 4096)\n  wake_in(0.01)\nend\n";
    let in_loop = format!("{ahead}function completion() end\n");
    for code in [ahead, &in_loop] {
        let text = program(&bench, &script("s", code));
        let ran = run(&bench, &text, &["--fake-io", "--for", "10s", "--overwrite"]).with_code(5);
        assert!(ran.stderr.contains("the program ended early: "), "{}", ran.stderr);
        assert!(ran.stderr.contains("p.toml:10: stream s: no more"), "{}", ran.stderr);
        assert_eq!(ran.rows().len(), 4);
    }
}

#[test]
fn a_load_as_a_stream_is_issued_at_its_own_times() {
    let bench = Bench::new();
    let requests = adjacent_requests(200, 8);
    let load = bench.load(&requests).display().to_string();
    let closed = stream("closed", "closed = true\nop = \"read\"\nthink = \"constant value=10ms\"\nend = \"1s\"");
    let text = program(&bench, &(stream("recorded", &format!("load = \"{load}\"\nstart = \"500ms\"")) + &closed));
    bench.target(4 * MIB);
    for more in [&["--target", "target"][..], &["--virtual-time", "--simulate", "constant=1ms"]] {
        let ran = run(&bench, &text, &[more, &["--overwrite"]].concat()).with_code(0);
        let rows = ran.by_request();
        let recorded: Vec<_> = rows.iter().filter(|row| row.stream == Some(0)).collect();
        assert_eq!(recorded.len(), requests.len());
        for (row, (at, sector, sectors, op)) in recorded.iter().zip(&requests) {
            assert_eq!((row.sector.0, row.sectors.0, row.op == Op::Read), (*sector, *sectors, *op == 'R'));
            assert!((row.scheduled.as_secs() - (0.5 + at)).abs() < 1e-6, "{row:?}");
            assert_eq!(row.outcome, Outcome::Ok);
        }
        assert!(rows.len() > recorded.len(), "the closed stream has its requests, too");
    }
}
