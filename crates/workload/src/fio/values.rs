//! Values of fio's options: numbers with units, times, lists.

/// A whole number with a unit of bytes. With a `kb_base` of 1024, k means 1024 and Ki 1000; with 1000 it is the reverse.
pub fn number(text: &str, kb_base: u64) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a number; write for example 4k");
    if text.starts_with('(') {
        return Err(format!("`{text}` is an expression; write the number"));
    }
    let (digits, unit, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
            (&rest[..end], &rest[end..], 16)
        }
        None => {
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
            (&text[..end], &text[end..], 10)
        }
    };
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (prefix, is_iec) = unit.strip_suffix('i').map_or((unit, false), |prefix| (prefix, true));
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == prefix).ok_or_else(wrong)?;
    if is_iec && power == 0 {
        return Err(wrong());
    }
    let base: u64 = if is_iec == (kb_base == 1000) { 1024 } else { 1000 };
    let factor = base.pow(power as u32);
    let whole = if radix == 10 && digits.contains('.') {
        let value = digits.parse::<f64>().map_err(|_| wrong())? * factor as f64;
        if value.fract() != 0.0 || value > 1e18 {
            return Err(format!("`{text}` is not a whole number of bytes"));
        }
        value as u64
    } else {
        let value = u64::from_str_radix(digits, radix).map_err(|_| wrong())?;
        value.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))?
    };
    // Sums of several such numbers stay far below the limit of u64.
    if whole > 1 << 60 { Err(format!("`{text}` is too large")) } else { Ok(whole) }
}

/// A time in microseconds. Numbers without a unit are in this one: `s` or `us`.
pub fn micros(text: &str, default_unit: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = if unit.is_empty() { default_unit } else { &unit };
    let factor = match unit {
        "d" => 86_400_000_000,
        "h" => 3_600_000_000,
        "m" => 60_000_000,
        "s" | "sec" => 1_000_000,
        "ms" | "msec" => 1000,
        "us" | "usec" => 1,
        _ => return Err(format!("`{text}` is not a time; write for example 10s, 5m or 20ms")),
    };
    let value: u64 =
        digits.parse().map_err(|_| format!("`{text}` is not a time; write for example 10s, 5m or 20ms"))?;
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

    #[test]
    fn units_of_bytes_follow_kb_base() {
        for (text, compatible, strict) in [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4000, 4096),
            ("1MiB", 1_000_000, 1 << 20),
            ("2g", 2 << 30, 2_000_000_000),
            ("0x10k", 16 << 10, 16_000),
            ("1.5k", 1536, 1500),
            ("512B", 512, 512),
        ] {
            assert_eq!((number(text, 1024), number(text, 1000)), (Ok(compatible), Ok(strict)), "{text}");
        }
        for wrong in ["", "k", "4x", "-1", "1.0001", "(1+2)", "99999p", "1i", "4 k b"] {
            assert!(number(wrong, 1024).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_a_default_unit() {
        for (text, unit, expected) in [
            ("10", "s", 10_000_000),
            ("10", "us", 10),
            ("2m", "s", 120_000_000),
            ("5ms", "us", 5000),
            ("1h", "s", 3_600_000_000),
        ] {
            assert_eq!(micros(text, unit), Ok(expected), "{text}");
        }
        assert!(micros("10x", "s").is_err() && micros("", "s").is_err() && micros("99999999d", "s").is_err());
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
