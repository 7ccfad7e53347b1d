//! Distributions of times: histograms and their quantiles.

use std::borrow::Cow;
use std::collections::HashMap;

use hdrhistogram::Histogram;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::{Quantiles, Within, is_enough};

/// A histogram of all times that there are, with all its memory: 440 KB, of which only the parts in use are touched.
pub fn full_range() -> Histogram<u64> {
    Histogram::new_with_bounds(1, i64::MAX as u64, 3).expect("constant, valid bounds")
}

/// Times that a distribution keeps one by one, each with its count, before it takes a histogram: 8 KiB instead of some 200.
const MAX_SPARSE: usize = 512;

/// How often each time occurred, to a precision of 0.1 %.
#[derive(Clone, Debug)]
enum Counts {
    Histogram(Histogram<u64>),
    Sparse(HashMap<u64, u64>),
}

impl Counts {
    fn add(&mut self, time: u64, count: u64) {
        match self {
            // Not `saturating_record`, which does not resize a growing histogram.
            Self::Histogram(histogram) => histogram.record_n(time, count).expect("within the bounds"),
            Self::Sparse(counts) => {
                // The least time that the histogram counts together with this one.
                let bits = u64::BITS.saturating_sub(time.leading_zeros()).saturating_sub(11);
                *counts.entry(time >> bits << bits).or_default() += count;
                if counts.len() > MAX_SPARSE {
                    let growing = Histogram::new(3).expect("a constant, valid precision");
                    *self = Self::Histogram(self.in_histogram(growing));
                }
            }
        }
    }

    fn in_histogram(&self, mut all: Histogram<u64>) -> Histogram<u64> {
        match self {
            Self::Histogram(histogram) => all.add(histogram).expect("equal bounds, or a growing histogram"),
            Self::Sparse(counts) => {
                counts.iter().for_each(|(time, count)| all.record_n(*time, *count).expect("within the bounds"));
            }
        }
        all
    }
}

/// A distribution of times of any length. Quantiles come from a histogram with a precision of 0.1 %; minimum and maximum are
/// exact, and bound the quantiles.
#[derive(Clone, Debug)]
pub struct Times {
    counts: Counts,
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    /// Exact counts of times up to 10, 25, 50 and 100 µs.
    within: [u64; 4],
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl Times {
    /// An empty distribution with all its memory.
    pub fn new() -> Self {
        Self::with(Counts::Histogram(full_range()))
    }

    /// An empty distribution whose memory grows with what it holds, for use in large numbers.
    pub fn growing() -> Self {
        Self::with(Counts::Sparse(HashMap::new()))
    }

    fn with(counts: Counts) -> Self {
        Self { counts, count: 0, min: i64::MAX, max: i64::MIN, sum: 0, within: [0; 4] }
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a time.
    #[inline]
    pub fn add(&mut self, time: Nanos) {
        self.counts.add(time.0.max(0) as u64, 1);
        self.count += 1;
        (self.min, self.max) = (self.min.min(time.0), self.max.max(time.0));
        self.sum += i128::from(time.0);
        for (count, bound_us) in self.within.iter_mut().zip([10, 25, 50, 100]) {
            *count += u64::from(time.0 <= bound_us * 1000);
        }
    }

    /// Adds all times of another distribution.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.counts, &other.counts) {
            (counts, Counts::Sparse(others)) => others.iter().for_each(|(time, count)| counts.add(*time, *count)),
            (Counts::Histogram(histogram), Counts::Histogram(others)) => {
                histogram.add(others).expect("equal bounds, or a growing histogram");
            }
            (counts, Counts::Histogram(others)) => *counts = Counts::Histogram(counts.in_histogram(others.clone())),
        }
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.sum += other.sum;
        self.within.iter_mut().zip(other.within).for_each(|(count, other)| *count += other);
    }

    /// `None` if empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let n = self.count;
        let histogram = match &self.counts {
            Counts::Histogram(histogram) => Cow::Borrowed(histogram),
            Counts::Sparse(_) => Cow::Owned(self.counts.in_histogram(full_range())),
        };
        quantiles_of(&histogram, n, self.sum, (self.min, self.max))
    }

    /// Percentages of times up to 10, 25, 50 and 100 µs; `None` if empty.
    pub fn within(&self) -> Option<Within> {
        let n = self.count;
        let share = |i: usize| 100.0 * self.within[i] as f64 / n as f64;
        (n > 0).then(|| Within { us10: share(0), us25: share(1), us50: share(2), us100: share(3) })
    }
}

