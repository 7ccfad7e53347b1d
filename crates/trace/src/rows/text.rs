//! Splits texts into lines, and lines into words.

/// The beginning of a line for a message, without control characters, which a terminal might interpret.
pub fn excerpt(line: &[u8]) -> String {
    excerpt_up_to(line, 60)
}

/// The same, up to a given length in bytes.
pub fn excerpt_up_to(line: &[u8], bytes: usize) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(bytes)]);
    let text: String = text.trim().chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if line.len() > bytes { format!("{text}…") } else { text }
}

/// The non-empty lines at the beginning of a file, without the last one, which may be incomplete.
pub fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = head.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    head[..end].split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// The fields of a line, without the white space around them.
pub fn separated(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&b| b == separator).map(<[u8]>::trim_ascii)
}

/// The words of a line, from its beginning: faster than [`words`]. Control characters count as blanks.
pub struct Words<'a> {
    /// The part of the line that was not yielded yet.
    rest: &'a [u8],
    /// A bit for each of its first `known` bytes: whether it is a blank.
    blanks: u64,
    known: usize,
}

impl<'a> Words<'a> {
    #[inline]
    pub fn of(line: &'a [u8]) -> Self {
        let (blanks, known) = blanks(line);
        Self { rest: line, blanks, known }
    }

    #[inline]
    fn consume(&mut self, bytes: usize) -> &'a [u8] {
        let (word, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        if bytes < self.known {
            self.blanks >>= bytes;
            self.known -= bytes;
        } else {
            (self.blanks, self.known) = blanks(rest);
        }
        word
    }

    /// A word that ends beyond the known bytes.
    #[cold]
    fn consume_long(&mut self) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| byte <= b' ').unwrap_or(self.rest.len());
        self.consume(length)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let before = self.blanks.trailing_ones() as usize;
            if before < self.known {
                if before > 0 {
                    self.consume(before);
                }
                break;
            }
            if self.known == 0 {
                return None;
            }
            self.consume(self.known);
        }
        let length = self.blanks.trailing_zeros() as usize;
        Some(if length < self.known { self.consume(length) } else { self.consume_long() })
    }
}

/// A bit for each of the first 64 bytes of a line, set if it is a blank, and how many bytes there are. Eight bytes at a
/// time, without branches: the CPU mispredicts where a word ends.
#[inline]
fn blanks(line: &[u8]) -> (u64, usize) {
    const ONES: u64 = u64::MAX / 0xff;
    const UPPER: u64 = ONES << 7;
    // Multiplication by this moves bit 0 of byte i to bit 56 + i.
    const TO_THE_LAST_BYTE: u64 = 0x0102_0408_1020_4080;
    let line = &line[..line.len().min(64)];
    let (mut blanks, mut at) = (0, 0);
    while let Some(eight) = line[at..].first_chunk() {
        let bytes = u64::from_le_bytes(*eight);
        // Sets the upper bit of each byte above a blank; no sum carries into the next byte.
        let above = (((bytes & !UPPER) + ONES * u64::from(0x7f - b' ')) | bytes) & UPPER;
        blanks |= ((above ^ UPPER) >> 7).wrapping_mul(TO_THE_LAST_BYTE) >> 56 << at;
        at += 8;
    }
    let last = line[at..].iter().zip(at..).map(|(&byte, at)| u64::from(byte <= b' ') << at);
    (last.fold(blanks, |blanks, bit| blanks | bit), line.len())
}

/// The words of a line, from either end.
pub fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_separated_by_blanks(line in prop::collection::vec(prop::sample::select(&b"abc~!\x7f\x80\xff   \t\r\0"[..]), 0..200)) {
            let expected: Vec<&[u8]> = line.split(|&byte| byte <= b' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn words_and_blanks_may_be_longer_than_64_bytes(lengths in prop::collection::vec(0_usize..200, 0..8)) {
            let runs = lengths.iter().zip([b'w', b' '].into_iter().cycle());
            let line: Vec<u8> = runs.flat_map(|(&length, byte)| std::iter::repeat_n(byte, length)).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), words(&line).collect::<Vec<_>>());
        }

        #[test]
        fn bytes_above_a_blank_belong_to_words(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let expected: Vec<&[u8]> = line.split(|&byte| byte <= b' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), expected);
        }
    }
}
