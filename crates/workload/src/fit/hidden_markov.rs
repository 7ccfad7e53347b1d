//! Estimates hidden Markov chains of times between arrivals, by the algorithm of Baum and Welch (Rabiner, "A Tutorial on
//! Hidden Markov Models", 1989): each pass raises the likelihood.

use crate::arrivals::stationary;

/// Times in a row that are used at most; each takes 8 bytes for each state.
const MOST: usize = 250_000;
const PASSES: usize = 40;
/// A smaller gain in log-likelihood for each time ends the estimation.
const GAIN: f64 = 2e-5;
/// Smaller deviations than this describe the resolution of a clock.
const LEAST_SIGMA: f64 = 0.02;

/// The distribution of the times of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Law {
    Exponential,
    Lognormal,
}

/// A chain.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// Mean and sigma of the logarithm of each state; of exponential states the first is the logarithm of the mean.
    pub states: Vec<(f64, f64)>,
    /// The mean time of each state, in seconds.
    pub means: Vec<f64>,
    pub rows: Vec<Vec<f64>>,
    /// Of each time, on average.
    pub log_likelihood: f64,
}

impl Chain {
    /// The sigma with which a lognormal distribution has the mean and the median of a state. The tail of times in a state
    /// ends somewhere, so that the sigma of their logarithms would mean too long a mean.
    pub fn sigma(&self, state: usize) -> f64 {
        (2.0 * (libm::log(self.means[state]) - self.states[state].0)).max(0.0).sqrt().clamp(LEAST_SIGMA, 5.0)
    }
}

/// Times as numbers of values, so that a density is computed once for each value.
pub(super) struct Times {
    /// Of each value, in seconds, above 0.
    pub values: Vec<f64>,
    /// The value of each time, in their order.
    pub sequence: Vec<u32>,
}

/// The most likely chain found, from two starting points.
pub(super) fn estimate(times: &Times, count: usize, law: Law) -> Option<Chain> {
    let sequence = &times.sequence[..times.sequence.len().min(MOST)];
    let starts = [classes(times, sequence, count, 1), classes(times, sequence, count, 2)];
    let chains = starts.into_iter().filter_map(|class| passes(times, sequence, &class?, count, law));
    chains.max_by(|one, two| one.log_likelihood.total_cmp(&two.log_likelihood))
}

/// A chain of two regimes, busy and quiet, each a chain with so many states: busy are the fewest windows of this length, in
/// seconds, that have half of the requests. None if they are more than a third of all. The likelihood is that of
/// the parts and of the changes between them, and so at most that of the whole.
pub(super) fn with_regimes(times: &Times, count: usize, window: f64) -> Option<Chain> {
    let sequence = &times.sequence[..times.sequence.len().min(MOST)];
    let mut now = 0.0;
    // Windows in use, each with its requests: a long gap has more windows than there is memory.
    let (mut used, mut counts) = (Vec::<u64>::new(), Vec::<usize>::new());
    let windows: Vec<usize> = sequence
        .iter()
        .map(|value| {
            now += times.values[*value as usize];
            let number = (now / window) as u64;
            if used.last() != Some(&number) {
                used.push(number);
                counts.push(0);
            }
            *counts.last_mut().expect("a window was pushed") += 1;
            counts.len() - 1
        })
        .collect();
    let all = used.last()?.saturating_add(1);
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|window| (std::cmp::Reverse(counts[*window]), *window));
    let mut is_busy = vec![false; counts.len()];
    let (mut sum, mut busy) = (0, 0);
    for window in &order {
        if 2 * sum >= sequence.len() {
            break;
        }
        is_busy[*window] = true;
        busy += 1;
        sum += counts[*window];
    }
    // Half of the requests in less than a third of the windows.
    if 3 * busy as u64 > all {
        return None;
    }
    let of = |wanted: bool| -> Vec<u32> {
        let matching = sequence.iter().zip(&windows).filter(|(_, window)| is_busy[**window] == wanted);
        matching.map(|(value, _)| *value).collect()
    };
    let changes = windows.windows(2).filter(|pair| is_busy[pair[0]] != is_busy[pair[1]]).count();
    // As many changes in each direction.
    let changes = (changes as f64 / 2.0).max(1.0);
    let mut states = Vec::new();
    let mut means = Vec::new();
    let mut log_likelihood = 0.0;
    let mut parts = Vec::new();
    for wanted in [true, false] {
        let part = Times { values: times.values.clone(), sequence: of(wanted) };
        let n = part.sequence.len() as f64;
        let chain = estimate(&part, count, Law::Lognormal)?;
        let change = (changes / n).min(0.5);
        log_likelihood += chain.log_likelihood * n + changes * libm::log(change) + (n - changes) * libm::log1p(-change);
        states.extend(chain.states.iter().copied());
        means.extend(chain.means.iter().copied());
        parts.push((change, chain.rows));
    }
    let often: Vec<Vec<f64>> = parts.iter().map(|(_, rows)| stationary(rows)).collect();
    let rows = (0..2 * count).map(|from| {
        let (part, inside) = (from / count, from % count);
        let (change, own) = &parts[part];
        let probability = |to: usize| match to / count == part {
            true => (1.0 - change) * own[inside][to % count],
            false => change * often[1 - part][to % count],
        };
        (0..2 * count).map(probability).collect()
    });
    let rows = rows.collect();
    Some(Chain { states, means, rows, log_likelihood: log_likelihood / sequence.len() as f64 })
}

