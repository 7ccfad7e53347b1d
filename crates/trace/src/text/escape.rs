//! Bytes as text. Bytes that are not UTF-8 become `\xNN`, and a backslash becomes `\\`, so that different bytes have
//! different texts.

use std::borrow::Cow;
use std::fmt::Write;

/// The text of any bytes, from which [`unescape`] restores them.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&b'\\')
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// The bytes of a text of [`escape`]. A backslash that begins no escape is a backslash.
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let (byte, length) = match tail {
            _ if *first != b'\\' => (*first, 1),
            [b'\\', ..] => (b'\\', 2),
            [b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (b'\\', 1),
            },
            _ => (b'\\', 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    Cow::Owned(bytes)
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_utf_8_and_backslashes_are_escaped() {
        assert_eq!(escape("/häuser/x y".as_bytes()), "/häuser/x y");
        assert_eq!(escape(b"a\xff\\b"), "a\\xff\\\\b");
        assert_eq!(unescape(b"\\q\\x4\\xzz\\").as_ref(), b"\\q\\x4\\xzz\\");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_written(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = escape(&bytes);
            let read = unescape(text.as_bytes());
            prop_assert_eq!(read.as_ref(), &bytes[..]);
        }

        #[test]
        fn texts_with_many_backslashes_are_read_as_written(text in "[\\\\x0-9a]{0,12}") {
            let escaped = escape(text.as_bytes());
            let read = unescape(escaped.as_bytes());
            prop_assert_eq!(read.as_ref(), text.as_bytes());
        }
    }
}
