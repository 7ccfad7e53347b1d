//! Service times of a simulated device: constant, random, or taken from an earlier run.

use std::f64::consts::TAU;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hdrhistogram::Histogram;
use iosonar_pacing::histogram::full_range;
use iosonar_pacing::{Error, Result};
use iosonar_trace::params::{format_time, parse_time};
use iosonar_trace::{IoResult, Nanos, Op, Opened};

/// Distribution of the service times.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// The same for all requests.
    Constant(Nanos),
    /// Exponential, with this mean.
    Exponential(Nanos),
    /// Log-normal.
    LogNormal {
        /// Half of all times are at most this.
        median: Nanos,
        /// Standard deviation of the natural logarithm. With 0 all times are equal; with 1, 5 % exceed five times the
        /// median.
        sigma: f64,
    },
    /// The latencies of an earlier run.
    Run(PathBuf),
}

impl FromStr for Distribution {
    type Err = String;

    /// Parses `constant=200us`, `exponential=200us`, `lognormal=200us:0.5` or `run=FILE`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        const USAGE: &str = "use constant=200us, exponential=200us (mean), lognormal=200us:0.5 (median and spread) or \
                             run=FILE.replay.parquet; append servers=8 to let requests queue for eight servers";
        Ok(match text.split_once('=') {
            Some(("constant", time)) => Self::Constant(parse_service_time(time)?),
            Some(("exponential", mean)) => Self::Exponential(parse_service_time(mean)?),
            Some(("lognormal", both)) => {
                let (median, sigma) = both.split_once(':').ok_or(USAGE)?;
                let sigma = sigma.parse().ok().filter(|s: &f64| (0.0..=10.0).contains(s));
                Self::LogNormal {
                    median: parse_service_time(median)?,
                    sigma: sigma.ok_or("the spread of lognormal must be a number from 0 to 10")?,
                }
            }
            Some(("run", file)) if !file.is_empty() => Self::Run(file.into()),
            _ => return Err(format!("invalid service time `{text}`: {USAGE}")),
        })
    }
}

fn parse_service_time(text: &str) -> std::result::Result<Nanos, String> {
    let time = parse_time(text)?;
    if time < Nanos::ZERO { Err(format!("`{text}` is negative; give 0 or more")) } else { Ok(time) }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(time) => write!(f, "constant={}", format_time(*time)),
            Self::Exponential(mean) => write!(f, "exponential={}", format_time(*mean)),
            Self::LogNormal { median, sigma } => write!(f, "lognormal={}:{sigma}", format_time(*median)),
            Self::Run(file) => write!(f, "run={}", file.display()),
        }
    }
}

/// Random service times.
#[derive(Debug)]
pub struct ServiceTimes {
    seed: u64,
    sampler: Sampler,
}

#[derive(Debug)]
enum Sampler {
    Constant(Nanos),
    Exponential { mean: f64 },
    LogNormal { log_median: f64, sigma: f64 },
    Tables(Vec<[Option<Table>; CLASSES]>),
}

impl ServiceTimes {
    /// Service times of this distribution; reads the earlier run if it needs one.
    pub fn new(distribution: &Distribution, seed: u64) -> Result<Self> {
        let sampler = match distribution {
            Distribution::Constant(time) => Sampler::Constant(*time),
            Distribution::Exponential(mean) => Sampler::Exponential { mean: mean.0 as f64 },
            Distribution::LogNormal { median, sigma } => {
                Sampler::LogNormal { log_median: libm::log(median.0.max(1) as f64), sigma: *sigma }
            }
            Distribution::Run(file) => Sampler::Tables(tables(file)?),
        };
        Ok(Self { seed, sampler })
    }

    /// The service time of a request, which depends only on seed, key, operation and length.
    #[inline]
    pub fn time(&self, key: u64, op: Op, bytes: u64) -> Nanos {
        let random = || uniform(mix(self.seed ^ mix(key)));
        match &self.sampler {
            Sampler::Constant(time) => *time,
            Sampler::Exponential { mean } => Nanos((-mean * libm::log1p(-random())).round() as i64),
            Sampler::LogNormal { log_median, sigma } => {
                // Box–Muller transform.
                let (radius, angle) = (random(), uniform(mix(self.seed ^ mix(key) ^ u64::MAX)));
                let normal = (-2.0 * libm::log(1.0 - radius)).sqrt() * libm::cos(TAU * angle);
                Nanos(libm::exp(log_median + sigma * normal).min(i64::MAX as f64) as i64)
            }
            Sampler::Tables(tables) => {
                let table = tables[op as usize][size_class(bytes)].as_ref().expect("every class has a table");
                table.at(random())
            }
        }
    }
}

