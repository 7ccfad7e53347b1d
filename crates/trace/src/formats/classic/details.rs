//! What a row of a run has beside the six columns of blkreplay, as words `name=value` by the names of `docs/schema.md`. They are
//! a seventh column, or a comment line if the six columns cannot hold the row.

use std::fmt;
use std::io::Write as _;

use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{MAX_END_SECTOR, Nanos, Sector, Sectors};
use crate::rows::excerpt;

/// The name of the seventh column.
pub const COLUMN_NAME: &str = "details";

/// Why the details of a row cannot be used: the row is damaged. A later version that has other names has another
/// `schema_version`.
#[derive(Debug, PartialEq, Eq)]
pub enum Damage {
    NoWord(String),
    Unknown(String),
    Twice(&'static str),
    Value(&'static str),
    Missing(&'static str),
    /// The name of a column.
    InColumn(&'static str),
    TooFar,
    Contradiction(&'static str),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWord(word) => write!(f, "the detail \"{word}\" is not name=value"),
            Self::Unknown(name) => write!(f, "there is no detail \"{name}\""),
            Self::Twice(name) => write!(f, "the detail {name} is there twice"),
            Self::Value(name) => write!(f, "the detail {name} has an impossible value"),
            Self::Missing(name) => write!(f, "the detail {name} is missing"),
            Self::InColumn(name) => write!(f, "the detail {name} is there beside its column"),
            Self::TooFar => f.write_str("its sectors are beyond any device"),
            Self::Contradiction(what) => f.write_str(what),
        }
    }
}

/// A value as a word.
trait Word: Copy + PartialEq {
    fn put(self, line: &mut Vec<u8>);
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($kind:ty: $held:ty,)*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                _ = write!(line, "{self}");
            }
            /// Within the range that a table can hold.
            fn parse(text: &str) -> Option<Self> {
                Self::try_from(text.parse::<$held>().ok()?).ok()
            }
        })*
    };
}

numbers! { u16: i32, u32: i32, u64: i64, i32: i32, }

macro_rules! wrapped {
    ($($kind:ident: $inner:ty,)*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                self.0.put(line);
            }
            fn parse(text: &str) -> Option<Self> {
                <$inner as Word>::parse(text).map(Self)
            }
        })*
    };
}

wrapped! { Sector: u64, Sectors: u64, DeviceId: u16, Flags: u16, }

macro_rules! named {
    ($($kind:ident),*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                line.extend_from_slice(self.name().as_bytes());
            }
            fn parse(text: &str) -> Option<Self> {
                Self::from_name(text)
            }
        })*
    };
}

named! { DelayReason, Outcome, Op }

impl Word for Nanos {
    fn put(self, line: &mut Vec<u8>) {
        _ = write!(line, "{}", self.0);
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self).filter(|time| time.is_time())
    }
}

impl Word for bool {
    fn put(self, line: &mut Vec<u8>) {
        line.push(if self { b'1' } else { b'0' });
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
}

impl<T: Word> Word for Option<T> {
    fn put(self, line: &mut Vec<u8>) {
        match self {
            Some(known) => known.put(line),
            None => line.push(b'-'),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "-" { Some(None) } else { T::parse(text).map(Some) }
    }
}

macro_rules! details {
    ($($field:ident $name:literal,)*) => {
        /// A name, by the field that it sets.
        #[derive(Clone, Copy)]
        #[expect(non_camel_case_types, reason = "they are the names of fields")]
        enum Name {
            $($field,)*
        }

        impl Name {
            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($name => Some(Self::$field),)*
                    _ => None,
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)*
                }
            }
        }

        /// Appends the values of `names`, and those that `record` does not share with `plain`.
        fn put_values(line: &mut Vec<u8>, record: &IoResult, plain: &IoResult, names: Names) {
            $(if record.$field != plain.$field || names.has(Name::$field) {
                line.extend_from_slice(concat!(" ", $name, "=").as_bytes());
                record.$field.put(line);
            })*
        }

        /// Sets the value of that name. False if it cannot be parsed.
        fn set(record: &mut IoResult, name: Name, text: &str) -> bool {
            match name {
                $(Name::$field => Word::parse(text).map(|value| record.$field = value).is_some(),)*
            }
        }
    };
}

details! {
    request "request", iteration "iteration", device "device", op "op", scheduled "scheduled_ns", sector "sector",
    sectors "sectors", source_sector "source_sector", flags "flags", issued "issued_ns", completed "completed_ns",
    ready "ready_ns", submitted "submitted_ns", last_empty_poll "last_empty_poll_ns", bytes_done "bytes_done",
    in_flight "in_flight", waiting "waiting", pushed_back "pushed_back", widened "widened",
    delay_reason "delay_reason", outcome "outcome", errno "errno", stream "stream", cause "cause",
}

/// A set of names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names(u32);

impl Names {
    const fn of(names: &[Name]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < names.len() {
            set |= 1 << names[index] as u32;
            index += 1;
        }
        Self(set)
    }

    const fn has(self, name: Name) -> bool {
        self.0 & 1 << name as u32 != 0
    }
}

/// What the six columns say.
const COLUMNS: [Name; 7] =
    [Name::scheduled, Name::sector, Name::sectors, Name::op, Name::issued, Name::completed, Name::pushed_back];
