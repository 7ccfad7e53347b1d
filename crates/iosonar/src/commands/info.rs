//! `iosonar info`: summarizes a load or a run.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use iosonar_files::OpenOptions;
use iosonar_trace::formats::{Opened, TestedWith};
use iosonar_trace::input::Input;
use iosonar_trace::{Metadata, Nanos, OpenedFile, Reader};
use serde_json::{Map, Value, json};

use crate::bad_lines::source_bad_lines_of;
use crate::calls;
use crate::commands::convert::{Reading, described};
use crate::console;
use crate::human;
use crate::progress::Rows;
use crate::summary::{LoadSummary, RunSummary};

/// Notices that are printed; a damaged file may have a hundred.
const MOST_NOTES: usize = 8;

/// Summarize a load, a run or a trace of calls
///
/// Shows duration, requests, sizes, latencies, origin and completeness.
///
/// Reads the whole file.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The file, or the files of one trace (blktrace, strace -ff); `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    calls: calls::convert::StraceReading,

    /// Print a JSON object (see docs/info.md)
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  iosonar info mysql.load.gz
  iosonar info sda.blktrace.* --action D         # at the device, from the files of all CPUs
  iosonar info tar.calls.parquet                # calls to files
  iosonar info run.replay.parquet --json | jq .latency_us.p99";

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let paths: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        if let Some(kind) = calls::kind_of(&paths, None)? {
            return calls::info::run(kind, &self.files, &self.calls, self.json);
        }
        let (file, name) = match self.files.as_slice() {
            // A pipe can be opened only once.
            [one] if !one.is_file() && !one.is_dir() => {
                let input = Input::open(one)?;
                let input = match iosonar_files::open_input(input, &OpenOptions { cwd: self.calls.cwd.clone() })? {
                    Ok(calls) => return calls::info::of(calls, one, self.json),
                    Err(input) => input,
                };
                (self.reading.open_input(input)?, iosonar_trace::path_text(one))
            }
            _ => self.reading.open(&self.files)?,
        };
        let described = described(&file);
        let mut object = of_file(&file, &name, &self.files);
        let what = format!("reading {name}");
        let source_bad_lines = source_bad_lines_of(&file.rows, &name);
        let (metadata, work) = match file.rows {
            Opened::Load(rows) => {
                let mut summary = LoadSummary::default();
                let metadata = read(&what, rows, |row| summary.request(row))?;
                object.extend(summary.json());
                (metadata, None)
            }
            Opened::Run(rows) => {
                let mut summary = RunSummary::new();
                let metadata = read(&what, rows, |row| summary.record(row))?;
                object.extend(summary.sizes.json());
                object.extend(summary.json());
                (metadata, Some(summary.work()))
            }
        };
        add_metadata(&mut object, &metadata, work);
        object.insert("unreadable_rows".into(), source_bad_lines.map_or(0, |n| metadata.counts.bad_lines - n).into());
        let object = Value::Object(object);
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", console::json(&object)?)?;
        } else {
            out.write_all(for_people(&object, &described).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn read<Row>(what: &str, mut rows: Box<dyn Reader<Row>>, mut look: impl FnMut(&Row)) -> Result<Metadata> {
    let mut progress = Rows::new(what);
    while let Some(row) = rows.next()? {
        look(&row);
        progress.row(|| rows.progress());
    }
    progress.finish();
    Ok(rows.metadata().clone())
}

fn of_file(file: &OpenedFile, name: &str, paths: &[PathBuf]) -> Map<String, Value> {
    let tested_with = match file.format.tested_with {
        TestedWith::RealFiles => "real_files",
        TestedWith::PublishedLines => "published_lines",
        TestedWith::DescriptionOnly => "description_only",
    };
    let bytes = |path: &PathBuf| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len());
    let mut map = Map::new();
    map.insert("path".into(), name.into());
    map.insert("file_bytes".into(), json!(paths.iter().map(bytes).sum::<Option<u64>>()));
    map.insert(
        "format".into(),
        json!({"name": file.format.name, "title": file.format.title, "tried_on": tested_with,
               "compression": file.compression.name()}),
    );
    map
}

/// `work` is what a run did: requests, and the seconds that they took.
fn add_metadata(object: &mut Map<String, Value>, metadata: &Metadata, work: Option<(u64, f64)>) {
    if let Ok(Value::Object(footer)) = serde_json::to_value(metadata) {
        object.extend(footer);
    }
    let of_load =
        || (metadata.counts.requests, (Nanos(metadata.span.last_ns) - Nanos(metadata.span.first_ns)).as_secs());
    let (requests, duration) = work.unwrap_or_else(of_load);
    object.insert("duration_s".into(), duration.into());
    let rate = if duration > 0.0 { Some(requests as f64 / duration) } else { None };
    object.insert("requests_per_s".into(), json!(rate));
    let mut notices = metadata.notices.clone();
    for warning in iosonar_trace::plausibility_warnings(metadata) {
        let notice = format!("doubtful: {warning}");
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }
    object.insert("notices".into(), json!(notices));
}

/// Formats the object as text.
fn for_people(object: &Value, described: &str) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            _ = writeln!(text, "{name:<11} {}", console::one_line(&value));
        }
    };
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let (counts, span, sizes) = (&object["counts"], &object["span"], &object["request_bytes"]);

    line("file", text_of(&object["path"]));
    let size = object["file_bytes"].as_u64().map_or(String::new(), |bytes| format!(", {}", human::bytes(bytes)));
    line("is", format!("{described}{size}"));
    let complete = match (number(&object["unreadable_rows"]), object["complete"] == true) {
        (0, true) => "yes".into(),
        (0, false) => "NO: cut short".into(),
        (unreadable, _) => format!("NO: damaged, {} unreadable", human::counted(unreadable, "row")),
    };
    line("complete", complete);
    if let Some(fake) = object["run"]["fake"].as_str() {
        line("FAKE", fake.to_owned());
    }
    let source = &object["source"];
    if source["path"] != object["path"] && source["path"].is_string() {
        line("made from", format!("{} ({})", text_of(&source["path"]), text_of(&source["format"])));
    }
    if let Some(epoch) = object["epoch_unix_ns"].as_i64() {
        line("began", human::moment(epoch.saturating_add(span["first_ns"].as_i64().unwrap_or(0))));
    }
    let mut preamble = source["preamble"].as_str().into_iter().flat_map(str::lines).filter(|l| !l.trim().is_empty());
    if let Some(first) = preamble.next() {
        line("preamble", format!("{first}{}", if preamble.next().is_some() { " …" } else { "" }));
    }
    let requests = number(&counts["requests"]);
    let share = |key: &str| {
        let count = number(&counts[&format!("{key}s")]);
        format!("{} ({})", human::counted(count, key), human::percent_of(count, requests))
    };
    let others = if number(&counts["others"]) > 0 { format!(", {}", share("other")) } else { String::new() };
    line("requests", format!("{}: {}, {}{others}", human::count(requests), share("read"), share("write")));
    line("length", human::span(object["duration_s"].as_f64().unwrap_or(0.0)));
    if let Some(rate) = object["requests_per_s"].as_f64() {
        // In a load of little more than a second, the peak second can be below the mean.
        let peak = object["busiest_second_requests"].as_u64().filter(|&peak| peak as f64 >= rate);
        let peak = peak.map_or(String::new(), |peak| format!(", {} in the busiest second", human::count(peak)));
        line("rate", format!("mean {} requests/s{peak}", human::rate(rate)));
    }
    let bytes = &object["bytes"];
    line(
        "data",
        format!("{} read, {} written", human::bytes(number(&bytes["read"])), human::bytes(number(&bytes["written"]))),
    );
    let common: Vec<String> = sizes["common"]
        .as_array()
        .into_iter()
        .flatten()
        .take(3)
        .map(|size| {
            let share = human::percent_of(number(&size["requests"]), requests);
            format!("{} ({share})", human::block(number(&size["bytes"])))
        })
        .collect();
    if !common.is_empty() {
        let (min, max) = (human::block(number(&sizes["min"])), human::block(number(&sizes["max"])));
        let mean = human::block(sizes["mean"].as_f64().unwrap_or(0.0) as u64);
        line(
            "sizes",
            if min == max {
                format!("all {min}")
            } else {
                format!("{min} to {max}, mean {mean}; most frequent {}", common.join(", "))
            },
        );
    }
    let end = number(&span["max_end_sector"]);
    line("reaches", format!("sector {} ({})", human::count(end), human::block(end.saturating_mul(512))));
    line("devices", devices(&object["devices"]));
    line("latency", quantiles(&object["latency_us"]));
    let by_op = object["latency_us_by_op"].as_object();
    // With a single operation, they equal the line above.
    for (op, q) in by_op.into_iter().flatten().filter(|_| by_op.is_some_and(|all| all.len() > 1)) {
        let requests = human::counted(number(&q["requests"]), "request");
        line(&format!("  {}", op.replace('_', " ")), format!("{} ({requests})", quantiles(q)));
    }
    line("queued", quantiles(&object["queued_us"]));
    line("delay", quantiles(&object["delay_us"]));
    if let Some(outcomes) = object["outcomes"].as_object() {
        let all: Vec<String> =
            outcomes.iter().map(|(name, count)| format!("{} {name}", human::count(number(count)))).collect();
        line("outcomes", format!("{}; {} pushed back", all.join(", "), human::count(number(&object["pushed_back"]))));
    }
    for (key, name) in [
        ("bad_lines", "bad lines"),
        ("time_jumps", "time jumps"),
        ("lost_events", "lost events"),
        ("unmatched", "unmatched"),
        ("unmatched_completions", "orphans"),
        ("impossible_times", "impossible"),
    ] {
        let count = number(&counts[key]);
        let what = match key {
            "unmatched_completions" => " completions without their request",
            "impossible_times" => " latencies or queueing times, negative or beyond a year: left out",
            _ => "",
        };
        line(name, if count > 0 { format!("{}{what}", human::count(count)) } else { String::new() });
    }
    let notices = object["notices"].as_array().map_or(&[][..], Vec::as_slice);
    for notice in notices.iter().take(MOST_NOTES) {
        line("note", text_of(notice));
    }
    if notices.len() > MOST_NOTES {
        line("", format!("and {} more notes; --json shows all", notices.len() - MOST_NOTES));
    }
    text
}

/// Empty without latencies.
fn quantiles(q: &Value) -> String {
    if !q.is_object() {
        return String::new();
    }
    let us = |key: &str| human::percentile(q[key].as_f64());
    format!("median {}, 99 % {}, max {}, mean {}", us("p50"), us("p99"), us("max"), us("mean"))
}

fn devices(devices: &Value) -> String {
    let names: Vec<String> = devices
        .as_array()
        .into_iter()
        .flatten()
        .map(|device| {
            let name = device["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("unnamed");
            let size = device["sectors"].as_u64();
            size.map_or(name.to_owned(), |s| format!("{name} ({})", human::block(s.saturating_mul(512))))
        })
        .collect();
    let more = names.len().saturating_sub(8);
    let shown = names[..names.len() - more].join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}: {shown}{more}", names.len())
}
