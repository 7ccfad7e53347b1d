//! Formats numbers and times for people.

pub use iosonar_trace::human::{
    agreed, are, at_second, block, bytes, count, counted, factor, moment, percent, percent_of, rate, span,
};

/// A note on dashes among percentiles, to append.
pub fn too_few(percentiles: &[Option<f64>], what: &str) -> String {
    if percentiles.contains(&None) { format!("; –: too few {what}") } else { String::new() }
}

/// A percentile in µs: `–` if too few times are above it.
pub fn percentile(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), |us| span(us / 1e6))
}
