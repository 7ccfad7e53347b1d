//! The mean rate of a device over the time in which it was overloaded.

use std::ops::Range;

/// Batches of an interval.
const BATCHES: usize = 20;
/// Blocks in which a change of the rate is looked for, and how many of them a rate has to last.
const BLOCKS: usize = 100;
const MIN_BLOCKS: usize = 8;

/// A mean, in completions per slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    pub mean: f64,
    /// Its 95 % confidence interval; `None` for fewer slots than batches.
    pub interval: Option<[f64; 2]>,
    /// The slots over which it is the mean.
    pub slots: usize,
    /// An earlier rate that was clearly another, and its slots.
    pub before: Option<(f64, usize)>,
}

/// The rate that lasts, from the completions of each slot.
pub fn of(done: &[u64]) -> Rate {
    let at = change(done).unwrap_or(0);
    let (before, lasting) = done.split_at(at);
    let (mean, interval) = (mean(lasting), interval(lasting));
    Rate { mean, interval, slots: lasting.len(), before: (at > 0).then(|| (self::mean(before), before.len())) }
}

fn mean(done: &[u64]) -> f64 {
    done.iter().sum::<u64>() as f64 / done.len().max(1) as f64
}

/// The means of equal parts.
fn means(done: &[u64], parts: usize) -> Vec<f64> {
    let part = |n: usize| -> Range<usize> { n * done.len() / parts..(n + 1) * done.len() / parts };
    (0..parts).map(|n| mean(&done[part(n)])).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0))
}

/// By batch means: batches longer than what correlates their slots are independent (Law, Simulation Modeling and Analysis).
fn interval(done: &[u64]) -> Option<[f64; 2]> {
    if done.len() < BATCHES {
        return None;
    }
    let (mean, variance) = mean_and_variance(&means(done, BATCHES));
    // Student's t for 19 degrees of freedom.
    let half = 2.093 * (variance / BATCHES as f64).sqrt();
    Some([(mean - half).max(0.0), mean + half])
}

/// The slot from which the rate is another: where two means explain the blocks best, if they differ by more than 15 % and by
/// more than four standard errors.
fn change(done: &[u64]) -> Option<usize> {
    if done.len() < BLOCKS {
        return None;
    }
    let blocks = means(done, BLOCKS);
    let squares = |values: &[f64]| mean_and_variance(values).1 * (values.len() as f64 - 1.0);
    let both = |at: usize| squares(&blocks[..at]) + squares(&blocks[at..]);
    let at = (MIN_BLOCKS..=BLOCKS - MIN_BLOCKS).min_by(|&one, &other| both(one).total_cmp(&both(other)))?;
    let (first, last) = (mean_and_variance(&blocks[..at]).0, mean_and_variance(&blocks[at..]).0);
    let variance = both(at) / (BLOCKS as f64 - 2.0);
    let error = (variance / at as f64 + variance / (BLOCKS - at) as f64).sqrt();
    let difference = (first - last).abs();
    (difference > 0.15 * first.max(last) && difference > 4.0 * error).then(|| at * done.len() / BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_its_mean() {
        let rate = of(&[3, 4, 5].repeat(100));
        assert_eq!((rate.mean, rate.slots, rate.before), (4.0, 300, None));
        let [low, high] = rate.interval.unwrap();
        assert!(low <= 4.0 && 4.0 <= high && high - low < 0.5, "{low} {high}");
    }

    #[test]
    fn the_last_of_two_rates_lasts() {
        let done = [[9_u64; 600].as_slice(), &[3; 400]].concat();
        let rate = of(&done);
        assert_eq!((rate.mean, rate.slots, rate.before), (3.0, 400, Some((9.0, 600))));
    }

    #[test]
    fn stalls_at_equal_distances_are_no_change() {
        let done: Vec<u64> = (0..4000).map(|n| if n % 500 < 75 { 0 } else { 10 }).collect();
        let rate = of(&done);
        assert_eq!((rate.mean, rate.before), (8.5, None));
    }
}
