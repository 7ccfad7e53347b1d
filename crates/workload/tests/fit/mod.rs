#![allow(dead_code, reason = "each test uses some of it")]
//! Goodness of fit: the draws of each kind against its law, with tests at a level of 0.001 and fixed seeds.

use std::collections::BTreeMap;

use iosonar_trace::{Flags, Nanos, Op, Reader, Request, Sectors};
use iosonar_workload::distributions::{self, Distribution};
use iosonar_workload::{Mix, Recipe, Rng, Sizes};
use rand::SeedableRng;

/// Of a normal distribution: 0.001 of all are further from the mean, on both sides together.
const DEVIATIONS: f64 = 3.29;
/// Of the Kolmogorov distribution: 0.001 of all are larger.
const KOLMOGOROV: f64 = 1.95;

/// Counts of F(x) in bins of equal width: uniform if x has the distribution function F.
struct Shares {
    bins: Vec<u32>,
    count: u64,
}

const BINS: usize = 1 << 20;
const GROUPS: usize = 1 << 10;

impl Shares {
    fn of(shares: impl Iterator<Item = f64>) -> Self {
        let mut bins = vec![0; BINS];
        let mut count = 0;
        for share in shares {
            bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
            count += 1;
        }
        Self { bins, count }
    }

    /// Asserts that both the test of Kolmogorov and Smirnov (at the edges of a million bins) and the chi-squared test (on a
    /// thousand groups) accept.
    fn assert_uniform(&self, what: &str) {
        let n = self.count as f64;
        let (mut below, mut distance) = (0_u64, 0_f64);
        for (index, bin) in self.bins.iter().enumerate() {
            below += u64::from(*bin);
            distance = distance.max((below as f64 / n - (index + 1) as f64 / BINS as f64).abs());
        }
        assert!(distance * n.sqrt() < KOLMOGOROV, "{what}: Kolmogorov-Smirnov {}", distance * n.sqrt());
        let groups = self.bins.chunks(BINS / GROUPS);
        let counts = groups.map(|group| group.iter().map(|count| f64::from(*count)).sum());
        assert_counts(what, &counts.map(|count| (count, n / GROUPS as f64)).collect::<Vec<_>>());
    }
}

/// Asserts that a chi-squared test accepts these counts with their expectations. A fit that is too good fails as well.
/// Neighbours are joined until at least 10 are expected.
fn assert_counts(what: &str, counts: &[(f64, f64)]) {
    let (mut joined, mut waiting) = (Vec::new(), (0.0, 0.0));
    for (count, expected) in counts {
        waiting = (waiting.0 + count, waiting.1 + expected);
        if waiting.1 >= 10.0 {
            joined.push(std::mem::take(&mut waiting));
        }
    }
    if let Some(last) = joined.last_mut() {
        *last = (last.0 + waiting.0, last.1 + waiting.1);
    }
    let chi: f64 = joined.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let freedom = joined.len() as f64 - 1.0;
    assert!(freedom >= 1.0, "{what}: nothing to test");
    // Wilson and Hilferty: the cube root is nearly normal, from a few degrees of freedom on.
    let spread = 2.0 / (9.0 * freedom);
    let deviations = ((chi / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
    assert!(deviations.abs() < DEVIATIONS, "{what}: chi² {chi} with {freedom} degrees of freedom");
}

/// Asserts that a sum of `count` draws has the mean of the law, where the law has a variance.
fn assert_mean(what: &str, mean: f64, expected: f64, squared_variation: f64, count: usize) {
    let error = expected.abs() * (squared_variation / count as f64).sqrt();
    assert!((mean - expected).abs() < DEVIATIONS * error, "{what}: mean {mean} instead of {expected} ± {error}");
}

fn law(text: &str) -> Box<dyn Distribution> {
    distributions::build(&distributions::parse(text).unwrap()).unwrap()
}

/// Continuous distributions, with their squared coefficients of variation where finite.
pub const CONTINUOUS: &[(&str, Option<f64>)] = &[
    ("uniform from=1ms to=9ms", Some(64.0 / 12.0 / 25.0)),
    ("exponential mean=5ms", Some(1.0)),
    ("normal mean=5ms deviation=1ms", Some(0.04)),
    ("lognormal mean=5ms sigma=0.5", Some(0.284_025_416_687_741_5)),
    ("lognormal mean=5ms sigma=1.5", None),
    ("pareto mean=5ms shape=1.2", None),
    ("pareto mean=5ms shape=3", Some(1.0 / 3.0)),
    ("pareto mean=5ms shape=1.5 largest=10s", None),
    ("pareto mean=5ms shape=0.5 largest=1s", None),
    ("weibull mean=5ms shape=0.5", Some(5.0)),
    ("weibull mean=5ms shape=3", None),
    ("gamma mean=5ms shape=0.25", Some(4.0)),
    ("gamma mean=5ms shape=1", Some(1.0)),
    ("gamma mean=5ms shape=7.5", Some(1.0 / 7.5)),
    ("empirical quantiles=0:100us,50%:1ms,99%:10ms,100%:1s", None),
];

pub fn continuous(count: usize) {
    for (text, squared_variation) in CONTINUOUS {
        let (law, mut rng) = (law(text), Rng::seed_from_u64(1));
        let mut sum = 0.0;
        let shares = (0..count).map(|_| {
            let x = law.draw(&mut rng);
            sum += x;
            law.below(x)
        });
        Shares::of(shares).assert_uniform(text);
        if let Some(squared_variation) = squared_variation {
            assert_mean(text, sum / count as f64, law.mean(), *squared_variation, count);
        }
    }
}

pub fn zipf(count: usize) {
    for (numbers, exponent) in [(10_usize, 0.5), (1000, 1.0), (1000, 1.1), (100_000, 0.8), (100_000, 2.5)] {
        let text = format!("zipf numbers={numbers} exponent={exponent}");
        let (law, mut rng) = (law(&text), Rng::seed_from_u64(1));
        let mut counts = vec![0.0; numbers];
        (0..count).for_each(|_| counts[law.draw(&mut rng) as usize - 1] += 1.0);
        assert_ranks(&text, &counts, exponent);
    }
}

/// Asserts that counts by rank follow Zipf's law, computed by a plain sum.
fn assert_ranks(what: &str, counts: &[f64], exponent: f64) {
    let weights: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).powf(-exponent)).collect();
    let (total, drawn): (f64, f64) = (weights.iter().sum(), counts.iter().sum());
    let pairs = counts.iter().zip(&weights).map(|(count, weight)| (*count, drawn * weight / total));
    assert_counts(what, &pairs.collect::<Vec<_>>());
    // The number of positions that were chosen at all: a generator that leaves some out has fewer.
    let missed = |weight: &f64| (drawn * (-weight / total).ln_1p()).exp();
    let expected: f64 = weights.iter().map(|weight| 1.0 - missed(weight)).sum();
    let variance: f64 = weights.iter().map(|weight| missed(weight) * (1.0 - missed(weight))).sum();
    let chosen = counts.iter().filter(|count| **count > 0.0).count() as f64;
    assert!((chosen - expected).abs() <= DEVIATIONS * variance.sqrt() + 1e-6, "{what}: {chosen} of {expected} chosen");
}

