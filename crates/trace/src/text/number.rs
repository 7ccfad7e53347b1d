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

/// Most decimal places that [`scaled`] computes with.
const PLACES: u32 = 37;

/// A decimal number, which may have an exponent, times `numerator` / `denominator`: the product, rounded once, and whether it
/// is exact. Numerator and denominator are below 2^96.
pub fn scaled(text: &[u8], numerator: u128, denominator: u128) -> Result<(u128, bool), NumberError> {
    if let Some((digits, places)) = short(text)
        && let Some(product) = u128::from(digits).checked_mul(numerator)
        && let Some(parts) = 10_u128.pow(places).checked_mul(denominator)
        && let Some(sum) = product.checked_add(parts / 2)
    {
        return Ok((sum / parts, product % parts == 0));
    }
    let (mantissa, exponent) = match text.iter().position(|byte| b"eE".contains(byte)) {
        Some(e) => (&text[..e], exponent(&text[e + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|&b| b == b'.').unwrap_or(mantissa.len());
    let digits = [&mantissa[..point], mantissa.get(point + 1..).unwrap_or_default()].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::NotANumber);
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let mut digits = digits[zeros..].iter().map(|digit| u128::from(digit - b'0') * numerator).peekable();
    if digits.peek().is_none() {
        return Ok((0, true));
    }
    // How many digits are before the point, below zero if zeros follow it.
    let before = (point as i64 - zeros as i64).saturating_add(exponent);
    // The product is `whole` + `rest` / `one`.
    let (mut whole, mut rest, mut one) = (0_u128, 0, 1_u128);
    for _ in 0..before {
        let sum = whole.checked_mul(10).and_then(|whole| whole.checked_add(digits.next().unwrap_or(0)));
        whole = sum.ok_or(NumberError::TooLarge)?;
    }
    for place in 1..=i64::from(PLACES) {
        one *= 10;
        rest = rest * 10 + if place > -before { digits.next().unwrap_or(0) } else { 0 };
        whole = whole.checked_add(rest / one).ok_or(NumberError::TooLarge)?;
        rest %= one;
    }
    let is_exact = rest == 0 && digits.all(|digit| digit == 0) && whole % denominator == 0;
    let half = denominator + u128::from(rest >= one / 2);
    let twice = whole.checked_mul(2).and_then(|twice| twice.checked_add(half)).ok_or(NumberError::TooLarge)?;
    Ok((twice / (2 * denominator), is_exact))
}

/// All digits of a number that fits into 64 bits, and how many of them follow the point.
fn short(text: &[u8]) -> Option<(u64, u32)> {
    let point = text.iter().position(|&b| b == b'.');
    let after = point.map_or(0, |point| text.len() - point - 1);
    if text.len() > 19 || text.len() == usize::from(point.is_some()) {
        return None;
    }
    let mut value = 0;
    for (index, &b) in text.iter().enumerate() {
        match b.wrapping_sub(b'0') {
            digit @ ..=9 => value = value * 10 + u64::from(digit),
            _ if Some(index) == point => {}
            _ => return None,
        }
    }
    Some((value, after as u32))
}

/// An exponent beyond any number.
const MAX_EXPONENT: u64 = 1 << 40;

/// The exponent of a number, at most [`MAX_EXPONENT`].
fn exponent(text: &[u8]) -> Result<i64, NumberError> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    match whole(digits) {
        Ok(exponent) => Ok(sign * exponent.min(MAX_EXPONENT) as i64),
        Err(NumberError::TooLarge) => Ok(sign * MAX_EXPONENT as i64),
        Err(error) => Err(error),
    }
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

    proptest! {
        #[test]
        fn products_are_those_of_exact_arithmetic(
            before in 0_u64..100_000, after in "[0-9]{0,9}", numerator in 1_u128..1 << 40, denominator in 1_u128..1 << 40, moved in 0_i32..9,
        ) {
            let one = 10_u128.pow(after.len() as u32);
            let digits = format!("{before}{after}").parse::<u128>().unwrap();
            let parts = one * denominator;
            let expected = ((digits * numerator + parts / 2) / parts, digits * numerator % parts == 0);
            let text = format!("{before}.{after}");
            prop_assert_eq!(scaled(text.as_bytes(), numerator, denominator), Ok(expected));
            // The same by the long way, with zeros and exponents.
            for text in [
                format!("000{text}{}", "0".repeat(40)),
                format!("{digits}e-{}", after.len()),
                format!("{}E{}", shifted(digits, after.len() as i32 + moved), moved),
                format!("{digits}{}e-{}", "0".repeat(moved as usize), after.len() as i32 + moved),
            ] {
                prop_assert_eq!(scaled(text.as_bytes(), numerator, denominator), Ok(expected), "{}", text);
            }
        }
    }

    /// Digits with a point before the last `places` of them.
    fn shifted(digits: u128, places: i32) -> String {
        let digits = format!("{digits:0>width$}", width = places as usize + 1);
        let (before, after) = digits.split_at(digits.len() - places as usize);
        format!("{before}.{after}")
    }

    #[test]
    fn products_beyond_any_time_are_too_large_and_tiny_ones_zero() {
        for large in ["1e40", "1e99999999999999999999", "99999999999999999999999999999999999999999", "1.5e+30"] {
            assert_eq!(scaled(large.as_bytes(), 3_600_000_000_000, 1), Err(NumberError::TooLarge), "{large}");
        }
        for tiny in ["1e-60", "0.0001e-99999999999999999999", "0e99"] {
            assert_eq!(scaled(tiny.as_bytes(), 3_600_000_000_000, 1).map(|(value, _)| value), Ok(0), "{tiny}");
        }
        for wrong in ["", ".", "e", "1e", "e1", "1e+", "1e1.5", "1.2.3", "-1", "0x1", "1,5"] {
            assert_eq!(scaled(wrong.as_bytes(), 1, 1), Err(NumberError::NotANumber), "{wrong}");
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
