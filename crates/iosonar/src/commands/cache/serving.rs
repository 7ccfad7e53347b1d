//! Which caches serve a load: the criterion of the fill time, with the largest working sets of the load.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use iosonar_trace::{Nanos, Op, Sectors, path_text};
use iosonar_workload::cache::{Filled, WorkingSets, pages};
use serde_json::{Value, json};

use super::found::Found;
use super::load::MAX_BLOCKS;
use super::touches::Touches;
use crate::console::status;
use crate::human;
use crate::progress::Rows;

/// Sizes of the curve: powers of the root of 2, up to this power of 2.
const POWERS: u32 = 44;

/// The values of `--op`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CachedOps {
    Read,
    Write,
    #[default]
    Both,
}

impl CachedOps {
    pub fn has(self, op: Op) -> bool {
        match self {
            Self::Read => op == Op::Read,
            Self::Write => op == Op::Write,
            Self::Both => matches!(op, Op::Read | Op::Write),
        }
    }
}

pub struct Asked<'a> {
    pub block: Sectors,
    pub bytes_per_s: u64,
    pub op: CachedOps,
    /// The cache above.
    pub upper: Option<Sectors>,
    pub sizes: &'a [Sectors],
}

/// What the load does.
struct Load {
    requests: u64,
    lasts: Nanos,
    /// All blocks that it touches.
    blocks: u64,
    /// Blocks that one measured block stands for.
    of: u64,
    /// The largest working set within the fill time of a cache, by its blocks.
    touched: BTreeMap<u64, u64>,
    /// The smallest caches that serve the load: of all, and of those as large as the upper one or larger.
    smallest: [u64; 2],
}

/// A cache, or two.
struct Cache {
    kind: &'static str,
    /// The only cache, or the lower one.
    blocks: u64,
    /// What both hold.
    together: u64,
    /// Whether the lower cache holds anything else than the upper one.
    lower_serves: Option<bool>,
}

impl Cache {
    /// Those with this size.
    fn all(blocks: u64, upper: Option<u64>) -> Vec<Self> {
        let Some(upper) = upper else {
            return vec![Self { kind: "one", blocks, together: blocks, lower_serves: None }];
        };
        let inclusive = Some(blocks > upper);
        vec![
            Self { kind: "inclusive", blocks, together: blocks.max(upper), lower_serves: inclusive },
            Self { kind: "exclusive", blocks, together: blocks.saturating_add(upper), lower_serves: Some(true) },
        ]
    }
}

