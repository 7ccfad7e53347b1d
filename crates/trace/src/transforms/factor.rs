//! Decimal factors as exact fractions: 0.7 is seven tenths, not the nearest binary floating-point number.
//!
//! Otherwise a product that is an integer would round down to one less: 2880 · 0.7 is 2016.

/// A number above zero, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factor {
    /// The exact value.
    Fraction { numerator: u128, denominator: u128 },
    /// An approximation, for a number with more than [`DIGITS`] digits.
    About(f64),
}

/// Most digits of numerator and denominator: the product with any sector and any block size fits into 128 bits.
const DIGITS: usize = 17;

impl Factor {
    /// The fraction of the shortest decimal digits that parse as `number`.
    pub fn of(number: f64) -> Self {
        let text = number.to_string();
        let (integer, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{integer}{decimals}");
        match digits.parse() {
            Ok(numerator) if digits.len() <= DIGITS => {
                Self::Fraction { numerator, denominator: 10_u128.pow(decimals.len() as u32) }
            }
            _ => Self::About(number),
        }
    }

    /// value · factor, rounded to the nearest integer, halves away from zero; `None` if it does not fit.
    pub fn rounded(self, value: i64) -> Option<i64> {
        match self {
            Self::Fraction { numerator, denominator } => {
                let doubled = u128::from(value.unsigned_abs()) * numerator * 2 + denominator;
                let magnitude = i64::try_from(doubled / (denominator * 2)).ok()?;
                Some(if value < 0 { -magnitude } else { magnitude })
            }
            Self::About(factor) => {
                let product = (value as f64 * factor).round();
                (product.abs() < i64::MAX as f64).then_some(product as i64)
            }
        }
    }

    /// ⌊value · factor / divisor⌋, saturating.
    pub fn floor(self, value: u64, divisor: u64) -> u64 {
        match self {
            Self::Fraction { numerator, denominator } => {
                let quotient = u128::from(value) * numerator / (denominator * u128::from(divisor));
                u64::try_from(quotient).unwrap_or(u64::MAX)
            }
            Self::About(factor) => (value as f64 * factor / divisor as f64).floor() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_products_are_not_rounded_down() {
        assert_eq!(Factor::of(0.7).floor(2880, 1), 2016);
        assert_eq!(Factor::of(0.7).floor(360, 1), 252);
        assert_eq!(Factor::of(0.7).floor(45_955_280, 8), 32_168_696 / 8);
        assert_eq!(Factor::of(1.4).floor(5, 1), 7);
        assert_eq!(Factor::of(2.0).floor(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn products_are_rounded_to_the_nearest() {
        let far = 1_336_140_000_123_456_789;
        assert_eq!(Factor::of(1.0).rounded(far), Some(far));
        assert_eq!(Factor::of(2.0).rounded(-far), Some(-2 * far));
        assert_eq!((Factor::of(0.5).rounded(3), Factor::of(0.5).rounded(-3)), (Some(2), Some(-2)));
        assert_eq!(
            (Factor::of(0.7).rounded(far), Factor::of(10.0).rounded(far)),
            (Some(935_298_000_086_419_752), None)
        );
        let third = Factor::of(1.0 / 3.0);
        assert_eq!((third.rounded(3_000_000), third.rounded(i64::MIN).is_some()), (Some(1_000_000), true));
        assert_eq!((Factor::of(1e300).rounded(7), Factor::of(1e300).rounded(0)), (None, Some(0)));
    }

    #[test]
    fn exact_and_approximate_products_agree() {
        for factor in [0.7, 1.0, 3.0, 1e-6, 1e-30, 1e12, 1e300, 0.1 + 0.2, f64::MIN_POSITIVE, 1.0 / 3.0] {
            for value in [0, 1, 7, 1 << 20, 1 << 40] {
                let (exact, about) = (Factor::of(factor).floor(value, 8) as f64, value as f64 * factor / 8.0);
                assert!((exact - about).abs() <= 1.0 + about * 1e-9 || about > 1.8e19, "{value} · {factor}: {exact}");
            }
        }
    }
}
