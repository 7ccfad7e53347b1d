//! Parses numbers with units, as typed on the command line. Each error gives an example of valid input.

use std::ops::RangeInclusive;

use crate::model::units::{Nanos, SECTOR_BYTES, Sectors};

/// A whole number: `32768`, `32_768`, `10k` (10 000), `2M`.
pub fn parse_count(text: &str) -> Result<u64, String> {
    whole(text, &DECIMAL).ok_or_else(|| format!("`{text}` is not a whole number; say for example 32768 or 10k"))
}

/// A parser of whole numbers in a range, in the syntax of [`parse_count`].
pub fn whole_number<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = whole(text, &DECIMAL).filter(|number| range.contains(number));
        number.and_then(|number| number.try_into().ok()).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            match (*least, *most) {
                (0, u64::MAX) => format!("`{text}` is not a whole number of 0 or more, for example 42 or 10k"),
                _ => format!("`{text}` is not a whole number from {least} to {most}"),
            }
        })
    }
}

/// Requests per second: `500`, `500/s`, `2k`.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    scaled(number, &DECIMAL).filter(|rate| *rate > 0.0 && *rate <= 1e9).ok_or_else(|| {
        format!("`{text}` is not a rate; say requests per second, above 0 and up to 1G, for example 500 or 2k")
    })
}

/// A number above zero: `2.5`, `1e-3`, `2k`.
pub fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().or_else(|| scaled(text, &DECIMAL));
    number
        .filter(|x: &f64| *x > 0.0 && x.is_finite())
        .ok_or_else(|| format!("`{text}` is not a number above zero; say for example 2.5 or 2k"))
}

/// A part of the whole: `0.7`, `70%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|p| p / 100.0),
        None => text.parse().ok(),
    };
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is not a share; say a number from 0 to 1, for example 0.7, or 70%"))
}

/// A time: seconds, or a number with a unit. Every option and every transform parses times with this function;
/// `python/iosonar/cli/times.py` accepts the same syntax.
pub fn parse_time(text: &str) -> Result<Nanos, String> {
    let is_plain = |text: &str| text.contains(|c: char| c.is_ascii_digit()) && !text.contains('_');
    let plain = text.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite() && is_plain(text));
    plain
        .or_else(|| scaled(text, &TIMES))
        .map(|seconds| seconds * 1e9)
        .filter(|nanos| nanos.abs() < i64::MAX as f64)
        .map(|nanos| Nanos(nanos.round() as i64))
        .ok_or_else(|| format!("`{text}` is not a time; say seconds (300, 0.5), or a number with a unit (ns us ms s m h d): 20ms 10m 1.5h"))
}

/// A time of zero or more.
pub fn parse_duration(text: &str) -> Result<Nanos, String> {
    let time = parse_time(text)?;
    if time < Nanos::ZERO {
        return Err(format!("`{text}` is negative: give a time of 0 or more, for example 90 or 10m"));
    }
    Ok(time)
}

/// A time above zero.
pub fn parse_positive_duration(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text)?;
    Some(time)
        .filter(|time| *time > Nanos::ZERO)
        .ok_or_else(|| format!("`{text}` is zero: give a time above zero, for example 1ms or 10m"))
}

/// A time as text for [`parse_time`], in the largest unit in which it is a whole number: `10m`, `200ms`.
pub fn format_time(time: Nanos) -> String {
    const UNITS: [(i64, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
        (1, "ns"),
    ];
    let unit = UNITS.into_iter().find(|(length, _)| time.0 != 0 && time.0 % length == 0);
    unit.map_or("0".to_owned(), |(length, name)| format!("{}{name}", time.0 / length))
}

/// A length or a position: bytes, with or without a unit, or sectors: `4096`, `4k`, `8s`. Every option, transform, program and
/// simulated device parses sizes with this function or [`parse_bytes`].
pub fn parse_sectors(text: &str) -> Result<Sectors, String> {
    let bytes = whole(text, &BYTES).ok_or_else(|| {
        format!("`{text}` is not a length; say bytes (4096), with a unit (4k 64M 2G), or sectors of 512 bytes (8s)")
    })?;
    if bytes % SECTOR_BYTES != 0 {
        // Earlier versions took a number without a unit for sectors.
        let sectors = if text.bytes().all(|byte| byte.is_ascii_digit()) { format!(": {text}s") } else { String::new() };
        return Err(format!(
            "`{text}` is not a whole number of sectors of 512 bytes; sectors have the unit s{sectors}"
        ));
    }
    Ok(Sectors(bytes / SECTOR_BYTES))
}

/// A number of bytes: `4096`, `4k`, `2.5M`, `8s`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    whole(text, &BYTES).ok_or_else(|| format!("`{text}` is not a number of bytes; say for example 4096 or 64k"))
}

/// Bytes per second, one or more: `200M/s`, `1G`.
pub fn parse_speed(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text.strip_suffix("/s").unwrap_or(text)).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("`{text}` is not a speed above zero; say for example \"200M/s\""))
}

/// Memory from 1 MiB to 1 TiB, in bytes: `64M`, `2G`.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let meant = if bytes < 1 << 20 && is_number { format!("{text}M") } else { "64M".to_owned() };
    Some(bytes).filter(|bytes| (1 << 20..=1 << 40).contains(bytes)).ok_or_else(|| {
        format!("`{text}` is not from 1M to 1T; a number without a unit is bytes, say for example {meant}")
    })
}

