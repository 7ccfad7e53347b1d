//! Splits lines into columns, and finds those that a heading names.

use crate::description::field::{Field, Place, Raw, Role, Slots};
use crate::description::{Layout, Separator};
use crate::rows::{Words, excerpt};

/// Lines among which a heading is looked for; those before it are a preamble.
pub const HEADING_LINES: u64 = 50;

/// The wanted columns of a file.
pub struct Columns {
    separator: Option<Separator>,
    fields: Vec<Field>,
    /// Columns from 0, in order.
    wanted: Vec<(usize, Role)>,
    /// Columns from the end, where the last one is -1.
    from_end: Vec<(i32, Role)>,
    heading: Heading,
    /// Where the columns of a line begin and end.
    ends: Vec<(usize, usize)>,
}

#[derive(PartialEq, Eq)]
enum Heading {
    /// Columns have numbers.
    None,
    /// It was not seen yet, in so many lines; what the most similar one of them lacks.
    Expected {
        lines: u64,
        lacks: Option<String>,
    },
    Found(Box<[u8]>),
}

/// What a line is.
pub enum Line {
    Row,
    /// In front of the heading, or a heading.
    Nothing,
    /// A heading: fields with a unit in brackets behind their name.
    Heading(Vec<(Role, String)>),
}

/// The separators that are tried, in this order.
const SEPARATORS: [Separator; 5] =
    [Separator::Byte(b','), Separator::Byte(b';'), Separator::Byte(b'\t'), Separator::Byte(b'|'), Separator::Blanks];

impl Columns {
    pub fn new(layout: &Layout, fields: &[Field]) -> Self {
        let Layout::Columns(separator) = *layout else { unreachable!("only lines of columns are split") };
        let mut columns = Self {
            separator,
            fields: fields.to_vec(),
            wanted: Vec::new(),
            from_end: Vec::new(),
            heading: Heading::None,
            ends: Vec::new(),
        };
        if fields.iter().any(|field| matches!(field.place, Place::Names(_))) {
            columns.heading = Heading::Expected { lines: 0, lacks: None };
        } else {
            columns.place(&[]);
        }
        columns
    }

    /// Whether a heading was expected and not found.
    pub fn lacks_heading(&self) -> bool {
        matches!(self.heading, Heading::Expected { .. })
    }

    /// The error for a file without its heading.
    pub fn no_heading(&self) -> String {
        match &self.heading {
            Heading::Expected { lacks: Some(lacks), .. } => lacks.clone(),
            _ => format!("no line names the columns {}", self.names(|_| true)),
        }
    }

