//! `iosonar info` of calls and of their runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use iosonar_files::table::Locator;
use iosonar_files::{CallReader, CallResult, FileKind, Metadata, OpenOptions, Opened, ResultReader};
use iosonar_trace::{Nanos, path_text};
use serde_json::{Map, Value, json};

use super::convert::StraceReading;
use super::summary::{RunSummary, Summary};
use crate::console;
use crate::human;
use crate::progress::Rows;

/// The most notes, calls and names that are printed; `--json` has all of them.
const MOST_NOTES: usize = 8;
const MOST_CALLS: usize = 15;
const MOST_NAMES: usize = 5;

/// Prints a summary of a trace or of a run.
pub fn run(kind: FileKind, paths: &[PathBuf], reading: &StraceReading, as_json: bool) -> Result<ExitCode> {
    let path = match paths {
        [one] => one.clone(),
        _ => PathBuf::from(format!("{} and {} more", path_text(&paths[0]), paths.len() - 1)),
    };
    let opened = match kind {
        FileKind::CallsRun => Opened::Run(iosonar_files::table::open_run(&paths[0])?),
        _ => Opened::Calls(kind, iosonar_files::open_several(paths, &OpenOptions { cwd: reading.cwd.clone() })?),
    };
    of(opened, &path, as_json)
}

/// Prints a summary of what was opened under this name.
pub fn of(opened: Opened, path: &Path, as_json: bool) -> Result<ExitCode> {
    let mut object = Map::new();
    object.insert("path".into(), path_text(path).into());
    let bytes = std::fs::metadata(path).ok().filter(|status| status.is_file()).map(|status| status.len());
    object.insert("file_bytes".into(), json!(bytes));
    let (kind, metadata) = match opened {
        Opened::Run(results) => {
            let (metadata, summary) = read_run(path, results)?;
            object.extend(summary.json());
            (FileKind::CallsRun, metadata)
        }
        Opened::Calls(kind, calls) => {
            let (metadata, summary, lost) = read_calls(path, calls)?;
            object.extend(summary.json());
            object.insert("changes_not_replayed".into(), json!(lost));
            (kind, metadata)
        }
    };
    let is_strace = kind == FileKind::Strace;
    object.insert("format".into(), if is_strace { "strace" } else { "parquet" }.into());
    add_metadata(&mut object, &metadata);
    let object = Value::Object(object);
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{}", console::json(&object)?)?;
    } else {
        out.write_all(for_people(&object, kind).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read_calls(path: &Path, mut calls: Box<dyn CallReader>) -> Result<(Metadata, Summary, BTreeMap<String, u64>)> {
    let mut summary = Summary::default();
    let mut files = Locator::new(calls.metadata());
    let mut progress = Rows::of(&format!("reading {}", path.display()), "calls");
    while let Some(call) = calls.next()? {
        let (file, _) = files.next(&call);
        summary.call(&call, file.as_ref());
        progress.row(|| calls.progress());
    }
    progress.finish();
    Ok((calls.metadata().clone(), summary, files.lost()))
}

fn read_run(path: &Path, mut results: Box<dyn ResultReader>) -> Result<(Metadata, RunSummary)> {
    let mut summary = RunSummary::new();
    let mut progress = Rows::of(&format!("reading {}", path.display()), "calls");
    while let Some(result) = next(results.as_mut())? {
        summary.result(&result);
        progress.row(|| None);
    }
    progress.finish();
    Ok((results.metadata().clone(), summary))
}

fn next(results: &mut dyn ResultReader) -> Result<Option<CallResult>> {
    Ok(results.next()?)
}

fn add_metadata(object: &mut Map<String, Value>, metadata: &Metadata) {
    if let Ok(Value::Object(footer)) = serde_json::to_value(metadata) {
        object.extend(footer);
    }
    let duration = (Nanos(metadata.span.last_ns) - Nanos(metadata.span.first_ns)).as_secs();
    object.insert("duration_s".into(), duration.into());
    object.insert("notices".into(), json!(metadata.notices));
}

/// Formats the object as text.
fn for_people(object: &Value, kind: FileKind) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            _ = writeln!(text, "{name:<11} {}", console::one_line(&value));
        }
    };
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let counts = &object["counts"];
    let calls = number(&counts["calls"]);
    line("file", text_of(&object["path"]));
    let described = match kind {
        FileKind::Calls => "a trace of calls [calls]",
        FileKind::CallsRun => "a run of calls [calls-run]",
        FileKind::Strace => "a trace of calls, text of strace [strace]",
    };
    let size = object["file_bytes"].as_u64().map_or(String::new(), |bytes| format!(", {}", human::bytes(bytes)));
    line("is", format!("{described}{size}"));
    line("complete", if object["complete"] == true { "yes".into() } else { "NO: cut short".into() });
    let source = &object["source"];
    if source["path"] != object["path"] && source["path"].is_string() {
        line("made from", format!("{} ({})", text_of(&source["path"]), text_of(&source["format"])));
    }
    // A table of another program does not say what recorded it.
    let is_known = kind != FileKind::CallsRun && source["format"] != "parquet";
    line("recorded by", if is_known { text_of(&object["recorder"]) } else { String::new() });
    let preamble = text_of(&source["preamble"]);
    line("preamble", preamble.lines().next().unwrap_or_default().to_owned());
    let words = object["command"].as_array().into_iter().flatten().map(text_of);
    line("command", words.collect::<Vec<_>>().join(" "));
    if let Some(epoch) = object["epoch_unix_ns"].as_i64() {
        let first = object["span"]["first_ns"].as_i64().unwrap_or(0);
        line("began", human::moment(epoch.saturating_add(first)));
    }
    line("length", human::span(object["duration_s"].as_f64().unwrap_or(0.0)));
    line("calls", mix(object, calls));
    line("failed", failed(object, calls));
    let (threads, processes) = (number(&object["threads"]["number"]), number(&object["threads"]["processes"]));
    if threads > 0 {
        let of = if processes > 0 { format!(" of {}", process_count(processes)) } else { String::new() };
        let share = human::percent_of(number(&object["threads"]["most_calls"]), issued_or(object, calls));
        let most = if threads > 1 { format!("; one of them made {share} of the calls") } else { String::new() };
        line("threads", format!("{}{of}{most}", human::count(threads)));
    }
    line("rate", rate(&object["load_per_s"]));
    let bytes = &object["bytes"];
    let (read, written) = (human::bytes(number(&bytes["read"])), human::bytes(number(&bytes["written"])));
    line("data", format!("{read} read, {written} written"));
    line("files", files(&object["files"]));
    if kind == FileKind::CallsRun {
        for (name, value) in of_run(object) {
            line(name, value);
        }
    }
    line("not replayed", not_replayed(&object["changes_not_replayed"]));
    // A call that ends its thread never returns.
    let unfinished = number(&counts["unfinished"]).saturating_sub(exits(object));
    if unfinished > 0 && kind != FileKind::CallsRun {
        line("unfinished", format!("{} did not return", human::count(unfinished)));
    }
    for (key, name, remark) in [
        ("uring", "io_uring", " executed by io_uring"),
        ("bad_lines", "bad lines", " could not be understood"),
        ("lost_events", "lost events", " lost while recording"),
    ] {
        let count = number(&counts[key]);
        line(name, if count > 0 { format!("{}{remark}", human::count(count)) } else { String::new() });
    }
    line("other calls", other_calls(&counts["other_calls"]));
    let notices = object["notices"].as_array().map_or(&[][..], Vec::as_slice);
    for notice in notices.iter().take(MOST_NOTES) {
        line("note", text_of(notice));
    }
    if notices.len() > MOST_NOTES {
        line("", format!("and {} more notes; --json shows all", notices.len() - MOST_NOTES));
    }
    text + &table(object)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Calls that end a thread or process.