/// A first state for each time: by its length, in groups of equal number; with two levels, also by the mean length of the
/// times around it.
fn classes(times: &Times, sequence: &[u32], count: usize, levels: usize) -> Option<Vec<usize>> {
    if !count.is_multiple_of(levels) || sequence.len() < 20 * count {
        return None;
    }
    const AROUND: usize = 64;
    let logs: Vec<f64> = sequence.iter().map(|value| libm::log(times.values[*value as usize])).collect();
    let mut sums = vec![0.0];
    for log in &logs {
        sums.push(sums[sums.len() - 1] + times.values[0].max(libm::exp(*log)));
    }
    let ranked = |keys: &[f64], groups: usize| -> Vec<usize> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|one, two| keys[*one].total_cmp(&keys[*two]).then(one.cmp(two)));
        let mut group = vec![0; keys.len()];
        for (rank, index) in order.into_iter().enumerate() {
            group[index] = rank * groups / keys.len();
        }
        group
    };
    let around: Vec<f64> = (0..logs.len())
        .map(|i| {
            let (from, to) = (i.saturating_sub(AROUND), (i + AROUND).min(logs.len()));
            (sums[to] - sums[from]) / (to - from) as f64
        })
        .collect();
    let (fine, coarse) = (ranked(&logs, count / levels), ranked(&around, levels));
    Some(fine.into_iter().zip(coarse).map(|(fine, coarse)| coarse * (count / levels) + fine).collect())
}

fn passes(times: &Times, sequence: &[u32], class: &[usize], count: usize, law: Law) -> Option<Chain> {
    let mut chain = started(times, sequence, class, count);
    let mut last = f64::NEG_INFINITY;
    for _ in 0..PASSES {
        let (next, log_likelihood) = pass(times, sequence, &chain, law)?;
        chain = Chain { log_likelihood: log_likelihood / sequence.len() as f64, ..next };
        if log_likelihood - last < GAIN * sequence.len() as f64 {
            break;
        }
        last = log_likelihood;
    }
    Some(chain)
}

/// The chain of these states.
fn started(times: &Times, sequence: &[u32], class: &[usize], count: usize) -> Chain {
    let mut sums = vec![(0.0, 0.0, 0.0); count];
    // As if each state had followed each other once.
    let mut rows = vec![vec![1.0; count]; count];
    for (index, value) in sequence.iter().enumerate() {
        let log = libm::log(times.values[*value as usize]);
        let sum = &mut sums[class[index]];
        *sum = (sum.0 + 1.0, sum.1 + log, sum.2 + log * log);
        if let Some(next) = class.get(index + 1) {
            rows[class[index]][*next] += 1.0;
        }
    }
    normalise(&mut rows);
    Chain {
        states: sums.into_iter().map(moments).collect(),
        means: Vec::new(),
        rows,
        log_likelihood: f64::NEG_INFINITY,
    }
}

fn moments((weight, sum, squares): (f64, f64, f64)) -> (f64, f64) {
    let weight = weight.max(1e-9);
    let mean = sum / weight;
    (mean, (squares / weight - mean * mean).max(0.0).sqrt().clamp(LEAST_SIGMA, 5.0))
}

