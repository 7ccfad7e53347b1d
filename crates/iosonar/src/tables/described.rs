//! What the commands say about a kind of rows.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use iosonar_trace::{Nanos, Reader, Row};
use serde_json::{Map, Value};

use super::opened::{Job, Opened};
use crate::console;

/// What the commands say about a kind of rows: one impl for each.
pub trait Described: Row {
    /// Totals over all rows, for `info`.
    type Summary;
    /// What may be missing or wrong in a file.
    const LOSSES: &'static [Loss];
    /// Adds the lines for people, from the JSON object.
    const LINES: fn(&Value, &mut Lines);
    /// What comes after all lines.
    const AFTER: fn(&Value) -> String = |_| String::new();
    /// The rows by their kinds in `counts`, as ` (3 reads, …)`.
    const MIX: fn(&Value) -> String = |_| String::new();

    /// Whether rows end later than at the times in the span.
    const HAS_END: bool = false;

    /// When the row ends, if [`Described::HAS_END`].
    fn end(&self) -> Nanos {
        Nanos::ZERO
    }

    /// The totals of no rows from a time on. Nothing was read yet.
    fn summary(rows: &dyn Reader<Self>, from: Option<Nanos>) -> Self::Summary;

    /// Adds a row.
    fn add(summary: &mut Self::Summary, row: &Self);

    /// Leaves out a row, from which later ones may follow.
    fn pass(_summary: &mut Self::Summary, _row: &Self) {}

    /// The time by which the row belongs to a window.
    fn due(&self, known: &Self::Metadata) -> Nanos;

    /// Adds the row to the totals.
    fn count(&self, totals: &mut Self::Metadata);

    /// Enters the totals into the JSON object, which has the metadata.
    fn enter(summary: Self::Summary, metadata: &Self::Metadata, object: &mut Map<String, Value>);

    /// Converts a file.
    fn convert(file: Opened<Self>, job: &Job<'_>) -> Result<()>;

    /// What a conversion wrote, from the metadata of its input.
    fn written(_output: &Path, read: Self::Metadata) -> Self::Metadata {
        read
    }

    /// Joins the parts of a killed recording; returns the number of rows. `None` if it has a single one.
    fn rejoin(_hidden: &Path, _output: &Path) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A count of what is missing or wrong.
pub struct Loss {
    /// Its key in `counts`.
    pub key: &'static str,
    /// Its name in `info`.
    pub name: &'static str,
    /// What follows the number there.
    pub what: &'static str,
    /// What follows the number in a warning after a conversion; empty without one.
    pub warning: &'static str,
}

impl Loss {
    /// A count of what is missing or wrong.
    pub const fn new(key: &'static str, name: &'static str, what: &'static str, warning: &'static str) -> Self {
        Self { key, name, what, warning }
    }
}

/// What `info` prints.
pub struct Info {
    /// As JSON.
    pub object: Value,
    /// For people.
    pub text: String,
}

/// Lines of a name and a value.
#[derive(Default)]
pub struct Lines(pub String);

impl Lines {
    /// Adds a line, unless the value is empty.
    pub fn add(&mut self, name: &str, value: impl AsRef<str>) {
        if !value.as_ref().is_empty() {
            _ = writeln!(self.0, "{name:<11} {}", console::one_line(value.as_ref()));
        }
    }
}

/// The text of a value; empty if it is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The number of a value; 0 if it is none.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// From the first time of the rows to the last, or to `end`, if that is later.
pub fn seconds(span: &Value, end: Nanos) -> f64 {
    let time = |key: &str| Nanos(span[key].as_i64().unwrap_or(0));
    (time("last_ns").max(end) - time("first_ns")).as_secs()
}