fn requests(recipe: Recipe, count: usize) -> impl Iterator<Item = Request> {
    let recipe = Recipe { duration: Nanos::MAX, requests: Some(count as u64), ..recipe };
    let mut load = recipe.generate().unwrap();
    std::iter::from_fn(move || load.next().unwrap())
}

/// Arrivals that are renewal processes, the distribution of the times between them, and its squared variation. The rate is
/// low, so that a nanosecond is nothing compared with the times.
pub const RENEWALS: &[(&str, &str, Option<f64>)] = &[
    ("poisson rate=0.01", "exponential mean=100s", Some(1.0)),
    ("lognormal rate=0.01 sigma=0.5", "lognormal mean=100s sigma=0.5", Some(0.284_025_416_687_741_5)),
    ("pareto rate=0.01 shape=3", "pareto mean=100s shape=3", Some(1.0 / 3.0)),
    ("pareto rate=0.01 shape=1.5", "pareto mean=100s shape=1.5", None),
    ("pareto rate=0.01 shape=1.5 largest=1000s", "pareto mean=100s shape=1.5 largest=1000s", None),
    ("weibull rate=0.01 shape=0.5", "weibull mean=100s shape=0.5", Some(5.0)),
    ("weibull rate=0.01 shape=1.5", "weibull mean=100s shape=1.5", None),
    ("gamma rate=0.01 shape=0.5", "gamma mean=100s shape=0.5", Some(2.0)),
    ("gamma rate=0.01 shape=4", "gamma mean=100s shape=4", Some(0.25)),
];

pub fn renewals(count: usize) {
    for (arrivals, between, squared_variation) in RENEWALS {
        // The mix of sizes must not matter.
        let sizes = "4k:70,64k:25,1M:5".parse().unwrap();
        let recipe = Recipe { sizes, ..Recipe::new(arrivals, "uniform").unwrap() };
        let law = law(between);
        let (mut last, mut end) = (0.0, 0.0);
        let shares = requests(recipe, count).map(|request| {
            end = request.at.as_secs();
            law.below(end - std::mem::replace(&mut last, end))
        });
        Shares::of(shares).assert_uniform(arrivals);
        if let Some(squared_variation) = squared_variation {
            assert_mean(arrivals, end / count as f64, 100.0, *squared_variation, count);
        }
    }
}

