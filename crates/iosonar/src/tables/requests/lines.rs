//! What `info` tells people of requests.

use serde_json::Value;

use crate::human;
use crate::tables::described::{Lines, number};

/// Adds the lines of a load or run.
pub fn add(object: &Value, lines: &mut Lines) {
    let (counts, span, sizes) = (&object["counts"], &object["span"], &object["request_bytes"]);
    let requests = number(&counts["requests"]);
    let share = |key: &str| {
        let count = number(&counts[&format!("{key}s")]);
        format!("{} ({})", human::counted(count, key), human::percent_of(count, requests))
    };
    let others = if number(&counts["others"]) > 0 { format!(", {}", share("other")) } else { String::new() };
    lines.add("requests", format!("{}: {}, {}{others}", human::count(requests), share("read"), share("write")));
    lines.add("length", human::span(object["duration_s"].as_f64().unwrap_or(0.0)));
    if let Some(rate) = object["requests_per_s"].as_f64() {
        // In a load of little more than a second, the peak second can be below the mean.
        let peak = object["busiest_second_requests"].as_u64().filter(|&peak| peak as f64 >= rate);
        let peak = peak.map_or(String::new(), |peak| format!(", {} in the busiest second", human::count(peak)));
        lines.add("rate", format!("mean {} requests/s{peak}", human::rate(rate)));
    }
    let bytes = &object["bytes"];
    lines.add(
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
        lines.add(
            "sizes",
            if min == max {
                format!("all {min}")
            } else {
                format!("{min} to {max}, mean {mean}; most frequent {}", common.join(", "))
            },
        );
    }
    let end = number(&span["max_end_sector"]);
    lines.add("reaches", format!("sector {} ({})", human::count(end), human::block(end.saturating_mul(512))));
    lines.add("devices", devices(&object["devices"]));
    lines.add("latency", quantiles(&object["latency_us"]));
    let by_op = object["latency_us_by_op"].as_object();
    // With a single operation, they equal the line above.
    for (op, q) in by_op.into_iter().flatten().filter(|_| by_op.is_some_and(|all| all.len() > 1)) {
        let requests = human::counted(number(&q["requests"]), "request");
        lines.add(&format!("  {}", op.replace('_', " ")), format!("{} ({requests})", quantiles(q)));
    }
    lines.add("queued", quantiles(&object["queued_us"]));
    lines.add("delay", quantiles(&object["delay_us"]));
    if let Some(outcomes) = object["outcomes"].as_object() {
        let all: Vec<String> =
            outcomes.iter().map(|(name, count)| format!("{} {name}", human::count(number(count)))).collect();
        lines.add(
            "outcomes",
            format!("{}; {} pushed back", all.join(", "), human::count(number(&object["pushed_back"]))),
        );
    }
}

/// Empty without latencies.
fn quantiles(q: &Value) -> String {
    if !q.is_object() {
        return String::new();
    }
    let us = |key: &str| human::percentile(q[key].as_f64());
    let note = human::too_few(&[q["p50"].as_f64(), q["p99"].as_f64()], "requests");
    format!("median {}, p99 {}, max {}, mean {}{note}", us("p50"), us("p99"), us("max"), us("mean"))
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