    /// The names of columns that must be there, as far as they are wanted.
    fn names(&self, is_wanted: impl Fn(&[String]) -> bool) -> String {
        let required = self.fields.iter().filter(|field| !field.is_optional);
        let names = required.filter_map(|field| match &field.place {
            Place::Names(names) if is_wanted(names) => Some(names[0].as_str()),
            _ => None,
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// Enters the columns of a line into the slots of their roles.
    #[inline]
    pub fn split<'l>(&mut self, line: &'l [u8], slots: &mut Slots<'l>) -> Result<Line, &'static str> {
        if let Heading::Expected { .. } = self.heading {
            return self.find_heading(line);
        }
        let separator = match self.separator {
            Some(separator) => separator,
            None => self.choose(line),
        };
        // Other blanks at the ends belong to no column.
        let line = if separator == Separator::Byte(b'\t') { line } else { line.trim_ascii() };
        let is_whole = if self.from_end.is_empty() {
            match separator {
                Separator::Byte(byte) => take(&self.wanted, Fields { rest: Some(line), separator: byte }, slots),
                Separator::Blanks => take(&self.wanted, Words::of(line), slots),
            }
        } else {
            self.split_from_end(line, separator, slots)
        };
        if is_whole {
            return Ok(Line::Row);
        }
        self.is_heading(line).then_some(Line::Nothing).ok_or("fewer columns than the description has")
    }

    /// Whether it is the heading, again.
    #[cold]
    pub fn is_heading(&self, line: &[u8]) -> bool {
        matches!(&self.heading, Heading::Found(heading) if **heading == *line.trim_ascii())
    }

    fn split_from_end<'l>(&mut self, line: &'l [u8], separator: Separator, slots: &mut Slots<'l>) -> bool {
        let begin = line.as_ptr() as usize;
        let range = |field: &[u8]| (field.as_ptr() as usize - begin, field.as_ptr() as usize - begin + field.len());
        self.ends.clear();
        match separator {
            Separator::Byte(separator) => self.ends.extend(Fields { rest: Some(line), separator }.map(range)),
            Separator::Blanks => self.ends.extend(Words::of(line).map(range)),
        }
        let count = self.ends.len();
        let from_end =
            self.from_end.iter().map(|&(back, role)| (count.checked_sub(back.unsigned_abs() as usize), role));
        for (column, role) in self.wanted.iter().map(|&(column, role)| (Some(column), role)).chain(from_end) {
            let Some(&(from, to)) = column.and_then(|column| self.ends.get(column)) else { return false };
            slots[role as usize] = Raw::Text(&line[from..to]);
        }
        true
    }

    /// Chooses the separator that gives a line enough columns.
    #[cold]
    fn choose(&mut self, line: &[u8]) -> Separator {
        let last = self.wanted.last().map_or(0, |(column, _)| *column);
        let back = self.from_end.iter().map(|(column, _)| column.unsigned_abs() as usize).max().unwrap_or(0);
        let needed = (last + 1).max(back).max(2);
        let fits = |separator: &&Separator| fields_of(line, **separator).len() >= needed;
        let chosen = SEPARATORS.iter().find(fits).copied();
        // A line that is no row chooses nothing.
        self.separator = chosen;
        chosen.unwrap_or(Separator::Blanks)
    }

    /// Whether a line names the columns; then these are known.
    #[cold]
    fn find_heading(&mut self, line: &[u8]) -> Result<Line, &'static str> {
        // A comment may name the columns.
        let bare = line.trim_ascii_start().strip_prefix(b"#").unwrap_or(line);
        let mut similar = None;
        let candidates: Vec<Separator> = self.separator.map_or(SEPARATORS.to_vec(), |one| vec![one]);
        for separator in candidates {
            let headings = fields_of(bare, separator);
            let has = |names: &[String]| find(names, &headings).is_some();
            if self.fields.iter().any(|field| matches!(&field.place, Place::Names(names) if has(names)))
                && !self.has_all(&headings)
            {
                let lacks = self.names(|names| !has(names));
                similar = Some(format!("the heading `{}` lacks {lacks}", excerpt(line)));
            }
            if self.has_all(&headings) {
                self.separator = Some(separator);
                let units = self.place(&headings);
                self.heading = Heading::Found(line.trim_ascii().into());
                return Ok(Line::Heading(units));
            }
        }
        let Heading::Expected { lines, lacks } = &mut self.heading else { return Ok(Line::Nothing) };
        *lines += 1;
        *lacks = lacks.take().or(similar);
        if *lines > HEADING_LINES { Err("no line before it names the columns") } else { Ok(Line::Nothing) }
    }

    /// Whether a heading names all columns that must be there, and a time.
    fn has_all(&self, headings: &[&[u8]]) -> bool {
        let has = |field: &Field| match &field.place {
            Place::Names(names) => find(names, headings).is_some(),
            _ => true,
        };
        let role = |role: Role| self.fields.iter().any(|field| field.role == role && has(field));
        let has_time = role(Role::At) || role(Role::Completed) && role(Role::Latency);
        has_time && self.fields.iter().all(|field| field.is_optional || has(field))
    }

    /// Finds the wanted columns; returns the units behind the names.
    fn place(&mut self, headings: &[&[u8]]) -> Vec<(Role, String)> {
        let mut units = Vec::new();
        for field in &self.fields {
            match &field.place {
                Place::Column(number @ 0..) => self.wanted.push((*number as usize, field.role)),
                Place::Column(number) => self.from_end.push((*number, field.role)),
                Place::Names(names) => {
                    let Some(index) = find(names, headings) else { continue };
                    self.wanted.push((index, field.role));
                    units.extend(unit(headings[index]).map(|unit| (field.role, unit)));
                }
                Place::Group | Place::Bytes(_) | Place::Always => {}
            }
        }
        self.wanted.sort_unstable();
        units
    }
}

/// Enters the wanted columns; false if the line has too few.
#[inline]
fn take<'l>(wanted: &[(usize, Role)], fields: impl Iterator<Item = &'l [u8]>, slots: &mut Slots<'l>) -> bool {
    let mut wanted = wanted.iter();
    let Some(mut next) = wanted.next() else { return true };
    for (column, field) in fields.enumerate() {
        while next.0 == column {
            slots[next.1 as usize] = Raw::Text(field);
            match wanted.next() {
                Some(following) => next = following,
                None => return true,
            }
        }
    }
    false
}

