//! Lines and their words.

/// A line as it is shown to a person: its beginning, without what a terminal would take for a command.
pub fn shown(line: &[u8]) -> String {
    shown_up_to(line, 60)
}

/// The same, up to another length.
pub fn shown_up_to(line: &[u8], bytes: usize) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(bytes)]);
    let text: String = text.trim().chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if line.len() > bytes { format!("{text}…") } else { text }
}

/// The lines of the beginning of a file, without the last, which may be a part of one.
pub fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = head.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    head[..end].split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// The fields of a line that a byte separates, without the white space around them.
pub fn separated(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&b| b == separator).map(<[u8]>::trim_ascii)
}

/// The words of a line, from its beginning: quicker than [`words`]. Control characters are blanks as well.
pub struct Words<'a> {
    /// What was not handed out yet.
    rest: &'a [u8],
    /// Which of its first bytes are blanks, and how many bytes that is known of.
    blanks: u64,
    known: usize,
}

impl<'a> Words<'a> {
    /// Of that line.
    #[inline]
    pub fn of(line: &'a [u8]) -> Self {
        let (blanks, known) = blanks(line);
        Self { rest: line, blanks, known }
    }

    #[inline]
    fn pass(&mut self, bytes: usize) -> &'a [u8] {
        let (passed, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        if bytes < self.known {
            self.blanks >>= bytes;
            self.known -= bytes;
        } else {
            (self.blanks, self.known) = blanks(rest);
        }
        passed
    }

    /// One that what is known of does not reach the end of.
    #[cold]
    fn long(&mut self) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| byte <= b' ').unwrap_or(self.rest.len());
        self.pass(length)
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
                    self.pass(before);
                }
                break;
            }
            if self.known == 0 {
                return None;
            }
            self.pass(self.known);
        }
        let length = self.blanks.trailing_zeros() as usize;
        Some(if length < self.known { self.pass(length) } else { self.long() })
    }
}

/// Which of the first bytes of a line are blanks, and how many bytes were looked at; eight at a time, as words are of any
/// length, and a processor that has to guess which byte ends one is often wrong.
#[inline]
fn blanks(line: &[u8]) -> (u64, usize) {
    const ONES: u64 = u64::MAX / 0xff;
    const UPPER: u64 = ONES << 7;
    // Bit 0 of byte i times this is bit 56 + i.
    const TO_THE_LAST_BYTE: u64 = 0x0102_0408_1020_4080;
    let line = &line[..line.len().min(64)];
    let (mut blanks, mut at) = (0, 0);
    while let Some(eight) = line[at..].first_chunk() {
        let bytes = u64::from_le_bytes(*eight);
        // The upper bit of each byte that is more than a blank; no byte's sum reaches the next one.
        let more = (((bytes & !UPPER) + ONES * u64::from(0x7f - b' ')) | bytes) & UPPER;
        blanks |= ((more ^ UPPER) >> 7).wrapping_mul(TO_THE_LAST_BYTE) >> 56 << at;
        at += 8;
    }
    let last = line[at..].iter().zip(at..).map(|(&byte, at)| u64::from(byte <= b' ') << at);
    (last.fold(blanks, |blanks, bit| blanks | bit), line.len())
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_stand_between_blanks(line in prop::collection::vec(prop::sample::select(&b"abc~!\x7f\x80\xff   \t\r\0"[..]), 0..200)) {
            let expected: Vec<&[u8]> = line.split(|&byte| byte <= b' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn they_may_be_long(lengths in prop::collection::vec(0_usize..200, 0..8)) {
            let runs = lengths.iter().zip([b'w', b' '].into_iter().cycle());
            let line: Vec<u8> = runs.flat_map(|(&length, byte)| std::iter::repeat_n(byte, length)).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), words(&line).collect::<Vec<_>>());
        }

        #[test]
        fn any_byte_is_of_a_word_or_blank(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let expected: Vec<&[u8]> = line.split(|&byte| byte <= b' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(Words::of(&line).collect::<Vec<_>>(), expected);
        }
    }
}
