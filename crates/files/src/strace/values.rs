//! Reads the values in arguments: numbers, strings, descriptors, buffers.

use super::split::{skip_annotation, skip_comment, skip_string};

/// A number: decimal, octal with a leading 0, or hexadecimal with 0x. What follows it (an annotation, a comment) is ignored.
pub fn number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let (value, length) = unsigned(digits)?;
    if !matches!(digits.get(length), None | Some(b' ' | b'<' | b'/' | b'|' | b',' | b'}' | b']' | b')')) {
        return None;
    }
    // Hexadecimal numbers are 64 bits, of which the upper one may be set.
    if is_negative { Some((value as i64).wrapping_neg()) } else { Some(value as i64) }
}

/// The number at the beginning of a text, and the number of its characters.
pub fn unsigned(text: &[u8]) -> Option<(u64, usize)> {
    let (digits, base, skipped) = match text {
        [b'0', b'x', digits @ ..] => (digits, 16, 2),
        [b'0', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => (digits, 8, 1),
        _ => (text, 10, 0),
    };
    let (mut value, mut length) = (0_u64, 0);
    if base == 10 {
        // Any 19 digits fit into 64 bits.
        while let Some(&digit @ b'0'..=b'9') = digits.get(length)
            && length < 19
        {
            value = value * 10 + u64::from(digit - b'0');
            length += 1;
        }
    }
    while let Some(digit) = digits.get(length).and_then(|&byte| (byte as char).to_digit(base)) {
        value = value.checked_mul(base.into())?.checked_add(digit.into())?;
        length += 1;
    }
    (length > 0).then_some((value, skipped + length))
}

/// A descriptor, and the text of its annotation: `3</path>`, `AT_FDCWD</cwd>`, `-100 /* AT_FDCWD */`.
pub fn descriptor(text: &[u8]) -> Option<(i32, Option<&[u8]>)> {
    let annotation = || {
        let from = text.iter().position(|&byte| byte == b'<')?;
        let to = skip_annotation(text, from).ok()?;
        text.get(from + 1..to)
    };
    if let Some(rest) = text.strip_prefix(b"AT_FDCWD") {
        return rest.first().is_none_or(|&byte| byte == b'<').then(|| (crate::AT_FDCWD, annotation()));
    }
    let value = number(text)?;
    // The kernel takes the lower 32 bits; strace prints them signed or unsigned.
    let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) || value as u64 >> 32 == 0xffff_ffff;
    fits.then(|| (value as i32, annotation()))
}

/// A string in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted<'a> {
    /// The text between the quotes, with its escapes.
    Whole(&'a [u8]),
    /// The beginning of a string that strace cut off.
    Cut,
    /// A null pointer, or a pointer that strace did not or could not follow.
    Pointer,
}

/// A string argument; `None` if it is none.
pub fn quoted(text: &[u8]) -> Option<Quoted<'_>> {
    match text.first()? {
        b'"' => {
            let end = skip_string(text, 0).ok()?;
            Some(if text[end + 1..].starts_with(b"...") { Quoted::Cut } else { Quoted::Whole(&text[1..end]) })
        }
        b'N' if text.starts_with(b"NULL") => Some(Quoted::Pointer),
        b'0' if text.starts_with(b"0x") || text == b"0" => Some(Quoted::Pointer),
        _ => None,
    }
}

/// Removes the escapes of a string. `None` if one of them is not one of strace.
pub fn unescape(text: &[u8], into: &mut Vec<u8>) -> Option<()> {
    into.clear();
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &text[at..]) {
        into.extend_from_slice(&text[at..at + next]);
        at += next + 1;
        let byte = *text.get(at)?;
        at += 1;
        into.push(match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'\\' | b'"' | b'\'' => byte,
            b'x' => {
                let digits = text.get(at..at + 2)?;
                at += 2;
                let digit = |byte: u8| (byte as char).to_digit(16);
                (digit(digits[0])? * 16 + digit(digits[1])?) as u8
            }
            b'0'..=b'7' => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(&digit @ b'0'..=b'7') = text.get(at) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    at += 1;
                }
                u8::try_from(value).ok()?
            }
            _ => return None,
        });
    }
    into.extend_from_slice(&text[at..]);
    Some(())
}

/// The value of `NAME=` in a structure `{a=1, NAME=2}`, or of an argument `NAME=2`.
pub fn field<'a>(structure: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let inner = structure.strip_prefix(b"{").unwrap_or(structure);
    let mut at = 0;
    loop {
        let rest = &inner[at..];
        let end = value_end(rest)?;
        if let Some(value) = rest[..end].strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        if rest.get(end) != Some(&b',') {
            return None;
        }
        at += end + 1;
        at += inner[at..].iter().take_while(|&&byte| byte == b' ').count();
    }
}

