//! A recorded load: the blocks it touches over time, and the hit ratios of LRU caches.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use iosonar_trace::{Nanos, Sectors, path_text};
use iosonar_workload::cache::{Reuse, ReuseDistances, pages};
use iosonar_workload::histogram::LogHistogram;
use serde_json::{Value, json};

use super::found::Found;
use super::touches::Touches;
use crate::console::status;
use crate::human;
use crate::progress::Rows;

/// Blocks that are measured at a time; more are sampled. About 100 bytes each.
pub const MAX_BLOCKS: usize = 1 << 22;

/// Points of the curve: their number is halved when it reaches twice this.
const POINTS: usize = 512;

/// Rows of the table.
const ROWS: usize = 16;

/// Blocks touched up to a moment.
#[derive(Clone, Copy)]
struct Point {
    at: Nanos,
    requests: u64,
    blocks: f64,
    accesses: f64,
}

/// When a cache of so many blocks was full: requests and time.
struct Filled {
    blocks: f64,
    after: Option<(u64, Nanos)>,
}

/// What is counted over a load.
struct Counted {
    stack: ReuseDistances,
    distances: LogHistogram,
    /// Hits of caches of the chosen sizes, in blocks.
    hits: Vec<(f64, f64)>,
    accesses: f64,
    blocks: f64,
}

impl Counted {
    fn access(&mut self, block: u64) {
        let Some(Reuse { distance, weight }) = self.stack.access(block) else { return };
        self.accesses += weight;
        let Some(distance) = distance else {
            self.blocks += weight;
            return;
        };
        self.distances.add(distance as u64, weight);
        for (blocks, hits) in &mut self.hits {
            if distance < *blocks {
                *hits += weight;
            }
        }
    }
}

pub fn fill(path: &Path, block: Sectors, sizes: &[Sectors]) -> Result<Found> {
    let mut rows = iosonar_trace::open_load(path)?;
    let mut progress = Rows::new(&format!("reading {}", path.display()));
    let hits = sizes.iter().map(|size| ((size.0 / block.0) as f64, 0.0)).collect();
    let stack = ReuseDistances::new(MAX_BLOCKS);
    let mut filled = filled(sizes, block);
    let mut next = 0;
    let mut touches = Touches::default();
    let mut counted = Counted { stack, distances: LogHistogram::default(), hits, accesses: 0.0, blocks: 0.0 };
    let (mut points, mut every, mut requests) = (Vec::<Point>::new(), 1_u64, 0_u64);
    let mut start = None;
    let mut last = None;
    while let Some(request) = rows.next()? {
        requests += 1;
        let at = request.at - *start.get_or_insert(request.at);
        touches.add(path, &request, block)?;
        pages(&request, block.0).for_each(|block| counted.access(block));
        let point = Point { at, requests, blocks: counted.blocks, accesses: counted.accesses };
        last = Some(point);
        while let Some(cache) = filled.get_mut(next).filter(|cache| cache.blocks <= point.blocks) {
            cache.after = Some((requests, at));
            next += 1;
        }
        if requests.is_multiple_of(every) {
            points.push(point);
            if points.len() == 2 * POINTS {
                every *= 2;
                points.retain(|point| point.requests.is_multiple_of(every));
            }
        }
        progress.row(|| rows.progress());
    }
    progress.finish();
    let Some(last) = last.filter(|last| last.accesses > 0.0) else {
        bail!("{}: no request of the load reads or writes data", path.display());
    };
    if points.last().is_none_or(|point| point.requests < last.requests) {
        points.push(last);
    }
    let rate = counted.stack.rate();
    if rate < 1.0 {
        status!("note: measured a sample of the blocks, one of {:.0}, to bound memory", 1.0 / rate);
    }
    let object = object(path, block, &counted, &filled, &points, last);
    let mut csv = String::from("seconds,requests,accesses,blocks,bytes\n");
    for point in &points {
        let bytes = point.blocks * (block.0 * 512) as f64;
        _ = writeln!(
            csv,
            "{},{},{:.0},{:.0},{bytes:.0}",
            point.at.as_secs(),
            point.requests,
            point.accesses,
            point.blocks
        );
    }
    let text = text(&object);
    Ok(Found { object, text, csv })
}

/// Caches of the chosen sizes, or of all powers of two, the smallest first.
fn filled(sizes: &[Sectors], block: Sectors) -> Vec<Filled> {
    let chosen = sizes.iter().map(|size| size.0 / block.0);
    let powers = (0..63).map(|power| 1_u64 << power).filter(|_| sizes.is_empty());
    let mut all: Vec<u64> = chosen.chain(powers).collect();
    all.sort_unstable();
    all.into_iter().map(|blocks| Filled { blocks: blocks as f64, after: None }).collect()
}

