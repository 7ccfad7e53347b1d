//! Splits the arguments of a call.

/// Most arguments of a call.
pub const MAX_ARGUMENTS: usize = 10;

/// Why a text cannot be split.
pub type Problem = &'static str;

/// The arguments of a call as text, without the blanks around them.
#[derive(Clone, Copy, Default)]
pub struct Arguments<'a> {
    texts: [&'a [u8]; MAX_ARGUMENTS],
    count: usize,
}

impl<'a> Arguments<'a> {
    /// The argument at a position, from 0; empty if there is none.
    pub fn at(&self, position: usize) -> &'a [u8] {
        self.texts.get(position).copied().map(without_name).unwrap_or_default()
    }

    /// All of them.
    pub fn all(&self) -> &[&'a [u8]] {
        &self.texts[..self.count]
    }

    fn push(&mut self, text: &'a [u8]) {
        if let Some(slot) = self.texts.get_mut(self.count) {
            *slot = text.trim_ascii();
            self.count += 1;
        }
    }
}

/// An argument without its name, which `strace -N` writes: `fd=3`.
fn without_name(text: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let length = text.iter().take_while(|byte| is_name(byte)).count();
    match text.get(length..) {
        Some([b'=', value @ ..]) if length > 0 && !text[0].is_ascii_digit() => value,
        _ => text,
    }
}

/// Splits `a, "b", {c=1, d=2}) = 0` at the commas outside of quotes and brackets. Returns the arguments and the rest behind
/// the closing bracket; without a rest if the text ends before.
pub fn split(text: &[u8]) -> Result<(Arguments<'_>, Option<&[u8]>), Problem> {
    let mut arguments = Arguments::default();
    let (mut at, mut from, mut depth) = (0, 0, 0_u32);
    while let Some(&byte) = text.get(at) {
        // Most bytes are letters and digits.
        if !SPECIAL[usize::from(byte)] {
            at += 1;
            continue;
        }
        match byte {
            b'"' => at = skip_string(text, at)?,
            b',' if depth == 0 => {
                arguments.push(&text[from..at]);
                from = at + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if at > from || arguments.count > 0 {
                    arguments.push(&text[from..at]);
                }
                return Ok((arguments, Some(&text[at + 1..])));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'<' => at = skip_annotation(text, at)?,
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at = skip_comment(text, at).ok_or("a comment is not closed")?;
            }
            _ => {}
        }
        at += 1;
    }
    if !text[from..].trim_ascii().is_empty() {
        arguments.push(&text[from..]);
    }
    Ok((arguments, None))
}

/// The bytes that `split` must look at.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let bytes = b"\",()[]{}</";
    let mut at = 0;
    while at < bytes.len() {
        special[bytes[at] as usize] = true;
        at += 1;
    }
    special
};

/// The position of the last byte of the comment that begins at `from`. With `-X verbose`, comments may have others inside:
/// `2147485440 /* QCMD(0x800007 /* Q_GETQUOTA */, 0 /* USRQUOTA */) */`.
pub fn skip_comment(text: &[u8], from: usize) -> Option<usize> {
    let first = from + 2 + memchr::memmem::find(text.get(from + 2..)?, b"*/")?;
    let (mut at, mut depth) = (from + 2, 1_u32);
    while depth > 0 {
        match memchr::memmem::find(&text[at..], b"*/") {
            // Not all of them are closed: then the first end is the end.
            None => return Some(first + 1),
            Some(end) => {
                depth = depth.saturating_add(memchr::memmem::find_iter(&text[at..at + end], b"/*").count() as u32) - 1;
                at += end + 2;
            }
        }
    }
    Some(at - 1)
}

/// The position of the quote that ends the string that begins at `from`.
pub fn skip_string(text: &[u8], from: usize) -> Result<usize, Problem> {
    let mut at = from + 1;
    while let Some(next) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += next;
        if text[at] == b'"' {
            return Ok(at);
        }
        // The escaped byte may be the last one.
        at = (at + 2).min(text.len());
    }
    Err("a string is not closed")
}

/// The position of the `>` that ends the annotation that begins at `from`: `</path>`, `<TCP:[1.2.3.4:5->6.7.8.9:10]>`,
/// `</dev/null<char 1:3>>`. A shift, `21<<26`, is no annotation.
pub fn skip_annotation(text: &[u8], from: usize) -> Result<usize, Problem> {
    if text.get(from + 1) == Some(&b'<') {
        return Ok(from + 1);
    }
    let (mut at, mut depth) = (from + 1, 1_u32);
    loop {
        match text.get(at) {
            None => return Err("an annotation is not closed"),
            Some(b'\\') => at += 1,
            Some(b'"') => at = skip_string(text, at)?,
            Some(b'<') => depth += 1,
            // An arrow between two addresses. In a path, strace escapes it.
            Some(b'>') if text[at - 1] == b'-' && matches!(text.get(at + 1), Some(b'0'..=b'9' | b'[')) => {}
            Some(b'>') => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at);
                }
            }
            Some(_) => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> (Vec<String>, Option<String>) {
        let (arguments, rest) = split(text.as_bytes()).unwrap();
        let text = |bytes: &&[u8]| String::from_utf8_lossy(bytes).into_owned();
        (arguments.all().iter().map(text).collect(), rest.map(|rest| text(&rest)))
    }

    #[test]
    fn commas_in_quotes_brackets_and_comments_do_not_split() {
        for (given, expected) in [
            (") = 0", vec![]),
            ("3) = 0", vec!["3"]),
            (r#"3</a, \"b>, "x\", )"..., 4) = 0"#, vec![r#"3</a, \"b>"#, r#""x\", )"..."#, "4"]),
            ("{a=[1, 2], b={c}}, 0x1 /* X, Y */, 21<<26) = 0", vec!["{a=[1, 2], b={c}}", "0x1 /* X, Y */", "21<<26"]),
            ("3<TCP:[1.1.1.1:1->2.2.2.2:2]>, 0) = 0", vec!["3<TCP:[1.1.1.1:1->2.2.2.2:2]>", "0"]),
            ("0</dev/null<char 1:3>>, TCGETS) = 0", vec!["0</dev/null<char 1:3>>", "TCGETS"]),
            ("3</tmp/a->, 1) = 0", vec!["3</tmp/a->", "1"]),
            (
                "7 /* QCMD(0x8 /* Q_A */, 0 /* USR */) */, \"a\") = 0",
                vec!["7 /* QCMD(0x8 /* Q_A */, 0 /* USR */) */", "\"a\""],
            ),
            ("7 /* a /* b */, 8) = 0", vec!["7 /* a /* b */", "8"]),
        ] {
            assert_eq!(texts(given), (expected.iter().map(ToString::to_string).collect(), Some(" = 0".to_owned())));
        }
        assert_eq!(texts("5, "), (vec!["5".to_owned()], None));
    }

    #[test]
    fn what_is_not_closed_is_a_problem() {
        for text in ["\"abc", "3</abc", "\"abc\\", "/* abc"] {
            assert!(split(text.as_bytes()).is_err(), "{text}");
        }
    }
}
