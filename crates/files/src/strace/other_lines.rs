//! What strace writes beside the calls: stack frames, tables of totals, colours.

use std::borrow::Cow;

/// Lines that are no calls, by what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherLine {
    /// A stack frame of `strace -k`: ` > /lib/libc.so.6(__open64+0x2b) [0x10c21b]`.
    Frame,
    /// A line of the table of totals of `strace -C`.
    Totals,
}

/// Recognises such lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct OtherLines {
    is_in_table: bool,
}

impl OtherLines {
    /// What the line is; `None` if it may be a call. Lines come in their order.
    pub fn of(&mut self, line: &[u8]) -> Option<OtherLine> {
        let line = line.trim_ascii();
        if line.starts_with(b"> ") {
            return Some(OtherLine::Frame);
        }
        let has_brackets = memchr::memchr(b'(', line).is_some();
        if self.is_in_table {
            let is_last = words(line).any(|word| word == b"total");
            // A call means that the table was cut off.
            self.is_in_table = !is_last && !has_brackets;
            return (!has_brackets).then_some(OtherLine::Totals);
        }
        let is_summary = line.starts_with(b"System call usage summary for ");
        self.is_in_table = !has_brackets && !line.is_empty() && words(line).all(is_head);
        (self.is_in_table || is_summary).then_some(OtherLine::Totals)
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// A word of the first line of a table, whose columns are those of `--summary-columns`.
fn is_head(word: &[u8]) -> bool {
    [b"%".as_slice(), b"time", b"seconds", b"usecs/call", b"calls", b"errors", b"syscall", b"shortest", b"longest"]
        .contains(&word)
}

/// The line without the sequences that colour it in a terminal. strace escapes this byte in strings.
pub fn without_colours(line: &[u8]) -> Cow<'_, [u8]> {
    const ESCAPE: u8 = 0x1b;
    const BELL: u8 = 7;
    let Some(first) = memchr::memchr(ESCAPE, line) else { return Cow::Borrowed(line) };
    let mut plain = line[..first].to_vec();
    let mut rest = &line[first..];
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind.first()) {
            // `ESC [ 1 ; 32 m`: ends with a letter.
            (ESCAPE, Some(b'[')) => {
                let end = behind[1..].iter().position(|byte| (0x40..0x7f).contains(byte));
                end.map_or(b"".as_slice(), |end| &behind[end + 2..])
            }
            // A link: `ESC ] 8 ; ; URL ESC \`, or with a bell at its end.
            (ESCAPE, Some(b']')) => {
                let end = behind.iter().position(|&byte| byte == BELL || byte == ESCAPE).unwrap_or(behind.len() - 1);
                let behind = &behind[end..];
                behind.strip_prefix(b"\x1b\\").or_else(|| behind.strip_prefix(&[BELL])).unwrap_or(&behind[1..])
            }
            (ESCAPE, Some(_)) => &behind[1..],
            (ESCAPE, None) => behind,
            _ => {
                plain.push(byte);
                behind
            }
        };
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_tables_are_no_calls() {
        let mut other_lines = OtherLines::default();
        let mut of = |line: &str| other_lines.of(line.as_bytes());
        assert_eq!(of(" > /lib/libc.so.6(__open64+0x2b) [0x10c21b]"), Some(OtherLine::Frame));
        assert_eq!(of("close(3) = 0"), None);
        for line in [
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            " 48.95    0.000140          28         5           openat",
            "------ ----------- ----------- --------- --------- ----------------",
            "100.00    0.000286                    26         1 total",
        ] {
            assert_eq!(of(line), Some(OtherLine::Totals), "{line}");
        }
        assert_eq!(of("48.95 close(3) = 0"), None);
        assert_eq!(of("syscall calls"), Some(OtherLine::Totals));
        assert_eq!(of("close 5"), Some(OtherLine::Totals));
        assert_eq!(of("1795464429.376993 close(3) = 0"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn colours_are_taken_away() {
        let of = |line: &str| String::from_utf8(without_colours(line.as_bytes()).into_owned()).unwrap();
        assert_eq!(of("close(3) = 0"), "close(3) = 0");
        assert_eq!(of("\x1b[1;34mclose\x1b[0m(\x1b[38;5;3m3\x1b[m) = 0\x1b[K"), "close(3) = 0");
        assert_eq!(of("\x1b]8;;man:close\x1b\\close\x1b]8;;\x07(3) = 0"), "close(3) = 0");
        for cut in ["\x1b", "\x1b[", "\x1b[1;", "\x1b]", "\x1b]8;;", "\x1b]\x1b", "\x1bc"] {
            assert_eq!(of(&format!("a{cut}")), "a", "{cut:?}");
        }
    }
}
