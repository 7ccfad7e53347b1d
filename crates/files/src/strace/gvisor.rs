//! The log of gVisor's own strace (`runsc --strace --debug-log=…`), as lines of strace.
//!
//! A call has a line when it begins (`E`) and one when it ends (`X`), which repeats the arguments:
//!
//! ```text
//! I0521 14:33:13.906917       1 strace.go:605] [   1:   7] sh X read(0x3 /etc/hosts, 0x7f3c "127.0…"..., 0x1000) = 174 (0xae) (5.25µs)
//! ```
//!
//! Source: `pkg/sentry/strace` and `pkg/log/glog.go` of gVisor, and its published lines. Made from the definition alone.

use std::collections::HashMap;

use memchr::memmem;

use crate::CallKind;

/// The lines by which a log is recognised are among so many first ones: others tell how the sandbox was started.
const LINES: usize = 2000;

/// Whether a text is such a log.
pub fn recognise(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').take(LINES).any(|line| Entry::parse(line).is_some())
}

/// A line of the log that is part of a call.
struct Entry<'a> {
    time: &'a [u8],
    thread: u32,
    is_end: bool,
    name: &'a [u8],
    /// What follows the opening bracket.
    text: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Parses a line; `None` if it is another message.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if !matches!(line.first(), Some(b'I' | b'D')) {
            return None;
        }
        let at = memmem::find(line, b" strace.go:")?;
        let time = line[..at].split(|&byte| byte == b' ').nth(1).filter(|time| time.len() > 8 && time[2] == b':')?;
        let rest = &line[at..];
        let rest = &rest[memmem::find(rest, b"] [")? + 3..];
        let end = memchr::memchr(b']', rest)?;
        // Up to 2019 without the number of the process: `[   7]`.
        let thread = std::str::from_utf8(rest[..end].rsplit(|&byte| byte == b':').next()?).ok()?.trim().parse().ok()?;
        let rest = &rest[end + 1..];
        let bracket = memchr::memchr(b'(', rest)?;
        // The name of the program may have blanks, and brackets.
        let (mark, is_end) = [(&b" E "[..], false), (b" X ", true)]
            .into_iter()
            .filter_map(|(mark, is_end)| memmem::find(rest, mark).map(|at| (at, is_end)))
            .min()?;
        let bracket = if bracket < mark { mark + memchr::memchr(b'(', &rest[mark..])? } else { bracket };
        Some(Self { time, thread, is_end, name: &rest[mark + 3..bracket], text: &rest[bracket + 1..] })
    }
}

/// Makes lines of strace from those of the log.
#[derive(Default)]
pub struct Translator {
    /// The arguments of calls in progress by thread: at its end, data that a call wrote is not repeated.
    begun: HashMap<u32, Vec<u8>>,
    line: Vec<u8>,
}

impl Translator {
    /// The line as strace would write it: empty if it is another message, and as it is if its end cannot be understood.
    pub fn line<'a>(&'a mut self, line: &'a [u8]) -> &'a [u8] {
        let Some(Entry { time, thread, is_end, name, text }) = Entry::parse(line) else { return b"" };
        self.line.clear();
        self.line.extend_from_slice(format!("{thread} ").as_bytes());
        self.line.extend_from_slice(time);
        if !is_end {
            self.line.extend([b" ", name, b"( <unfinished ...>"].concat());
            let begun = self.begun.entry(thread).or_default();
            begun.clear();
            begun.extend_from_slice(text.strip_suffix(b")").unwrap_or(text));
            return &self.line;
        }
        self.line.extend([b" <... ", name, b" resumed>"].concat());
        let begun = self.begun.remove(&thread).unwrap_or_default();
        let returned = memmem::rfind(text, b") = ").and_then(|at| Some((&text[..at], result(&text[at + 4..])?)));
        let Some((given, result)) = returned else { return line };
        let kind = std::str::from_utf8(name).ok().and_then(CallKind::from_name);
        arguments(&mut self.line, kind, given, &begun);
        self.line.extend_from_slice(b") = ");
        self.line.extend(result.bytes());
        &self.line
    }
}

/// `3 (0x3) (34.2µs)`, `-1 errno=2 (no such file or directory) (5µs)`; in older versions `0x3 (34.2µs)`, `0x0 errno=2 (…) (5µs)`.
fn result(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    let (rest, took) = text.strip_suffix(')')?.rsplit_once('(')?;
    let took = nanoseconds(took)?;
    let mut words = rest.split(' ');
    let value = words.next()?;
    let value = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => value.parse().ok()?,
    };
    let took = format!("<{}.{:09}>", took / 1_000_000_000, took % 1_000_000_000);
    match words.next().and_then(|word| word.strip_prefix("errno=")) {
        // The kernel's own: the call was interrupted.
        Some(errno) if errno.parse::<u32>().ok()? >= 512 => Some(format!("? {took}")),
        Some(errno) => Some(format!("-1 ERRNO_{errno} (error) {took}")),
        None => Some(format!("{value} {took}")),
    }
}

