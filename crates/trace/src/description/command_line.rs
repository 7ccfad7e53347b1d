//! The short spelling of a description on the command line, `at=1:us op=3(R=read,W=write) offset=4 size=5`, as TOML.

use std::fmt::Write as _;
use std::sync::Arc;

use super::Description;
use super::field::Role;
use crate::params::{Origins, did_you_mean};

/// What the options of a command say about a trace.
#[derive(Clone, Debug, Default)]
pub struct ColumnOptions {
    /// `--columns`.
    pub columns: String,
    /// `--separator`.
    pub separator: Option<String>,
    /// `--skip`.
    pub skip: Option<u64>,
}

/// The words behind a time's unit that say what it counts from.
const ORIGINS: [&str; 5] = ["start", "boot", "1970", "1601", "before"];

/// A description in TOML, and the words that its lines were made of.
#[derive(Debug)]
struct Converted {
    toml: String,
    words: Vec<String>,
}

impl Origins for Converted {
    fn error(&self, line: usize, _column: usize, what: &str, why: &str) -> String {
        match self.words.get(line - 1) {
            // What is missing is at no line.
            Some(word) if !why.starts_with("missing: ") => format!("{word}: {why}"),
            _ => format!("--columns: {what}: {why}"),
        }
    }
}

/// The description that options are short for.
///
/// # Errors
/// With the word that is wrong.
pub fn from_columns(options: &ColumnOptions) -> Result<Arc<Description>, String> {
    let converted = Converted::of(options)?;
    Description::parse_converted("--columns", &converted.toml, &converted)
}

/// The same in TOML.
///
/// # Errors
/// As [`from_columns`].
pub fn toml_of(options: &ColumnOptions) -> Result<String, String> {
    from_columns(options)?;
    Ok(Converted::of(options)?.toml)
}

impl Converted {
    fn of(options: &ColumnOptions) -> Result<Self, String> {
        let mut converted = Self { toml: String::new(), words: Vec::new() };
        if let Some(separator) = &options.separator {
            converted.add(&format!("separator = {}", quoted(separator)), format!("--separator {separator}"));
        }
        if let Some(skip) = options.skip {
            converted.add(&format!("skip = {skip}"), format!("--skip {skip}"));
        }
        for word in words(&options.columns)? {
            let line = field(word).map_err(|why| format!("--columns, {word}: {why}"))?;
            converted.add(&line, format!("--columns, {word}"));
        }
        Ok(converted)
    }

    fn add(&mut self, line: &str, word: String) {
        _ = writeln!(self.toml, "{line}");
        self.words.push(word);
    }
}

/// A text of TOML. That of JSON is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The words of a text, which may have blanks in quotes and in brackets.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let (mut words, mut begin, mut quote, mut depth) = (Vec::new(), None, None, 0_u32);
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.checked_sub(1).ok_or("--columns: a bracket is closed that is not open")?,
            _ => {}
        }
        let is_between = c.is_whitespace() && quote.is_none() && depth == 0;
        match begin {
            None if !is_between => begin = Some(index),
            Some(from) if is_between => {
                words.push(&text[from..index]);
                begin = None;
            }
            _ => {}
        }
    }
    words.extend(begin.map(|from| &text[from..]));
    match (quote, depth) {
        (Some(_), _) => Err("--columns: a quote is not closed".to_owned()),
        (_, 1..) => Err("--columns: a bracket is not closed".to_owned()),
        _ => Ok(words),
    }
}

/// The line of TOML for `name=COLUMN(WORDS):UNIT`.
fn field(word: &str) -> Result<String, String> {
    let (name, rest) = word.split_once('=').ok_or("expected FIELD=COLUMN, for example offset=4:bytes")?;
    let role = Role::from_name(name).ok_or_else(|| {
        let known = Role::ALL.into_iter().map(Role::name);
        format!("unknown field {name}; {}", did_you_mean(name, known))
    })?;
    let (column, rest) = column(rest)?;
    let (list, unit) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (list, rest) = rest.rsplit_once(')').ok_or("a bracket is not closed")?;
            (Some(list), rest)
        }
        None => (None, rest),
    };
    let unit = match unit.strip_prefix(':') {
        Some(unit) => Some(unit),
        None if unit.is_empty() => None,
        None => return Err(format!("expected a colon and a unit, found `{unit}`")),
    };
    let mut keys = Vec::new();
    if column == "always" {
        let value = unit.ok_or("expected always:VALUE")?;
        keys.push(format!("always = {}", quoted(value)));
    } else {
        let is_number = column.parse::<i64>().is_ok();
        keys.push(format!("column = {}", if is_number { column.to_owned() } else { quoted(column) }));
        keys.extend(list.map(|list| of_list(role, list)).transpose()?);
        if let Some(unit) = unit {
            keys.extend(of_unit(role, unit)?);
        }
    }
    Ok(format!("{name} = {{ {} }}", keys.join(", ")))
}

