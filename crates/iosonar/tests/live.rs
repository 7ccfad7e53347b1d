//! What a replay shows while it runs: metrics and the picture on the terminal.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use iosonar_testing::{Limit, wait_until};
use iosonar_trace::Nanos;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::Value;

use crate::files_replaying;
use crate::replaying::{Bench, MIB, adjacent_requests, process_tree, read_run, signal_tree};

/// A page of metrics, by the names and labels of its samples.
type Samples = BTreeMap<String, f64>;

fn scrape(address: &str) -> Samples {
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: text/plain\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let samples = page.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// The last numbers of a replay, and its statistics. A full pipe keeps the program from its end until they are read.
fn last_numbers(mut command: Command, result: &Path) -> (Samples, Value) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut filled = 0;
    while let Ok(length) = (&writer).write(&[b' '; 4096]) {
        filled += length;
    }
    fcntl_setfl(&writer, flags).unwrap();
    command.args(["--json", "--metrics", "0"]).stdout(writer).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child: Child = command.spawn().unwrap();
    // It holds the writing end, too.
    drop(command);
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address =
        messages.find_map(|line| Some(line.strip_prefix("metrics at http://")?.strip_suffix("/metrics")?.to_owned()));
    let address = address.expect("where the metrics are");
    let _rest = std::thread::spawn(move || messages.count());
    wait_until("the result is complete", || result.exists());
    let samples = scrape(&address);
    assert_eq!(samples["iosonar_state{state=\"finish\"}"], 1.0);
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert!(child.wait().unwrap().code().is_some_and(|code| code == 0));
    (samples, serde_json::from_slice(&all[filled..]).unwrap())
}

/// Compares the histograms of an operation, bucket by bucket, with times of the table.
fn assert_equal(samples: &Samples, name: &str, operation: &str, times: &[Nanos]) {
    let labels = format!("{{operation=\"{operation}\"");
    assert_eq!(samples[&format!("{name}_count{labels}}}")], times.len() as f64);
    let sum = times.iter().map(|time| time.0).sum::<i64>() as f64 / 1e9;
    assert_eq!(samples[&format!("{name}_sum{labels}}}")], sum);
    let begin = format!("{name}_bucket{labels},le=\"");
    let buckets: Vec<_> = samples.iter().filter_map(|(key, count)| Some((key.strip_prefix(&begin)?, count))).collect();
    assert_eq!(buckets.len(), 82);
    for (bound, count) in buckets {
        let bound: f64 = bound.strip_suffix("\"}").unwrap().replace("+Inf", "inf").parse().unwrap();
        let expected = times.iter().filter(|time| time.0 as f64 <= (bound * 1e9).round()).count();
        assert_eq!(*count, expected as f64, "{name} of {operation} up to {bound} s");
    }
}

#[test]
fn the_last_histogram_of_requests_is_that_of_the_table() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(3000, 8));
    let (samples, statistics) =
        last_numbers(bench.command(&load, &bench.target(16 * MIB), &[]), &bench.path("r.replay.parquet"));
    let (rows, _) = read_run(&bench.path("r.replay.parquet"));
    for operation in ["read", "write"] {
        let of: Vec<_> = rows.iter().filter(|row| row.op.name() == operation).collect();
        assert!(of.len() >= 1000);
        let latencies: Vec<_> = of.iter().filter_map(|row| row.latency()).collect();
        let delays: Vec<_> = of.iter().filter_map(|row| row.delay()).collect();
        assert_equal(&samples, "iosonar_latency_seconds", operation, &latencies);
        assert_equal(&samples, "iosonar_delay_seconds", operation, &delays);
        let bytes: u64 = of.iter().map(|row| row.bytes_moved()).sum();
        assert_eq!(samples[&format!("iosonar_moved_bytes_total{{operation=\"{operation}\"}}")], bytes as f64);
    }
    assert_eq!(samples["iosonar_completed_total"], statistics["completed"].as_f64().unwrap());
    assert_eq!(samples["iosonar_submitted_total"], 3000.0);
    assert_eq!((samples["iosonar_in_flight"], samples["iosonar_dropped_total"]), (0.0, 0.0));
}

