//! Reads descriptions in TOML: every error names the file, the line and the key.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::did_you_mean;
use super::toml_keys::Key;

/// A description in TOML.
#[derive(Debug)]
pub struct Text<'a> {
    /// The name of its file, for errors.
    pub file: &'a str,
    /// The whole text, for excerpts in errors.
    pub source: &'a str,
    /// The parameters; without them, `$` is a character as any other.
    pub set: Option<BTreeMap<String, String>>,
    /// What its lines come from, if it was converted: errors name that.
    pub origins: Option<&'a dyn Origins>,
}

/// What the lines of a converted text come from.
pub trait Origins: std::fmt::Debug {
    /// An error about what is at this line and column.
    fn error(&self, line: usize, column: usize, what: &str, why: &str) -> String;
}

impl<'a> Text<'a> {
    /// # Errors
    /// If it is not TOML.
    pub fn parse(&self) -> Result<Spanned<DeTable<'a>>, String> {
        DeTable::parse(self.source).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let (line, why) = (self.line(at), error.message().lines().next().unwrap_or("not TOML"));
            match self.origins {
                Some(origins) => origins.error(line, self.column(at), "", why),
                None => format!("{}:{line}: {why}", self.file),
            }
        })
    }

    /// An error at this byte of the text.
    pub fn error(&self, at: usize, what: &str, why: &str) -> String {
        let line = self.line(at);
        match self.origins {
            Some(origins) => origins.error(line, self.column(at), what, why),
            None => format!("{}:{line}: {what}: {why}", self.file),
        }
    }

    fn line(&self, at: usize) -> usize {
        self.source.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    /// The column of a byte in its line, in characters from 1.
    fn column(&self, at: usize) -> usize {
        let before = self.source.get(..at).unwrap_or(self.source);
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }

    /// The text of a scalar, with `$NAME` replaced by that parameter.
    ///
    /// # Errors
    /// If it is a table, a list or a date, or a parameter is unknown.
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
        let Some(set) = &self.set else { return Ok(text.to_owned()) };
        let mut parts = text.split('$');
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let Some(value) = set.get(name) else {
                let known = set.keys().map(String::as_str);
                return Err(format!("unknown parameter ${name}; {}", did_you_mean(name, known)));
            };
            whole += value;
            whole += rest;
        }
        Ok(whole)
    }
}

/// A table of the text, whose keys are known.
#[derive(Debug)]
pub struct Section<'t, 'a> {
    /// The text that it is part of.
    pub text: &'t Text<'a>,
    /// Where the table starts in the text.
    at: usize,
    /// How errors name it: `stream log`; empty for the whole text.
    pub path: String,
    table: &'t DeTable<'a>,
}

impl<'t, 'a> Section<'t, 'a> {
    /// The table at byte `at` of the text.
    ///
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

    /// Whether the key is set.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    /// An error about a key, or about the whole section if it has no such key; an empty key names the section alone.
    pub fn error(&self, key: &str, why: &str) -> String {
        let at = self.get(key).map_or(self.at, |value| value.span().start);
        self.text.error(at, &joined(&self.path, key), why)
    }

    /// The parsed value, if the key is set.
    ///
    /// # Errors
    /// If it is not a scalar, or `parse` refuses its text.
    pub fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let parsed = self.text.scalar(value).and_then(|text| parse(&text));
        parsed.map(Some).map_err(|why| self.error(key, &why))
    }

    /// The parsed value.
    ///
    /// # Errors
    /// Like [`Self::parsed`], or if the key is missing.
    pub fn required<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
        self.parsed(key, parse)?.ok_or_else(|| self.error(key, "missing; add it"))
    }

    /// True or false, if the key is set.
    ///
    /// # Errors
    /// If it is neither.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        self.parsed(key, |text| text.parse().map_err(|_| format!("`{text}` is not true or false")))
    }

    /// The text of a scalar, if the key is set.
    ///
    /// # Errors
    /// If it is not a scalar.
    pub fn text(&self, key: &str) -> Result<Option<String>, String> {
        self.parsed(key, |text| Ok(text.to_owned()))
    }

    /// The texts of a list of scalars, or of one scalar; none if the key is not set.
    ///
    /// # Errors
    /// If there is something else in it.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let texts = match value.get_ref() {
            DeValue::Array(array) => array.iter().map(|one| self.text.scalar(one)).collect(),
            _ => self.text.scalar(value).map(|text| vec![text]),
        };
        texts.map_err(|why| self.error(key, &why))
    }

    /// A text as it stands, without parameters, and the line on which it starts, if the key is set.
    ///
    /// # Errors
    /// If it is not a text.
    pub fn verbatim(&self, key: &str) -> Result<Option<(usize, &'t str)>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::String(text) = value.get_ref() else { return Err(self.error(key, "expected a text")) };
        let at = value.span().start;
        let quoted = &self.text.source[at..];
        // A line break right after the quotes is not part of the text.
        let is_below = ["'''\n", "\"\"\"\n", "'''\r", "\"\"\"\r"].iter().any(|start| quoted.starts_with(start));
        Ok(Some((self.text.line(at) + usize::from(is_below), text)))
    }

    /// A table of this one, if the key is set.
    ///
    /// # Errors
    /// If it is not a table, or one of its keys is unknown.
    pub fn table(&self, key: &str, keys: &'static [Key]) -> Result<Option<Section<'t, 'a>>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.error(key, &format!("expected a table; write [{path}]")));
        };
        Section::new(self.text, value.span().start, path, table, keys).map(Some)
    }

    /// The tables of an array of tables, with their places in the text, in order.
    ///
    /// # Errors
    /// If it is not such an array.
    pub fn tables(&self, key: &str) -> Result<Vec<(usize, &'t DeTable<'a>)>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = || self.error(key, &format!("expected tables; write [[{}]]", key));
        let array = value.get_ref().as_array().ok_or_else(wrong)?;
        let tables = array.iter().map(|one| Ok((one.span().start, one.get_ref().as_table().ok_or_else(wrong)?)));
        tables.collect()
    }

    /// A table, or those of an array of tables, in order; errors name the latter with their numbers.
    ///
    /// # Errors
    /// If it is neither, or a key is unknown.
    pub fn one_or_more(&self, key: &str, keys: &'static [Key]) -> Result<Vec<Section<'t, 'a>>, String> {
        if self.get(key).is_none_or(|value| value.get_ref().as_array().is_none()) {
            return Ok(self.table(key, keys)?.into_iter().collect());
        }
        let tables = self.tables(key)?.into_iter().enumerate();
        tables
            .map(|(number, (at, table))| Section::new(self.text, at, format!("{key} {}", number + 1), table, keys))
            .collect()
    }

    /// The names of a table with their values, in the order of the text.
    ///
    /// # Errors
    /// If it is not a table.
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
    match (path, key) {
        ("", only) | (only, "") => only.to_owned(),
        _ => format!("{path}, {key}"),
    }
}
