//! Errors of scripts, with file and line.

use iosonar_trace::params::did_you_mean;
use mlua::Error;

use super::source::{CHUNK, Source};

/// The names that every script can use.
pub(super) type Names = Vec<String>;

/// What is wrong, as one sentence.
pub(super) fn text_of(error: &Error, source: &Source, names: &Names) -> String {
    let (message, line) = parts(error);
    let place = line.map_or_else(|| source.file.clone(), |line| format!("{}:{line}", source.file));
    let hint = hint(&message, names).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{place}: stream {}: {message}{hint}", source.stream)
}

/// The message, and the line.
fn parts(error: &Error) -> (String, Option<usize>) {
    match error {
        Error::CallbackError { traceback, cause } => {
            let (message, line) = parts(cause);
            (message, line.or_else(|| line_in(traceback)))
        }
        Error::SyntaxError { message, .. } => split(message),
        Error::MemoryError(_) => (
            "it needs more memory than a script may have: keep less in variables, and do not nest calls too deeply"
                .into(),
            None,
        ),
        Error::RuntimeError(text) => {
            let (message, trace) = text.split_once("\nstack traceback:").unwrap_or((text, ""));
            let (message, line) = split(message);
            (message, line.or_else(|| line_in(trace)))
        }
        other => split(&other.to_string()),
    }
}

/// Splits `script:LINE: message`.
fn split(text: &str) -> (String, Option<usize>) {
    let text = text.lines().next().unwrap_or_default();
    let place = text.strip_prefix(CHUNK).and_then(|rest| rest.strip_prefix(':')?.split_once(": "));
    match place.and_then(|(line, message)| Some((message, line.parse().ok()?))) {
        Some((message, line)) => (message.to_owned(), Some(line)),
        None => (text.to_owned(), None),
    }
}

/// The line of the innermost function of the script in a traceback.
fn line_in(trace: &str) -> Option<usize> {
    let prefix = format!("{CHUNK}:");
    trace.lines().find_map(|line| line.trim_start().strip_prefix(&prefix)?.split(':').next()?.parse().ok())
}

/// What to do about common mistakes.
fn hint(message: &str, names: &Names) -> Option<String> {
    if message.contains("stack overflow") {
        return Some("functions call each other too deeply; write a loop".into());
    }
    let name = message.split_once("(global '")?.1.split_once('\'')?.0;
    let absent = [
        "io",
        "os",
        "require",
        "load",
        "dofile",
        "print",
        "pcall",
        "string",
        "coroutine",
        "debug",
        "setmetatable",
        "next",
    ];
    if absent.contains(&name) {
        return Some("scripts do not have it, as they run in a sandbox (docs/scripts.md)".into());
    }
    Some(did_you_mean(name, names.iter().map(String::as_str)))
}
