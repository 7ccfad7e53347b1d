//! How long a simulated device takes for a request: always the same, by chance, or as an earlier run has it.

use std::f64::consts::TAU;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hdrhistogram::Histogram;
use iosonar_trace::params::{parse_count, parse_time, time_typed};
use iosonar_trace::{IoResult, Nanos, Op, Opened};
use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// The device that is asked for with `--simulate`.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// How long it takes.
    pub law: Law,
    /// How many requests it works on at once; `None` is all of them.
    pub servers: Option<u32>,
}

/// Where service times come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Always so long.
    Constant(Nanos),
    /// Half of them shorter than the median, their logarithms normal with this deviation.
    LogNormal {
        /// The median.
        median: Nanos,
        /// Standard deviation of the natural logarithm: 0 is constant, 1 puts 5 % beyond five times the median.
        sigma: f64,
    },
    /// As in an earlier run.
    Run(PathBuf),
}

impl FromStr for Simulation {
    type Err = String;

    /// Reads `constant=200us`, `lognormal=200us:0.5` or `run=FILE`, and ` servers=8` behind it.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        const HOW: &str = "say constant=200us, lognormal=200us:0.5 (median and spread) or run=FILE.replay.parquet, and \
                           behind it, if requests shall queue up, servers=8";
        // A file's name may have spaces: only a last word is taken for the servers.
        let (law, servers) = match text.trim().rsplit_once(char::is_whitespace) {
            Some((law, word)) => match word.strip_prefix("servers=") {
                Some(count) => {
                    let count = parse_count(count)?;
                    let count = u32::try_from(count).ok().filter(|n| (1..=65_536).contains(n));
                    (law.trim(), Some(count.ok_or("servers must be between 1 and 65536")?))
                }
                None => (text.trim(), None),
            },
            None => (text.trim(), None),
        };
        let law = match law.split_once('=') {
            Some(("constant", time)) => Law::Constant(span(time)?),
            Some(("lognormal", both)) => {
                let (median, sigma) = both.split_once(':').ok_or(HOW)?;
                let sigma = sigma.parse().ok().filter(|s: &f64| (0.0..=10.0).contains(s));
                Law::LogNormal {
                    median: span(median)?,
                    sigma: sigma.ok_or("the spread of lognormal must be a number from 0 to 10")?,
                }
            }
            Some(("run", file)) if !file.is_empty() => Law::Run(file.into()),
            _ => return Err(format!("`{text}` is no service time: {HOW}")),
        };
        Ok(Self { law, servers })
    }
}

fn span(text: &str) -> std::result::Result<Nanos, String> {
    let time = parse_time(text)?;
    if time < Nanos::ZERO { Err(format!("`{text}` is negative: a request takes some time")) } else { Ok(time) }
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.law {
            Law::Constant(time) => write!(f, "constant={}", time_typed(*time))?,
            Law::LogNormal { median, sigma } => write!(f, "lognormal={}:{sigma}", time_typed(*median))?,
            Law::Run(file) => write!(f, "run={}", file.display())?,
        }
        self.servers.map_or(Ok(()), |n| write!(f, " servers={n}"))
    }
}

impl Serialize for Simulation {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Draws service times.
#[derive(Debug)]
pub struct Service {
    seed: u64,
    draws: Draws,
}

#[derive(Debug)]
enum Draws {
    Constant(Nanos),
    LogNormal { log_median: f64, sigma: f64 },
    Tables(Vec<[Option<Table>; CLASSES]>),
}

impl Service {
    /// By that law; reads the earlier run, if it is one.
    pub fn new(law: &Law, seed: u64) -> Result<Self> {
        let draws = match law {
            Law::Constant(time) => Draws::Constant(*time),
            Law::LogNormal { median, sigma } => {
                Draws::LogNormal { log_median: (median.0.max(1) as f64).ln(), sigma: *sigma }
            }
            Law::Run(file) => Draws::Tables(tables(file)?),
        };
        Ok(Self { seed, draws })
    }