/// A duration as Go prints it: `291ns`, `5.25µs`, `1.5ms`, `2s`, `11m46.592876238s`, `1h2m3s`.
fn nanoseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|each: char| !each.is_ascii_digit() && each != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|each: char| each.is_ascii_digit()).unwrap_or(rest.len());
        let scale = match &rest[..unit] {
            "ns" => 1.0,
            "µs" | "μs" | "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        total += value * scale;
        rest = &rest[unit..];
    }
    Some(total.round() as u64)
}

/// Appends the arguments. Those of calls without rows are left out.
fn arguments(line: &mut Vec<u8>, kind: Option<CallKind>, given: &[u8], begun: &[u8]) {
    let Some(kind) = kind else { return };
    let letters = kind.arguments().as_bytes();
    let given = split(given, letters);
    let begun = split(begun, letters);
    let mut separator: &[u8] = b"";
    for (position, &letter) in letters.iter().enumerate() {
        // Has no place in strace text.
        if letter == b'-' {
            continue;
        }
        let Some(text) = given.get(position) else { return };
        let text = if text == b"..." { begun.get(position).unwrap_or(text) } else { text };
        line.extend_from_slice(separator);
        separator = b", ";
        argument(line, letter, text);
    }
}

/// Splits at commas outside of strings and brackets. Paths have no quotes: what is too much belongs to the first one.
fn split(text: &[u8], letters: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    let (mut is_string, mut is_escaped) = (false, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 && text.get(at + 1) == Some(&b' ') => {
                parts.push(text[from..at].to_vec());
                from = at + 2;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(text[from..].to_vec());
    }
    let mut surplus = parts.len().saturating_sub(letters.len());
    // Several buffers are not in brackets.
    let buffers = letters.iter().position(|&letter| letter == b'v');
    let path = letters.iter().position(|letter| b"prRq".contains(letter));
    if let Some(first) = buffers.or(path) {
        while surplus > 0 && first + 1 < parts.len() {
            let more = parts.remove(first + 1);
            parts[first].extend([b", ", &more[..]].concat());
            surplus -= 1;
        }
    }
    parts
}

/// Appends an argument as strace writes it.
fn argument(line: &mut Vec<u8>, letter: u8, text: &[u8]) {
    let (first, rest) = match memchr::memchr(b' ', text) {
        Some(blank) => (&text[..blank], &text[blank + 1..]),
        None => (text, &b""[..]),
    };
    match letter {
        b'd' | b'e' | b'x' | b'E' => {
            line.extend_from_slice(first);
            if rest.starts_with(b"/") && letter != b'e' {
                line.push(b'<');
                escape(line, rest);
                line.push(b'>');
            }
        }
        b'p' | b'q' | b'r' | b'R' | b'N' => path(line, first, rest),
        b'b' | b't' => line.extend_from_slice(b"\"\"..."),
        b'm' | b'M' | b'S' => mode(line, letter, text),
        b'O' => line.extend_from_slice(text.strip_suffix(b"|0x0").unwrap_or(text)),
        b'v' => buffers(line, rest),
        b'[' => {
            let both = rest.strip_prefix(b"[").and_then(|both| both.strip_suffix(b"]")).unwrap_or(b"");
            match memchr::memchr(b' ', both) {
                Some(blank) => line.extend([b"[", &both[..blank], b", ", &both[blank + 1..], b"]"].concat()),
                None => line.extend_from_slice(b"NULL"),
            }
        }
        b'C' => line.extend([b"child_stack=NULL, flags=", text].concat()),
        b'P' | b'Q' if first == b"0x0" => line.extend_from_slice(b"NULL"),
        b's' | b'u' | b'c' | b'H' | b'V' => line.extend_from_slice(b"{...}"),
        b'n' => line.extend_from_slice(b"NULL"),
        _ => line.extend_from_slice(first),
    }
}

/// `0x7f3c /etc/hosts`; a null pointer is `0x0` and an error in brackets.
fn path(line: &mut Vec<u8>, address: &[u8], path: &[u8]) {
    if address == b"0x0" || path.starts_with(b"(error decoding ") {
        line.extend_from_slice(b"NULL");
        return;
    }
    line.push(b'"');
    escape(line, path);
    line.push(b'"');
}

/// `0o644`, `S_IFREG|0o644`; of `stat`, in `{dev=1, mode=S_IFREG|0o644, …}`.
fn mode(line: &mut Vec<u8>, letter: u8, text: &[u8]) {
    let text = if letter == b'S' {
        let Some(at) = memmem::find(text, b"mode=") else { return line.extend_from_slice(b"{...}") };
        let text = &text[at + 5..];
        line.extend_from_slice(b"{st_mode=");
        &text[..memchr::memchr(b',', text).unwrap_or(text.len())]
    } else {
        text
    };
    match memmem::find(text, b"0o") {
        Some(at) => line.extend([&text[..at], b"0", &text[at + 2..]].concat()),
        None => line.extend_from_slice(text),
    }
    if letter == b'S' {
        line.push(b'}');
    }
}

/// `{base=0x7f3c, len=5, "hello"}, {base=0x7f3d, len=1}`: their lengths.
fn buffers(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'[');
    let mut separator: &[u8] = b"";
    for buffer in memmem::find_iter(text, b"{base=0x").map(|at| &text[at..]) {
        let length = memmem::find(buffer, b", len=").map(|at| &buffer[at + 6..]).unwrap_or_default();
        let length = &length[..length.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(length.len())];
        line.extend([separator, b"{iov_base=\"\"..., iov_len=", length, b"}"].concat());
        separator = b", ";
    }
    line.push(b']');
}

