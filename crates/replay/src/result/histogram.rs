//! Distributions of times: histograms and their quantiles.

use hdrhistogram::Histogram;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::{Quantiles, Within, is_enough};

/// A histogram of all times that there are, with all its memory: 440 KB, of which only the parts in use are touched.
pub fn full_range() -> Histogram<u64> {
    Histogram::new_with_bounds(1, i64::MAX as u64, 3).expect("constant, valid bounds")
}

/// A distribution of times of any length. Quantiles come from a histogram with a precision of 0.1 %; minimum and maximum are
/// exact, and
/// bound the quantiles.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
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
        Self::with(full_range())
    }

    /// An empty distribution whose memory grows with its range, for use in large numbers.
    pub fn growing() -> Self {
        Self::with(Histogram::new(3).expect("a constant, valid precision"))
    }

    fn with(histogram: Histogram<u64>) -> Self {
        Self { histogram, min: i64::MAX, max: i64::MIN, sum: 0, within: [0; 4] }
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Adds a time.
    pub fn add(&mut self, time: Nanos) {
        // Not `saturating_record`, which does not resize a growing histogram.
        self.histogram.record(time.0.max(0) as u64).expect("within the bounds");
        (self.min, self.max) = (self.min.min(time.0), self.max.max(time.0));
        self.sum += i128::from(time.0);
        for (count, bound_us) in self.within.iter_mut().zip([10, 25, 50, 100]) {
            *count += u64::from(time.0 <= bound_us * 1000);
        }
    }

    /// Adds all times of another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("equal bounds, or a growing histogram");
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.sum += other.sum;
        self.within.iter_mut().zip(other.within).for_each(|(count, other)| *count += other);
    }

    /// `None` if empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let n = self.histogram.len();
        // The histogram returns the upper end of a bucket, which can exceed all its values.
        let value = |q: f64| (self.histogram.value_at_quantile(q) as i64).clamp(self.min, self.max) as f64 / 1e3;
        let at = |per_mille: u64| is_enough(per_mille, n).then(|| value(per_mille as f64 / 1e3));
        (n > 0).then(|| Quantiles {
            mean: self.sum as f64 / n as f64 / 1e3,
            p50: at(500),
            p90: at(900),
            p98: at(980),
            p99: at(990),
            p999: at(999),
            max: self.max as f64 / 1e3,
        })
    }

    /// Percentages of times up to 10, 25, 50 and 100 µs; `None` if empty.
    pub fn within(&self) -> Option<Within> {
        let n = self.histogram.len();
        let share = |i: usize| 100.0 * self.within[i] as f64 / n as f64;
        (n > 0).then(|| Within { us10: share(0), us25: share(1), us50: share(2), us100: share(3) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
