//! A description of a format, read from TOML; `formats/described` reads traces by it.

/// The parser of a word that is one of a few.
macro_rules! choice {
    ($name:ty { $($text:literal => $value:expr),* $(,)? }) => {
        impl $name {
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok($value),)*
                    other => Err(format!("`{other}` is unknown; {}", did_you_mean(other, [$($text),*].into_iter()))),
                }
            }
        }
    };
}

pub mod command_line;
pub mod field;
pub mod keys;
pub mod units;
pub mod values;
pub mod words;

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

use crate::model::metadata::RequestTime;
use crate::params::{Origins, Section, Text, did_you_mean};
use field::{ByteOrder, Field, Kind, Place, Role};
use keys::DESCRIPTION;
use values::{Digits, Origin, Units};

/// A format in a user's words: how its rows are laid out, and what they mean.
#[derive(Debug)]
pub struct Description {
    /// What the trace is.
    pub title: Option<String>,
    pub(crate) layout: Layout,
    pub(crate) fields: Vec<Field>,
    pub(crate) units: Units,
    pub(crate) skip: u64,
    pub(crate) ignore: Vec<Box<[u8]>>,
    pub(crate) recognise: Recognise,
}

/// How rows are laid out.
#[derive(Debug)]
pub enum Layout {
    /// Lines of columns; without a separator it is found in the file.
    Columns(Option<Separator>),
    /// Lines that match; whether others are ignored.
    Pattern(Regex, Others),
    /// Records of so many bytes.
    Records(usize),
}

/// What separates columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    Byte(u8),
    Blanks,
}

/// What lines are that a pattern does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    Bad,
    Ignored,
}

/// How a file of this format is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognise {
    Never,
    /// By a line that names its columns.
    Heading,
    /// By its rows.
    Rows,
}

/// Errors that name file, line and column.
#[derive(Debug)]
struct InFile<'a>(&'a str);

impl Origins for InFile<'_> {
    fn error(&self, line: usize, column: usize, what: &str, why: &str) -> String {
        let file = self.0;
        if what.is_empty() {
            format!("{file}:{line}:{column}: {why}")
        } else {
            format!("{file}:{line}:{column}: {what}: {why}")
        }
    }
}

impl Description {
    /// Reads a description in TOML. `file` names it in errors.
    ///
    /// # Errors
    /// With the file, the line, the column and the key.
    pub fn parse(file: &str, source: &str) -> Result<Arc<Self>, String> {
        Self::parse_converted(file, source, &InFile(file))
    }

    /// Reads a description that was made of something else, which errors name.
    pub(super) fn parse_converted(file: &str, source: &str, origins: &dyn Origins) -> Result<Arc<Self>, String> {
        let text = Text { file, source, set: None, origins: Some(origins) };
        let table = text.parse()?;
        Self::read(&Section::new(&text, 0, String::new(), table.get_ref(), DESCRIPTION)?).map(Arc::new)
    }

    fn read(all: &Section<'_, '_>) -> Result<Self, String> {
        let kind = kind(all)?;
        let order = all.parsed("byte_order", ByteOrder::parse)?.unwrap_or_default();
        let mut fields = Vec::new();
        let mut units = Units::new();
        for role in Role::ALL {
            let Some(own) = all.table(role.name(), keys::of_field(role))? else { continue };
            fields.push(Field::read(role, &own, kind, order)?);
            units.read(role, &own)?;
        }
        units.digits =
            Digits { thousands: all.parsed("thousands", one_byte)?, decimal: all.parsed("decimal", one_byte)? };
        units.request_time = all.parsed("request_time", request_time)?.unwrap_or_default();
        let layout = match kind {
            Kind::Records(bytes) => Layout::Records(bytes),
            Kind::Columns => Layout::Columns(all.parsed("separator", Separator::parse)?),
            Kind::Pattern => {
                let regex = pattern(all, &mut fields)?;
                Layout::Pattern(regex, all.parsed("others", Others::parse)?.unwrap_or(Others::Bad))
            }
        };
        require_fields(all, &fields)?;
        if units.origin == Origin::Before && fields.iter().any(|field| field.role == Role::Completed) {
            return Err(
                all.error("completed", "times that count from the line before have no completion; give `latency`")
            );
        }
        let has_names = fields.iter().any(|field| matches!(field.place, Place::Names(_)));
        let recognise = all.parsed("recognise", Recognise::parse)?;
        if recognise == Some(Recognise::Heading) && !has_names {
            return Err(all.error("recognise", "no column has a name; say rows or never"));
        }
        if let Some(role) = units.from_heading.first()
            && !fields.iter().any(|field| field.role == *role && matches!(field.place, Place::Names(_)))
        {
            return Err(all.error(role.name(), "only a column with a name has its unit in the heading"));
        }
        let usual = if has_names { Recognise::Heading } else { Recognise::Never };
        Ok(Self {
            title: all.text("title")?,
            layout,
            fields,
            units,
            skip: all
                .parsed("skip", |text| text.parse().map_err(|_| format!("`{text}` is not a whole number")))?
                .unwrap_or(0),
            ignore: all.texts("ignore")?.into_iter().map(|text| text.into_bytes().into()).collect(),
            recognise: recognise.unwrap_or(usual),
        })
    }
}