/// Of a histogram of `n` times with this sum, all within `min` and `max`; `None` if it is empty.
pub(crate) fn quantiles_of(histogram: &Histogram<u64>, n: u64, sum: i128, (min, max): (i64, i64)) -> Option<Quantiles> {
    // The histogram returns the upper end of a bucket, which can exceed all its values.
    let value = |q: f64| (histogram.value_at_quantile(q) as i64).clamp(min, max) as f64 / 1e3;
    let at = |per_mille: u64| is_enough(per_mille, n).then(|| value(per_mille as f64 / 1e3));
    (n > 0).then(|| Quantiles {
        mean: sum as f64 / n as f64 / 1e3,
        p50: at(500),
        p90: at(900),
        p98: at(980),
        p99: at(990),
        p999: at(999),
        max: max as f64 / 1e3,
    })
}

/// A distribution of ratios, with the precision of [`Times`] down to a hundredth of a percent.
#[derive(Clone, Debug, Default)]
pub struct Ratios {
    /// In steps of [`Self::STEPS`].
    steps: Times,
}

impl Ratios {
    /// The steps in a ratio of 1.
    const STEPS: f64 = 1e6;

    /// Number of ratios.
    pub fn count(&self) -> u64 {
        self.steps.count()
    }

    /// Adds a ratio.
    pub fn add(&mut self, ratio: f64) {
        self.steps.add(Nanos((ratio * Self::STEPS) as i64));
    }

    /// Quantiles in percent; `None` if empty.
    pub fn percents(&self) -> Option<Quantiles> {
        let of_thousand_steps = 100.0 * 1e3 / Self::STEPS;
        self.steps.quantiles().map(|quantiles| quantiles.map(|thousands| thousands * of_thousand_steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_times_have_the_quantiles_of_a_full_histogram() {
        for distinct in [7, 512, 513, 5000] {
            let (mut full, mut growing) = (Times::new(), Times::growing());
            for i in 0..20_000_i64 {
                let time = Nanos((i % distinct) * (i % distinct) * 977 + 5);
                full.add(time);
                growing.add(time);
            }
            assert_eq!(growing.quantiles(), full.quantiles(), "{distinct}");
            let mut both = growing.clone();
            both.merge(&full);
            assert_eq!((both.count(), both.quantiles().unwrap().p50), (40_000, full.quantiles().unwrap().p50));
            full.merge(&growing);
            assert_eq!(both.quantiles(), full.quantiles(), "{distinct}");
        }
    }

    #[test]
    fn quantiles_of_very_long_times_are_theirs() {
        for mut all in [Times::new(), Times::growing()] {
            // From an hour and a bit to the longest time.
            let longest = [3_700_000_000_000, 10_800_000_000_000, 31_536_000_000_000_000, i64::MAX];
            longest.iter().for_each(|&ns| (0..5000).for_each(|_| all.add(Nanos(ns))));
            let Quantiles { p50, p90, p999, max, .. } = all.quantiles().unwrap();
            for (found, expected) in [(p50, longest[1]), (p90, longest[3]), (p999, longest[3]), (Some(max), longest[3])]
            {
                let (found, expected) = (found.unwrap(), expected as f64 / 1e3);
                assert!((found / expected - 1.0).abs() < 0.001, "{found}, not {expected}");
            }
        }
    }

    #[test]
    fn a_percentile_needs_ten_times_above_it() {
        let of = |n: i64| {
            let mut all = Times::growing();
            (0..n).for_each(|i| all.add(Nanos(i)));
            let q = all.quantiles().unwrap();
            [q.p50, q.p90, q.p98, q.p99, q.p999].map(|percentile| percentile.is_some())
        };
        assert_eq!(of(19), [false; 5]);
        assert_eq!(of(20), [true, false, false, false, false]);
        assert_eq!(of(999), [true, true, true, false, false]);
        assert_eq!(of(1000), [true, true, true, true, false]);
        assert_eq!(of(10_000), [true; 5]);
    }

    #[test]
    fn merged_distributions_equal_one_of_all_times() {
        let times: Vec<Nanos> = (0..1000).map(|i: i64| Nanos(i.pow(3) - 50)).collect();
        let of = |times: &[Nanos]| {
            let mut all = Times::growing();
            times.iter().for_each(|&time| all.add(time));
            all
        };
        let (few, many) = times.split_at(100);
        for (first, second) in [(few, many), (many, few), (&times[..], &[])] {
            let mut merged = of(first);
            merged.merge(&of(second));
            let all = of(&times);
            assert_eq!((merged.quantiles(), merged.count()), (all.quantiles(), 1000));
            assert_eq!(merged.within(), all.within());
        }
    }

    #[test]
    fn ratios_are_told_in_percent() {
        let mut ratios = Ratios::default();
        assert_eq!(ratios.percents(), None);
        (0..1000).for_each(|_| ratios.add(0.25));
        let percents = ratios.percents().unwrap();
        assert_eq!((percents.mean, percents.p50, percents.max), (25.0, Some(25.0), 25.0));
    }
}
