//! Recognises the strace text.

use super::line::{self, Body};
use super::other_lines::{OtherLines, without_colours};

/// Lines that are looked at.
const LINES: usize = 64;

/// Whether a file begins as strace's text does: most of its first lines, or one of two, are calls with a result, or messages of
/// strace.
pub fn recognise(head: &[u8]) -> bool {
    let end = memchr::memrchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let (mut understood, mut others) = (0_u32, 0_u32);
    let lines = head[..end].split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut other_lines = OtherLines::default();
    let plain = lines.map(without_colours).filter(|line| other_lines.of(line).is_none());
    for line in plain.take(LINES) {
        match line::parse(&line).map(|line| line.body) {
            Ok(Body::Call { name, text }) if is_name(name) && has_result(text) => understood += 1,
            Ok(Body::Unfinished { name, .. } | Body::Resumed { name, .. }) if is_name(name) => understood += 1,
            // `strace -c` and programs that print beside it.
            Ok(Body::Call { .. }) | Err(_) => others += 1,
            Ok(Body::Exited | Body::Attached { .. } | Body::Personality | Body::Superseded(_)) => {}
            Ok(_) => {}
        }
    }
    understood > 0 && (others <= 1 || understood > others)
}

/// Names of system calls have no capitals.
fn is_name(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// Whether `) = ` follows the arguments.
fn has_result(text: &[u8]) -> bool {
    let Ok((_, Some(rest))) = super::split::split(text) else { return false };
    rest.trim_ascii_start().starts_with(b"= ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strace_is_recognised() {
        for text in [
            "25227 1795464429.376993 close(3) = 0 <0.000063>\n",
            "close(3)        = 0\n",
            "strace: Process 12 attached\n12:00:00 read(3,  <unfinished ...>\n",
            "hello\nclose(3) = 0\n",
            "hello\n[pid 12] close(3) = 0\nclose(4) = -1 EBADF (Bad file descriptor)\n",
            "<... read resumed>\"\", 5) = 5",
            "close(3) = 0\n > /a(b) [0x1]\n > /a(b) [0x1]\n > /a(b) [0x1]\n",
            "\u{1b}[1mclose\u{1b}[0m(3) = 0\n",
        ] {
            assert!(recognise(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_text_is_not() {
        for text in [
            "",
            "\n",
            "hello\n",
            "+++ exited with 0 +++\n",
            "f(x) = 3\nx\ny\n",
            "1,2,3\n4,5,6\n",
            "int main(void) { x(); }\n",
        ] {
            assert!(!recognise(text.as_bytes()), "{text}");
        }
    }
}