fn exits(object: &Value) -> u64 {
    let by_call = object["by_call"].as_array().into_iter().flatten();
    by_call.filter(|of| matches!(of["call"].as_str(), Some("exit" | "exit_group"))).map(|of| number(&of["calls"])).sum()
}

/// The number of calls that shares are of: in a run, of those that were issued.
fn issued_or(object: &Value, calls: u64) -> u64 {
    object["issued"].as_u64().unwrap_or(calls)
}

fn process_count(processes: u64) -> String {
    if processes == 1 { "1 process".into() } else { format!("{} processes", human::count(processes)) }
}

fn mix(object: &Value, calls: u64) -> String {
    let kinds = object["by_call"].as_array().map_or(0, Vec::len) as u64;
    let of = if kinds > 1 { format!(", of {}", human::counted(kinds, "kind")) } else { String::new() };
    match object["issued"].as_u64() {
        Some(issued) => format!("{}, {} issued{of}", human::count(calls), human::count(issued)),
        None => format!("{}{of}", human::count(calls)),
    }
}

/// The names of numbers in an object, the largest first: `ENOENT 12, EEXIST 1`.
fn largest(counts: &Value, name: impl Fn(&str) -> String) -> String {
    let mut all: Vec<(&String, u64)> =
        counts.as_object().into_iter().flatten().map(|(name, count)| (name, number(count))).collect();
    all.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let shown = all.iter().take(MOST_NAMES).map(|(of, count)| format!("{} {}", name(of), human::count(*count)));
    let more = all.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

fn failed(object: &Value, calls: u64) -> String {
    let failed = number(&object["failed"]);
    if failed == 0 {
        return String::new();
    }
    let share = human::percent_of(failed, issued_or(object, calls));
    format!("{} ({share}): {}", human::count(failed), largest(&object["errors"], errno_name))
}

/// The name of an error number, as far as it is known.
fn errno_name(number: &str) -> String {
    let name = number.parse().ok().and_then(iosonar_files::strace::errno_name);
    name.map_or_else(|| format!("error {number}"), str::to_owned)
}

fn rate(load: &Value) -> String {
    if !load.is_object() {
        return String::new();
    }
    let of = |key: &str| human::rate(load[key].as_f64().unwrap_or(0.0));
    let window = human::span(load["window_s"].as_f64().unwrap_or(0.0));
    let cv = human::percent(load["cv"].as_f64().unwrap_or(0.0));
    format!(
        "mean {} calls/s, median {}, max {}, coefficient of variation {cv} (in windows of {window})",
        of("mean"),
        of("median"),
        of("max")
    )
}

fn files(files: &Value) -> String {
    let count = number(&files["number"]);
    if count == 0 {
        return String::new();
    }
    let most = files["most_bytes"].as_array().into_iter().flatten().take(3).filter_map(|file| {
        let bytes = number(&file["read"]).saturating_add(number(&file["written"]));
        (bytes > 0).then(|| format!("{} ({})", file["file"].as_str().unwrap_or_default(), human::bytes(bytes)))
    });
    let most: Vec<String> = most.collect();
    let most = if most.is_empty() { String::new() } else { format!("; most bytes: {}", most.join(", ")) };
    format!("{}{most}", human::count(count))
}

/// Calls whose result differs. If changes of files were left out, none of these calls says that the files are the same.
fn mismatches(object: &Value) -> String {
    let changes = number(&object["outcomes"]["changes_files"]);
    let lost = if changes > 0 {
        format!("; {} that change files were not replayed", human::counted(changes, "call"))
    } else {
        String::new()
    };
    format!("{}{lost}", human::count(number(&object["mismatches"])))
}

fn of_run(object: &Value) -> Vec<(&'static str, String)> {
    let us = |key: &str| human::percentile(object["issue_error_us"][key].as_f64());
    let error = match &object["issue_error_us"] {
        Value::Object(_) => {
            format!("median {}, 99 % {}, max {} of calls that were not held back", us("p50"), us("p99"), us("max"))
        }
        _ => String::new(),
    };
    let instances = number(&object["instances"]);
    vec![
        ("instances", if instances > 1 { human::count(instances) } else { String::new() }),
        ("delay", error),
        ("held by", largest(&object["held_by"], str::to_owned)),
        ("mismatches", mismatches(object)),
        ("outcomes", largest(&object["outcomes"], |name| name.replace('_', " "))),
    ]
}

/// Changes of files for which no replay exists.
fn not_replayed(changes: &Value) -> String {
    let sum: u64 = changes.as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
    if sum == 0 {
        String::new()
    } else {
        format!("{}, which change files: {}", human::count(sum), largest(changes, str::to_owned))
    }
}

fn other_calls(calls: &Value) -> String {
    let sum: u64 = calls.as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
    if sum == 0 {
        return String::new();
    }
    format!("{}, without rows: {}", human::count(sum), largest(calls, str::to_owned))
}

/// The calls, the most frequent first.
fn table(object: &Value) -> String {
    let by_call = object["by_call"].as_array().map_or(&[][..], Vec::as_slice);
    if by_call.is_empty() {
        return String::new();
    }
    let all: u64 = by_call.iter().map(|of| number(&of["calls"])).sum();
    let heads = ["call", "calls", "share", "failed", "bytes", "median", "99 %", "max"].map(str::to_owned);
    let mut rows = vec![heads];
    for of in by_call.iter().take(MOST_CALLS) {
        let us = |key: &str| human::percentile(of["duration_us"][key].as_f64());
        let calls = number(&of["calls"]);
        let none_if_zero = |value: u64, text: String| if value == 0 { "–".to_owned() } else { text };
        let (failed, bytes) = (number(&of["failed"]), number(&of["bytes"]));
        rows.push([
            of["call"].as_str().unwrap_or_default().to_owned(),
            human::count(calls),
            human::percent_of(calls, all),
            none_if_zero(failed, human::count(failed)),
            none_if_zero(bytes, human::bytes(bytes)),
            us("p50"),
            us("p99"),
            us("max"),
        ]);
    }
    let widths: Vec<usize> =
        (0..8).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::from("\n");
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            let line = if column == 0 { format!("{cell}{padding}") } else { format!("  {padding}{cell}") };
            text += &line;
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    if by_call.len() > MOST_CALLS {
        text += &format!("and {} more; --json shows all\n", by_call.len() - MOST_CALLS);
    }
    text
}
