//! Parses a line of the classic text: `seconds ; sector ; length ; op ; delay ; duration`.

use std::fmt;

use crate::model::units::MAX_END_SECTOR;
use crate::text::number::{NumberError, decimal, span, whole};

use super::{comments, load_comment};

/// A parsed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Nanoseconds.
    pub start: i64,
    pub sector: u64,
    pub sectors: u64,
    /// The first letter of the operation: `R` or `W`, lower-case if the request was pushed back.
    pub op: u8,
    /// Nanoseconds; 0 if a load does not have it.
    pub delay: i64,
    /// Nanoseconds; 0 if a load does not have it.
    pub duration: i64,
}

/// The columns that are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Those of a load. The delay and the duration of the original are optional; what is no time is ignored.
    Four,
    /// Those of a result: all are required.
    Six,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    Row(Row),
    /// Begins like a row but is not one.
    Bad(Problem),
    /// The column names of a load.
    LoadColumns,
    /// The column names of a result.
    ResultColumns,
    /// A comment of iosonar in a result, without [`comments::PREFIX`].
    Comment(&'a [u8]),
    /// What a load lacks, without [`load_comment::PREFIX`].
    Lost(&'a [u8]),
    /// Empty, or another comment.
    Nothing,
    /// Anything else.
    Text,
}

/// Why a line is not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Columns,
    Time,
    NegativeTime,
    Sector,
    Length,
    TooLarge,
    Op,
    Delay,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Columns => "fewer columns than start; sector; length; op (in a result also delay; duration)",
            Self::Time => "the start is not a number of seconds",
            Self::NegativeTime => "the start is negative",
            Self::Sector => "the sector is not a whole number",
            Self::Length => "the length is not a whole number",
            Self::TooLarge => "a number is larger than any device or clock",
            Self::Op => "the operation does not begin with R or W",
            Self::Delay => "the delay or the duration is not a number of seconds",
        })
    }
}

/// Determines the kind of a line.
pub fn classify(line: &[u8], columns: Columns) -> Kind<'_> {
    let line = line.trim_ascii();
    match line.first() {
        None => Kind::Nothing,
        Some(b'#') => match (line.strip_prefix(comments::PREFIX), line.strip_prefix(load_comment::PREFIX)) {
            (Some(text), _) => Kind::Comment(text),
            (_, Some(text)) => Kind::Lost(text),
            _ => Kind::Nothing,
        },
        Some(b'0'..=b'9' | b'.') if line.contains(&b';') => match parse(line, columns) {
            Ok(row) => Kind::Row(row),
            Err(problem) => Kind::Bad(problem),
        },
        Some(b'-' | b'+') if line.get(1).is_some_and(u8::is_ascii_digit) && line.contains(&b';') => {
            Kind::Bad(if line[0] == b'-' { Problem::NegativeTime } else { Problem::Time })
        }
        Some(b's' | b'S' | b'o' | b'O') => column_line(line),
        Some(_) => Kind::Text,
    }
}

fn column_line(line: &[u8]) -> Kind<'_> {
    let mut fields = line.split(|&b| b == b';').map(|field| field.trim_ascii().to_ascii_lowercase());
    let kind = match fields.next().as_deref() {
        Some(b"start") => Kind::LoadColumns,
        Some(b"orig_start") => Kind::ResultColumns,
        _ => return Kind::Text,
    };
    if fields.next().as_deref() == Some(b"sector") { kind } else { Kind::Text }
}

fn parse(line: &[u8], columns: Columns) -> Result<Row, Problem> {
    let mut rest = line;
    let start = seconds(field(&mut rest).ok_or(Problem::Columns)?).map_err(|e| problem(e, Problem::Time))?;
    let sector = whole(field(&mut rest).ok_or(Problem::Columns)?).map_err(|e| problem(e, Problem::Sector))?;
    let sectors = whole(field(&mut rest).ok_or(Problem::Columns)?).map_err(|e| problem(e, Problem::Length))?;
    if sector.checked_add(sectors).is_none_or(|end| end > MAX_END_SECTOR) {
        return Err(Problem::TooLarge);
    }
    let op = match field(&mut rest).ok_or(Problem::Columns)?.first() {
        Some(&op @ (b'R' | b'W' | b'r' | b'w')) => op,
        _ => return Err(Problem::Op),
    };
    let mut row = Row { start, sector, sectors, op, delay: 0, duration: 0 };
    for value in [&mut row.delay, &mut row.duration] {
        // One that is too large is impossible, as a longest one is.
        let read = |text| span(text, 9);
        match (columns, field(&mut rest)) {
            (Columns::Four, text) => *value = text.and_then(|text| read(text).ok()).unwrap_or(0),
            (Columns::Six, None) => return Err(Problem::Columns),
            (Columns::Six, Some(text)) => *value = read(text).map_err(|e| problem(e, Problem::Delay))?,
        }
    }
    Ok(row)
}