fn normalise(rows: &mut [Vec<f64>]) {
    for row in rows {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|weight| *weight /= sum.max(1e-300));
    }
}

/// The density of each value in each state.
fn densities(times: &Times, chain: &Chain, law: Law) -> Vec<Vec<f64>> {
    let of = |(mu, sigma): (f64, f64), x: f64| match law {
        Law::Exponential => libm::exp(-x / libm::exp(mu) - mu),
        Law::Lognormal => {
            let z = (libm::log(x) - mu) / sigma;
            libm::exp(-z * z / 2.0) / (x * sigma * (2.0 * std::f64::consts::PI).sqrt())
        }
    };
    times.values.iter().map(|x| chain.states.iter().map(|state| of(*state, *x).max(1e-200)).collect()).collect()
}

/// A pass: the chain re-estimated, and the likelihood of the one before.
fn pass(times: &Times, sequence: &[u32], chain: &Chain, law: Law) -> Option<(Chain, f64)> {
    let count = chain.states.len();
    let density = densities(times, chain, law);
    let mut forward = vec![0.0; sequence.len() * count];
    let mut scales = vec![0.0; sequence.len()];
    let mut log_likelihood = 0.0;
    let mut before = vec![1.0 / count as f64; count];
    for (index, value) in sequence.iter().enumerate() {
        let now = &mut forward[index * count..][..count];
        let of_value = &density[*value as usize];
        if index == 0 {
            now.copy_from_slice(&before);
        } else {
            for (from, row) in before.iter().zip(&chain.rows) {
                for (to, probability) in now.iter_mut().zip(row) {
                    *to += from * probability;
                }
            }
        }
        now.iter_mut().zip(of_value).for_each(|(p, density)| *p *= density);
        let scale: f64 = now.iter().sum();
        if !(scale > 0.0 && scale.is_finite()) {
            return None;
        }
        now.iter_mut().for_each(|p| *p /= scale);
        scales[index] = scale;
        log_likelihood += libm::log(scale);
        before.copy_from_slice(now);
    }
    // Weight, and weighted sums of the statistics, of each state; by value, so that logarithms are computed once.
    let mut by_value = vec![0.0; times.values.len() * count];
    let mut rows = vec![vec![0.0; count]; count];
    let mut backward = vec![1.0; count];
    let mut ahead = vec![0.0; count];
    for index in (0..sequence.len()).rev() {
        let now = &forward[index * count..][..count];
        if index + 1 < sequence.len() {
            let of_value = &density[sequence[index + 1] as usize];
            for (ahead, (backward, density)) in ahead.iter_mut().zip(backward.iter().zip(of_value)) {
                *ahead = backward * density / scales[index + 1];
            }
            for (from, row) in chain.rows.iter().enumerate() {
                let mut sum = 0.0;
                for (to, probability) in row.iter().enumerate() {
                    let share = probability * ahead[to];
                    rows[from][to] += now[from] * share;
                    sum += share;
                }
                backward[from] = sum;
            }
        }
        let weights = &mut by_value[sequence[index] as usize * count..][..count];
        weights.iter_mut().zip(now.iter().zip(&backward)).for_each(|(weight, (f, b))| *weight += f * b);
    }
    normalise(&mut rows);
    let mut sums = vec![(0.0, 0.0, 0.0); count];
    let mut means = vec![(0.0, 0.0); count];
    for (value, x) in times.values.iter().enumerate() {
        let log = libm::log(*x);
        let weights = &by_value[value * count..][..count];
        for ((sum, mean), weight) in sums.iter_mut().zip(&mut means).zip(weights) {
            *mean = (mean.0 + weight, mean.1 + weight * x);
            *sum = match law {
                Law::Lognormal => (sum.0 + weight, sum.1 + weight * log, sum.2 + weight * log * log),
                Law::Exponential => (sum.0 + weight, sum.1 + weight * x, 0.0),
            };
        }
    }
    let states = sums.into_iter().map(|sum| match law {
        Law::Lognormal => moments(sum),
        Law::Exponential => (libm::log((sum.1 / sum.0.max(1e-9)).max(1e-12)), 1.0),
    });
    let means = means.into_iter().map(|(weight, sum)| (sum / f64::max(weight, 1e-9)).max(1e-12)).collect();
    Some((Chain { states: states.collect(), means, rows, log_likelihood: 0.0 }, log_likelihood))
}
