//! Formats numbers and times for people.

pub use iosonar_trace::human::{
    agreed, are, at_second, block, bytes, count, counted, factor, percent, percent_of, rate, span,
};

/// A percentile in µs: `–` if too few times are above it.
pub fn percentile(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), |us| span(us / 1e6))
}

/// Formats nanoseconds since 1970: `2026-11-22 04:39:41 UTC`.
pub fn moment(unix_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(unix_ns).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_and_rounded_down() {
        assert_eq!(moment(1_336_140_000_999_999_999), "2012-05-04 14:00:00 UTC");
    }
}