/// The seventh column of a row, if it has one.
pub fn details(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..6 {
        field(&mut rest)?;
    }
    field(&mut rest)
}

/// The next field, without the white space around it.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = rest.iter().position(|&b| b == b';').unwrap_or(rest.len());
    let field = rest[..end].trim_ascii();
    *rest = rest.get(end + 1..).unwrap_or_default();
    Some(field)
}

/// The problem of a field that cannot be parsed as a number.
fn problem(error: NumberError, not_a_number: Problem) -> Problem {
    match error {
        NumberError::NotANumber => not_a_number,
        NumberError::TooLarge => Problem::TooLarge,
    }
}

fn seconds(text: &[u8]) -> Result<i64, NumberError> {
    decimal(text, 9)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(line: &str) -> Kind<'_> {
        classify(line.as_bytes(), Columns::Four)
    }

    fn row(start: i64, sector: u64, sectors: u64, op: u8) -> Kind<'static> {
        Kind::Row(Row { start, sector, sectors, op, delay: 0, duration: 0 })
    }

    #[test]
    fn white_space_is_ignored_and_the_last_columns_are_optional() {
        let expected = row(1_500_000_000, 8, 16, b'R');
        for line in [
            "1.5;8;16;R",
            "  1.500000000 ;          8 ;  16 ; R ; 0.0 ; 0.0",
            "\t1.5 ;8; 16 ;R;",
            "1.5;8;16;RA;what;ever;more",
            "01.50;008;16;R;;",
        ] {
            assert_eq!(load(line), expected, "{line}");
        }
    }

    #[test]
    fn fractions_may_have_any_number_of_digits() {
        for (text, ns) in [
            ("0.5", 500_000_000),
            (".5", 500_000_000),
            ("5.", 5_000_000_000),
            ("5", 5_000_000_000),
            ("0.000000001", 1),
            ("0.0000000014", 1),
            ("0.0000000015", 2),
            ("0.99999999999999999999", 1_000_000_000),
        ] {
            assert_eq!(load(&format!("{text};0;1;w")), row(ns, 0, 1, b'w'), "{text}");
        }
    }

    #[test]
    fn bad_rows_have_a_reason() {
        for (line, problem) in [
            ("1;2;3", Problem::Columns),
            ("1x;2;3;R", Problem::Time),
            (".;2;3;R", Problem::Time),
            ("1e3;2;3;R", Problem::Time),
            ("-1;2;3;R", Problem::NegativeTime),
            ("1;-2;3;R", Problem::Sector),
            ("1;2;3.5;R", Problem::Length),
            ("1;;3;R", Problem::Sector),
            ("1;99999999999999999999;3;R", Problem::TooLarge),
            ("1;18014398509481983;1;R", Problem::TooLarge),
            ("99999999999;2;3;R", Problem::TooLarge),
            ("1;2;3;X", Problem::Op),
            ("1;2;3;", Problem::Columns),
            ("1;2;3; ;", Problem::Op),
        ] {
            assert_eq!(load(line), Kind::Bad(problem), "{line}");
        }
        assert_eq!(classify(b"1;2;3;R;0.1", Columns::Six), Kind::Bad(Problem::Columns));
        assert_eq!(classify(b"1;2;3;R;x;0.1", Columns::Six), Kind::Bad(Problem::Delay));
    }

    #[test]
    fn lines_other_than_rows_have_their_kinds() {
        assert_eq!(load("start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0"), Kind::LoadColumns);
        assert_eq!(load("orig_start ; sector; length ; op ;  replay_delay; replay_duration"), Kind::ResultColumns);
        assert_eq!(load("started at noon; or so"), Kind::Text);
        assert_eq!(load("# 1;2;3;R"), Kind::Nothing);
        assert_eq!(load("  "), Kind::Nothing);
        assert_eq!(load("any medium; without royalty"), Kind::Text);
        assert_eq!(load("2012"), Kind::Text);
    }

    proptest! {
        #[test]
        fn any_row_is_parsed(ns in 0..i64::MAX, sector in 0_u64..1 << 50, sectors in 0_u64..1 << 30, delay in 0_i64..1 << 50) {
            let line = format!("{}.{:09} ; {sector} ; {sectors} ; W ; {}.{:09} ; 0.25", ns / 1_000_000_000, ns % 1_000_000_000,
                delay / 1_000_000_000, delay % 1_000_000_000);
            let expected = Row { start: ns, sector, sectors, op: b'W', delay, duration: 250_000_000 };
            prop_assert_eq!(classify(line.as_bytes(), Columns::Six), Kind::Row(expected));
        }

        #[test]
        fn any_line_has_a_kind(line in prop::collection::vec(any::<u8>(), 0..60)) {
            classify(&line, Columns::Four);
            classify(&line, Columns::Six);
        }

        #[test]
        fn any_line_like_a_row_has_a_kind(line in "[-+0-9.;RrWw ]{0,60}") {
            classify(line.as_bytes(), Columns::Four);
            classify(line.as_bytes(), Columns::Six);
        }
    }
}