/// What a row without columns begins with.
const BEGINNING: [Name; 5] = [Name::request, Name::scheduled, Name::op, Name::sector, Name::sectors];

/// What must be said of a request that ended like this, even if it is the default: a detail that damage removed is missed.
fn required(outcome: Outcome, has_columns: bool) -> &'static [Name] {
    match (outcome, has_columns) {
        (Outcome::Error, true) => &[Name::errno],
        (Outcome::Error, false) => &[Name::errno, Name::issued, Name::completed],
        (Outcome::Ok | Outcome::Short | Outcome::Corrupt, false) => &[Name::issued, Name::completed],
        _ => &[],
    }
}

/// Why no request has these values together; see `docs/schema.md`.
pub fn contradiction(record: &IoResult) -> Option<&'static str> {
    let (is_issued, is_completed) = (record.issued.is_some(), record.completed.is_some());
    if record.outcome.is_skipped() && (is_issued || is_completed) {
        Some("a request that was never issued has times")
    } else if record.outcome == Outcome::Unfinished && is_completed {
        Some("a request that never completed has a completion")
    } else if is_completed && !is_issued {
        Some("a request completed that was never issued")
    } else if record.outcome != Outcome::Error && record.errno != 0 {
        Some("a request without an error has an error number")
    } else {
        None
    }
}

/// Whether there is any known detail.
pub fn has_names(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace);
    words.any(|word| {
        let name = word.split(|&byte| byte == b'=').next().filter(|name| name.len() < word.len());
        name.and_then(|name| std::str::from_utf8(name).ok()).and_then(Name::parse).is_some()
    })
}

/// Appends the seventh column for a row that reads as `plain` without it; nothing if they are equal.
pub fn put_column(line: &mut Vec<u8>, record: &IoResult, plain: &IoResult) {
    if record == plain {
        return;
    }
    line.extend_from_slice(b" ; request=");
    record.request.put(line);
    let names = Names::of(required(record.outcome, true));
    put_values(line, record, &with_details(*plain, record.request), names);
}

/// Appends all values of a row.
pub fn put_row(line: &mut Vec<u8>, record: &IoResult) {
    let IoResult { request, scheduled, op, sector, sectors, .. } = *record;
    _ = write!(
        line,
        " request={request} scheduled_ns={} op={} sector={} sectors={}",
        scheduled.0,
        op.name(),
        sector.0,
        sectors.0
    );
    let names = Names::of(required(record.outcome, false));
    put_values(line, record, &IoResult::of(&Request::new(scheduled, op, sector, sectors), request), names);
}

/// Adds the seventh column to a row without it.
pub fn apply_column(record: &mut IoResult, text: &[u8]) -> Result<(), Damage> {
    let mut read = with_details(*record, record.request);
    let stated = apply(&mut read, text)?;
    if let Some(name) = COLUMNS.into_iter().find(|&name| stated.has(name)) {
        return Err(Damage::InColumn(name.text()));
    }
    check(&read, stated, &[Name::request], true)?;
    *record = read;
    Ok(())
}

/// The row that [`put_row`] wrote.
pub fn parse_row(text: &[u8]) -> Result<IoResult, Damage> {
    let mut row = IoResult::of(&Request::new(Nanos(0), Op::Read, Sector(0), Sectors(0)), 0);
    let stated = apply(&mut row, text)?;
    if !stated.has(Name::source_sector) {
        row.source_sector = row.sector;
    }
    check(&row, stated, &BEGINNING, false)?;
    Ok(row)
}

/// A row that has details, before they are applied. Only they say that the reason for a delay is known.
fn with_details(plain: IoResult, request: u64) -> IoResult {
    IoResult { request, delay_reason: DelayReason::None, ..plain }
}

/// Sets the values, and returns their names.
fn apply(record: &mut IoResult, text: &[u8]) -> Result<Names, Damage> {
    let mut stated = Names(0);
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let parts = std::str::from_utf8(word).ok().and_then(|word| word.split_once('='));
        let (name, value) = parts.ok_or_else(|| Damage::NoWord(excerpt(word)))?;
        let name = Name::parse(name).ok_or_else(|| Damage::Unknown(excerpt(name.as_bytes())))?;
        if stated.has(name) {
            return Err(Damage::Twice(name.text()));
        }
        if !set(record, name, value) {
            return Err(Damage::Value(name.text()));
        }
        stated.0 |= Names::of(&[name]).0;
    }
    Ok(stated)
}

/// Checks that everything was said, and that it can be true.
fn check(row: &IoResult, stated: Names, first: &[Name], has_columns: bool) -> Result<(), Damage> {
    let required = required(row.outcome, has_columns);
    if let Some(name) = first.iter().chain(required).find(|&&name| !stated.has(name)) {
        return Err(Damage::Missing(name.text()));
    }
    if !fits(row.sector, row.sectors) || !fits(row.source_sector, row.sectors) {
        return Err(Damage::TooFar);
    }
    contradiction(row).map_or(Ok(()), |what| Err(Damage::Contradiction(what)))
}

fn fits(sector: Sector, sectors: Sectors) -> bool {
    sector.0.checked_add(sectors.0).is_some_and(|end| end <= MAX_END_SECTOR)
}
