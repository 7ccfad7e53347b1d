//! Splits a text of any size into lines, without an allocation per line and with a limit on the length of a line.

use std::io::{self, Read};

use memchr::memchr;

/// Longer lines are truncated to this: no format has lines that long, and garbage must not fill the memory.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

const BUFFER_BYTES: usize = 256 * 1024;

/// Splits a source of bytes into lines, or a binary file into records.
pub struct Lines<R> {
    source: R,
    /// The bytes of a record; `None` for lines.
    record: Option<usize>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its text, without the line end.
    pub text: &'a [u8],
    /// Its number, from 1.
    pub number: u64,
    /// Whether a newline followed it. The last line of a truncated file has none, and the last record lacks bytes.
    pub end: LineEnd,
    /// What it is.
    pub unit: Unit,
}

/// What a file is split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Lines of text.
    Line,
    /// Records of the same length.
    Record,
}

/// What ended a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// `\n`, or `\r\n`.
    Newline,
    /// The end of the file.
    EndOfFile,
}

impl<R: Read> Lines<R> {
    /// Reads lines from `source`.
    pub fn new(source: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { source, record: None, buffer, start: 0, end: 0, at_end: false, number: 0 }
    }

    /// Reads records of so many bytes, up to 64 KiB, from `source`.
    pub fn of_records(source: R, bytes: usize) -> Self {
        assert!((1..=MAX_LINE_BYTES).contains(&bytes), "a record fits into the buffer");
        Self { record: Some(bytes), ..Self::new(source) }
    }

    /// The reader that the lines come from.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        if let Some(bytes) = self.record {
            return self.next_record(bytes);
        }
        let mut searched = 0;
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let from = self.start;
                let to = from + searched + length;
                self.start = to + 1;
                return Ok(Some(self.line(from, to, LineEnd::Newline)));
            }
            searched = self.end - self.start;
            if self.at_end {
                if searched == 0 {
                    return Ok(None);
                }
                let (from, to) = (self.start, self.end);
                self.start = self.end;
                return Ok(Some(self.line(from, to, LineEnd::EndOfFile)));
            }
            if searched > MAX_LINE_BYTES {
                let from = self.start;
                let kept: Vec<u8> = self.buffer[from..from + MAX_LINE_BYTES].to_vec();
                let end = self.skip_line()?;
                // The bytes after the overlong line stay where they are. The line goes in front of them, truncated
                // further if there is less room: a message shows only its beginning.
                let room = self.start.min(kept.len());
                self.buffer[..room].copy_from_slice(&kept[..room]);
                return Ok(Some(self.line(0, room, end)));
            }
            self.fill()?;
        }
    }

    fn next_record(&mut self, bytes: usize) -> io::Result<Option<Line<'_>>> {
        while self.end - self.start < bytes && !self.at_end {
            self.fill()?;
        }
        let from = self.start;
        let to = self.end.min(from + bytes);
        if from == to {
            return Ok(None);
        }
        self.start = to;
        self.number += 1;
        let end = if to - from == bytes { LineEnd::Newline } else { LineEnd::EndOfFile };
        Ok(Some(Line { text: &self.buffer[from..to], number: self.number, end, unit: Unit::Record }))
    }

    /// Skips the rest of an overlong line.
    fn skip_line(&mut self) -> io::Result<LineEnd> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += length + 1;
                return Ok(LineEnd::Newline);
            }
            (self.start, self.end) = (0, 0);
            if self.at_end {
                return Ok(LineEnd::EndOfFile);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.at_end = n == 0;
                    self.end += n;
                    return Ok(());
                }
            }
        }
    }

    fn line(&mut self, from: usize, to: usize, end: LineEnd) -> Line<'_> {
        self.number += 1;
        let text = &self.buffer[from..to];
        Line { text: text.strip_suffix(b"\r").unwrap_or(text), number: self.number, end, unit: Unit::Line }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(content: &[u8]) -> Vec<(Vec<u8>, u64, LineEnd)> {
        let mut lines = Lines::new(content);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push((line.text.to_vec(), line.number, line.end));
        }
        all
    }

    #[test]
    fn the_last_line_may_lack_its_newline() {
        use LineEnd::{EndOfFile, Newline};
        assert_eq!(
            all(b"a\r\n\nb"),
            [(b"a".to_vec(), 1, Newline), (vec![], 2, Newline), (b"b".to_vec(), 3, EndOfFile)]
        );
        assert_eq!(all(b""), []);
    }

    #[test]
    fn an_overlong_line_does_not_fill_the_memory() {
        for overlong in [BUFFER_BYTES - 3, BUFFER_BYTES + 5, 5 * BUFFER_BYTES] {
            let content = [b"first\n".to_vec(), vec![b'x'; overlong], b"\nlast\n".to_vec()].concat();
            let lines = all(&content);
            assert_eq!(lines.len(), 3);
            assert!(lines[1].0.len() <= MAX_LINE_BYTES.max(lines[1].0.len().min(BUFFER_BYTES)));
            assert!(lines[1].0.iter().all(|&b| b == b'x'));
            assert_eq!(lines[2], (b"last".to_vec(), 3, LineEnd::Newline));
        }
    }

    #[test]
    fn records_have_their_length_but_the_last_may_lack_bytes() {
        let content: Vec<u8> = (0..BUFFER_BYTES + 100).map(|n| n as u8).collect();
        for bytes in [1, 24, 4096, MAX_LINE_BYTES] {
            let mut lines = Lines::of_records(&content[..], bytes);
            let mut read = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                let is_whole = line.text.len() == bytes;
                assert_eq!(line.end == LineEnd::Newline, is_whole, "{bytes}");
                assert!(is_whole || read.len() + line.text.len() == content.len(), "{bytes}");
                read.extend_from_slice(line.text);
            }
            assert_eq!(read, content);
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_standard_library(content in "[a-c\n]{0,200}", copies in 1_usize..4000) {
            let content = content.repeat(copies % 50 + 1);
            let expected: Vec<_> = content.lines().map(|l| l.as_bytes().to_vec()).collect();
            prop_assert_eq!(all(content.as_bytes()).into_iter().map(|l| l.0).collect::<Vec<_>>(), expected);
        }
    }
}
