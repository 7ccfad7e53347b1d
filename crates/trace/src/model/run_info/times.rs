//! Summaries of distributions of times.

use serde::{Deserialize, Serialize};

/// The fewest times above a percentile: the 99th needs 1000 times. With fewer, chance would determine it.
pub const MIN_BEYOND: u64 = 10;

/// Quantiles of a time, in µs. A percentile is missing if fewer than [`MIN_BEYOND`] times are above it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the quantile of its name")]
pub struct Quantiles {
    pub mean: f64,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p98: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: f64,
}

/// Whether so many times have [`MIN_BEYOND`] above this percentile, in tenths of a percent.
pub fn is_enough(per_mille: u64, times: u64) -> bool {
    u128::from(times) * u128::from(1000 - per_mille) >= 1000 * u128::from(MIN_BEYOND)
}

impl Quantiles {
    /// The same in another unit.
    #[must_use]
    pub fn map(&self, convert: impl Fn(f64) -> f64) -> Self {
        let of = |percentile: Option<f64>| percentile.map(&convert);
        Self {
            mean: convert(self.mean),
            p50: of(self.p50),
            p90: of(self.p90),
            p98: of(self.p98),
            p99: of(self.p99),
            p999: of(self.p999),
            max: convert(self.max),
        }
    }
}

/// Percentages of requests within 10, 25, 50 and 100 µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the bound of its name")]
pub struct Within {
    #[serde(rename = "10")]
    pub us10: f64,
    #[serde(rename = "25")]
    pub us25: f64,
    #[serde(rename = "50")]
    pub us50: f64,
    #[serde(rename = "100")]
    pub us100: f64,
}
