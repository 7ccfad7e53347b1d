//! Output to the terminal. Unlike the standard library's macros, these do not panic if the reader is gone (a closed terminal
//! or pipe): that must not end a replay.
//!
//! Names of devices, warnings, preambles and paths come from foreign files and may have control characters, so [`shown`] or
//! [`one_line`] escapes all text for people, and [`json`] all JSON. Data for other programs is left as it is.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use indicatif::ProgressBar;
use iosonar_trace::{path_text, system_text};
use serde::Serialize;

use crate::paint;

/// The first error of writing to standard output.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a line on standard error.
macro_rules! status {
    ($($words:tt)*) => {
        $crate::console::note(::std::format_args!($($words)*))
    };
}

/// Prints lines on standard output. An error does not end the command; [`lost`] returns it at the end.
macro_rules! out {
    ($($words:tt)*) => {
        $crate::console::line(::std::format_args!($($words)*))
    };
}

pub(crate) use {out, status};

/// What is drawn in place at the end of the terminal: messages go above it.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints messages above a bar until this is dropped.
#[must_use = "messages go through the bar when it is dropped"]
pub struct Above;

/// See [`Above`].
pub fn above(bar: &ProgressBar) -> Above {
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    Above
}

impl Drop for Above {
    fn drop(&mut self) {
        *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn message(text: &str) {
    let text = paint::message(text);
    let print = || writeln!(io::stderr(), "{text}");
    let bar = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let _ = match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    };
}

/// For [`status!`].
pub fn note(words: std::fmt::Arguments<'_>) {
    message(&one_line(&words.to_string()));
}

/// Prints lines on standard error.
pub fn notes(text: &str) {
    message(&shown(text));
}

/// For [`out!`].
pub fn line(words: std::fmt::Arguments<'_>) {
    put(&paint::answer(&shown(&words.to_string())));
}

/// Prints an object as JSON on standard output, with control characters escaped.
pub fn answer_json(object: &impl Serialize) -> serde_json::Result<()> {
    put(&json(object)?);
    Ok(())
}

/// Like [`answer_json`], on a single line.
pub fn answer_json_line(object: &serde_json::Value) {
    put(&escaped_json(&object.to_string()));
}

fn put(text: &str) {
    if let Err(error) = writeln!(io::stdout(), "{text}") {
        LOST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Exits because of a wrong command line, or for `--help`. If the command line has control characters, the message is escaped
/// and without colours.
pub fn refuse(error: &clap::Error) -> ! {
    let is_plain = |word: OsString| word.to_str().is_some_and(|word| !word.contains(is_active));
    if error.use_stderr() && !std::env::args_os().all(is_plain) {
        notes(error.render().to_string().trim_end());
        std::process::exit(error.exit_code());
    }
    // `clap::Error::exit` ignores that help could not be printed.
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(cause) if !error.use_stderr() && cause.kind() != io::ErrorKind::BrokenPipe => {
            note(format_args!("iosonar: cannot write standard output: {}", system_text(&cause)));
            std::process::exit(1);
        }
        _ => std::process::exit(error.exit_code()),
    }
}

/// The first error of writing to standard output, but for a closed pipe: a reader like `head` closes it on purpose.
pub fn lost() -> Option<io::Error> {
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).take();
    lost.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// Escapes the control characters of a text of one or more lines.
pub fn shown(text: &str) -> String {
    escaped(&with_names(text, names()), |c| c == '\n')
}

/// Escapes the control characters of a single line, including line ends.
pub fn one_line(text: &str) -> String {
    escaped(&with_names(text, names()), |_| false)
}

/// Formats an object as indented JSON. Control characters that JSON allows in strings are escaped, as `\u009b`.
pub fn json(object: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped_json(&serde_json::to_string_pretty(object)?))
}

fn escaped_json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Line ends belong to the indentation; in strings they are escaped already.
        if is_active(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether a terminal acts on the character or hides it: control characters (C0 and C1), line and paragraph separators, marks
/// of the direction of writing, invisible format characters, and what is no character. Joiners (U+200C, U+200D) stay: several
/// scripts need them. The same list as in `python/iosonar/text.py`.
fn is_active(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_direction || is_invisible || matches!(c, '\u{2028}' | '\u{2029}')
}

fn escaped(text: &str, is_allowed: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if is_allowed(c) || !is_active(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            '\0'..='\u{ff}' => safe.push_str(&format!("\\x{:02x}", u32::from(c))),
            '\0'..='\u{ffff}' => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => safe.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    safe
}

/// Arguments that are not plain text: as `Display` formats them, and as they are printed instead.
type Names = Vec<(String, String)>;

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| names_of(std::env::args_os()))
}

/// Most are paths with bytes that are not UTF-8, or with a line end, which would look like another message.
fn names_of(words: impl Iterator<Item = OsString>) -> Names {
    let mut names = Names::new();
    for word in words {
        let bytes = word.as_bytes();
        // The values in `--target=sda=PATH`, and file names without directories.
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
    // The longest first: it may contain a shorter one.
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
    fn only_control_characters_are_escaped() {
        assert_eq!(shown("µs, 3\u{a0}% é 漢 → \u{1f600}\nnext"), "µs, 3\u{a0}% é 漢 → \u{1f600}\nnext");
        assert_eq!(shown("a\x1b[31mb\u{9b}2Jc\x07\x7f\r\0"), r"a\x1b[31mb\x9b2Jc\x07\x7f\r\x00");
        assert_eq!(shown("\u{202e}gnp.\u{2066}\u{200f}\u{2028}"), r"\u202egnp.\u2066\u200f\u2028");
        assert_eq!(one_line("sda\niosonar: done\tx"), r"sda\niosonar: done\tx");
        assert_eq!(shown("\u{feff}a\u{200b}\u{ad}\u{e0041}\u{ffff}"), r"\ufeffa\u200b\xad\U000e0041\uffff");
        assert_eq!(shown("\u{645}\u{200c}\u{1f469}\u{200d}\u{1f4bb}"), "\u{645}\u{200c}\u{1f469}\u{200d}\u{1f4bb}");
    }

    #[test]
    fn json_escapes_control_characters_and_parses_back() {
        let object = serde_json::json!({"name": "a\x1b[m\u{9b}2J\x7f\u{202e}\u{feff}\u{e0041}\né"});
        let text = json(&object).unwrap();
        assert!(!text.chars().any(|c| is_active(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), object);
    }

    #[test]
    fn arguments_are_shown_as_typed() {
        let words = [&b"iosonar"[..], b"--target=sda=/srv/caf\xe9", b"x\niosonar: done", b"plain"];
        let names = names_of(words.into_iter().map(|word| std::ffi::OsStr::from_bytes(word).to_owned()));
        let displayed = |text: &str| with_names(text, &names);
        assert_eq!(displayed("/srv/caf\u{fffd}: no such file"), r"/srv/caf\xe9: no such file");
        assert_eq!(displayed("caf\u{fffd}.journal"), r"caf\xe9.journal");
        assert_eq!(displayed("no x\niosonar: done here, but plain"), r"no x\niosonar: done here, but plain");
    }
}
