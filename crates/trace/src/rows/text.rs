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

/// The words of a line, from its beginning: quicker than [`words`].
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let from = self.0.iter().position(|&b| !is_blank(b))?;
        let rest = &self.0[from..];
        let (word, rest) = rest.split_at(rest.iter().position(|&b| is_blank(b)).unwrap_or(rest.len()));
        self.0 = rest;
        Some(word)
    }
}

/// The same bytes as [`u8::is_ascii_whitespace`].
#[inline]
fn is_blank(byte: u8) -> bool {
    byte <= b' ' && byte.is_ascii_whitespace()
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
