//! Reads the TOML of a program: every error names the file, the line and the key.

use std::collections::BTreeMap;

use iosonar_trace::params::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Key;

/// The text of a program.
pub(super) struct Text<'a> {
    /// The name of its file, for errors.
    pub file: &'a str,
    pub source: &'a str,
    /// The parameters.
    pub set: BTreeMap<String, String>,
}

impl<'a> Text<'a> {
    pub fn parse(&self) -> Result<Spanned<DeTable<'a>>, String> {
        DeTable::parse(self.source).map_err(|error| {
            let line = self.line(error.span().map_or(0, |span| span.start));
            format!("{}:{line}: {}", self.file, error.message().lines().next().unwrap_or("not TOML"))
        })
    }

    pub fn error(&self, at: usize, what: &str, why: &str) -> String {
        format!("{}:{}: {what}: {why}", self.file, self.line(at))
    }

    fn line(&self, at: usize) -> usize {
        self.source.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    /// The text of a scalar, with `$NAME` replaced by that parameter.
    pub fn scalar(&self, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
        match value.get_ref() {
            DeValue::String(text) => self.substituted(text),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            other => Err(format!("expected a text or a number, found {}", other.type_str())),
        }
    }

    fn substituted(&self, text: &str) -> Result<String, String> {
        let mut parts = text.split('$');
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let Some(value) = self.set.get(name) else {
                let known = self.set.keys().map(String::as_str);
                return Err(format!("unknown parameter ${name}; {}", did_you_mean(name, known)));
            };
            whole += value;
            whole += rest;
        }
        Ok(whole)
    }
}

/// A table of the text, whose keys are known.
pub(super) struct Section<'t, 'a> {
    pub text: &'t Text<'a>,
    /// Where the table starts in the text.
    at: usize,
    /// How errors name it: `stream log`; empty for the program.
    pub path: String,
    table: &'t DeTable<'a>,
}

impl<'t, 'a> Section<'t, 'a> {
    /// # Errors
    /// If a key is unknown.
    pub fn new(
        text: &'t Text<'a>,
        at: usize,
        path: String,
        table: &'t DeTable<'a>,
        keys: &'static [Key],
    ) -> Result<Self, String> {
        for name in table.keys() {
            let typed = name.get_ref().as_ref();
            let known = keys.iter().map(|key| key.name);
            if !known.clone().any(|known| known == typed) {
                let what = joined(&path, typed);
                let why = format!("unknown key; {}", did_you_mean(typed, known));
                return Err(text.error(name.span().start, &what, &why));
            }
        }
        Ok(Self { text, at, path, table })
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// An error about a key, or about the whole section if it has no such key.
    pub fn error(&self, key: &str, why: &str) -> String {
        let at = self.get(key).map_or(self.at, |value| value.span().start);
        self.text.error(at, &joined(&self.path, key), why)
    }

    /// The parsed value, if the key is set.
    pub fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let parsed = self.text.scalar(value).and_then(|text| parse(&text));
        parsed.map(Some).map_err(|why| self.error(key, &why))
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        self.parsed(key, |text| text.parse().map_err(|_| format!("`{text}` is not true or false")))
    }

    pub fn text(&self, key: &str) -> Result<Option<String>, String> {
        self.parsed(key, |text| Ok(text.to_owned()))
    }

    /// The tables of an array of tables, in order.
    pub fn tables(&self, key: &str) -> Result<Vec<(usize, &'t DeTable<'a>)>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = || self.error(key, &format!("expected tables; write [[{}]]", key));
        let array = value.get_ref().as_array().ok_or_else(wrong)?;
        let tables = array.iter().map(|one| Ok((one.span().start, one.get_ref().as_table().ok_or_else(wrong)?)));
        tables.collect()
    }

    /// The names of a table with their values, in the order of the text.
    pub fn names(&self, key: &str) -> Result<Vec<(&'t str, &'t Spanned<DeValue<'a>>)>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = || self.error(key, &format!("expected a table; write [{key}]"));
        let table = value.get_ref().as_table().ok_or_else(wrong)?;
        let mut names: Vec<_> = table.iter().collect();
        names.sort_by_key(|(name, _)| name.span().start);
        Ok(names.into_iter().map(|(name, value)| (name.get_ref().as_ref(), value)).collect())
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}, {key}") }
}
