//! Times as text: a date with a time of day, or a time of day alone.

use chrono::NaiveDateTime;

use crate::text::number::{decimal, whole};

const DAY_NS: i64 = 86_400_000_000_000;

/// `2024-01-31 12:34:56.789`, with a `T` for the blank, with `Z` or `+01:00` behind it; without these it is UTC. Returns
/// nanoseconds since 1970.
pub fn date(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let [year @ .., b'-', _, _, b'-', _, _] = day else { return None };
    let number = |text: &[u8]| whole(text).ok().and_then(|number| i64::try_from(number).ok());
    let (year, month, of_month) = (number(year)?, number(&day[5..7])?, number(&day[8..])?);
    let [b' ' | b'T' | b't', rest @ ..] = rest else { return None };
    let rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| b"Zz+- ".contains(byte)).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let days = days_since_1970(year, month, of_month)?;
    days.checked_mul(DAY_NS)?.checked_add(of_day(clock)?)?.checked_sub(offset(zone.trim_ascii())?)
}

/// The nanoseconds of a time in a format of strftime, which is UTC.
pub fn formatted(text: &[u8], format: &str) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    NaiveDateTime::parse_from_str(text, format).ok()?.and_utc().timestamp_nanos_opt()
}

/// `hh:mm:ss.mmm` in nanoseconds since midnight. A comma may stand for the point.
fn of_day(text: &[u8]) -> Option<i64> {
    let mut parts = text.splitn(3, |&byte| byte == b':');
    let (hours, minutes) = (whole(parts.next()?).ok()?, whole(parts.next()?).ok()?);
    let seconds = parts.next()?;
    let seconds = match seconds.iter().position(|&byte| byte == b',') {
        Some(comma) => decimal(&[&seconds[..comma], b".", &seconds[comma + 1..]].concat(), 9),
        None => decimal(seconds, 9),
    };
    let seconds = seconds.ok().filter(|seconds| (0..60_000_000_000).contains(seconds))?;
    (hours < 24 && minutes < 60).then(|| (hours * 60 + minutes).cast_signed() * 60_000_000_000 + seconds)
}

/// The offset of a time zone from UTC: nothing, `Z`, `UTC`, `+0100` or `+01:00`.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        b"" | b"Z" | b"z" | b"UTC" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let [h, hh, minutes @ ..] = digits else { return None };
    let hours = whole(&[*h, *hh]).ok()?.cast_signed();
    let minutes = match minutes {
        [] => 0,
        _ => whole(minutes.strip_prefix(b":").unwrap_or(minutes)).ok()?.cast_signed(),
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000_000_000)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar, by Howard Hinnant's formula.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = *LENGTHS.get(usize::try_from(month - 1).ok()?)? + i64::from(month == 2 && is_leap);
    if !(1..=length).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Converts times of day into a time that continues at midnight.
#[derive(Clone, Debug, Default)]
pub struct DayClock {
    latest: i64,
    midnights: i64,
}

impl DayClock {
    /// Parses `hh:mm:ss.mmm` into nanoseconds since the midnight before the first line.
    pub fn time(&mut self, text: &[u8]) -> Option<i64> {
        let of_day = of_day(text)?;
        let mut midnights = self.midnights;
        if self.midnights > 0 && of_day > self.latest + DAY_NS / 2 {
            // The clock was set back to before midnight.
            midnights -= 1;
        } else {
            midnights += i64::from(of_day < self.latest - DAY_NS / 2);
            (self.latest, self.midnights) = (of_day, midnights);
        }
        midnights.checked_mul(DAY_NS)?.checked_add(of_day)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Datelike, NaiveDate};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dates_are_those_of_the_calendar(days in -100_000_i64..100_000, ns in 0..DAY_NS) {
            let time = DateTime::from_timestamp(days * 86_400 + ns / 1_000_000_000, (ns % 1_000_000_000) as u32).unwrap();
            let text = time.format("%Y-%m-%d %H:%M:%S%.9f").to_string();
            prop_assert_eq!(date(text.as_bytes()), Some(days * DAY_NS + ns));
            prop_assert_eq!(formatted(text.as_bytes(), "%Y-%m-%d %H:%M:%S%.f"), Some(days * DAY_NS + ns));
        }

        #[test]
        fn a_day_is_valid_if_the_calendar_has_it(year in 1601_i64..2400, month in 0_i64..14, day in 0_i64..33) {
            let expected = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32)
                .map(|date| i64::from(date.num_days_from_ce()) - 719_163);
            prop_assert_eq!(days_since_1970(year, month, day), expected);
        }
    }

    #[test]
    fn a_date_may_have_a_time_zone() {
        let utc = date(b"2024-02-29 12:00:00.25").unwrap();
        for same in ["2024-02-29T12:00:00.25Z", "2024-02-29 13:30:00,25+01:30", "2024-02-29 12:00:00.25 UTC"] {
            assert_eq!(date(same.as_bytes()), Some(utc), "{same}");
        }
        assert_eq!(date(b"2024-02-29T07:00:00.25-0500"), Some(utc));
        for wrong in [
            "",
            "2024-02-30 12:00:00",
            "2024-02-29",
            "2024-02-29 25:00:00",
            "24-02-29 12:00:00",
            "2024-02-29 12:00:00 MEZ",
        ] {
            assert_eq!(date(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
