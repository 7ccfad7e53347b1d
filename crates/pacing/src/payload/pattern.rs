//! A repeated pattern. Each byte depends only on its position on the target, so that the content of a target can be
//! checked later, however it was divided into requests.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The repeated bytes, 1 to 512 of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<u8>);

/// Maximum length: a sector.
const MAX_BYTES: usize = 512;

impl FromStr for Pattern {
    type Err = String;

    /// Parses two hexadecimal digits per byte, with or without `0x` in front.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let wrong = || format!("invalid pattern `{text}`: give 1 to {MAX_BYTES} bytes, each as two hexadecimal digits");
        if !digits.len().is_multiple_of(2) || !(1..=MAX_BYTES).contains(&(digits.len() / 2)) {
            return Err(wrong());
        }
        let values: Option<Vec<u8>> = digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        let values = values.filter(|v| v.len() == digits.len()).ok_or_else(wrong)?;
        Ok(Self(values.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A pattern repeated often enough to be copied in large pieces.
#[derive(Debug)]
pub struct Tile {
    /// A multiple of the pattern's length.
    bytes: Vec<u8>,
    period: usize,
}

impl Tile {
    /// Repeats a pattern.
    pub fn new(pattern: &Pattern) -> Self {
        let period = pattern.0.len();
        Self { bytes: pattern.0.repeat(8192usize.div_ceil(period)), period }
    }

    /// Fills bytes that begin at this offset on the target.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        let phase = (offset % self.period as u64) as usize;
        let (first, rest) = bytes.split_at_mut(bytes.len().min(self.bytes.len() - phase));
        first.copy_from_slice(&self.bytes[phase..phase + first.len()]);
        for piece in rest.chunks_mut(self.bytes.len()) {
            piece.copy_from_slice(&self.bytes[..piece.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_parsed_and_displayed_in_hexadecimal() {
        assert_eq!("DEADbeef".parse::<Pattern>().unwrap().to_string(), "deadbeef");
        assert_eq!("0x00ff".parse::<Pattern>().unwrap().to_string(), "00ff");
        for wrong in ["", "0x", "f", "fff", "xy", "dead beef", "äa", &"00".repeat(513)] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }

    proptest! {
        /// The byte at position x is the pattern's byte at x modulo its length.
        #[test]
        fn each_byte_depends_on_its_place_alone(
            pattern in prop::collection::vec(any::<u8>(), 1..=MAX_BYTES), offset in 0u64..1 << 40, length in 0usize..40_000
        ) {
            let mut bytes = vec![0; length];
            Tile::new(&Pattern(pattern.clone())).fill(offset, &mut bytes);
            for (i, byte) in bytes.into_iter().enumerate() {
                prop_assert_eq!(byte, pattern[((offset + i as u64) % pattern.len() as u64) as usize]);
            }
        }
    }
}