fn escape(line: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', byte]),
            b' '..=b'~' if !matches!(byte, b'<' | b'>') => line.push(byte),
            _ => line.extend(format!("\\{byte:03o}").bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(call: &str) -> String {
        let mut translator = Translator::default();
        let line = format!("I0102 15:04:05.000123       1 strace.go:625] [   1:   7] my prog X {call}");
        String::from_utf8(translator.line(line.as_bytes()).to_vec()).unwrap()
    }

    #[test]
    fn a_call_is_written_as_strace_does() {
        for (call, expected) in [
            (
                "openat(AT_FDCWD /app, 0x7f3c /a, b \"c\", O_RDONLY|O_CLOEXEC|0x0, 0o0) = 3 (0x3) (12.3µs)",
                "<... openat resumed>AT_FDCWD</app>, \"/a, b \\\"c\\\"\", O_RDONLY|O_CLOEXEC, 00) = 3 <0.000012300>",
            ),
            (
                "open(0x7f3c /x, O_RDWR|O_CREAT, 0o644) = -1 errno=2 (no such file or directory) (1m2.5s)",
                "<... open resumed>\"/x\", O_RDWR|O_CREAT, 0644) = -1 ERRNO_2 (error) <62.500000000>",
            ),
            (
                "read(0x3 /a b, 0x55 \"x, \\\"y\\\")\"..., 0x2000) = 19 (0x13) (291ns)",
                "<... read resumed>0x3</a b>, \"\"..., 0x2000) = 19 <0.000000291>",
            ),
            (
                "readv(0x3 /a, 0x55 {base=0x1, len=5, \"hel, lo\"}, {base=0x2, len=7}, 0x2) = 0xc (1ms)",
                "<... readv resumed>0x3</a>, [{iov_base=\"\"..., iov_len=5}, {iov_base=\"\"..., iov_len=7}], 0x2) = 12 \
                 <0.001000000>",
            ),
            (
                "fstat(0x3 /a, 0x1 {dev=1, ino=2, mode=S_IFREG|0o755, nlink=1}) = 0 (0x0) (1s)",
                "<... fstat resumed>0x3</a>, {st_mode=S_IFREG|0755}) = 0 <1.000000000>",
            ),
            ("pipe2(0x1 [3 4], 0x80000) = 0x0 (1µs)", "<... pipe2 resumed>[3, 4], 0x80000) = 0 <0.000001000>"),
            (
                "lseek(0x3, 0xffffffffffffffff, 0x1) = 9 (0x9) (1µs)",
                "<... lseek resumed>0x3, 0xffffffffffffffff, 0x1) = 9 <0.000001000>",
            ),
            ("futex(0x1, FUTEX_WAIT, 0x0, null) = 0 (0x0) (1µs)", "<... futex resumed>) = 0 <0.000001000>"),
            (
                "access(0x0 (error decoding path: bad address), 0o4) = -1 errno=14 (bad address) (1µs)",
                "<... access resumed>NULL, 0o4) = -1 ERRNO_14 (error) <0.000001000>",
            ),
        ] {
            assert_eq!(of(call), format!("7 15:04:05.000123 {expected}"), "{call}");
        }
    }

    #[test]
    fn buffers_that_were_written_are_those_of_the_begin() {
        let mut translator = Translator::default();
        let line = |what: &str| format!("I0102 15:04:05.000123 1 strace.go:625] [ 7] sh {what}");
        let begun =
            translator.line(line("E writev(0x1 host:[1], 0x5 {base=0x1, len=5, \"hello\"}, 0x1)").as_bytes()).to_vec();
        assert_eq!(String::from_utf8(begun).unwrap(), "7 15:04:05.000123 writev( <unfinished ...>");
        let ended = translator.line(line("X writev(0x1 host:[1], ..., 0x1) = 5 (0x5) (5ns)").as_bytes()).to_vec();
        let expected =
            "7 15:04:05.000123 <... writev resumed>0x1, [{iov_base=\"\"..., iov_len=5}], 0x1) = 5 <0.000000005>";
        assert_eq!(String::from_utf8(ended).unwrap(), expected);
    }

    #[test]
    fn other_messages_are_left_out() {
        let mut translator = Translator::default();
        assert_eq!(translator.line(b"D0928 10:21:24.733611  1872533 config.go:585] Config.NetDisconnectOk: true"), b"");
        assert!(!recognise(b"25227 1795464429.376993 close(3) = 0 <0.000063>\n"));
        assert!(recognise(b"D0928 10:21 x\nI0102 15:04:05.0 1 strace.go:6] [ 1: 7] sh E close(0x3 /a)\n"));
    }
}
