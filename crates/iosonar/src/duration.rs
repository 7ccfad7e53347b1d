//! Spans of time on the command line: `90`, `1.5s`, `10m`, `2h`, `500ms`.

use std::time::Duration;

/// Reads a span of time; without a unit it is in seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("`{unit}` is no unit of time: use ms, s, m, h or d, for example 90, 1.5s or 10m")),
    };
    let number: f64 = number.parse().map_err(|_| "not a span of time: write for example 90, 1.5s or 10m".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "too long a time".to_owned())
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
