//! Summaries of distributions of times.

use serde::{Deserialize, Serialize};

/// Quantiles of a time, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the quantile of its name")]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p98: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
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