/// SplitMix64's finaliser: adjacent keys give independent numbers.
pub(super) fn mix(key: u64) -> u64 {
    let z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From 0 to below 1.
pub(super) fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Size classes: powers of two, from 512 bytes to 16 MiB and above.
const CLASSES: usize = 16;

fn size_class(bytes: u64) -> usize {
    (bytes.div_ceil(512).max(1).ilog2() as usize).min(CLASSES - 1)
}

/// Steps of the quantile table. Its last step is divided again into so many, because the tail matters most.
const STEPS: usize = 1024;

/// Quantiles of a distribution.
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

    /// The quantile at this share.
    #[inline]
    fn at(&self, share: f64) -> Nanos {
        let position = share * STEPS as f64;
        if position < (STEPS - 1) as f64 {
            interpolate(&self.body, position)
        } else {
            interpolate(&self.tail, (position - (STEPS - 1) as f64) * STEPS as f64)
        }
    }
}

fn interpolate(steps: &[Nanos], position: f64) -> Nanos {
    let below = (position as usize).min(STEPS - 1);
    let (low, high) = (steps[below].0 as f64, steps[below + 1].0 as f64);
    Nanos((low + (high - low) * (position - below as f64)).round() as i64)
}

/// Quantiles of a run's latencies by operation and size. A missing size uses the nearest size of the operation, a missing
/// operation the latencies of all requests.
fn tables(file: &Path) -> Result<Vec<[Option<Table>; CLASSES]>> {
    let mut histograms = vec![[const { None::<Histogram<u64>> }; CLASSES]; Op::ALL.len()];
    let mut all = full_range();
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
            histograms[op as usize][size_class(sectors.bytes())]
                .get_or_insert_with(full_range)
                .record(latency)
                .expect("within the bounds");
            all.record(latency).expect("within the bounds");
        }
    }
    if all.is_empty() {
        return Err(Error::Options(format!(
            "{}: no request completed, so there are no latencies to simulate",
            file.display()
        )));
    }
    let fallback = Table::new(&all);
    Ok(histograms.into_iter().map(|of_op| fill_missing(of_op.map(|h| h.as_ref().map(Table::new)), &fallback)).collect())
}

/// Fills missing classes: from the nearest class, or else from `fallback`.
fn fill_missing(histograms: [Option<Table>; CLASSES], fallback: &Table) -> [Option<Table>; CLASSES] {
    std::array::from_fn(|class| {
        let nearest =
            (0..CLASSES).filter(|&other| histograms[other].is_some()).min_by_key(|other| other.abs_diff(class));
        nearest.map_or_else(|| Some(fallback.clone()), |nearest| histograms[nearest].clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(distribution: &str, n: u64) -> Vec<i64> {
        let service = ServiceTimes::new(&distribution.parse().unwrap(), 7).unwrap();
        let mut times: Vec<_> = (0..n).map(|key| service.time(key, Op::Read, 4096).0).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn a_log_normal_device_has_its_median_and_spread() {
        let times = sampled("lognormal=200us:0.5", 100_001);
        assert!(times[50_000].abs_diff(200_000) < 2_000, "{}", times[50_000]);
        // One standard deviation above the median: 84.13 % are below.
        assert!(times[84_134].abs_diff((200_000.0 * 0.5_f64.exp()) as i64) < 5_000, "{}", times[84_134]);
    }

    #[test]
    fn an_exponential_device_has_its_mean_and_median() {
        let times = sampled("exponential=200us", 100_001);
        let mean = times.iter().sum::<i64>() / 100_001;
        assert!(mean.abs_diff(200_000) < 2_000, "{mean}");
        assert!(times[50_000].abs_diff(138_629) < 2_000, "{}", times[50_000]);
    }

    #[test]
    fn a_service_time_depends_only_on_seed_and_request() {
        let of = |seed| ServiceTimes::new(&Distribution::LogNormal { median: Nanos(1000), sigma: 1.0 }, seed).unwrap();
        let (one, same, other) = (of(1), of(1), of(2));
        let forwards: Vec<_> = (0..100).map(|key| one.time(key, Op::Write, 512)).collect();
        let mut backwards: Vec<_> = (0..100).rev().map(|key| same.time(key, Op::Write, 512)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert!((0..100).any(|key| other.time(key, Op::Write, 512) != forwards[key as usize]));
    }

    #[test]
    fn a_table_reproduces_its_distribution() {
        let mut times = full_range();
        (1..=100_000).for_each(|us: u64| times.record(us * 1000).unwrap());
        let table = Table::new(&times);
        for (share, us) in [(0.5, 50_000), (0.9, 90_000), (0.999, 99_900), (0.9999, 99_990), (0.999_999, 100_000)] {
            let got = table.at(share).0 / 1000;
            assert!(got.abs_diff(us) <= us.unsigned_abs() / 500, "{share}: {got}, not {us}");
        }
    }
}
