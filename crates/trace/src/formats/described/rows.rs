//! Reads the rows of a described trace: lines of columns, lines that a pattern matches, or records.

use std::sync::Arc;

use regex::bytes::{CaptureLocations, Regex};

use super::columns::{Columns, Line};
use super::request::Requests;
use crate::description::field::{Bytes, Place, Raw, Role, Slots};
use crate::description::{Description, Layout, Others};
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::rows::{Context, LineFormat, Parsed};

/// The reader of the rows of one file.
pub struct Rows {
    description: Arc<Description>,
    requests: Requests,
    split: Split,
    skipped: u64,
    /// Whether lines may be separated by tabs, or are no text.
    keeps_blanks: bool,
    /// Whether no row came yet: the first line may be a heading.
    is_first: bool,
}

enum Split {
    Columns(Columns),
    Pattern { regex: Regex, groups: Vec<(usize, Role)>, found: CaptureLocations, others: Others },
    Records(Vec<(Bytes, Role)>),
}

impl Rows {
    pub fn new(description: &Arc<Description>) -> Self {
        let fields = &description.fields;
        let split = match &description.layout {
            layout @ Layout::Columns(_) => Split::Columns(Columns::new(layout, fields)),
            Layout::Pattern(regex, others) => Split::Pattern {
                groups: regex
                    .capture_names()
                    .enumerate()
                    .filter_map(|(index, name)| Some((index, Role::from_name(name?)?)))
                    .collect(),
                found: regex.capture_locations(),
                regex: regex.clone(),
                others: *others,
            },
            Layout::Records(_) => Split::Records(
                fields
                    .iter()
                    .filter_map(|field| match field.place {
                        Place::Bytes(bytes) => Some((bytes, field.role)),
                        _ => None,
                    })
                    .collect(),
            ),
        };
        Self {
            requests: Requests::new(description.units.clone()),
            split,
            skipped: 0,
            keeps_blanks: !matches!(description.layout, Layout::Pattern(..)),
            is_first: true,
            description: Arc::clone(description),
        }
    }

    /// Whether a line at the beginning of a file names its columns.
    pub fn finds_heading(&mut self, line: &[u8]) -> bool {
        let Split::Columns(columns) = &mut self.split else { return false };
        matches!(columns.split(line, &mut Slots::default()), Ok(Line::Heading(_)))
    }
}

impl Rows {
    fn expects_heading(&self) -> bool {
        matches!(&self.split, Split::Columns(columns) if columns.lacks_heading())
    }

    /// Whether a line that is no row is a heading: words in all wanted columns of the first line, or the heading once more.
    #[cold]
    fn is_heading(&self, line: &[u8], slots: &Slots<'_>, is_first: bool) -> bool {
        let Split::Columns(columns) = &self.split else { return false };
        let is_word = |raw: &Raw<'_>| match raw {
            Raw::Text(text) => text.first().is_some_and(|byte| !byte.is_ascii_digit() && !b"+-.".contains(byte)),
            _ => true,
        };
        columns.is_heading(line) || is_first && slots.iter().all(is_word)
    }
}

impl LineFormat for Rows {
    type Item = Request;

    // A blank column at the end of a line, or at its beginning, may be one between tabs.
    const KEEPS_BLANKS: bool = true;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        let line = if self.keeps_blanks { line } else { line.trim_ascii() };
        if self.skipped < self.description.skip {
            self.skipped += 1;
            return Parsed::Nothing;
        }
        let is_ignored =
            |line: &[u8]| self.description.ignore.iter().any(|start| line.trim_ascii_start().starts_with(start));
        // The heading may be a comment.
        if !self.description.ignore.is_empty() && is_ignored(line) && !self.expects_heading() {
            return Parsed::Nothing;
        }
        let mut slots = Slots::default();
        let is_row = match &mut self.split {
            Split::Columns(columns) => match columns.split(line, &mut slots) {
                Ok(Line::Row) => Ok(true),
                Ok(Line::Nothing) => Ok(false),
                Ok(Line::Heading(units)) => {
                    for (role, unit) in units {
                        if self.requests.units.from_heading.contains(&role) {
                            self.requests.units.read_heading(role, &unit);
                        }
                    }
                    Ok(false)
                }
                Err(problem) => Err(problem),
            },
            Split::Pattern { regex, groups, found, others } => match regex.captures_read(found, line) {
                Some(_) => {
                    for &(group, role) in &*groups {
                        if let Some((from, to)) = found.get(group) {
                            slots[role as usize] = Raw::Text(line[from..to].trim_ascii());
                        }
                    }
                    Ok(true)
                }
                None if *others == Others::Ignored => Ok(false),
                None => Err("the pattern does not match"),
            },
            Split::Records(fields) => {
                for &(bytes, role) in &*fields {
                    slots[role as usize] = bytes.of(line).map_or(Raw::Missing, Raw::Number);
                }
                Ok(true)
            }
        };
        let made = match is_row {
            Ok(true) => self.requests.of(&slots, context),
            Ok(false) => return Parsed::Nothing,
            Err(problem) => return Parsed::Bad(problem),
        };
        let is_first = std::mem::take(&mut self.is_first);
        match made {
            Ok(Some(request)) => Parsed::Row(request),
            Ok(None) => Parsed::Nothing,
            Err(_) if self.is_heading(line, &slots, is_first) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        self.requests.conclude(about);
        if let Split::Columns(columns) = &self.split
            && columns.lacks_heading()
        {
            about.warning(columns.no_heading());
        }
    }
}
