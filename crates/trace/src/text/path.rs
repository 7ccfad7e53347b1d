//! Paths as text, for footers and messages.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A path or another argument of a command line as text. Each byte that is not UTF-8 becomes an escape such as `\xe9`;
/// [`std::path::Path::display`] would replace all of them with the same character.
pub fn path_text(path: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in path.as_ref().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string does not fail");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(path_text("/srv/é.load"), "/srv/é.load");
        assert_eq!(path_text(OsStr::from_bytes(b"caf\xe9\xff.load")), r"caf\xe9\xff.load");
    }
}