    /// How long this request takes: the same for the same seed and key, whenever it is asked.
    #[inline]
    pub fn time(&self, key: u64, op: Op, bytes: u64) -> Nanos {
        let chance = || uniform(mixed(self.seed ^ mixed(key)));
        match &self.draws {
            Draws::Constant(time) => *time,
            Draws::LogNormal { log_median, sigma } => {
                // Box and Muller's way to a normal number.
                let (radius, angle) = (chance(), uniform(mixed(self.seed ^ mixed(key) ^ u64::MAX)));
                let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (TAU * angle).cos();
                Nanos((log_median + sigma * normal).exp().min(i64::MAX as f64) as i64)
            }
            Draws::Tables(tables) => {
                let table = tables[op as usize][class_of(bytes)].as_ref().expect("every class has a table");
                table.at(chance())
            }
        }
    }
}

/// SplitMix64's finaliser: neighbours among keys get numbers that have nothing to do with each other.
fn mixed(key: u64) -> u64 {
    let z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From 0 to 1, without 1.
fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Sizes are told apart by their power of two, from 512 bytes to 16 MiB and beyond.
const CLASSES: usize = 16;

fn class_of(bytes: u64) -> usize {
    (bytes.div_ceil(512).max(1).ilog2() as usize).min(CLASSES - 1)
}

/// Steps of a table, and once more within its last step: the tail is what makes a device.
const STEPS: usize = 1024;

/// A distribution as its quantiles.
#[derive(Clone, Debug)]
struct Table {
    body: Vec<Nanos>,
    tail: Vec<Nanos>,
}

impl Table {
    fn new(times: &Histogram<u64>) -> Self {
        let quantiles = |from: f64| -> Vec<Nanos> {
            let at = |i| from + (1.0 - from) * i as f64 / STEPS as f64;
            (0..=STEPS).map(|i| Nanos(times.value_at_quantile(at(i)) as i64)).collect()
        };
        Self { body: quantiles(0.0), tail: quantiles(1.0 - 1.0 / STEPS as f64) }
    }

    /// The quantile of that share.
    #[inline]
    fn at(&self, share: f64) -> Nanos {
        let place = share * STEPS as f64;
        if place < (STEPS - 1) as f64 {
            between(&self.body, place)
        } else {
            between(&self.tail, (place - (STEPS - 1) as f64) * STEPS as f64)
        }
    }
}

fn between(steps: &[Nanos], place: f64) -> Nanos {
    let below = (place as usize).min(STEPS - 1);
    let (low, high) = (steps[below].0 as f64, steps[below + 1].0 as f64);
    Nanos((low + (high - low) * (place - below as f64)).round() as i64)
}

/// The latencies of a run, by operation and size; a size that it has not got takes after the next one that it has, an
/// operation that it has not got after all of them.
fn tables(file: &Path) -> Result<Vec<[Option<Table>; CLASSES]>> {
    let mut known = vec![[const { None::<Histogram<u64>> }; CLASSES]; Op::ALL.len()];
    let mut all = histogram();
    let Opened::Run(mut run) = iosonar_trace::open(file)? else {
        return Err(Error::Options(format!(
            "{} is a load; --simulate run= takes the result of a replay (.replay.parquet)",
            file.display()
        )));
    };
    while let Some(record) = run.next()? {
        let IoResult { op, sectors, .. } = record;
        if let Some(latency) = record.latency() {
            let latency = latency.0.max(1) as u64;
            known[op as usize][class_of(sectors.bytes())].get_or_insert_with(histogram).saturating_record(latency);
            all.saturating_record(latency);
        }
    }
    if all.is_empty() {
        return Err(Error::Options(format!("{}: no request of it was completed: nothing to simulate", file.display())));
    }
    let fallback = Table::new(&all);
    Ok(known.into_iter().map(|of_op| filled(of_op.map(|h| h.as_ref().map(Table::new)), &fallback)).collect())
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant, valid bounds")
}

/// With a table for each class: its own, or that of the nearest class that has one.
fn filled(known: [Option<Table>; CLASSES], fallback: &Table) -> [Option<Table>; CLASSES] {
    std::array::from_fn(|class| {
        let nearest = (0..CLASSES).filter(|&other| known[other].is_some()).min_by_key(|other| other.abs_diff(class));
        nearest.map_or_else(|| Some(fallback.clone()), |nearest| known[nearest].clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(law: &str, n: u64) -> Vec<i64> {
        let service = Service::new(&law.parse::<Simulation>().unwrap().law, 7).unwrap();
        let mut times: Vec<_> = (0..n).map(|key| service.time(key, Op::Read, 4096).0).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn what_is_typed_is_understood_and_shown_again() {
        for text in ["constant=200us", "lognormal=1ms:0.5 servers=8", "run=a file.replay.parquet servers=1"] {
            assert_eq!(text.parse::<Simulation>().unwrap().to_string(), text);
        }
        assert_eq!("constant=200us".parse::<Simulation>().unwrap().law, Law::Constant(Nanos(200_000)));
        for wrong in
            ["", "constant", "constant=-1ms", "lognormal=1ms", "lognormal=1ms:x", "run=", "constant=1ms servers=0"]
        {
            assert!(wrong.parse::<Simulation>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_log_normal_device_has_its_median_and_spread() {
        let times = drawn("lognormal=200us:0.5", 100_001);
        assert!(times[50_000].abs_diff(200_000) < 2_000, "{}", times[50_000]);
        // One standard deviation up: 84.13 % lie below.
        assert!(times[84_134].abs_diff((200_000.0 * 0.5_f64.exp()) as i64) < 5_000, "{}", times[84_134]);
    }

    #[test]
    fn the_same_seed_and_request_take_the_same_time_in_any_order() {
        let of = |seed| Service::new(&Law::LogNormal { median: Nanos(1000), sigma: 1.0 }, seed).unwrap();
        let (one, same, other) = (of(1), of(1), of(2));
        let forwards: Vec<_> = (0..100).map(|key| one.time(key, Op::Write, 512)).collect();
        let mut backwards: Vec<_> = (0..100).rev().map(|key| same.time(key, Op::Write, 512)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert!((0..100).any(|key| other.time(key, Op::Write, 512) != forwards[key as usize]));
    }

    #[test]
    fn a_table_gives_back_the_distribution_that_it_was_made_of() {
        let mut times = histogram();
        (1..=100_000).for_each(|us: u64| times.record(us * 1000).unwrap());
        let table = Table::new(&times);
        for (share, us) in [(0.5, 50_000), (0.9, 90_000), (0.999, 99_900), (0.9999, 99_990), (0.999_999, 100_000)] {
            let got = table.at(share).0 / 1000;
            assert!(got.abs_diff(us) <= us.unsigned_abs() / 500, "{share}: {got}, not {us}");
        }
    }
}
