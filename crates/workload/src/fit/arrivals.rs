//! Which kind of arrivals, with which settings.
//!
//! Kinds with independent times are estimated by maximum likelihood, at the load's mean rate; `on-off` as the mixture of two
//! exponential distributions that it is (Kuczura, "The Interrupted Poisson Process as an Overflow Process", 1973);
//! `hidden-markov`, and `mmpp` with two states, as chains. The smallest criterion of Akaike wins, if its load has the index
//! of dispersion of the original within a factor of two; else the smallest distance, in which that counts too.

use std::collections::BTreeMap;

use iosonar_trace::Nanos;
use rand::SeedableRng;

use super::compare::{Counts, dispersion_difference};
use super::hidden_markov::{Chain, Law, Times, estimate, with_regimes};
use super::model::{Candidate, Choices};
use crate::Rng;
use crate::arrivals::{self, stationary};
use crate::histogram::LogHistogram;

/// States of the hidden Markov chains that are tried.
const STATES: [usize; 3] = [2, 4, 8];
/// Windows of busy and quiet regimes that are tried, in seconds, with so many states in each regime.
const REGIMES: [f64; 3] = [1.0, 10.0, 60.0];
const STATES_OF_REGIME: usize = 4;

/// A factor of two, in decades.
const ALIKE: f64 = 0.301;

/// The statistic of Kolmogorov and Smirnov of two samples of the same distribution of n times is below this over √n in all
/// but one of a thousand cases (1.95 · √2). Then chains are not tried.
const CLOSE: f64 = 2.76;

/// Arrivals that are drawn to compare a candidate, at most.
const MAX_DRAWN: usize = 1_000_000;

struct Measured {
    times: Times,
    /// How often each value occurs.
    weights: Vec<f64>,
    count: f64,
    mean: f64,
    rate: f64,
    gaps: LogHistogram,
    dispersion: Vec<Option<f64>>,
    hurst: Option<f64>,
    until: Nanos,
}

fn measure(times: &[Nanos], until: Nanos) -> Measured {
    let mut counts = Counts::new(until);
    let mut gaps = LogHistogram::default();
    times.iter().for_each(|at| counts.add(*at));
    let between = || times.windows(2).map(|pair| (pair[1] - pair[0]).0.max(0) as u64);
    between().for_each(|gap| gaps.add(gap, 1.0));
    // Equal times are half the smallest difference apart.
    let smallest = between().filter(|gap| *gap > 0).min().unwrap_or(1) as f64;
    let (mut values, mut weights, mut numbers) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (bin, value, weight) in gaps.values() {
        numbers.insert(bin, values.len() as u32);
        values.push(value.max(smallest / 2.0) / 1e9);
        weights.push(weight);
    }
    let sequence = between().map(|gap| numbers[&LogHistogram::bin(gap)]).collect();
    let count = gaps.total();
    let mean = values.iter().zip(&weights).map(|(x, n)| x * n).sum::<f64>() / count.max(1.0);
    Measured {
        times: Times { values, sequence },
        weights,
        count,
        mean,
        rate: times.len() as f64 / until.as_secs(),
        gaps,
        dispersion: counts.dispersion(),
        hurst: counts.hurst(),
        until,
    }
}

/// All kinds that were tried; one is chosen.
pub(super) fn fit(times: &[Nanos], until: Nanos, choices: &Choices) -> Result<Vec<Candidate>, String> {
    let measured = measure(times, until);
    if measured.count < 1.0 || measured.mean <= 0.0 {
        let text = format!("poisson rate={}", number(measured.rate));
        return Ok(vec![Candidate {
            text,
            parameters: 1,
            aic: None,
            distance: 0.0,
            dispersion: None,
            is_chosen: true,
        }]);
    }
    let mut candidates = Vec::new();
    for attempt in renewals(&measured).into_iter().chain(constant(&measured)) {
        candidates.extend(compared(&measured, attempt, choices.seed));
    }
    let is_close = |candidate: &Candidate| {
        candidate.distance < CLOSE / measured.count.sqrt() && candidate.dispersion.unwrap_or(0.0) < ALIKE / 3.0
    };
    let found = chosen(&candidates).map(|index| &candidates[index]);
    if choices.arrivals.is_some() || !found.is_some_and(is_close) {
        for attempt in chains(&measured).into_iter().chain(self_similar(&measured)) {
            candidates.extend(compared(&measured, attempt, choices.seed));
        }
    }
    if let Some(kind) = &choices.arrivals {
        candidates.retain(|candidate| candidate.kind() == kind);
        if candidates.is_empty() {
            return Err(format!("cannot fit arrivals of kind {kind} to this load; choose another kind, or none"));
        }
    }
    let chosen = chosen(&candidates).ok_or("no kind of arrivals fits")?;
    candidates[chosen].is_chosen = true;
    Ok(candidates)
}