/// Splits off the column, which may be in quotes.
fn column(rest: &str) -> Result<(&str, &str), String> {
    let (column, rest) = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => rest[1..].split_once(quote).ok_or("a quote is not closed")?,
        _ => rest.split_at(rest.find(['(', ':']).unwrap_or(rest.len())),
    };
    if column.is_empty() { Err("no column; say its number or its name".to_owned()) } else { Ok((column, rest)) }
}

/// The words of an operation or of the rows to take.
fn of_list(role: Role, list: &str) -> Result<String, String> {
    let parts = list.split(',').map(str::trim);
    match role {
        Role::Op => {
            let pairs = parts.map(|part| {
                let (word, meaning) =
                    part.split_once('=').ok_or_else(|| format!("expected WORD=OPERATION, found `{part}`"))?;
                Ok(format!("{} = {}", quoted(word.trim()), quoted(meaning.trim())))
            });
            Ok(format!("map = {{ {} }}", pairs.collect::<Result<Vec<_>, String>>()?.join(", ")))
        }
        Role::Only => Ok(format!("words = [{}]", parts.map(quoted).collect::<Vec<_>>().join(", "))),
        _ => Err("only op and only have words in brackets".to_owned()),
    }
}

/// The unit of a field, and what follows it behind commas.
fn of_unit(role: Role, text: &str) -> Result<Vec<String>, String> {
    let mut keys = Vec::new();
    for (index, part) in text.split(',').map(str::trim).enumerate() {
        keys.push(match role {
            Role::At if ORIGINS.contains(&part) => format!("origin = {}", quoted(part)),
            Role::At | Role::Completed | Role::Latency | Role::Queued
                if part.strip_prefix('x').is_some_and(is_decimal) =>
            {
                format!("factor = {}", quoted(&part[1..]))
            }
            Role::Offset | Role::Size | Role::Op if part == "hex" => "base = 16".to_owned(),
            Role::Device => format!("spelling = {}", quoted(part)),
            Role::At | Role::Completed | Role::Latency | Role::Queued | Role::Offset | Role::Size if index == 0 => {
                format!("unit = {}", quoted(part))
            }
            _ => return Err(format!("`{part}` has no meaning for {}", role.name())),
        });
    }
    Ok(keys)
}

fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(columns: &str) -> ColumnOptions {
        ColumnOptions { columns: columns.to_owned(), ..ColumnOptions::default() }
    }

    #[test]
    fn columns_on_the_command_line_become_toml() {
        let columns = "at=1:us,before,x0.5 op=3(R=read, W=write) offset='Pos (k)':KiB size=5:sectors,hex latency=-1 device=always:sda \
                       only=2(D,Q)";
        let toml = toml_of(&ColumnOptions { separator: Some(";".into()), skip: Some(1), ..options(columns) }).unwrap();
        assert_eq!(
            toml,
            "separator = \";\"\n\
             skip = 1\n\
             at = { column = 1, unit = \"us\", origin = \"before\", factor = \"0.5\" }\n\
             op = { column = 3, map = { \"R\" = \"read\", \"W\" = \"write\" } }\n\
             offset = { column = \"Pos (k)\", unit = \"KiB\" }\n\
             size = { column = 5, unit = \"sectors\", base = 16 }\n\
             latency = { column = -1 }\n\
             device = { always = \"sda\" }\n\
             only = { column = 2, words = [\"D\", \"Q\"] }\n"
        );
    }

    #[test]
    fn an_error_names_the_word_on_the_command_line() {
        for (columns, said) in [
            ("at=1:parsec op=2 offset=3 size=4", "--columns, at=1:parsec: `parsec` is not a unit of time"),
            ("at=1 op=2(R=red) offset=3 size=4", "--columns, op=2(R=red): `red` is no operation; did you mean read?"),
            ("at=1 op=2 offset=0 size=4", "--columns, offset=0: columns count from 1"),
            ("at=1 op=2 size=4", "--columns: offset: missing: the position"),
            ("", "--columns: op: missing: "),
            ("ofset=1", "--columns, ofset=1: unknown field ofset; did you mean offset?"),
            ("at", "--columns, at: expected FIELD=COLUMN"),
            ("at=", "--columns, at=: no column"),
            ("at=1(2", "--columns: a bracket is not closed"),
            ("at=1)", "--columns: a bracket is closed"),
            ("at='1", "--columns: a quote is not closed"),
            ("size=4(R=read)", "--columns, size=4(R=read): only op and only have words"),
            ("pid=4:us", "--columns, pid=4:us: `us` has no meaning for pid"),
            ("op=2(R)", "--columns, op=2(R): expected WORD=OPERATION, found `R`"),
            ("at=1 at=2 op=2 offset=3 size=4", "--columns, at=2: "),
        ] {
            let error = from_columns(&options(columns)).unwrap_err();
            assert!(error.starts_with(said), "{columns}: {error}");
        }
        let separator = ColumnOptions { separator: Some("--".into()), ..options("at=1 op=2 offset=3 size=4") };
        assert!(from_columns(&separator).unwrap_err().starts_with("--separator --: `--` is not one character"));
    }
}
