//! Distributions of times: histograms and their quantiles.

use hdrhistogram::Histogram;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::{Quantiles, Within};

/// What counts as the longest time: an hour.
const LONGEST_NS: i64 = 3_600_000_000_000;

/// A distribution of times. Its quantiles come from a histogram, rounded to 0.1 % and to an hour at most, but none is below
/// the least time or above the greatest, which are exact.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    min: i64,
    max: i64,
    sum: i128,
    /// Exactly, not by the histogram: at most 10, 25, 50, 100 µs.
    within: [u64; 4],
}

impl Times {
    pub(crate) fn new() -> Self {
        Self::with(Histogram::new_with_bounds(1, LONGEST_NS as u64, 3).expect("constant, valid bounds"))
    }

    /// That takes no more memory than what it has seen needs: there may be many of these.
    pub fn growing() -> Self {
        Self::with(Histogram::new(3).expect("a constant, valid precision"))
    }

    fn with(histogram: Histogram<u64>) -> Self {
        Self { histogram, min: i64::MAX, max: i64::MIN, sum: 0, within: [0; 4] }
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Takes one more into account.
    pub fn add(&mut self, time: Nanos) {
        // Saturating alone would not let a growing histogram grow.
        let value = time.0.clamp(0, LONGEST_NS) as u64;
        self.histogram.record(value).expect("no more than the bound");
        (self.min, self.max) = (self.min.min(time.0), self.max.max(time.0));
        self.sum += i128::from(time.0);
        for (count, bound_us) in self.within.iter_mut().zip([10, 25, 50, 100]) {
            *count += u64::from(time.0 <= bound_us * 1000);
        }
    }

    /// Nothing if there are none.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let n = self.histogram.len();
        // What the histogram gives is the upper end of a bucket, which may lie beyond all that is in it.
        let at = |q: f64| (self.histogram.value_at_quantile(q) as i64).clamp(self.min, self.max) as f64 / 1e3;
        (n > 0).then(|| Quantiles {
            mean: self.sum as f64 / n as f64 / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p98: at(0.98),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max as f64 / 1e3,
        })
    }

    pub(crate) fn within(&self) -> Option<Within> {
        let n = self.histogram.len();
        let share = |i: usize| 100.0 * self.within[i] as f64 / n as f64;
        (n > 0).then(|| Within { us10: share(0), us25: share(1), us50: share(2), us100: share(3) })
    }
}
