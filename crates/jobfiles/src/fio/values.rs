//! Values of fio's options: numbers with units, times, lists.

/// A whole number with a unit of bytes. With a `kb_base` of 1024, k, kb and ki mean 1024 and kib 1000; with 1000 it is the
/// reverse. After fio 3.33; `units.tsv` has what it makes of each spelling.
pub fn number(text: &str, kb_base: u64) -> Result<u64, String> {
    if text.starts_with('(') {
        return Err(format!("`{text}` is an expression; write the number"));
    }
    let (digits, unit, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
            (&rest[..end], &rest[end..], 16)
        }
        None => {
            let (digits, unit) = split(text);
            (digits, unit, 10)
        }
    };
    let value = u64::from_str_radix(digits, radix)
        .map_err(|_| format!("`{text}` is not a whole number; write for example 4k"))?;
    let other = if kb_base == 1000 { 1024 } else { 1000 };
    let lower = unit.to_ascii_lowercase();
    let known = ["k", "m", "g", "t", "p"].iter().zip(1..).find_map(|(prefix, power)| {
        let rest = lower.strip_prefix(prefix)?;
        let base: u64 = match rest {
            "" | "b" | "i" => kb_base,
            "ib" => other,
            _ => return None,
        };
        base.checked_pow(power)
    });
    let factor = match (&lower[..], known) {
        ("" | "b", _) => 1,
        (_, Some(factor)) if radix == 10 => factor,
        _ => return Err(unread(text, unit, "k, m, g, t or p, such as 64k or 64KiB")),
    };
    // Sums of several such numbers stay far below the limit of u64.
    let whole = value.checked_mul(factor).filter(|whole| *whole <= 1 << 60);
    whole.ok_or_else(|| format!("`{text}` is too large"))
}

/// The digits, and what is behind them.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// fio reads the digits and silently leaves out what it does not know behind them.
fn unread(text: &str, unit: &str, known: &str) -> String {
    format!(
        "`{text}`: fio does not read `{unit}` as a unit, and takes the digits alone; write a whole number with {known}"
    )
}

/// A time in microseconds. Numbers without a unit are in this one: `s` or `us`.
pub fn micros(text: &str, default_unit: &str) -> Result<u64, String> {
    let (digits, written) = split(text);
    let value = digits.parse::<u64>();
    let value = value.map_err(|_| format!("`{text}` is not a time; write for example 10s, 5m or 20ms"))?;
    let unit = if written.is_empty() { default_unit.to_owned() } else { written.to_ascii_lowercase() };
    let factor = match &unit[..] {
        "d" => 86_400_000_000,
        "h" => 3_600_000_000,
        "m" => 60_000_000,
        "s" => 1_000_000,
        "ms" | "msec" => 1000,
        "us" | "usec" => 1,
        _ => return Err(unread(text, written, "d, h, m, s, ms or us, such as 10s, 5m or 20ms")),
    };
    let value = value.checked_mul(factor).filter(|value| *value <= 100 * 366 * 86_400_000_000);
    value.ok_or_else(|| format!("`{text}` is more than a hundred years"))
}

/// Microseconds as a program has them.
pub fn time_text(micros: u64) -> String {
    for (factor, unit) in [(3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1000, "ms")] {
        if micros >= factor && micros.is_multiple_of(factor) {
            return format!("{}{unit}", micros / factor);
        }
    }
    format!("{micros}us")
}

/// The values for reads, writes and discards of `a`, `a,b` or `a,b,c`: the last one counts for those after it. `None`: the default.
pub fn triple(text: &str) -> Result<[Option<String>; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has more than three values: for reads, writes and discards"));
    }
    // A value of its own, even an empty one, or that of the direction before it.
    let value = |index: usize| {
        let part = parts[index.min(parts.len() - 1)];
        (!part.is_empty()).then(|| part.to_owned())
    };
    Ok([value(0), value(1), value(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value is what fio makes of it. Where fio leaves out what is behind the digits, it is refused.
    #[test]
    fn values_are_those_that_fio_measures() {
        for row in include_str!("units.tsv").lines().filter(|line| !line.starts_with('#')) {
            let [option, text, of_1024, of_1000] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
            let default = match option {
                "runtime" | "startdelay" | "ramp_time" => Some("s"),
                "thinktime" => Some("us"),
                _ => None,
            };
            let unit = split(text).1.to_ascii_lowercase();
            let is_read = match default {
                Some(_) => ["", "d", "h", "m", "s", "ms", "us", "msec", "usec"].contains(&&unit[..]),
                None => {
                    let power = unit.trim_start_matches(['k', 'm', 'g', 't', 'p']);
                    text == "0x10"
                        || unit.len() - power.len() <= 1 && ["", "b", "i", "ib"].contains(&power) && unit != "i"
                }
            };
            for (kb_base, expected) in [(1024, of_1024), (1000, of_1000)] {
                let found = match default {
                    Some(default) => micros(text, default),
                    None => number(text, kb_base),
                };
                let expected = expected.parse::<u64>().ok().filter(|_| is_read);
                assert_eq!(found.clone().ok(), expected, "{row}, kb_base={kb_base}: {found:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for wrong in ["", "k", "4x", "-1", "1.0001", "(1+2)", "99999p", "1i", "4 k b", "4e", "ib"] {
            assert!(number(wrong, 1024).is_err(), "{wrong}");
        }
        assert!(number("1.5k", 1024).unwrap_err().contains("fio does not read `.5k` as a unit"));
        for wrong in ["10x", "", "99999999d", "5sec", "5min", "1.5s"] {
            assert!(micros(wrong, "s").is_err(), "{wrong}");
        }
        assert_eq!([3_600_000_000, 90_000_000, 1500, 2000].map(time_text), ["1h", "90s", "1500us", "2ms"]);
    }

    #[test]
    fn directions_without_a_value_have_that_of_the_one_before() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(triple("4k"), Ok([some("4k"), some("4k"), some("4k")]));
        assert_eq!(triple("4k,8k"), Ok([some("4k"), some("8k"), some("8k")]));
        assert_eq!(triple(",8k"), Ok([None, some("8k"), some("8k")]));
        assert_eq!(triple("8k,"), Ok([some("8k"), None, None]));
        assert!(triple("1,2,3,4").is_err());
    }
}