/// Asserts that arrivals have their rate, within this share. Of n requests, it deviates by √(d/n); d is the index of
/// dispersion of the counts, or the squared variation of independent times. For each of these, d is below 1.8, so that 0.1 %
/// are 3.3 deviations after twenty million requests.
pub fn rates(count: usize, tolerance: f64) {
    for text in [
        "uniform rate=1k",
        "poisson rate=1k",
        "on-off rate=2k on=500us off=500us",
        "on-off rate=4k on=1ms off=3ms phases=fixed",
        "lognormal rate=1k sigma=0.8",
        "pareto rate=1k shape=3",
        "pareto rate=1k shape=1.5 largest=10ms",
        "weibull rate=1k shape=1.5",
        "gamma rate=1k shape=1.5",
        "mmpp rate=1k states=1:500us,3:500us,0:500us next=random",
        "mmpp rate=1k states=1:2ms,3:1ms",
        "self-similar rate=1k phase=1ms longest=100ms",
    ] {
        let sizes = "4k:70,64k:25,1M:5".parse().unwrap();
        let recipe = Recipe { sizes, ..Recipe::new(text, "uniform").unwrap() };
        let end = requests(recipe, count).last().unwrap().at.as_secs();
        let rate = count as f64 / end;
        assert!((rate / 1000.0 - 1.0).abs() < tolerance, "{text}: {rate}");
    }
}

/// Asserts the Hurst parameter of self-similar arrivals, estimated by Haar wavelets: the mean energy of the details grows
/// with the scale as 2^(2·hurst − 1) (Abry and Veitch, "Wavelet Analysis of Long-Range-Dependent Traffic", 1998).
pub fn hurst(count: usize, hursts: &[f64], tolerance: f64) {
    for hurst in hursts {
        let text = format!("self-similar rate=1k hurst={hurst} phase=20ms longest=10000s sources=16");
        let mut counts: Vec<f64> = Vec::new();
        for request in requests(Recipe::new(&text, "uniform").unwrap(), count) {
            let bin = (request.at.as_secs() / 0.02) as usize;
            counts.resize(bin + 1, 0.0);
            counts[bin] += 1.0;
        }
        // Scales of a few phases are not self-similar yet; the largest have too few details.
        let (mut octave, mut points) = (0, Vec::new());
        while counts.len() >= 64 {
            octave += 1;
            let pairs = counts.chunks_exact(2);
            let energy = pairs.clone().map(|pair| (pair[0] - pair[1]).powi(2) / 2.0).sum::<f64>() / pairs.len() as f64;
            if octave >= 5 {
                points.push((f64::from(octave), energy.log2(), pairs.len() as f64));
            }
            counts = pairs.map(|pair| (pair[0] + pair[1]) / 2_f64.sqrt()).collect();
        }
        // Weighted by the number of details.
        let weight: f64 = points.iter().map(|(_, _, w)| w).sum();
        let centre = points.iter().map(|(x, _, w)| x * w).sum::<f64>() / weight;
        let slope = points.iter().map(|(x, y, w)| w * (x - centre) * y).sum::<f64>()
            / points.iter().map(|(x, _, w)| w * (x - centre).powi(2)).sum::<f64>();
        let estimated = f64::midpoint(slope, 1.0);
        assert!((estimated - hurst).abs() < tolerance, "{text}: {estimated}, {points:?}");
    }
}

const SLOTS: usize = 1000;

/// The slots of requests of one size on a space of [`SLOTS`].
fn slots(positions: &str, count: usize) -> impl Iterator<Item = usize> {
    let recipe = Recipe { span: Sectors(8 * SLOTS as u64), ..Recipe::new("uniform rate=1", positions).unwrap() };
    requests(recipe, count).map(|request| request.sector.0 as usize / 8)
}

fn slot_counts(positions: &str, count: usize) -> Vec<f64> {
    let mut counts = vec![0.0; SLOTS];
    slots(positions, count).for_each(|slot| counts[slot] += 1.0);
    counts
}

