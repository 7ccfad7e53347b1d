//! Colours of messages and verdicts, on terminals only: never in pipes, and not if `NO_COLOR` or `CLICOLOR=0` says so.

use std::env;
use std::io::IsTerminal;

const BAD: &str = "\x1b[1;31m";
const DOUBTFUL: &str = "\x1b[1;33m";
const GOOD: &str = "\x1b[1;32m";
const PLAIN: &str = "\x1b[0m";

/// What begins a line or is a part of it, and its colour.
const OF_MESSAGES: [(&str, &str); 2] = [("warning:", DOUBTFUL), ("iosonar:", BAD)];
const OF_VERDICTS: [(&str, &str); 3] = [("was not faithful", BAD), ("was faithful", GOOD), ("kept its times", GOOD)];

/// Whether text for this stream is coloured.
fn is_coloured(stream: &impl IsTerminal) -> bool {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal()
        && set("NO_COLOR").is_none()
        && set("CLICOLOR").is_none_or(|value| value != "0")
        && set("TERM").is_none_or(|term| term != "dumb")
}

/// A message on standard error: the word in front is coloured.
pub fn message(text: &str) -> String {
    if is_coloured(&std::io::stderr()) { with_coloured_start(text) } else { text.to_owned() }
}

/// Lines on standard output: the verdict is coloured.
pub fn answer(text: &str) -> String {
    if is_coloured(&std::io::stdout()) { with_coloured_verdict(text) } else { text.to_owned() }
}

fn with_coloured_start(text: &str) -> String {
    let found = OF_MESSAGES.iter().find_map(|(word, colour)| Some((word, colour, text.strip_prefix(word)?)));
    found.map_or_else(|| text.to_owned(), |(word, colour, rest)| format!("{colour}{word}{PLAIN}{rest}"))
}

fn with_coloured_verdict(text: &str) -> String {
    let of_line = |line: &str| {
        let found = OF_VERDICTS.iter().find_map(|(words, colour)| Some((words, colour, line.split_once(words)?)));
        match found.filter(|_| line.starts_with("verdict ")) {
            Some((words, colour, (before, after))) => format!("{before}{colour}{words}{PLAIN}{after}"),
            None => line.to_owned(),
        }
    };
    text.split('\n').map(of_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_front_and_the_verdict_are_coloured() {
        assert_eq!(with_coloured_start("warning: a warning: b"), "\x1b[1;33mwarning:\x1b[0m a warning: b");
        assert_eq!(with_coloured_start("run 1 of 2"), "run 1 of 2");
        let text = "requests  3\nverdict          This replay was not faithful: x\nit was faithful";
        let expected =
            "requests  3\nverdict          This replay \x1b[1;31mwas not faithful\x1b[0m: x\nit was faithful";
        assert_eq!(with_coloured_verdict(text), expected);
    }
}
