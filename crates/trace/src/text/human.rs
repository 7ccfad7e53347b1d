//! Numbers formatted for people. All rounding of the Rust half happens here; `python/iosonar/units.py` follows the same
//! rules.
//!
//! Times have three significant digits and a unit. Counts are printed in full, with commas. Transferred bytes use decimal
//! units (MB, MB/s); sizes of requests, blocks, devices and memory use binary units (KiB, GiB). Shares are rounded to a tenth
//! of a percent, but never to 0 %, 100 %, or the 95 % that a faithful replay needs.

const DECIMAL: [(f64, &str); 7] =
    [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
const BINARY: [(f64, &str); 7] = [
    (1_152_921_504_606_846_976.0, "EiB"),
    (1_125_899_906_842_624.0, "PiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
];
const TIMES: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];

/// Transferred bytes, in total or per second, in decimal units: `1.5 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &DECIMAL)
}

/// The size of a request, a block or a device, in binary units: `64 KiB`.
pub fn block(bytes: u64) -> String {
    scaled(bytes as f64, &BINARY)
}

/// Nanoseconds since 1970, rounded down to seconds: `2026-11-22 04:39:41 UTC`.
pub fn moment(unix_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(unix_ns).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A span of time: `850 µs`, `12.3 s`, `1 h 5 min`.
pub fn span(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    // From 59.95 s on, three digits would print 60 s: that is 1 min.
    if seconds.abs() < 59.95 {
        let unit = TIMES.iter().find(|(size, _)| seconds.abs() >= size * (1.0 - 0.5e-3));
        return match (unit, seconds) {
            (Some((size, unit)), _) => format!("{} {unit}", number(seconds / size)),
            (None, 0.0) => "0 s".to_owned(),
            (None, _) => format!("{} ns", number(seconds * 1e9)),
        };
    }
    let whole = seconds.abs().round() as u64;
    let parts = [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let first = parts.iter().position(|(n, _)| *n != 0).unwrap_or(3);
    let shown: Vec<String> = parts
        .iter()
        .skip(first)
        .take(2)
        .filter(|(n, _)| *n != 0)
        .map(|(n, unit)| format!("{} {unit}", count(*n)))
        .collect();
    format!("{}{}", if seconds < 0.0 { "-" } else { "" }, shown.join(" "))
}

/// A count: `80,794`.
pub fn count(count: u64) -> String {
    with_commas(&count.to_string())
}

/// `1 request`, `3,082 requests`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A number with what is said of so many things, in words for several: `3 requests were split`, but `1 request was split`. Up
/// to the first of `;:(`, the words agree with the number.
pub fn agreed(number: u64, words: &str) -> String {
    if number != 1 {
        return format!("{} {words}", count(number));
    }
    let (clause, rest) = words.split_at(words.find([';', ':', '(']).unwrap_or(words.len()));
    let (noun, others) = clause.split_once(' ').unwrap_or((clause, ""));
    let noun = noun.strip_suffix(if noun.ends_with("sses") { "es" } else { "s" }).unwrap_or(noun);
    let mut said = format!("1 {noun}");
    let mut before = "";
    for word in others.split(' ').filter(|_| !others.is_empty()) {
        let one = match word {
            "were" => "was",
            "are" => "is",
            "have" if !matches!(before, "may" | "not" | "to") => "has",
            "their" => "its",
            "use" => "uses",
            "start" => "starts",
            "map" => "maps",
            "contradict" => "contradicts",
            same => same,
        };
        said = format!("{said} {one}");
        before = word;
    }
    said + rest
}

/// A rate per second, or another average: three significant digits, and all digits before the point.
pub fn rate(per_second: f64) -> String {
    // More leading zeros are hard to count.
    if per_second > 0.0 && per_second < 0.001 { "<0.001".to_owned() } else { number(per_second) }
}

/// A ratio, or another number without a unit, with three significant digits.
pub fn factor(factor: f64) -> String {
    number(factor)
}

/// A point in time of a run or a trace, to the microsecond, so that the reader can find it there: `12.000345 s`.
pub fn at_second(seconds: f64) -> String {
    let text = format!("{seconds:.6}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    format!("{}.{fraction} s", with_commas(whole))
}

/// `is` or `are`, after a count.
pub fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The share of requests that a faithful replay issues on time: no rounding crosses it.
const FAITHFUL: f64 = 0.95;
const FAITHFUL_TENTHS: i64 = 950;

/// A share of 1, rounded to a tenth of a percent: `99.9 %`. Only 1 is `100 %`, only 0 is `0 %`, and less than 95 % is
/// never `95.0 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    // In floating point, 0.57 × 1000 is slightly below 570.
    let tenths = share * 1000.0 + 1e-9;
    let below = (tenths.floor() as i64).min(if share < FAITHFUL { FAITHFUL_TENTHS - 1 } else { i64::MAX });
    format_tenths(below, (tenths + 0.5).floor() as i64, share <= 0.0, share >= 1.0)
}

/// `part` of `whole`, rounded like [`percent`], in exact integer arithmetic.
pub fn percent_of(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    let tenths = |half: u128| i64::try_from((u128::from(part) * 2000 + half) / (2 * whole)).unwrap_or(i64::MAX);
    format_tenths(tenths(0), tenths(whole), part == 0, u128::from(part) >= whole)
}

/// `below` is rounded down, `nearest` to the nearest.
fn format_tenths(below: i64, nearest: i64, is_none: bool, is_all: bool) -> String {
    let reaches_threshold = nearest > below && (nearest == FAITHFUL_TENTHS || nearest == 1000);
    match (is_none, is_all, if reaches_threshold { below } else { nearest }) {
        (true, ..) => "0 %".to_owned(),
        (_, true, ..=1000) => "100 %".to_owned(),
        (_, _, ..1) => "<0.1 %".to_owned(),
        (_, _, tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// A half rounds up, although a division may leave it slightly below.
const HALF_UP: f64 = 1.0 + 1e-14;

/// Three significant digits, without an exponent. All digits before the point are kept; trailing zeros after it are not.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "–".to_owned() };
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 30) as usize;
    let text = format!("{:.digits$}", if value.abs() < 1e6 { value * HALF_UP } else { value });
    let Some((whole, fraction)) = text.split_once('.') else { return with_commas(&text) };
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { with_commas(whole) } else { format!("{}.{fraction}", with_commas(whole)) }
}

fn with_commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // Half of the last digit below the unit, so that 999.9 kB is printed as 1 MB.
    let unit = units.iter().find(|(size, _)| value.abs() >= size * (1.0 - 0.5e-3));
    let (size, unit) = unit.copied().unwrap_or((1.0, "B"));
    format!("{} {unit}", number(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_utc_and_rounded_down() {
        assert_eq!(moment(1_336_140_000_999_999_999), "2012-05-04 14:00:00 UTC");
    }

    #[test]
    fn words_agree_with_their_number() {
        for (words, one) in [
            ("requests were not aligned and were widened", "1 request was not aligned and was widened"),
            ("lines were not understood", "1 line was not understood"),
            ("requests lost their process", "1 request lost its process"),
            ("calls have no duration: they are 0", "1 call has no duration: they are 0"),
            ("calls use descriptors (these are unknown)", "1 call uses descriptors (these are unknown)"),
            ("messages may have carried descriptors", "1 message may have carried descriptors"),
            ("processes", "1 process"),
            (
                "requests were lost because it does not have their operation",
                "1 request was lost because it does not have its operation",
            ),
        ] {
            assert_eq!(agreed(1, words), one);
            assert_eq!(agreed(0, words), format!("0 {words}"));
            assert_eq!(agreed(4096, words), format!("4,096 {words}"));
        }
    }

    #[test]
    fn numbers_are_rounded_and_have_units() {
        assert_eq!(
            [0, 999, 1500, 818_038, 999_900, 67_108_864].map(bytes),
            ["0 B", "999 B", "1.5 kB", "818 kB", "1 MB", "67.1 MB"]
        );
        assert_eq!([512, 65_536, 3 << 20, 1023 << 10].map(block), ["512 B", "64 KiB", "3 MiB", "1,023 KiB"]);
        assert_eq!([7680, 12_345_678, u64::MAX].map(block), ["7.5 KiB", "11.8 MiB", "16 EiB"]);
        assert_eq!(
            [0.0, 85e-9, 0.000_85, 0.012, 0.448_57, 0.9999, 12.345, 59.94].map(span),
            ["0 s", "85 ns", "850 µs", "12 ms", "449 ms", "1 s", "12.3 s", "59.9 s"]
        );
        assert_eq!(
            [59.96, 3599.9, 3660.0, 90_000.0, -3660.0].map(span),
            ["1 min", "1 h", "1 h 1 min", "1 d 1 h", "-1 h 1 min"]
        );
        assert_eq!([0, 999, 1000, 80_794, 1_234_567].map(count), ["0", "999", "1,000", "80,794", "1,234,567"]);
        assert_eq!(
            [counted(0, "read"), counted(1, "read"), counted(3082, "read")],
            ["0 reads", "1 read", "3,082 reads"]
        );
        assert_eq!(
            [0.0, 3.010_042, -0.5, 86_400.000_000_6].map(at_second),
            ["0.000000 s", "3.010042 s", "-0.500000 s", "86,400.000001 s"]
        );
        assert_eq!([0.5, 1.164, 12_345.6].map(factor), ["0.5", "1.16", "12,346"]);
        assert_eq!([0.0, 0.012_34, 9.999, 99.96, 38_103.4].map(rate), ["0", "0.0123", "10", "100", "38,103"]);
    }

    /// `python/tests/test_units.py` and `test_page.py` read the same cases.
    #[test]
    fn both_halves_format_numbers_alike() {
        let cases: serde_json::Value = serde_json::from_str(include_str!("../../tests/numbers.json")).unwrap();
        let check = |name: &str, written: &dyn Fn(&serde_json::Value) -> String| {
            let list = cases[name].as_array().unwrap();
            assert!(list.len() > 5, "{name}");
            for case in list {
                assert_eq!(written(&case[0]), case[1].as_str().unwrap(), "{name} of {}", case[0]);
            }
        };
        check("span", &|value| span(value.as_f64().unwrap()));
        check("transferred", &|value| bytes(value.as_u64().unwrap()));
        check("addressed", &|value| block(value.as_u64().unwrap()));
        check("rate", &|value| rate(value.as_f64().unwrap()));
        check("share", &|value| percent(value.as_f64().unwrap()));
        check("requests", &|value| counted(value.as_u64().unwrap(), "request"));
    }

    #[test]
    fn a_share_is_rounded_but_never_to_a_threshold_that_it_misses() {
        assert_eq!(
            [0.0, 1e-9, 0.000_499, 0.0005, 0.29, 0.57, 0.8768, 0.949_99, 0.95, 0.9504, 0.9999, 0.999_999_999, 1.0]
                .map(percent),
            [
                "0 %", "<0.1 %", "<0.1 %", "0.1 %", "29.0 %", "57.0 %", "87.7 %", "94.9 %", "95.0 %", "95.0 %",
                "99.9 %", "99.9 %", "100 %"
            ]
        );
        assert_eq!(
            [(0, 0), (0, 7), (1, u64::MAX), (949_999, 1_000_000), (19, 20), (u64::MAX - 1, u64::MAX), (7, 7)]
                .map(|(part, whole)| percent_of(part, whole)),
            ["0 %", "0 %", "<0.1 %", "94.9 %", "95.0 %", "99.9 %", "100 %"]
        );
        assert_eq!(
            [(3_499_596, 4_999_963), (1_500_367, 4_999_963), (1, 6), (2, 3)].map(|(a, b)| percent_of(a, b)),
            ["70.0 %", "30.0 %", "16.7 %", "66.7 %"]
        );
        for whole in 1..2000_u64 {
            for part in [whole / 3, whole * 19 / 20, whole * 57 / 100, whole / 16] {
                assert_eq!(percent(part as f64 / whole as f64), percent_of(part, whole), "{part} of {whole}");
            }
        }
    }
}
