//! Units of times and sizes in a description, and the numbers that they belong to.

use crate::params::{did_you_mean, parse_bytes};
use crate::rows::{TOO_FAR, TOO_LATE};
use crate::text::number::{NumberError, decimal, scaled, whole, whole_or_hex};

/// Names of units of time, each as a power of ten of nanoseconds, times a number, divided by one.
const TIMES: &[(&[&str], u32, u64, u64)] = &[
    (&["s", "sec", "seconds"], 9, 1, 1),
    (&["ms", "milliseconds"], 6, 1, 1),
    (&["us", "µs", "μs", "usec", "microseconds"], 3, 1, 1),
    (&["100ns"], 2, 1, 1),
    (&["ns", "nsec", "nanoseconds"], 0, 1, 1),
    (&["ps", "picoseconds"], 0, 1, 1000),
    (&["min", "m", "minutes"], 9, 60, 1),
    (&["h", "hours"], 9, 3600, 1),
    (&["d", "days"], 9, 86_400, 1),
];

/// Most digits of a factor.
const MAX_FACTOR_DIGITS: usize = 15;

/// Converts numbers in a unit of time to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnit {
    /// Decimal places of a number that count.
    places: u32,
    numerator: u64,
    denominator: u64,
}

impl TimeUnit {
    /// Seconds.
    pub const SECONDS: Self = Self { places: 9, numerator: 1, denominator: 1 };