/// Where a value ends: before the comma or bracket that follows it.
pub fn value_end(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_u32);
    loop {
        match text.get(at) {
            None => return Some(at),
            Some(b'"') => at = skip_string(text, at).ok()?,
            Some(b'<') => at = skip_annotation(text, at).ok()?,
            Some(b'/') if text.get(at + 1) == Some(&b'*') => at = skip_comment(text, at)?,
            Some(b'{' | b'[' | b'(') => depth += 1,
            Some(b'}' | b']' | b')') if depth == 0 => return Some(at),
            Some(b'}' | b']' | b')') => depth -= 1,
            Some(b',') if depth == 0 => return Some(at),
            Some(_) => {}
        }
        at += 1;
    }
}

/// The values of a list `[1, 2]`; `None` if strace cut it off: `[...]`, `[1, ...]`, or did not follow the pointer.
pub fn list(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = text.strip_prefix(b"[")?;
    let mut values = Vec::new();
    loop {
        let end = value_end(rest)?;
        let value = rest[..end].trim_ascii();
        if value.starts_with(b"...") {
            return None;
        }
        match rest.get(end) {
            Some(b',') => {
                values.push(value);
                rest = &rest[end + 1..];
            }
            Some(b']') => {
                if !value.is_empty() {
                    values.push(value);
                }
                return Some(values);
            }
            _ => return None,
        }
    }
}

/// The sum of the lengths of buffers: `[{iov_base="", iov_len=3}, {"", 5}]`. The second form is that of strace before 4.17.
pub fn buffer_bytes(text: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    for buffer in list(text)? {
        let length = match field(buffer, b"iov_len") {
            Some(length) => length,
            None => {
                let inner = buffer.strip_prefix(b"{")?;
                let second = inner.get(value_end(inner)? + 1..)?.trim_ascii_start();
                &second[..value_end(second)?]
            }
        };
        sum = sum.checked_add(u64::try_from(number(length)?).ok()?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_decimal_or_hexadecimal() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("0644", Some(0o644)),
            ("0x800", Some(0x800)),
            ("0xffffffffffffffff", Some(-1)),
            ("3</path>", Some(3)),
            ("-100 /* AT_FDCWD */", Some(-100)),
            ("18446744073709551615", Some(-1)),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("3a", None),
            ("O_RDONLY", None),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_descriptor_may_have_a_path_in_brackets() {
        let of = |text: &'static str| descriptor(text.as_bytes());
        assert_eq!(of("3"), Some((3, None)));
        assert_eq!(of("3</a b>(deleted)"), Some((3, Some(&b"/a b"[..]))));
        assert_eq!(of("AT_FDCWD</cwd>"), Some((-100, Some(&b"/cwd"[..]))));
        assert_eq!(of("-100 /* AT_FDCWD */"), Some((-100, None)));
        assert_eq!(of("0xffffff9c"), Some((-100, None)));
        assert_eq!(of("4294967196"), Some((-100, None)));
        assert_eq!(of("0</dev/null<char 1:3>>"), Some((0, Some(&b"/dev/null<char 1:3>"[..]))));
        assert_eq!(of("AT_FDCWDX"), None);
        assert_eq!(of("0x7ffc1234567890"), None);
    }

    #[test]
    fn strings_lose_their_escapes() {
        let of = |text: &str| {
            let mut bytes = Vec::new();
            unescape(text.as_bytes(), &mut bytes).map(|()| bytes)
        };
        assert_eq!(of(r#"a \"q\n\1\303\277"#), Some(b"a \"q\n\x01\xc3\xbf".to_vec()));
        assert_eq!(of(r"\0018\x2f\t\v\f\r\\"), Some(b"\x018/\t\x0b\x0c\r\\".to_vec()));
        for bad in [r"\", r"\q", r"\x1", r"\xzz", r"\777"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(quoted(br#""a"..."#), Some(Quoted::Cut));
        assert_eq!(quoted(b"NULL"), Some(Quoted::Pointer));
        assert_eq!(quoted(b"0x7ffc"), Some(Quoted::Pointer));
        assert_eq!(quoted(b"7"), None);
    }

    #[test]
    fn buffers_are_added_up() {
        let of = |text: &str| buffer_bytes(text.as_bytes());
        assert_eq!(of(r#"[{iov_base="abc", iov_len=3}, {iov_base="\"}{]["..., iov_len=50}]"#), Some(53));
        assert_eq!(of(r#"[{"abc", 3}, {"x"..., 5}]"#), Some(8));
        assert_eq!(of("[]"), Some(0));
        for cut in ["[...]", r#"[{iov_base="", iov_len=3}, ...]"#, "0x7ffc", "[{iov_base=\"\""] {
            assert_eq!(of(cut), None, "{cut}");
        }
    }

    #[test]
    fn a_field_of_a_structure_is_found_by_its_name() {
        let how = b"{flags=O_RDONLY|O_CLOEXEC, mode=0644, resolve=RESOLVE_BENEATH}";
        assert_eq!(field(how, b"mode"), Some(&b"0644"[..]));
        assert_eq!(field(how, b"resolve"), Some(&b"RESOLVE_BENEATH"[..]));
        assert_eq!(field(how, b"size"), None);
    }
}