#[test]
fn the_last_histogram_of_calls_is_that_of_the_table() {
    let bench = files_replaying::Bench::new();
    let (samples, statistics) = last_numbers(bench.command(&files_replaying::program(), &[]), &bench.result());
    let rows = bench.rows();
    let mut seen = 0;
    for operation in ["openat", "read", "write", "close"] {
        let of = rows.iter().filter(|row| row.kind.name() == operation && row.outcome.is_issued());
        let times: Vec<_> = of.filter_map(|row| Some((row.scheduled, row.issued?, row.completed?))).collect();
        if times.is_empty() {
            continue;
        }
        seen += times.len();
        let latencies: Vec<_> = times.iter().map(|(_, issued, completed)| *completed - *issued).collect();
        let delays: Vec<_> = times.iter().map(|(scheduled, issued, _)| *issued - *scheduled).collect();
        assert_equal(&samples, "iosonar_latency_seconds", operation, &latencies);
        assert_equal(&samples, "iosonar_delay_seconds", operation, &delays);
    }
    assert!(seen > 3, "{samples:?}");
    assert_eq!(samples["iosonar_completed_total"], statistics["issued"].as_f64().unwrap());
    assert_eq!(samples["iosonar_errors_total"], statistics["mismatches"].as_f64().unwrap());
}

#[test]
fn pictures_need_a_terminal_and_metrics_a_place() {
    let bench = Bench::new();
    let (load, target) = (bench.load(&adjacent_requests(10, 8)), bench.target(MIB));
    let live = bench.replay(&load, &target, &["--live"]).with_code(2);
    live.refused(&["--live draws on a terminal", "--progress json", "--metrics"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().port().to_string();
    bench.replay(&load, &target, &["--metrics", &place]).with_code(1).refused(&["--metrics: cannot listen", &place]);
    bench.replay(&load, &target, &["--metrics", "nowhere"]).with_code(2).refused(&["is no address", "127.0.0.1:9464"]);
    assert_eq!(bench.names(), ["a.load", "target"]);
    let open = bench.replay(&load, &target, &["--metrics", "0.0.0.0:0"]).with_code(0);
    assert!(open.stderr.contains("warning: the metrics are open to other machines"), "{}", open.stderr);
    let own = bench.replay(&load, &target, &["--metrics", "0", "--overwrite"]).with_code(0);
    assert!(!own.stderr.contains("open to other machines"), "{}", own.stderr);
}

/// What a terminal shows of a replay of `seconds`, which ends by itself or is interrupted after its first picture.
fn on_terminal(bench: &Bench, locale: &str, seconds: u64, is_interrupted: bool) -> String {
    let load = bench.load(&adjacent_requests(seconds * 1000, 1));
    let command = bench.command(&load, &bench.target(32 * MIB), &["--live", "--simulate", "constant=100us"]);
    let words: Vec<String> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script")
        .args(["-qefc", &format!("exec {}", words.join(" ")), "/dev/null"])
        .env("LC_ALL", locale)
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let limit = Limit::new(&script, Duration::from_secs(120));
    let mut output = script.stdout.take().unwrap();
    let (mut shown, mut buffer, mut is_due) = (Vec::new(), [0; 4096], is_interrupted);
    loop {
        let length = output.read(&mut buffer).unwrap();
        if length == 0 {
            break;
        }
        shown.extend(&buffer[..length]);
        if is_due && String::from_utf8_lossy(&shown).contains("latency  p50 ") {
            // The replay and its worker, not `script`.
            signal_tree("INT", process_tree(script.id())[1]);
            is_due = false;
        }
    }
    script.wait().unwrap();
    limit.assert_kept();
    String::from_utf8(shown).unwrap()
}

#[test]
fn the_terminal_shows_rates_and_a_sonar() {
    let bench = Bench::new();
    let shown = on_terminal(&bench, "C.UTF-8", 10, false);
    for words in ["demand ", " · actual ", "in flight ", "delay    p50 ", "latency  p50 ", "µs │", "█"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // Drawn in place: the cursor goes up, and the picture is gone at the end.
    assert!(shown.contains("\u{1b}[1A"), "{shown}");
    let end = shown.rfind("latency  p50").unwrap();
    assert!(shown[end..].contains("\u{1b}[2K") && shown[end..].contains("FAKE RESULT"), "{shown}");
}

#[test]
fn an_interrupted_picture_is_removed() {
    let bench = Bench::new();
    let shown = on_terminal(&bench, "C", 30, true);
    assert!(shown.contains("latency  p50 ") && shown.contains("us |"), "{shown}");
    let end = shown.rfind("latency  p50").unwrap();
    let after = &shown[end..];
    assert!(after.contains("\u{1b}[2K") && after.contains("result "), "{shown}");
    assert!(shown.contains("stopping: waiting for requests in flight"), "{shown}");
    // The cursor was never hidden.
    assert!(!shown.contains("\u{1b}[?25l"), "{shown}");
}
