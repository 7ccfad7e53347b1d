//! Output on the terminal while something runs. The reader may be gone (a closed terminal, the end of a pipe): that
//! is no reason to end a replay, as the standard library's macros would by panicking.
//!
//! Names of devices, notices, preambles and paths come from files of others. A terminal would obey the control characters in
//! them, so all that is for people passes through [`shown`] or [`one_line`] here. JSON passes through [`json`]; data that other
//! programs read is left as it is.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use iosonar_trace::path_text;
use serde::Serialize;

/// Why an answer did not get to where it was sent, the first time.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// One line on standard error.
macro_rules! status {
    ($($words:tt)*) => {
        $crate::console::note(::std::format_args!($($words)*))
    };
}

/// Lines on standard output. What could not be written is told at the end, by [`lost`]: what runs is not ended by it.
macro_rules! out {
    ($($words:tt)*) => {
        $crate::console::line(::std::format_args!($($words)*))
    };
}

pub(crate) use {out, status};

/// For [`status!`].
pub fn note(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", one_line(&words.to_string()));
}

/// Lines on standard error.
pub fn notes(text: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(text));
}

/// For [`out!`].
pub fn line(words: std::fmt::Arguments<'_>) {
    put(&shown(&words.to_string()));
}

/// An object as JSON on standard output, for programs, and harmless for a terminal all the same.
pub fn answer_json(object: &impl Serialize) -> serde_json::Result<()> {
    put(&json(object)?);
    Ok(())
}

/// The same on a single line.
pub fn answer_json_line(object: &serde_json::Value) {
    put(&escaped_json(&object.to_string()));
}

fn put(text: &str) {
    if let Err(error) = writeln!(io::stdout(), "{text}") {
        LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
    }
}

/// Ends the program for a command line that is wrong, or for `--help`. Where the words of the command line would do something
/// to a terminal, they are shown without it, and without colours.
pub fn refuse(error: &clap::Error) -> ! {
    let is_plain = |word: OsString| word.to_str().is_some_and(|word| !word.contains(is_obeyed));
    if error.use_stderr() && !std::env::args_os().all(is_plain) {
        notes(error.render().to_string().trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Why a line of standard output is missing, if one is and its reader wanted it: whoever closed a pipe, `head` for example, has
/// had enough.
pub fn lost() -> Option<io::Error> {
    let lost = LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    lost.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// Text of one or more lines, such that a terminal does nothing but show it.
pub fn shown(text: &str) -> String {
    escaped(&with_names(text, names()), |c| c == '\n')
}

/// The same of what is meant to be a single line.
pub fn one_line(text: &str) -> String {
    escaped(&with_names(text, names()), |_| false)
}

/// An object as indented JSON. Its strings are the same when they are read again; what a terminal would obey, and JSON allows
/// in strings, is written as `\u009b` and the like.
pub fn json(object: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped_json(&serde_json::to_string_pretty(object)?))
}

fn escaped_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Line ends are the indentation's: in strings they are escaped already.
        if is_obeyed(c) && c != '\n' {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether a terminal would do something with it, or show what follows in another order: control characters (of both sets),
/// ends of lines and paragraphs, and the marks that change the direction of writing.
fn is_obeyed(c: char) -> bool {
    let directs = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs || matches!(c, '\u{2028}' | '\u{2029}')
}

fn escaped(text: &str, is_left: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if is_left(c) || !is_obeyed(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            '\0'..='\u{ff}' => safe.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    safe
}

/// How the words of the command line that are no plain text look when they are formatted, and how they are shown.
type Names = Vec<(String, String)>;

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| names_of(std::env::args_os()))
}

/// Most of them are paths: their bytes may be no UTF-8, or the end of a line, which would look like another message.
fn names_of(words: impl Iterator<Item = OsString>) -> Names {
    let mut names = Names::new();
    for word in words {
        let bytes = word.as_bytes();
        // The values in `--target=sda=PATH`, and what files are called without their folders.
        let values = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| &bytes[at + 1..]);
        for part in std::iter::once(bytes).chain(values) {
            let path = Path::new(std::ffi::OsStr::from_bytes(part));
            for name in [Some(path.as_os_str()), path.file_name()].into_iter().flatten() {
                let (formatted, shown) = (name.to_string_lossy().into_owned(), path_text(name).replace('\n', "\\n"));
                if formatted != shown {
                    names.push((formatted, shown));
                }
            }
        }
    }
    // The longest first: a shorter one may be a part of it.
    names.sort_by_key(|(formatted, _)| std::cmp::Reverse(formatted.len()));
    names.dedup();
    names
}

fn with_names(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (formatted, shown)| text.replace(formatted, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_nothing_else() {
        assert_eq!(shown("µs, 3\u{a0}% é 漢 → \u{1f600}\nnext"), "µs, 3\u{a0}% é 漢 → \u{1f600}\nnext");
        assert_eq!(shown("a\x1b[31mb\u{9b}2Jc\x07\x7f\r\0"), r"a\x1b[31mb\x9b2Jc\x07\x7f\r\x00");
        assert_eq!(shown("\u{202e}gnp.\u{2066}\u{200f}\u{2028}"), r"\u202egnp.\u2066\u200f\u2028");
        assert_eq!(one_line("sda\niosonar: done\tx"), r"sda\niosonar: done\tx");
    }

    #[test]
    fn json_says_the_same_without_what_a_terminal_would_obey() {
        let object = serde_json::json!({"name": "a\x1b[m\u{9b}2J\x7f\u{202e}\né"});
        let text = json(&object).unwrap();
        assert!(!text.chars().any(|c| is_obeyed(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), object);
    }

    #[test]
    fn words_of_the_command_line_are_shown_as_they_are_typed() {
        let words = [&b"iosonar"[..], b"--target=sda=/srv/caf\xe9", b"x\niosonar: done", b"plain"];
        let names = names_of(words.into_iter().map(|word| std::ffi::OsStr::from_bytes(word).to_owned()));
        let told = |text: &str| with_names(text, &names);
        assert_eq!(told("/srv/caf\u{fffd}: no such file"), r"/srv/caf\xe9: no such file");
        assert_eq!(told("caf\u{fffd}.journal"), r"caf\xe9.journal");
        assert_eq!(told("no x\niosonar: done here, but plain"), r"no x\niosonar: done here, but plain");
    }
}
