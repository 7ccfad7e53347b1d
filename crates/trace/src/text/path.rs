//! Paths as text: what a file records of them, and what people are shown.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A path or another word of a command line as text. Bytes that are not UTF-8 become `\xe9` and the like, where
/// [`std::path::Path::display`] makes the same replacement character of all of them.
pub fn path_text(path: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in path.as_ref().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes everything");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_utf8_is_shown_byte_by_byte() {
        assert_eq!(path_text("/srv/é.load"), "/srv/é.load");
        assert_eq!(path_text(OsStr::from_bytes(b"caf\xe9\xff.load")), r"caf\xe9\xff.load");
    }
}
