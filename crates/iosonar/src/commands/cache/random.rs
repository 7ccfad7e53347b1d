//! Random reads: the formula beside a simulation.

use std::fmt::Write as _;

use anyhow::Result;
use iosonar_trace::Sectors;
use iosonar_workload::cache::Filling;
use serde_json::{Value, json};

use super::found::Found;
use super::measured::Measured;
use crate::human;
use crate::usage::Usage;

/// A simulation of more reads takes minutes.
const MAX_SIMULATED: u64 = 2_000_000_000;
/// And at most this many entries, a bit each: 1 GiB.
const MAX_ENTRIES: u64 = 1 << 33;

/// Rows of the table, at most.
const ROWS: u64 = 20;
/// Points of the curve between two rows.
const POINTS: u64 = 10;

/// Shares of the cache whose time is of interest.
const SHARES: [f64; 5] = [0.5, 0.632, 0.9, 0.95, 0.99];

pub struct Reads {
    pub entries: u64,
    pub reads: Option<u64>,
    pub zipf: Option<f64>,
    pub rate: Option<f64>,
    pub seed: u64,
}

pub fn fill(options: &Reads, block: Sectors, measured: Option<&Measured>) -> Result<Found> {
    let Reads { entries, zipf, rate, seed, .. } = *options;
    let cache = Filling::new(entries, zipf).map_err(Usage)?;
    let full = cache.mean_full();
    let upper = cache.full_quantile(0.95);
    // A whole number of reads for each entry, but enough for nearly any run.
    let enough = (upper / entries as f64).ceil().clamp(1.0, 100.0) as u64;
    let reads = options.reads.or(measured.map(Measured::reads)).unwrap_or(entries.saturating_mul(enough)).max(1);
    let rows = rows(reads, entries);
    let mut curve: Vec<u64> = Vec::new();
    let mut before = 0;
    for row in &rows {
        curve.extend(
            (1..=POINTS).map(|n| before + ((row - before) as u128 * u128::from(n) / u128::from(POINTS)) as u64),
        );
        before = *row;
    }
    curve.dedup();
    let is_simulated = reads <= MAX_SIMULATED && entries <= MAX_ENTRIES;
    let simulation = is_simulated.then(|| cache.simulate(&curve, seed));
    let simulated = |reads: u64| {
        let index = curve.binary_search(&reads).ok()?;
        simulation.as_ref().and_then(|found| found.filled.get(index).copied())
    };
    let seconds = |reads: f64| rate.map(|rate| reads / rate);
    let point = |reads: u64| -> Value {
        let expected = cache.expected(reads as f64);
        json!({"reads": reads, "seconds": seconds(reads as f64), "formula": expected,
               "formula_share": expected / entries as f64, "simulation": simulated(reads),
               "measured": measured.and_then(|run| run.filled(reads))})
    };
    let shares: Vec<Value> = SHARES
        .iter()
        .map(|share| {
            let reads = cache.reads_for(*share);
            json!({"share": share, "reads": reads, "seconds": seconds(reads)})
        })
        .collect();
    let full_after = simulation.as_ref().and_then(|found| found.full_after);
    let object = json!({
        "kind": "random",
        "entries": entries,
        "block_bytes": block.0 * 512,
        "reads": reads,
        "zipf": zipf,
        "rate": rate,
        "seed": seed,
        "fake": measured.and_then(|run| run.fake.as_ref()),
        "rows": rows.iter().map(|reads| point(*reads)).collect::<Vec<_>>(),
        "curve": curve.iter().map(|reads| point(*reads)).collect::<Vec<_>>(),
        "shares": shares,
        "full": {
            "mean_reads": full, "mean_seconds": seconds(full),
            "p5_reads": cache.full_quantile(0.05), "p95_reads": upper, "p95_seconds": seconds(upper),
            "simulation_reads": full_after, "simulation_seconds": full_after.and_then(|reads| seconds(reads as f64)),
        },
    });
    let mut csv = String::from("reads,seconds,formula,simulation,measured\n");
    for reads in &curve {
        let optional = |number: Option<String>| number.unwrap_or_default();
        let time = optional(seconds(*reads as f64).map(|time| time.to_string()));
        let counted = optional(simulated(*reads).map(|filled| filled.to_string()));
        let found = optional(measured.and_then(|run| run.filled(*reads)).map(|filled| filled.to_string()));
        _ = writeln!(csv, "{reads},{time},{:.3},{counted},{found}", cache.expected(*reads as f64));
    }
    let text = text(options, block, &object);
    Ok(Found { object, text, csv })
}