fn fields_of(line: &[u8], separator: Separator) -> Vec<&[u8]> {
    match separator {
        Separator::Byte(separator) => Fields { rest: Some(line), separator }.collect(),
        Separator::Blanks => Words::of(line).collect(),
    }
}

/// The column that has one of these names, in any case.
fn find(names: &[String], headings: &[&[u8]]) -> Option<usize> {
    let find = |is: fn(&[u8], &str) -> bool| {
        names.iter().find_map(|name| headings.iter().position(|heading| is(heading, name.trim())))
    };
    find(|heading, name| heading.eq_ignore_ascii_case(name.as_bytes()))
        .or_else(|| find(|heading, name| without_unit(heading).eq_ignore_ascii_case(name.as_bytes())))
}

/// A heading without the unit in brackets behind its name: `Size (B)`.
fn without_unit(heading: &[u8]) -> &[u8] {
    match memchr::memrchr(b'(', heading) {
        Some(open) if heading.ends_with(b")") => heading[..open].trim_ascii(),
        _ => heading,
    }
}

fn unit(heading: &[u8]) -> Option<String> {
    let open = memchr::memrchr(b'(', heading)?;
    Some(String::from_utf8_lossy(heading[open + 1..].strip_suffix(b")")?).into_owned())
}

/// The columns of a line with a separator. Those in quotes may contain it.
struct Fields<'l> {
    rest: Option<&'l [u8]>,
    separator: u8,
}

impl<'l> Iterator for Fields<'l> {
    type Item = &'l [u8];

    #[inline]
    fn next(&mut self) -> Option<&'l [u8]> {
        let line = self.rest?;
        match line.first() {
            Some(b'"') => return Some(self.quoted(line)),
            // A blank in front of a quote.
            Some(b' ') if line.trim_ascii_start().starts_with(b"\"") => {
                return Some(self.quoted(line.trim_ascii_start()));
            }
            _ => {}
        }
        match line.iter().position(|&byte| byte == self.separator) {
            Some(end) => {
                self.rest = Some(&line[end + 1..]);
                Some(line[..end].trim_ascii())
            }
            None => {
                self.rest = None;
                Some(line.trim_ascii())
            }
        }
    }
}

impl<'l> Fields<'l> {
    /// A column in quotes, without these. Quotes in it are doubled. If there is no closing quote, it ends with the line.
    #[cold]
    fn quoted(&mut self, line: &'l [u8]) -> &'l [u8] {
        let mut at = 1;
        let end = loop {
            match memchr::memchr(b'"', &line[at..]) {
                None => break line.len(),
                Some(length) if line.get(at + length + 1) == Some(&b'"') => at += length + 2,
                Some(length) => break at + length,
            }
        };
        let after = line.get(end + 1..).unwrap_or_default();
        self.rest = after.iter().position(|&byte| byte == self.separator).map(|next| &after[next + 1..]);
        line[1.min(end)..end].trim_ascii()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(line: &str) -> Vec<&str> {
        fields_of(line.as_bytes(), Separator::Byte(b',')).into_iter().map(|f| std::str::from_utf8(f).unwrap()).collect()
    }

    #[test]
    fn columns_in_quotes_may_contain_separators() {
        assert_eq!(fields("a,\"1,234\", \"b \"\"c\"\"\" ,d"), ["a", "1,234", "b \"\"c\"\"", "d"]);
        assert_eq!(fields("\"open,a"), ["open,a"]);
        assert_eq!(fields("\"\",\""), ["", ""]);
        assert_eq!(fields(",,"), ["", "", ""]);
        assert_eq!(fields(""), [""]);
    }

    #[test]
    fn a_heading_may_have_units_behind_its_names() {
        let headings: [&[u8]; 3] = [b"Init Time (us)", b"Size (B)", b"size"];
        assert_eq!(find(&["size".into()], &headings), Some(2));
        assert_eq!(find(&["x".into(), "init time".into()], &headings), Some(0));
        assert_eq!(unit(headings[0]).as_deref(), Some("us"));
        assert_eq!(unit(headings[2]), None);
    }

    proptest! {
        #[test]
        fn columns_without_quotes_are_those_of_split(line in "[a-c, ;]{0,80}") {
            let expected: Vec<&str> = line.split(',').map(|field| field.trim_matches(' ')).collect();
            prop_assert_eq!(fields(&line), expected);
        }
    }
}