/// None if the kind cannot be built with these settings.
fn compared(measured: &Measured, attempt: FitAttempt, seed: u64) -> Option<Candidate> {
    let (text, parameters, log_likelihood) = attempt;
    let (distance, dispersion) = drawn(measured, &text, seed)?;
    let aic = log_likelihood.map(|log| 2.0 * parameters as f64 - 2.0 * log).filter(|aic| aic.is_finite());
    let dispersion = Some(dispersion);
    Some(Candidate { text, parameters, aic, distance, dispersion, is_chosen: false })
}

fn chosen(candidates: &[Candidate]) -> Option<usize> {
    let least = |key: &dyn Fn(&Candidate) -> Option<f64>| {
        let keys = candidates.iter().enumerate().filter_map(|(index, candidate)| Some((index, key(candidate)?)));
        keys.min_by(|one, two| one.1.total_cmp(&two.1)).map(|(index, _)| index)
    };
    let total = |candidate: &Candidate| candidate.distance + candidate.dispersion.unwrap_or(0.0);
    // Constant times have no density: their distance tells.
    let constant = candidates.iter().position(|c| c.kind() == "uniform" && c.distance < 0.01);
    let likely = least(&|candidate| candidate.aic);
    constant
        .or(likely.filter(|index| candidates[*index].dispersion.unwrap_or(0.0) <= ALIKE))
        .or_else(|| least(&|candidate| Some(total(candidate))))
}

/// The distance of a candidate's times between arrivals, and of its dispersion, from a load that it draws. None if it cannot
/// be built.
fn drawn(measured: &Measured, text: &str, seed: u64) -> Option<(f64, f64)> {
    // Estimates may be out of the range of a setting.
    let Ok(mut arrivals) = arrivals::parse(text).and_then(|settings| arrivals::build(&settings)) else { return None };
    let mut rng = Rng::seed_from_u64(seed);
    let (mut gaps, mut counts) = (LogHistogram::default(), Counts::new(measured.until));
    let mut last = None;
    for _ in 0..MAX_DRAWN {
        let at = arrivals.next(&mut rng);
        if at >= measured.until {
            break;
        }
        if let Some(last) = last.replace(at) {
            gaps.add((at - last).0 as u64, 1.0);
        }
        counts.add(at);
    }
    let distance = measured.gaps.ks(&gaps, (0.0, 0.0));
    Some((distance, dispersion_difference(&measured.dispersion, &counts.dispersion())))
}

/// Text, parameters and log-likelihood.
type FitAttempt = (String, usize, Option<f64>);