pub fn size(path: &Path, asked: &Asked<'_>) -> Result<Found> {
    let filled = Filled { block_bytes: asked.block.bytes(), bytes_per_s: asked.bytes_per_s };
    let upper = asked.upper.map(|upper| upper.0 / asked.block.0);
    let powers = (0..POWERS).map(|power| 1_u64 << power);
    let chosen: Vec<u64> = match asked.sizes {
        [] => powers.clone().collect(),
        sizes => sizes.iter().map(|size| size.0 / asked.block.0).collect(),
    };
    let mut caches: Vec<Cache> = chosen.iter().flat_map(|blocks| Cache::all(*blocks, upper)).collect();
    let curve = powers.flat_map(|power| [power, (power as f64 * std::f64::consts::SQRT_2) as u64]);
    let mut sizes: Vec<u64> = curve.chain(caches.iter().map(|cache| cache.together)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let load = measure(path, asked, filled, &sizes, upper.unwrap_or(0))?;
    if asked.sizes.is_empty() {
        let all = load.blocks.next_power_of_two();
        caches.retain(|cache| {
            cache.blocks <= all && (cache.blocks * filled.block_bytes >= 1 << 20 || cache.blocks == all)
        });
    }
    let object = object(path, asked, filled, &load, &caches, upper);
    let mut csv = String::from("cache_bytes,fill_s,touched_bytes\n");
    for point in object["curve"].as_array().into_iter().flatten() {
        let [bytes, fill_s, touched] = ["bytes", "fill_s", "touched_bytes"].map(|key| number(&point[key]));
        _ = writeln!(csv, "{bytes},{fill_s},{touched}");
    }
    let text = text(&object);
    Ok(Found { object, text, csv })
}

/// Reads the load until no search grows.
fn measure(path: &Path, asked: &Asked<'_>, filled: Filled, sizes: &[u64], upper: u64) -> Result<Load> {
    let mut halvings = 0;
    let mut from = [0, upper];
    let mut first: Option<Load> = None;
    loop {
        let windows = if first.is_none() { sizes } else { &[] };
        let mut sets = WorkingSets::new(filled, windows, &from, halvings, MAX_BLOCKS);
        let Some((requests, lasts)) = read(path, asked, &mut sets)? else {
            (halvings, from, first) = (halvings + 1, [0, upper], None);
            continue;
        };
        let found = sets.found();
        let load = first.get_or_insert_with(|| Load {
            requests,
            lasts,
            blocks: sets.all(),
            of: 1 << halvings,
            touched: sizes.iter().copied().zip(sets.largest()).collect(),
            smallest: from,
        });
        if load.blocks == 0 {
            let what = match asked.op {
                CachedOps::Read => "reads data",
                CachedOps::Write => "writes data",
                CachedOps::Both => "reads or writes data",
            };
            bail!("{}: no request of the load {what}", path.display());
        }
        if found == from
            && let Some(load) = first
        {
            if halvings > 0 {
                status!("note: measured a sample of the blocks, one of {}, to bound memory", load.of);
            }
            return Ok(Load { smallest: from, ..load });
        }
        from = [found[0], found[1]];
    }
}

/// The number of requests, and how long the load lasts; none if there are too many blocks.
fn read(path: &Path, asked: &Asked<'_>, sets: &mut WorkingSets) -> Result<Option<(u64, Nanos)>> {
    let mut rows = iosonar_trace::open_load(path)?;
    let mut progress = Rows::new(&format!("reading {}", path.display()));
    let mut touches = Touches::default();
    let (mut requests, mut span) = (0, None);
    while let Some(request) = rows.next()? {
        requests += 1;
        span = Some((span.map_or(request.at, |(first, _)| first), request.at));
        touches.add(path, &request, asked.block)?;
        let blocks = pages(&request, asked.block.0).filter(|_| asked.op.has(request.op));
        if sets.request(request.at, blocks).is_err() {
            progress.finish();
            return Ok(None);
        }
        progress.row(|| rows.progress());
    }
    progress.finish();
    Ok(Some((requests, span.map_or(Nanos::ZERO, |(first, last)| last - first))))
}

fn object(path: &Path, asked: &Asked<'_>, filled: Filled, load: &Load, caches: &[Cache], upper: Option<u64>) -> Value {
    let bytes = |blocks: u64| blocks as f64 * filled.block_bytes as f64;
    let fill_s = |blocks: u64| bytes(blocks) / filled.bytes_per_s as f64;
    let touched = |blocks: &u64| load.touched.get(blocks).copied().unwrap_or_default();
    let caches = caches.iter().map(|cache| {
        let set = touched(&cache.together);
        json!({"levels": cache.kind, "bytes": bytes(cache.blocks), "together_bytes": bytes(cache.together),
               "fill_s": fill_s(cache.together), "touched_bytes": bytes(set), "serves": set <= cache.together,
               "lower_serves": cache.lower_serves})
    });
    let [smallest, below] = load.smallest;
    let point = |(blocks, set): (&u64, &u64)| json!({"bytes": bytes(*blocks), "fill_s": fill_s(*blocks), "touched_bytes": bytes(*set)});
    // Beyond twice of all blocks nothing changes.
    let curve = load.touched.iter().filter(|(blocks, _)| **blocks / 2 <= load.blocks.max(smallest)).map(point);
    json!({
        "kind": "size",
        "load": path_text(path),
        "op": format!("{:?}", asked.op).to_lowercase(),
        "block_bytes": filled.block_bytes,
        "fill_bytes_per_s": filled.bytes_per_s,
        "requests": load.requests,
        "seconds": load.lasts.as_secs(),
        "blocks": load.blocks,
        "bytes": bytes(load.blocks),
        "sampled_share": 1.0 / load.of as f64,
        "smallest": {"blocks": smallest, "bytes": bytes(smallest), "fill_s": fill_s(smallest)},
        "upper": upper.map(|upper| json!({
            "bytes": bytes(upper),
            "serves": below == upper,
            "together_bytes": bytes(below),
            "fill_s": fill_s(below),
            "inclusive_bytes": if below == upper { 0.0 } else { bytes(below) },
            "exclusive_bytes": bytes(below - upper),
        })),
        "caches": caches.collect::<Vec<_>>(),
        "curve": curve.collect::<Vec<_>>(),
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn size_of(value: &Value) -> String {
    human::block(number(value).round() as u64)
}

fn text(object: &Value) -> String {
    let op = match object["op"].as_str() {
        Some("read") => " by reads",
        Some("write") => " by writes",
        _ => "",
    };
    let mut text = format!(
        "{}: {} in {} touch {} different blocks of {} ({}){op}\n\n{}\n",
        object["load"].as_str().unwrap_or_default(),
        human::counted(number(&object["requests"]) as u64, "request"),
        human::span(number(&object["seconds"])),
        human::count(number(&object["blocks"]) as u64),
        size_of(&object["block_bytes"]),
        size_of(&object["bytes"]),
        sentences(object).join("\n"),
    );
    let has_upper = !object["upper"].is_null();
    let (first, together) =
        if has_upper { ("lower cache", format!(" {:>12}", "together")) } else { ("cache", String::new()) };
    _ = writeln!(text, "\n{first:>24}{together} {:>12} {:>16}   serves", "fill time", "touched within");
    for cache in object["caches"].as_array().into_iter().flatten() {
        let kind = cache["levels"].as_str().filter(|_| has_upper).unwrap_or_default();
        let together = if has_upper { format!(" {:>12}", size_of(&cache["together_bytes"])) } else { String::new() };
        let serves = match (cache["serves"].as_bool(), cache["lower_serves"].as_bool()) {
            (Some(true), Some(false)) => "the upper cache alone does",
            (_, Some(false)) => "no: not larger than the upper cache",
            (Some(true), _) => "yes",
            _ => "no",
        };
        _ = writeln!(
            text,
            "{:>24}{together} {:>12} {:>16}   {serves}",
            format!("{kind} {}", size_of(&cache["bytes"])),
            human::span(number(&cache["fill_s"])),
            size_of(&cache["touched_bytes"]),
        );
    }
    text
}

/// The answers.
fn sentences(object: &Value) -> Vec<String> {
    let (smallest, upper) = (&object["smallest"], &object["upper"]);
    let (size, time) = (number(&smallest["bytes"]), number(&smallest["fill_s"]));
    let mut all = vec![format!(
        "The smallest cache that serves this load has {}: at {}/s it fills in {}, and no window of {} touches more.",
        size_of(&smallest["bytes"]),
        size_of(&object["fill_bytes_per_s"]),
        human::span(time),
        human::span(time),
    )];
    if size >= number(&object["bytes"]) {
        all.push("It holds all that the load touches.".into());
    }
    let fails =
        |point: &&Value| number(&point["bytes"]) > size && number(&point["touched_bytes"]) > number(&point["bytes"]);
    if let Some(larger) = object["curve"].as_array().and_then(|curve| curve.iter().find(fails)) {
        all.push(format!(
            "Not every larger cache does: the fill time of {} is a window that touches {}.",
            size_of(&larger["bytes"]),
            size_of(&larger["touched_bytes"])
        ));
    }
    if upper["serves"] == true {
        all.push(format!("An upper cache of {} serves it alone: no lower one is needed.", size_of(&upper["bytes"])));
    } else if !upper.is_null() {
        all.push(format!(
            "Below an upper cache of {}, a lower one needs {} if inclusive ({:.1} times the upper one), {} if exclusive.",
            size_of(&upper["bytes"]),
            size_of(&upper["inclusive_bytes"]),
            number(&upper["inclusive_bytes"]) / number(&upper["bytes"]),
            size_of(&upper["exclusive_bytes"]),
        ));
    }
    let longest = if upper.is_null() { time } else { number(&upper["fill_s"]) };
    if longest > number(&object["seconds"]) {
        all.push(format!(
            "The load is shorter than the fill time{}, {}: a longer load may need a larger cache.",
            if upper.is_null() { "" } else { " of the upper cache" },
            human::span(longest)
        ));
    }
    all
}