type Units = [(&'static str, f64)];

const DECIMAL: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];

const TIMES: [(&str, f64); 10] = [
    ("", 1.0),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

const BYTES: [(&str, f64); 7] = [
    ("", 1.0),
    ("b", 1.0),
    ("s", SECTOR_BYTES as f64),
    ("k", 1024.0),
    ("m", 1_048_576.0),
    ("g", 1_073_741_824.0),
    ("t", 1_099_511_627_776.0),
];

/// The digits of a number, and the factor of its unit. Units of bytes may end in `iB` or `B`; case does not matter.
fn split_unit(text: &str, units: &Units) -> Option<(String, f64)> {
    let text = text.trim().replace('_', "");
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_lowercase();
    let short = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).filter(|short| !short.is_empty());
    let are_bytes = units.iter().any(|(name, _)| *name == "b");
    let unit = if are_bytes { short.unwrap_or(&unit) } else { &unit };
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| (number.to_owned(), *factor))
}

/// A number times its unit.
fn scaled(text: &str, units: &Units) -> Option<f64> {
    let (number, factor) = split_unit(text, units)?;
    number.parse().ok().map(|number: f64| number * factor).filter(|x| x.is_finite())
}

/// The same, if the product is a whole number. Computed in integers, because a float does not hold 2.01 exactly.
fn whole(text: &str, units: &Units) -> Option<u64> {
    let (number, factor) = split_unit(text, units)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(factor as u128)?;
    let denominator = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    (product % denominator == 0).then_some(product / denominator)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_applied() {
        assert_eq!(parse_count("32_768"), Ok(32768));
        assert_eq!(parse_count("1.5k"), Ok(1500));
        assert_eq!(parse_count("2.01M"), Ok(2_010_000));
        assert_eq!(parse_count(".5k"), Ok(500));
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!((whole_number(1..=64)("64"), whole_number(0..=u64::MAX)("2k")), (Ok(64_u8), Ok(2000_u64)));
        assert_eq!(parse_rate("500/s"), Ok(500.0));
        assert_eq!(parse_rate("2k"), Ok(2000.0));
        assert_eq!(parse_positive("2k"), Ok(2000.0));
        assert_eq!(parse_positive("1e-3"), Ok(0.001));
        assert_eq!(parse_share("70%"), Ok(0.7));
        assert_eq!(parse_time("300"), Ok(Nanos(300_000_000_000)));
        assert_eq!(parse_time("1.5ms"), Ok(Nanos(1_500_000)));
        assert_eq!(parse_time("5m"), Ok(Nanos(300_000_000_000)));
        assert_eq!(parse_time("2 h"), Ok(Nanos(7_200_000_000_000)));
        for (text, ns) in
            [("1e-3", 1_000_000), ("1.5e1", 15_000_000_000), ("5MS", 5_000_000), ("3 µs", 3000), ("7ns", 7)]
        {
            assert_eq!(parse_time(text), Ok(Nanos(ns)), "{text}");
        }
        for ns in [0, 7, 3000, 200_000_000, 1_500_000_000, 90_000_000_000, 600_000_000_000, 86_400_000_000_000] {
            assert_eq!(parse_time(&format_time(Nanos(ns))), Ok(Nanos(ns)));
        }
        assert_eq!([600, 5400, 90].map(|s| format_time(Nanos(s * 1_000_000_000))), ["10m", "90m", "90s"]);
        for text in ["4096", "4_096", "8s", "8 S", "4k", "4K", "4KiB", "4kb", "4096B", "0.00390625m"] {
            assert_eq!(parse_sectors(text), Ok(Sectors(8)), "{text}");
        }
        assert_eq!(parse_sectors("8388608T"), Ok(Sectors(1 << 54)));
        assert_eq!(parse_sectors("36028797018963967s"), Ok(Sectors((1 << 55) - 1)));
        assert_eq!((parse_bytes("8s"), parse_bytes("100"), parse_memory("64M")), (Ok(4096), Ok(100), Ok(64 << 20)));
        assert_eq!(parse_sectors("2G"), Ok(Sectors(4_194_304)));
    }

    #[test]
    fn invalid_values_are_refused_with_an_example() {
        for wrong in ["", "x", "1.2.3", "-5", "1e400", "nan", "4kk", "2.0101k", "18446744073709551616", "."] {
            assert!(parse_count(wrong).unwrap_err().contains("say for example"), "{wrong}");
        }
        for wrong in ["", "x", "0", "65", "-1", "1.5", "1e1", "18446744073709551616"] {
            let why = whole_number::<u8>(1..=64)(wrong).unwrap_err();
            assert_eq!(why, format!("`{wrong}` is not a whole number from 1 to 64"));
            assert!(
                wrong.len() < 3 || whole_number::<u64>(0..=u64::MAX)(wrong).unwrap_err().contains("for example 42")
            );
        }
        for wrong in ["0", "-1", "inf", "fast"] {
            assert!(parse_rate(wrong).is_err() && parse_positive(wrong).is_err(), "{wrong}");
        }
        for wrong in ["1.1", "-0.1", "101%", "half", "nan"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        for wrong in ["soon", "10 years", "99999999999h", "", "s", "inf", "nan", "infinity", "1e400", "--end"] {
            assert!(parse_time(wrong).unwrap_err().contains("20ms 10m"), "{wrong}");
        }
        for wrong in ["100B", "4.1k", "-8", "4q", "b", "0.5s"] {
            assert!(parse_sectors(wrong).is_err(), "{wrong}");
        }
        assert!(parse_sectors("1000").unwrap_err().ends_with("sectors have the unit s: 1000s"));
        assert!(parse_memory("64").unwrap_err().ends_with("for example 64M"));
    }
}
