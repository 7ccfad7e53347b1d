//! Spans of time on the command line: `90`, `1.5s`, `10m`, `2h`, `500ms`.

use std::time::Duration;

use iosonar_trace::Nanos;
use iosonar_trace::params::parse_time;

/// Reads a span of time; without a unit it is in seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    nanos(text).map(|time| Duration::from_nanos(time.0.cast_unsigned()))
}

/// The same, as the engine has it.
pub fn nanos(text: &str) -> Result<Nanos, String> {
    let time = parse_time(text)?;
    if time < Nanos::ZERO {
        return Err(format!("`{text}` is negative: give a time of 0 or more, for example 90 or 10m"));
    }
    Ok(time)
}

/// The same, if it is above zero.
pub fn above_zero(text: &str) -> Result<Nanos, String> {
    let time = nanos(text)?;
    Some(time)
        .filter(|time| *time > Nanos::ZERO)
        .ok_or_else(|| format!("`{text}` is zero: give a time above zero, for example 1ms or 10m"))
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
    fn what_is_no_time_is_refused() {
        for text in ["", "s", "1x", "1.2.3", "-1", "10 parsecs", &"9".repeat(40)] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