/// Which layout the keys are of.
fn kind(all: &Section<'_, '_>) -> Result<Kind, String> {
    let bytes = |text: &str| {
        let bytes = text.parse().ok().filter(|bytes| (1..=4096).contains(bytes));
        bytes.ok_or_else(|| format!("`{text}` is not a number of bytes from 1 to 4096"))
    };
    let kind = match all.parsed("record", bytes)? {
        Some(_) if all.has("pattern") => {
            return Err(all.error("pattern", "a record is binary; remove the pattern or the record"));
        }
        Some(bytes) => Kind::Records(bytes),
        None if all.has("pattern") => Kind::Pattern,
        None => Kind::Columns,
    };
    let only = |key: &str, is: bool, what: &str| match all.has(key) && !is {
        true => Err(all.error(key, &format!("only {what} have this; remove it"))),
        false => Ok(()),
    };
    only("separator", kind == Kind::Columns, "lines of columns")?;
    only("others", kind == Kind::Pattern, "lines with a pattern")?;
    only("byte_order", matches!(kind, Kind::Records(_)), "records")?;
    for key in ["skip", "ignore", "thousands", "decimal"] {
        only(key, !matches!(kind, Kind::Records(_)), "lines of text")?;
    }
    Ok(kind)
}

/// Compiles the pattern; a group without a table of its own has the defaults of its field.
fn pattern(all: &Section<'_, '_>, fields: &mut Vec<Field>) -> Result<Regex, String> {
    let compile = |text: &str| {
        // A pattern that is anchored and needs no Unicode is matched in one pass.
        let built = RegexBuilder::new(&format!("^(?:{text})")).unicode(false).build();
        built.map_err(|error| match error {
            regex::Error::Syntax(why) => {
                let why = why.lines().last().unwrap_or("wrong").trim_start_matches("error: ").to_owned();
                format!("not a regular expression: {why}")
            }
            _ => "the pattern is too large".to_owned(),
        })
    };
    let regex = all.required("pattern", compile)?;
    for name in regex.capture_names().flatten() {
        let Some(role) = Role::from_name(name) else {
            let known = Role::ALL.into_iter().map(Role::name);
            return Err(all.error("pattern", &format!("no field for the group {name}; {}", did_you_mean(name, known))));
        };
        if !fields.iter().any(|field| field.role == role) {
            fields.push(Field { role, place: Place::Group, is_optional: false });
        }
    }
    let lacks = |field: &&Field| {
        field.place == Place::Group && !regex.capture_names().flatten().any(|n| n == field.role.name())
    };
    if let Some(field) = fields.iter().find(lacks) {
        let name = field.role.name();
        return Err(all.error(name, &format!("the pattern has no group of this name: (?<{name}>…)")));
    }
    Ok(regex)
}

/// Whether everything is there that a request needs.
fn require_fields(all: &Section<'_, '_>, fields: &[Field]) -> Result<(), String> {
    let has = |role: Role| fields.iter().any(|field| field.role == role);
    for (role, what) in [
        (Role::Op, "the operation of a request; if all are the same: op = { always = \"read\" }"),
        (Role::Offset, "the position of a request"),
        (Role::Size, "the length of a request; if all are the same: size = { always = \"4k\" }"),
    ] {
        if !has(role) {
            return Err(all.error(role.name(), &format!("missing: {what}")));
        }
    }
    let has_time = has(Role::At) || has(Role::Completed) && has(Role::Latency);
    if !has_time {
        return Err(all.error("at", "missing: the time of a request; or give `completed` and `latency`"));
    }
    Ok(())
}

choice!(Others { "bad" => Self::Bad, "ignore" => Self::Ignored });
choice!(Recognise { "never" => Self::Never, "heading" => Self::Heading, "rows" => Self::Rows });

impl Separator {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "blanks" | "blank" | " " => Ok(Self::Blanks),
            "tab" | "\\t" => Ok(Self::Byte(b'\t')),
            _ => one_byte(text).map(Self::Byte),
        }
    }
}

fn one_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() || b" \t".contains(byte) => Ok(*byte),
        _ => Err(format!("`{text}` is not one character of ASCII")),
    }
}

fn request_time(text: &str) -> Result<RequestTime, String> {
    match text {
        "queued" => Ok(RequestTime::Queued),
        "issued" => Ok(RequestTime::Issued),
        other => Err(format!("`{other}` is neither queued nor issued")),
    }
}
