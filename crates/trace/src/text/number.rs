//! Parses numbers from bytes of text.

/// Why a text cannot be parsed as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// It has other characters than digits.
    NotANumber,
    /// It does not fit into 64 bits.
    TooLarge,
}

impl NumberError {
    /// The message for this error.
    pub fn reason(self, not_a_number: &'static str, too_large: &'static str) -> &'static str {
        match self {
            Self::NotANumber => not_a_number,
            Self::TooLarge => too_large,
        }
    }
}

/// A whole number, in decimal digits.
pub fn whole(text: &[u8]) -> Result<u64, NumberError> {
    if text.is_empty() {
        return Err(NumberError::NotANumber);
    }
    let mut value = 0_u64;
    // Any 19 digits fit into 64 bits.
    if text.len() <= 19 {
        for &b in text {
            let digit = b.wrapping_sub(b'0');
            if digit > 9 {
                return Err(NumberError::NotANumber);
            }
            value = value * 10 + u64::from(digit);
        }
        return Ok(value);
    }
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NumberError::NotANumber);
        }
        value = value.checked_mul(10).and_then(|v| v.checked_add(digit.into())).ok_or(NumberError::TooLarge)?;
    }
    Ok(value)
}

/// A whole number, hexadecimal if it begins with `0x`.
pub fn whole_or_hex(text: &[u8]) -> Result<u64, NumberError> {
    let Some(digits) = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")) else { return whole(text) };
    let digits = std::str::from_utf8(digits).map_err(|_| NumberError::NotANumber)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(NumberError::NotANumber);
    }
    u64::from_str_radix(digits, 16).map_err(|_| NumberError::TooLarge)
}

/// A decimal number in units of 10^-`places`, rounded: `places` = 9 converts seconds to nanoseconds.
pub fn decimal(text: &[u8], places: u32) -> Result<i64, NumberError> {
    let point = text.iter().position(|&b| b == b'.').unwrap_or(text.len());
    let (before, after) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if before.is_empty() && after.is_empty() {
        return Err(NumberError::NotANumber);
    }
    if !before.is_empty() && before.len() <= 9 && after.len() <= places as usize && places <= 9 {
        // Fast path: nothing to round, and the result fits. This covers nearly all times.
        let fraction = if after.is_empty() { 0 } else { whole(after)? * 10_u64.pow(places - after.len() as u32) };
        return Ok((whole(before)? * 10_u64.pow(places) + fraction) as i64);
    }
    let units = if before.is_empty() { 0 } else { whole(before)? };
    let one = 10_u64.pow(places);
    let mut fraction = 0_u64;
    let mut unit = one;
    for &b in after {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NumberError::NotANumber);
        }
        if unit > 1 {
            unit /= 10;
            fraction += u64::from(digit) * unit;
        } else if unit == 1 {
            unit = 0;
            fraction += u64::from(digit >= 5);
        }
    }
    units
        .checked_mul(one)
        .and_then(|value| value.checked_add(fraction))
        .and_then(|value| i64::try_from(value).ok())
        .ok_or(NumberError::TooLarge)
}

/// A time span that a recorder computed as a difference, in units of 10^-`places`: it may be negative, and a negative one may
/// have become a huge number. What does not fit becomes the longest or the shortest span.
pub fn span(text: &[u8], places: u32) -> Result<i64, NumberError> {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    match decimal(digits, places) {
        Ok(span) => Ok(sign * span),
        Err(NumberError::TooLarge) => Ok(sign * i64::MAX),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimals_of_any_length_are_rounded_correctly(before in 0_u64..1_000_000_000, after in "[0-9]{0,12}", places in 0_u32..=9) {
            let exact = u128::from(before) * 10_u128.pow(12) + format!("{after:0<12}").parse::<u128>().unwrap();
            let unit = 10_u128.pow(12 - places);
            let rounded = (exact + unit / 2) / unit;
            prop_assert_eq!(decimal(format!("{before}.{after}").as_bytes(), places).map(|v| v as u128), Ok(rounded));
            // Leading zeros change nothing.
            prop_assert_eq!(decimal(format!("0000000000{before}.{after}").as_bytes(), places).map(|v| v as u128), Ok(rounded));
        }
    }

    #[test]
    fn decimals_are_fixed_point() {
        assert_eq!(decimal(b"1.5", 9), Ok(1_500_000_000));
        assert_eq!(decimal(b"1.5", 6), Ok(1_500_000));
        assert_eq!(decimal(b"1.5", 3), Ok(1_500));
        assert_eq!(decimal(b"0.0015", 3), Ok(2));
        assert_eq!(decimal(b"0.00149", 3), Ok(1));
        assert_eq!(decimal(b".", 3), Err(NumberError::NotANumber));
        assert_eq!(decimal(b"1,5", 3), Err(NumberError::NotANumber));
        assert_eq!(decimal(b"99999999999", 9), Err(NumberError::TooLarge));
    }

    #[test]
    fn spans_have_a_sign_and_saturate() {
        assert_eq!(span(b"-0.5", 3), Ok(-500));
        assert_eq!(span(b"18446744073709.33", 6), Ok(i64::MAX));
        assert_eq!(span(b"18446744073709551615.5", 9), Ok(i64::MAX));
        assert_eq!(span(b"-99999999999999999999", 6), Ok(-i64::MAX));
        assert_eq!(span(b"--1", 6), Err(NumberError::NotANumber));
        assert_eq!(span(b"x", 6), Err(NumberError::NotANumber));
    }

    #[test]
    fn whole_numbers_fit_64_bits_and_have_no_sign() {
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err(NumberError::TooLarge));
        assert_eq!(whole(b"-1"), Err(NumberError::NotANumber));
        assert_eq!(whole_or_hex(b"0x1F"), Ok(31));
        assert_eq!(whole_or_hex(b"31"), Ok(31));
        assert_eq!(whole_or_hex(b"0x"), Err(NumberError::NotANumber));
        assert_eq!(whole_or_hex(b"0x+1"), Err(NumberError::NotANumber));
    }
}