fn renewals(measured: &Measured) -> Vec<FitAttempt> {
    let (mean, rate) = (measured.mean, number(measured.rate));
    let likelihood = |density: &dyn Fn(f64) -> f64| -> f64 {
        measured.times.values.iter().zip(&measured.weights).map(|(x, weight)| weight * density(*x)).sum()
    };
    let mut all = vec![(format!("poisson rate={rate}"), 1, Some(likelihood(&|x| -x / mean - libm::log(mean))))];
    // Each with one shape besides the mean: its range, and the logarithm of the density.
    type Density<'a> = Box<dyn Fn(f64, f64) -> f64 + 'a>;
    let lognormal = move |sigma: f64, x: f64| {
        let z = (libm::log(x) - (libm::log(mean) - sigma * sigma / 2.0)) / sigma;
        -z * z / 2.0 - libm::log(x * sigma * (2.0 * std::f64::consts::PI).sqrt())
    };
    let weibull = move |shape: f64, x: f64| {
        let scale = mean / libm::tgamma(1.0 + 1.0 / shape);
        libm::log(shape / scale) + (shape - 1.0) * libm::log(x / scale) - libm::pow(x / scale, shape)
    };
    let gamma = move |shape: f64, x: f64| {
        let scale = mean / shape;
        (shape - 1.0) * libm::log(x) - x / scale - libm::lgamma(shape) - shape * libm::log(scale)
    };
    let families: [(&str, &str, (f64, f64), Density<'_>); 3] = [
        ("lognormal", "sigma", (0.01, 4.99), Box::new(lognormal)),
        ("weibull", "shape", (0.1, 50.0), Box::new(weibull)),
        ("gamma", "shape", (0.02, 1000.0), Box::new(gamma)),
    ];
    for (name, shape, (low, high), density) in families {
        let best = golden(libm::log(low), libm::log(high), |log| {
            let shape = libm::exp(log);
            likelihood(&|x| density(shape, x))
        });
        let best = libm::exp(best);
        all.push((format!("{name} rate={rate} {shape}={}", number(best)), 2, Some(likelihood(&|x| density(best, x)))));
    }
    all.extend(pareto(measured));
    all.extend(on_off(measured));
    all
}

/// Times are at least the smallest one; the shape is that of maximum likelihood, and the rate the one that follows.
fn pareto(measured: &Measured) -> Option<FitAttempt> {
    let smallest = measured.times.values.first().copied()?;
    let pairs = || measured.times.values.iter().zip(&measured.weights);
    let logs: f64 = pairs().map(|(x, weight)| weight * libm::log(x / smallest)).sum();
    let shape = measured.count / logs;
    // Without an upper bound there is no mean up to 1.
    if !(shape > 1.01 && shape < 100.0) {
        return None;
    }
    let log = |x: f64| libm::log(shape / smallest) - (shape + 1.0) * libm::log(x / smallest);
    let likelihood = pairs().map(|(x, weight)| weight * log(*x)).sum();
    let rate = (shape - 1.0) / (shape * smallest);
    Some((format!("pareto rate={} shape={}", number(rate), number(shape)), 2, Some(likelihood)))
}

/// A mixture of two exponential distributions, by expectation and maximisation, as phases of activity and idleness.
fn on_off(measured: &Measured) -> Option<FitAttempt> {
    let pairs = || measured.times.values.iter().zip(&measured.weights);
    let mean = measured.mean;
    // Share and mean of the short times, and mean of the long ones.
    let (mut share, mut short, mut long) = (0.5, mean / 4.0, mean * 4.0);
    let parts = |x: f64, (share, short, long): (f64, f64, f64)| {
        (share / short * libm::exp(-x / short), (1.0 - share) / long * libm::exp(-x / long))
    };
    for _ in 0..500 {
        let (mut weight, mut sum, mut rest, mut rest_sum) = (0.0, 0.0, 0.0, 0.0);
        for (x, n) in pairs() {
            let (one, two) = parts(*x, (share, short, long));
            let is_short = if one + two > 0.0 { one / (one + two) } else { 0.0 };
            (weight, sum) = (weight + n * is_short, sum + n * is_short * x);
            (rest, rest_sum) = (rest + n * (1.0 - is_short), rest_sum + n * (1.0 - is_short) * x);
        }
        if weight < 1.0 || rest < 1.0 {
            return None;
        }
        (share, short, long) = (weight / measured.count, sum / weight, rest_sum / rest);
    }
    let likelihood = pairs().map(|(x, n)| {
        let (one, two) = parts(*x, (share, short, long));
        n * libm::log((one + two).max(1e-300))
    });
    let (fast, slow) = (1.0 / short, 1.0 / long);
    let rate = share * fast + (1.0 - share) * slow;
    let off = rate / (fast * slow);
    let on = rate / (share * (1.0 - share) * (fast - slow) * (fast - slow));
    (on > 1e-9 && off > 1e-9 && on.is_finite() && rate <= 1e9).then(|| {
        let text = format!("on-off rate={} on={} off={}", number(rate), time(on), time(off));
        (text, 3, Some(likelihood.sum()))
    })
}

fn chains(measured: &Measured) -> Vec<FitAttempt> {
    let rate = number(measured.rate);
    let mut all = Vec::new();
    // A rate of its own in each of two states: a request changes the state with a probability that gives the mean duration.
    if let Some(chain) = estimate(&measured.times, 2, Law::Exponential) {
        let states = [0, 1].map(|state| {
            let mean = chain.means[state];
            (1.0 / mean, mean / chain.rows[state][1 - state].max(1e-12))
        });
        let states = states.map(|(rate, duration)| format!("{}:{}", number(rate), time(duration)));
        let text = format!("mmpp rate={rate} states={}", states.join(","));
        all.push((text, 4, Some(chain.log_likelihood * measured.count)));
    }
    let regimes = REGIMES.iter().map(|window| with_regimes(&measured.times, STATES_OF_REGIME, *window));
    let single = STATES.iter().map(|count| estimate(&measured.times, *count, Law::Lognormal));
    for chain in single.chain(regimes).flatten() {
        let count = chain.states.len();
        let text = format!("hidden-markov rate={rate} {}", settings(&chain));
        all.push((text, count * (count + 1), Some(chain.log_likelihood * measured.count)));
    }
    all
}

fn settings(chain: &Chain) -> String {
    let often = stationary(&chain.rows);
    // The most frequent first, for readers.
    let mut order: Vec<usize> = (0..often.len()).collect();
    order.sort_by(|one, two| often[*two].total_cmp(&often[*one]));
    let states = order.iter().map(|state| format!("{}:{}", time(chain.means[*state]), number(chain.sigma(*state))));
    let states: Vec<String> = states.collect();
    let rows = order.iter().map(|from| {
        let weights = order.iter().map(|to| number((chain.rows[*from][*to] * 1e8).round() / 100.0));
        weights.collect::<Vec<_>>().join(":")
    });
    format!("states={} next={}", states.join(","), rows.collect::<Vec<_>>().join(","))
}

/// With the measured Hurst parameter. Sources are as many as give the measured dispersion in windows of a second.
fn self_similar(measured: &Measured) -> Option<FitAttempt> {
    let hurst = measured.hurst.filter(|hurst| *hurst > 0.6)?.min(0.98);
    // The rate of n sources, each on half of the time, has a squared coefficient of variation of 1 / n.
    let index = measured.dispersion[2]?;
    let variation = (index - 1.0) / measured.rate;
    let sources = (1.0 / variation.max(1e-3)).round().clamp(1.0, 1000.0);
    Some((format!("self-similar rate={} hurst={hurst:.2} sources={sources} phase=1s", number(measured.rate)), 4, None))
}

/// Equal times.
fn constant(measured: &Measured) -> Option<FitAttempt> {
    let pairs = measured.times.values.iter().zip(&measured.weights);
    let near = pairs.filter(|(x, _)| (*x / measured.mean - 1.0).abs() < 0.02).map(|(_, weight)| weight).sum::<f64>();
    (near > 0.99 * measured.count).then(|| (format!("uniform rate={}", number(measured.rate)), 1, None))
}

/// The place of the largest value of a function with one maximum, by the golden section.
fn golden(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const PART: f64 = 0.618_033_988_749_895;
    let (mut one, mut two) = (high - PART * (high - low), low + PART * (high - low));
    let (mut at_one, mut at_two) = (f(one), f(two));
    for _ in 0..50 {
        if at_one > at_two {
            (high, two, at_two) = (two, one, at_one);
            one = high - PART * (high - low);
            at_one = f(one);
        } else {
            (low, one, at_one) = (one, two, at_two);
            two = low + PART * (high - low);
            at_two = f(two);
        }
    }
    f64::midpoint(low, high)
}

/// Four significant digits, without an exponent.
pub(super) fn number(x: f64) -> String {
    let digits = (3.0 - libm::floor(libm::log10(x.abs().max(1e-12)))).max(0.0) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn time(seconds: f64) -> String {
    match seconds {
        ..1e-6 => format!("{}ns", number((seconds * 1e9).max(1.0))),
        ..1e-3 => format!("{}us", number(seconds * 1e6)),
        ..1.0 => format!("{}ms", number(seconds * 1e3)),
        _ => format!("{}s", number(seconds)),
    }
}
