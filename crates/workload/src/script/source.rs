//! The text of a script, and what can be seen in it without running it.

use std::collections::BTreeSet;

/// The name of every script in messages of Lua.
pub(super) const CHUNK: &str = "script";

/// A script in Lua, with what its error messages name.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its file, for errors.
    pub file: String,
    /// The stream, for errors.
    pub stream: String,
    /// The line of the file on which it starts, from 1.
    pub first_line: usize,
    /// The text in Lua.
    pub text: String,
}

/// A part of the text that matters here; strings and comments are left out.
enum Token<'a> {
    Name(&'a str),
    Other(char),
}

impl Source {
    /// The text with its lines at their places in the file.
    pub(super) fn in_place(&self, before: &str, after: &str) -> String {
        format!("{}{before}{}{after}", "\n".repeat(self.first_line - 1), self.text)
    }

    /// Refuses what would have different results on different machines.
    pub(super) fn check(&self) -> Result<(), String> {
        let power = self.tokens().find(|(_, token)| matches!(token, Token::Other('^')));
        match power {
            None => Ok(()),
            Some((line, _)) => {
                let why = "x ^ y has different last digits on different machines; write math.pow(x, y), or x * x";
                Err(format!("{}:{line}: stream {}: {why}", self.file, self.stream))
            }
        }
    }

    /// All names in the text.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        let name = |(_, token)| match token {
            Token::Name(name) => Some(name),
            Token::Other(_) => None,
        };
        self.tokens().filter_map(name).collect()
    }

    fn tokens(&self) -> Tokens<'_> {
        Tokens { rest: &self.text, line: self.first_line }
    }
}

/// The tokens with their lines.
struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    /// Takes so many bytes.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        taken
    }

    /// Takes a long bracket, `[[...]]` or `[=[...]=]`, if one starts here.
    fn skip_long_bracket(&mut self) -> bool {
        let Some(inner) = self.rest.strip_prefix('[') else { return false };
        let level = inner.len() - inner.trim_start_matches('=').len();
        if !inner[level..].starts_with('[') {
            return false;
        }
        let end = format!("]{}]", "=".repeat(level));
        let length = self.rest.find(&end).map_or(self.rest.len(), |at| at + end.len());
        self.take(length);
        true
    }

    /// Takes a quoted text.
    fn skip_quoted(&mut self, quote: char) {
        let mut is_escaped = true;
        let end = self.rest.char_indices().find(|(_, c)| {
            let ends = !is_escaped && (*c == quote || *c == '\n');
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        self.take(end.map_or(self.rest.len(), |(at, c)| at + c.len_utf8()));
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let first = self.rest.chars().next()?;
            if let Some(comment) = self.rest.strip_prefix("--") {
                self.take(2);
                if !self.skip_long_bracket() {
                    self.take(comment.find('\n').unwrap_or(comment.len()));
                }
                continue;
            }
            if matches!(first, '"' | '\'') {
                self.skip_quoted(first);
                continue;
            }
            if first == '[' && self.skip_long_bracket() {
                continue;
            }
            let line = self.line;
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if is_part(first) {
                let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
                return Some((line, Token::Name(self.take(length))));
            }
            self.take(first.len_utf8());
            if !first.is_whitespace() {
                return Some((line, Token::Other(first)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { file: "f.lua".into(), stream: "s".into(), first_line: 3, text: text.into() }
    }

    #[test]
    fn names_and_operators_in_strings_and_comments_do_not_count() {
        let text = "a -- b ^\nc = \"d ^ \\\" ^\" --[==[ e ^ ]] \n ]==] f [[ g ^ ]] '\\\\' h\n--[[ i";
        let source = source(text);
        assert_eq!(source.names().into_iter().collect::<Vec<_>>(), ["a", "c", "f", "h"]);
        assert_eq!(source.check(), Ok(()));
        let error = self::source("-- ^\nx = [[\n]] y ^ 2").check().unwrap_err();
        assert!(error.starts_with("f.lua:5: stream s: x ^ y has different last digits"), "{error}");
    }

    #[test]
    fn lines_are_those_of_the_file() {
        assert_eq!(source("x\ny").in_place("do ", " end"), "\n\ndo x\ny end");
    }
}