    /// The unit of this name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let typed = name.trim().to_lowercase();
        let found = TIMES.iter().find(|(names, ..)| names.contains(&typed.as_str()));
        found.map(|&(_, places, numerator, denominator)| Self { places, numerator, denominator }).ok_or_else(|| {
            let known = TIMES.iter().map(|(names, ..)| names[0]);
            format!("`{name}` is not a unit of time; {}", did_you_mean(name, known))
        })
    }

    /// The same, times a decimal number.
    pub fn times(self, factor: &str) -> Result<Self, String> {
        let wrong = || format!("`{factor}` is not a decimal number above zero, of at most {MAX_FACTOR_DIGITS} digits");
        let (before, after) = factor.split_once('.').unwrap_or((factor, ""));
        let digits = format!("{before}{after}");
        if digits.len() > MAX_FACTOR_DIGITS {
            return Err(wrong());
        }
        let number = whole(digits.as_bytes()).ok().filter(|number| *number > 0).ok_or_else(wrong)?;
        let common = gcd(number, 10_u64.pow(after.len() as u32));
        let (number, parts) = (number / common, 10_u64.pow(after.len() as u32) / common);
        let numerator = self.numerator.checked_mul(number).ok_or_else(wrong)?;
        let denominator = self.denominator.checked_mul(parts).ok_or_else(wrong)?;
        Ok(Self { numerator, denominator, ..self })
    }

    /// The nanoseconds of a number in text, which may have a sign or an exponent: rounded once, after the multiplication.
    #[inline]
    pub fn text(self, text: &[u8]) -> Result<i64, NumberError> {
        let is_plain = self.numerator == 1 && self.denominator == 1;
        let nanos = if is_plain { decimal(text, self.places) } else { self.product(text) };
        if nanos == Err(NumberError::NotANumber) { self.unusual(text) } else { nanos }
    }

    fn product(self, text: &[u8]) -> Result<i64, NumberError> {
        let (nanos, _) = scaled(text, self.whole_numerator().unsigned_abs(), self.denominator.into())?;
        i64::try_from(nanos).map_err(|_| NumberError::TooLarge)
    }

    #[cold]
    fn unusual(self, text: &[u8]) -> Result<i64, NumberError> {
        match text.strip_prefix(b"-") {
            Some(digits) if digits.first() != Some(&b'-') => self.text(digits).map(|span| -span),
            _ => self.product(text),
        }
    }

    /// Nanoseconds times the denominator.
    fn whole_numerator(self) -> i128 {
        10_i128.pow(self.places) * i128::from(self.numerator)
    }

    /// The nanoseconds of a whole number.
    pub fn number(self, number: i128) -> Result<i64, NumberError> {
        let product = number.checked_mul(self.whole_numerator()).ok_or(NumberError::TooLarge)?;
        let half = i128::from(self.denominator / 2) * product.signum();
        let sum = product.checked_add(half).ok_or(NumberError::TooLarge)?;
        i64::try_from(sum / i128::from(self.denominator)).map_err(|_| NumberError::TooLarge)
    }

    /// How many of the unit a span of nanoseconds is, if that is a whole number.
    pub fn ticks(self, nanos: i128) -> Option<i128> {
        let (one, all) = (self.whole_numerator(), nanos * i128::from(self.denominator));
        (all % one == 0).then_some(all / one)
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Converts numbers in a unit of size to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeUnit {
    bytes: u64,
    /// Whether numbers are hexadecimal without `0x`, too.
    is_hex: bool,
}

impl SizeUnit {
    /// Bytes.
    pub const BYTES: Self = Self { bytes: 1, is_hex: false };

    /// The unit of this name, which may be a number of bytes.
    pub fn parse(name: &str) -> Result<Self, String> {
        let bytes = match name.trim().to_lowercase().as_str() {
            "" | "b" | "byte" | "bytes" => 1,
            "s" | "sector" | "sectors" => 512,
            other => {
                let bytes = parse_bytes(other).or_else(|_| parse_bytes(&format!("1{other}")));
                bytes.ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
                    format!("`{name}` is not a unit of size; say bytes, sectors (of 512 bytes), KiB, or the bytes of a block, for example 4k")
                })?
            }
        };
        Ok(Self { bytes, is_hex: false })
    }

    /// The same for numbers in this base.
    pub fn in_base(self, base: Base) -> Self {
        Self { is_hex: base == Base::Sixteen, ..self }
    }

    /// The bytes of a number in text.
    #[inline]
    pub fn text(self, text: &[u8], not_a_number: &'static str) -> Result<u64, &'static str> {
        let number = if self.is_hex { hexadecimal(text) } else { whole(text) };
        match number {
            Ok(number) => number.checked_mul(self.bytes).ok_or(TOO_FAR),
            Err(NumberError::TooLarge) => Err(TOO_FAR),
            Err(NumberError::NotANumber) => self.unusual(text).map_err(|error| error.reason(not_a_number, TOO_FAR)),
        }
    }

    /// A hexadecimal number with `0x`, or one with decimals or an exponent that is a whole number of bytes.
    #[cold]
    fn unusual(self, text: &[u8]) -> Result<u64, NumberError> {
        if let Ok(number) = whole_or_hex(text) {
            return number.checked_mul(self.bytes).ok_or(NumberError::TooLarge);
        }
        if self.is_hex {
            return Err(NumberError::NotANumber);
        }
        match scaled(text, self.bytes.into(), 1)? {
            (bytes, true) => u64::try_from(bytes).map_err(|_| NumberError::TooLarge),
            (_, false) => Err(NumberError::NotANumber),
        }
    }

    /// The bytes of a whole number.
    pub fn number(self, number: i128) -> Result<u64, &'static str> {
        u64::try_from(number).ok().and_then(|number| number.checked_mul(self.bytes)).ok_or(TOO_FAR)
    }
}

/// The base of whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Ten, or sixteen with `0x`.
    #[default]
    Ten,
    /// Sixteen.
    Sixteen,
}

impl Base {
    /// `10` or `16`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "10" => Ok(Self::Ten),
            "16" => Ok(Self::Sixteen),
            other => Err(format!("`{other}` is neither 10 nor 16")),
        }
    }

    /// A whole number in text.
    pub fn whole(self, text: &[u8]) -> Option<u64> {
        if self == Self::Sixteen { hexadecimal(text) } else { whole_or_hex(text) }.ok()
    }
}

fn hexadecimal(text: &[u8]) -> Result<u64, NumberError> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(NumberError::NotANumber);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| NumberError::NotANumber)?;
    u64::from_str_radix(digits, 16).map_err(|_| NumberError::TooLarge)
}