pub fn positions(count: usize) {
    let n = count as f64;
    let compared = |text: &str, share: &dyn Fn(usize) -> f64| {
        let pairs = slot_counts(text, count).into_iter().enumerate().map(|(slot, c)| (c, n * share(slot)));
        assert_counts(text, &pairs.collect::<Vec<_>>());
    };
    compared("uniform", &|_| 1.0 / SLOTS as f64);
    compared("runs random=50%", &|_| 1.0 / SLOTS as f64);
    let power = 0.8_f64.ln() / 0.2_f64.ln();
    let upto = |slot: usize| (slot as f64 / SLOTS as f64).powf(power);
    compared("self-similar ranks=sorted", &|slot| upto(slot + 1) - upto(slot));
    compared("hotspots spots=4 space=10% share=90%", &|slot| if slot % 250 < 25 { 0.9 / 100.0 } else { 0.1 / 900.0 });
    for (text, centre, deviation) in [("normal", 500.0, 100.0), ("normal centre=10% deviation=30%", 100.0, 300.0)] {
        let below = |slot: usize| 0.5 * libm::erfc((centre - slot as f64) / (deviation * 2_f64.sqrt()));
        let inside = below(SLOTS) - below(0);
        compared(text, &|slot| (below(slot + 1) - below(slot)) / inside);
    }
    for exponent in [0.5, 1.0, 1.1, 2.0] {
        let text = format!("zipf exponent={exponent} ranks=sorted");
        assert_ranks(&text, &slot_counts(&text, count), exponent);
    }
    // From the middle of the space, all steps of a walk are possible.
    let (mut last, mut steps) = (0, vec![0.0; 201]);
    for slot in slots("random-walk step=400k", count) {
        if (100..SLOTS - 100).contains(&last) {
            steps[slot + 100 - last] += 1.0;
        }
        last = slot;
    }
    let expected = steps.iter().sum::<f64>() / 201.0;
    assert_counts("random-walk", &steps.iter().map(|c| (*c, expected)).collect::<Vec<_>>());
    // Each stream has an equal part of the space, and an equal share of the requests.
    let mut streams = [0.0; 8];
    slots("streams", count).for_each(|slot| streams[slot / 125] += 1.0);
    assert_counts("streams", &streams.iter().map(|c| (*c, n / 8.0)).collect::<Vec<_>>());
    for text in ["sequential", "strided stride=100k", "shuffled"] {
        let whole = count / SLOTS * SLOTS;
        assert!(slot_counts(text, whole).iter().all(|c| *c == (whole / SLOTS) as f64), "{text}");
    }
}

pub fn sizes_and_operations(count: usize) {
    let n = count as f64;
    for text in ["4k:70,64k:25,1M:5", "lognormal mean=16k sigma=1", "lognormal mean=64k sigma=2 largest=512k"] {
        let sizes: Sizes = text.parse().unwrap();
        let recipe = Recipe { sizes: sizes.clone(), ..Recipe::new("uniform rate=1", "uniform").unwrap() };
        let mut counts = BTreeMap::new();
        requests(recipe, count).for_each(|request| *counts.entry(request.sectors).or_insert(0.0) += 1.0);
        let mut before = 0.0;
        let pairs = counts.into_iter().map(|(size, count)| {
            let upto = sizes.below(size);
            (count, n * (upto - std::mem::replace(&mut before, upto)))
        });
        assert_counts(text, &pairs.collect::<Vec<_>>());
    }
    let text = "read=70,write=20,flush=5,fua=4,discard=1";
    let mix: Mix = text.parse().unwrap();
    let recipe = Recipe { mix: mix.clone(), ..Recipe::new("uniform rate=1", "uniform").unwrap() };
    let kinds = [
        (Op::Read, Flags::NONE),
        (Op::Write, Flags::NONE),
        (Op::Flush, Flags::NONE),
        (Op::Write, Flags::FUA),
        (Op::Discard, Flags::NONE),
    ];
    let mut counts = [0.0; 5];
    for request in requests(recipe, count) {
        counts[kinds.iter().position(|kind| *kind == (request.op, request.flags)).unwrap()] += 1.0;
    }
    let pairs = kinds.iter().zip(counts).map(|((op, flags), count)| (count, n * mix.share(*op, *flags)));
    assert_counts(text, &pairs.collect::<Vec<_>>());
}

/// Asserts that the mean of each distribution is the integral of 1 − F, so that a fit of F is a fit of the mean.
pub fn means() {
    for (text, _) in CONTINUOUS.iter().filter(|(text, _)| !text.starts_with("normal")) {
        let law = law(text);
        // Simpson's rule in the logarithm, from a picosecond to three million years.
        let (low, high, steps) = (1e-12_f64.ln(), 1e14_f64.ln(), 20_000);
        let step = (high - low) / f64::from(steps);
        let value = |index: i32| {
            let x = (low + f64::from(index) * step).exp();
            (1.0 - law.below(x)) * x
        };
        let sum: f64 = (0..steps / 2).map(|i| value(2 * i) + 4.0 * value(2 * i + 1) + value(2 * i + 2)).sum();
        let integral = sum * step / 3.0;
        // Beyond the largest share that a float tells from 1, a heavy tail is lost.
        let tolerance = if text.contains("shape=1.2") { 5e-3 } else { 1e-5 };
        assert!((integral / law.mean() - 1.0).abs() < tolerance, "{text}: {integral} instead of {}", law.mean());
    }
}