fn object(path: &Path, block: Sectors, counted: &Counted, filled: &[Filled], points: &[Point], last: Point) -> Value {
    let bytes = (block.0 * 512) as f64;
    let point = |point: &Point| {
        json!({"seconds": point.at.as_secs(), "requests": point.requests, "accesses": point.accesses,
               "blocks": point.blocks, "bytes": point.blocks * bytes})
    };
    // Hits of caches that are powers of two are exact: bins of the histogram end there.
    let mut sizes = counted.hits.clone();
    if sizes.is_empty() {
        let powers = (0..63).map(|power| 1_u64 << power);
        let all = (counted.blocks.max(1.0) as u64).next_power_of_two();
        let largest = powers.filter(|size| *size <= all).collect::<Vec<_>>();
        let shown = largest.into_iter().filter(|size| size * block.0 * 512 >= 1 << 20 || *size == all);
        sizes = shown.map(|size| (size as f64, counted.distances.below(size))).collect();
    }
    let caches = sizes.iter().map(|(blocks, hits)| {
        let full = filled.iter().find(|cache| cache.blocks >= *blocks).and_then(|cache| cache.after);
        json!({"blocks": blocks, "bytes": blocks * bytes, "hit_ratio": hits / counted.accesses,
               "full_after_requests": full.map(|(requests, _)| requests), "full_after_s": full.map(|(_, at)| at.as_secs())})
    });
    json!({
        "kind": "load",
        "load": path_text(path),
        "block_bytes": block.0 * 512,
        "requests": last.requests,
        "accesses": counted.accesses,
        "blocks": counted.blocks,
        "bytes": counted.blocks * bytes,
        "largest_hit_ratio": counted.distances.total() / counted.accesses,
        "sampled_share": counted.stack.rate(),
        "caches": caches.collect::<Vec<_>>(),
        "curve": points.iter().map(point).collect::<Vec<_>>(),
    })
}

fn text(object: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let count = |value: &Value| human::count(number(value).round() as u64);
    let size = |value: &Value| human::block(number(value).round() as u64);
    let mut text = format!(
        "{}: {} touch {} different blocks of {} ({}), {} accesses; an LRU cache of all hits {}\n\n",
        object["load"].as_str().unwrap_or_default(),
        human::counted(number(&object["requests"]) as u64, "request"),
        count(&object["blocks"]),
        size(&object["block_bytes"]),
        size(&object["bytes"]),
        count(&object["accesses"]),
        human::percent(number(&object["largest_hit_ratio"])),
    );
    _ = writeln!(text, "{:>14} {:>14} {:>14} {:>12} {:>8}", "time", "requests", "blocks", "size", "share");
    let points = object["curve"].as_array().map_or(&[][..], Vec::as_slice);
    let end = points.last().map_or(0.0, |point| number(&point["seconds"]));
    let mut shown = Vec::new();
    for row in 1..=ROWS {
        let time = end * row as f64 / ROWS as f64;
        let index = points.partition_point(|point| number(&point["seconds"]) <= time);
        shown.push(if row == ROWS { points.len() } else { index });
    }
    shown.dedup();
    for point in shown.into_iter().filter_map(|index| points.get(index.checked_sub(1)?)) {
        _ = writeln!(
            text,
            "{:>14} {:>14} {:>14} {:>12} {:>8}",
            human::span(number(&point["seconds"])),
            count(&point["requests"]),
            count(&point["blocks"]),
            size(&point["bytes"]),
            human::percent(number(&point["blocks"]) / number(&object["blocks"])),
        );
    }
    _ = writeln!(text, "\n{:>14} {:>14} {:>14} {:>14}", "LRU cache", "hit ratio", "full after", "requests");
    for cache in object["caches"].as_array().into_iter().flatten() {
        let after = |key: &str, shown: &dyn Fn(&Value) -> String| match &cache[key] {
            Value::Null => "never".to_owned(),
            value => shown(value),
        };
        _ = writeln!(
            text,
            "{:>14} {:>14} {:>14} {:>14}",
            size(&cache["bytes"]),
            human::percent(number(&cache["hit_ratio"])),
            after("full_after_s", &|value| human::span(number(value))),
            after("full_after_requests", &count),
        );
    }
    text
}