/// The reason why a line with this time is bad.
pub fn bad_time(error: NumberError) -> &'static str {
    error.reason("the time is not a number", TOO_LATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(unit: &str, number: &str) -> Result<i64, NumberError> {
        TimeUnit::parse(unit).unwrap().text(number.as_bytes())
    }

    #[test]
    fn numbers_in_units_of_time_are_exact() {
        for (unit, number, expected) in [
            ("s", "1455592511.102342001", 1_455_592_511_102_342_001),
            ("min", "1.5", 90_000_000_000),
            ("ps", "1499", 1),
            ("100ns", "7", 700),
            ("us", "-2.5", -2500),
            ("ms", "1.5e-3", 1500),
            ("s", "1.455592511102342001e9", 1_455_592_511_102_342_001),
            ("h", "1.23456789012", 4_444_444_404_432),
            ("h", "-1.23456789012", -4_444_444_404_432),
            ("d", "0.00000000001157407", 1000),
            ("min", "0.000000000025", 2),
            ("ps", "0.5e3", 1),
            ("ns", "0.4", 0),
        ] {
            assert_eq!(nanos(unit, number), Ok(expected), "{number} {unit}");
        }
        assert_eq!(nanos("s", "99999999999"), Err(NumberError::TooLarge));
        for wrong in ["", "-", "--1", "1e", "e", "inf", "nan", "1:2", "infe"] {
            assert_eq!(nanos("s", wrong), Err(NumberError::NotANumber), "{wrong}");
        }
        assert_eq!(TimeUnit::parse("us").unwrap().number(3), Ok(3000));
        assert!(TimeUnit::parse("parsec").unwrap_err().contains("`parsec` is not a unit of time; known: "));
    }

    #[test]
    fn a_factor_multiplies_before_rounding() {
        let unit = TimeUnit::parse("ns").unwrap().times("0.39552").unwrap();
        assert_eq!(unit.text(b"1000000"), Ok(395_520));
        assert_eq!(unit.number(-1_000_000), Ok(-395_520));
        for (unit, factor) in [("s", "3600"), ("min", "60"), ("ns", "3600000000000")] {
            let unit = TimeUnit::parse(unit).unwrap().times(factor).unwrap();
            assert_eq!(unit.text(b"1.23456789012"), Ok(4_444_444_404_432));
            assert_eq!(unit.text(b"2562047.788015215"), Ok(9_223_372_036_854_774_000));
            assert_eq!(unit.text(b"2562047.788015216"), Err(NumberError::TooLarge));
            assert_eq!(unit.number(2_562_048), Err(NumberError::TooLarge));
            assert_eq!(unit.number(i128::MAX), Err(NumberError::TooLarge));
        }
        let unit = TimeUnit::parse("s").unwrap().times("10").unwrap();
        assert_eq!(unit.text(b"0.5"), Ok(5_000_000_000));
        for wrong in ["0", "-1", "x", "1.2.3", "", "1234567890123456"] {
            assert!(TimeUnit::SECONDS.times(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units_of_bytes() {
        let bytes = |unit: &str, number: &str| SizeUnit::parse(unit).unwrap().text(number.as_bytes(), "no number");
        for (unit, number, expected) in [
            ("bytes", "4096", 4096),
            ("sectors", "8", 4096),
            ("KiB", "4", 4096),
            ("KiB", "0.5", 512),
            ("4k", "3", 12_288),
            ("520", "2", 1040),
            ("bytes", "0x200", 512),
            ("MiB", "0.0009765625", 1024),
            ("KiB", "17592186044416.5", 18_014_398_509_482_496),
            ("GiB", "4.76837158203125e-7", 512),
        ] {
            assert_eq!(bytes(unit, number), Ok(expected), "{number} {unit}");
        }
        assert_eq!(SizeUnit::BYTES.in_base(Base::Sixteen).text(b"1f", ""), Ok(31));
        for wrong in ["-1", "", "1.00001", "1.0000001", "x"] {
            assert_eq!(bytes("bytes", wrong), Err("no number"), "{wrong}");
        }
        for far in ["18446744073709551615", "36028797018963968.0", "1e30"] {
            assert_eq!(bytes("sectors", far), Err(TOO_FAR), "{far}");
        }
        assert_eq!(SizeUnit::parse("sectors").unwrap().number(-1), Err(TOO_FAR));
        for wrong in ["0", "lightyears", "-4k"] {
            assert!(SizeUnit::parse(wrong).unwrap_err().contains("is not a unit of size"), "{wrong}");
        }
    }
}
