//! What `info` tells people of calls and of their runs.

use serde_json::Value;

use crate::human;
use crate::tables::described::{Lines, number, text};

/// The most calls and names that are printed; `--json` has all of them.
const MAX_CALLS: usize = 15;
const MAX_NAMES: usize = 5;

/// Adds the lines of a trace or of a run.
pub fn add(object: &Value, is_run: bool, lines: &mut Lines) {
    let counts = &object["counts"];
    let calls = number(&counts["calls"]);
    // A table of another program does not say what recorded it.
    if !is_run && object["source"]["format"] != "parquet" {
        lines.add("recorded by", text(&object["recorder"]));
    }
    let words = object["command"].as_array().into_iter().flatten().map(text);
    lines.add("command", words.collect::<Vec<_>>().join(" "));
    lines.add("part", part(&object["part"]));
    lines.add("containers", containers(&object["containers"]));
    lines.add("length", human::span(object["duration_s"].as_f64().unwrap_or(0.0)));
    lines.add("calls", mix(object, calls));
    lines.add("failed", failed(object, calls));
    let (threads, processes) = (number(&object["threads"]["number"]), number(&object["threads"]["processes"]));
    if threads > 0 {
        let of = if processes > 0 { format!(" of {}", process_count(processes)) } else { String::new() };
        let share = human::percent_of(number(&object["threads"]["most_calls"]), issued_or(object, calls));
        let most = if threads > 1 { format!("; one of them made {share} of the calls") } else { String::new() };
        lines.add("threads", format!("{}{of}{most}", human::count(threads)));
    }
    lines.add("rate", rate(&object["load_per_s"]));
    let bytes = &object["bytes"];
    let (read, written) = (human::bytes(number(&bytes["read"])), human::bytes(number(&bytes["written"])));
    lines.add("data", format!("{read} read, {written} written"));
    lines.add("files", files(&object["files"]));
    if is_run {
        of_run(object).into_iter().for_each(|(name, value)| lines.add(name, value));
    }
    lines.add("not replayed", not_replayed(&object["changes_not_replayed"]));
    // A call that ends its thread never returns.
    let unfinished = number(&counts["unfinished"]).saturating_sub(exits(object));
    if unfinished > 0 && !is_run {
        lines.add("unfinished", format!("{} did not return", human::count(unfinished)));
    }
    lines.add("other calls", other_calls(&counts["other_calls"]));
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
    let shown = all.iter().take(MAX_NAMES).map(|(of, count)| format!("{} {}", name(of), human::count(*count)));
    let more = all.len().saturating_sub(MAX_NAMES);
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

/// Which part of a recording in several files it is.
fn part(part: &Value) -> String {
    match part["number"].as_u64() {
        Some(number) => format!("{} of a recording in several files", human::count(number)),
        None => String::new(),
    }
}

fn containers(containers: &Value) -> String {
    let all = containers.as_array().map_or(&[][..], Vec::as_slice);
    let shown = all.iter().take(MAX_NAMES).map(|one| match text(&one["engine"]) {
        engine if engine.is_empty() => text(&one["name"]),
        engine => format!("{} ({engine})", text(&one["name"])),
    });
    let more = all.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
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
    let delay = |key: &str| object["delay_not_held_back_us"][key].as_f64();
    let us = |key: &str| human::percentile(delay(key));
    let note = human::too_few(&[delay("p50"), delay("p99")], "calls");
    let error = match &object["delay_not_held_back_us"] {
        Value::Object(_) => {
            format!("median {}, p99 {}, max {} of calls that were not held back{note}", us("p50"), us("p99"), us("max"))
        }
        _ => String::new(),
    };
    let instances = number(&object["instances"]);
    vec![
        ("instances", if instances > 1 { human::count(instances) } else { String::new() }),
        ("delay", error),
        ("delayed by", largest(&object["delay_reasons"], str::to_owned)),
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

/// The calls as a table, the most frequent first.
pub fn table(object: &Value) -> String {
    let by_call = object["by_call"].as_array().map_or(&[][..], Vec::as_slice);
    if by_call.is_empty() {
        return String::new();
    }
    let all: u64 = by_call.iter().map(|of| number(&of["calls"])).sum();
    let heads = ["call", "calls", "share", "failed", "bytes", "median", "p99", "max"].map(str::to_owned);
    let mut rows = vec![heads];
    for of in by_call.iter().take(MAX_CALLS) {
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
    if by_call.len() > MAX_CALLS {
        text += &format!("and {} more; --json shows all\n", by_call.len() - MAX_CALLS);
    }
    text
}
