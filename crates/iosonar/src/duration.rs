//! Spans of time on the command line: `90`, `1.5s`, `10m`, `2h`, `500ms`.

use std::time::Duration;

use iosonar_trace::params::parse_duration;

/// Parses a duration, in seconds without a unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    parse_duration(text).map(|time| Duration::from_nanos(time.0.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        for (text, milliseconds) in
            [("90", 90_000), ("1.5s", 1_500), ("500ms", 500), ("10m", 600_000), ("2h", 7_200_000), ("1 d", 86_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn malformed_durations_are_refused() {
        for text in ["", "s", "1x", "1.2.3", "-1", "10 parsecs", &"9".repeat(40)] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