/// Multiples of the entries; if these are too few or too many, numbers with equal ratios.
fn rows(reads: u64, entries: u64) -> Vec<u64> {
    let multiples = reads / entries;
    if (4..=ROWS).contains(&multiples) {
        let mut rows: Vec<u64> = (1..=multiples).map(|k| k * entries).collect();
        if !reads.is_multiple_of(entries) {
            rows.push(reads);
        }
        return rows;
    }
    let first = (entries as f64 / 10.0).min(reads as f64 / 10.0).max(1.0);
    let ratio = (reads as f64 / first).powf(1.0 / (ROWS - 1) as f64);
    let mut rows: Vec<u64> = (0..ROWS - 1).map(|n| (first * ratio.powi(n as i32)).round() as u64).collect();
    rows.push(reads);
    rows.retain(|row| *row <= reads);
    rows.dedup();
    rows
}

fn text(options: &Reads, block: Sectors, object: &Value) -> String {
    let Reads { entries, zipf, rate, .. } = *options;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let count = |value: &Value| human::count(number(value).round() as u64);
    let time = |value: &Value| value.as_f64().map_or(String::new(), human::span);
    let law = zipf.map_or("uniformly random".into(), |exponent| format!("Zipf-distributed (exponent {exponent})"));
    let at = rate.map_or(String::new(), |rate| format!(" at {} per second", human::rate(rate)));
    let size = human::block(entries.saturating_mul(block.0 * 512));
    let fake = object["fake"].as_str().map_or(String::new(), |why| format!("FAKE RESULT: {why}\n"));
    let mut text = format!(
        "{fake}cache of {} ({size} with blocks of {}), {law} reads{at}\n\n",
        human::counted(entries, "entry").replace("entrys", "entries"),
        human::block(block.0 * 512)
    );
    let has_run = !object["rows"][0]["measured"].is_null();
    let time_heading = if rate.is_some() { format!("{:>12}", "time") } else { String::new() };
    _ = writeln!(
        text,
        "{:>16}{time_heading} {:>15} {:>8} {:>15} {:>12}{}",
        "reads",
        "formula",
        "share",
        "simulation",
        "difference",
        if has_run { format!(" {:>15}", "measured") } else { String::new() }
    );
    for row in object["rows"].as_array().into_iter().flatten() {
        let filled = row["simulation"].as_u64();
        let difference = filled.map(|filled| filled as f64 - number(&row["formula"]));
        let time = if rate.is_some() { format!("{:>12}", time(&row["seconds"])) } else { String::new() };
        _ = writeln!(
            text,
            "{:>16}{time} {:>15} {:>8} {:>15} {:>12}{}",
            count(&row["reads"]),
            count(&row["formula"]),
            format!("{:.3}", number(&row["formula_share"])),
            filled.map_or("–".into(), human::count),
            difference.map_or("–".into(), |difference| format!("{difference:+.0}")),
            if has_run {
                format!(" {:>15}", row["measured"].as_u64().map_or("–".into(), human::count))
            } else {
                String::new()
            },
        );
    }
    text.push('\n');
    let after = |what: &str, reads: &Value, seconds: &Value| {
        let time = seconds.as_f64().map_or(String::new(), |time| format!(", {}", human::span(time)));
        format!("{what:<26} {} reads{time}\n", count(reads))
    };
    for share in object["shares"].as_array().into_iter().flatten() {
        let what = format!("{} filled after", human::percent(number(&share["share"])));
        text += &after(&what, &share["reads"], &share["seconds"]);
    }
    let full = &object["full"];
    text += &after("full after, on average", &full["mean_reads"], &full["mean_seconds"]);
    text += &after("full after, in 95 % of runs", &full["p95_reads"], &full["p95_seconds"]);
    text += &match full["simulation_reads"].is_null() {
        false => after("full after, in simulation", &full["simulation_reads"], &full["simulation_seconds"]),
        true if object["rows"][0]["simulation"].is_null() => format!(
            "no simulation: more than {} reads, or {} entries\n",
            human::count(MAX_SIMULATED),
            human::count(MAX_ENTRIES)
        ),
        true => format!("not full in simulation after {} reads\n", human::count(number(&object["reads"]) as u64)),
    };
    text
}
