//! The metadata of a run in comment lines, which blkreplay's tools skip: no such line has a `;`, by which they find rows, or the
//! word ERROR, by which people find errors. It is the JSON of the footer of a table, in numbered parts:
//!
//! - `begin`, before the first row: what was known before the run. A result that was cut short has only this.
//! - `end`, after the last row: everything.
//!
//! `details` says in how many rows there is a seventh column.

use std::collections::BTreeMap;

use crate::model::metadata::{Counts, Kind, Metadata, SCHEMA_VERSION, Span};
use crate::model::run_info::{Field, RunInfo};
use crate::model::versions::FooterError;

/// The beginning of a comment line of ours.
pub const PREFIX: &[u8] = b"# iosonar-run ";
/// The word after it for a row that the six columns cannot hold.
pub const ROW: &[u8] = b"row";
const BEGIN: &str = "begin";
const END: &str = "end";
const DETAILS: &str = "details";

/// The longest part: blkreplay reads lines of 4096 bytes.
const PART_BYTES: usize = 2048;
/// Larger metadata is not ours.
const MAX_BYTES: usize = 256 << 20;

/// The comment lines before the first row.
pub fn begin(known: &Metadata) -> String {
    // Only the end says what the run did.
    let run = known.run.as_deref().map(|run| RunInfo {
        statistics: Field::Missing,
        findings: Field::Missing,
        warnings: Field::Missing,
        device_counters: Field::Missing,
        mean_in_flight: Field::Missing,
        stolen_pct: Field::Missing,
        ..run.clone()
    });
    let before = Metadata {
        counts: Counts::default(),
        span: Span::default(),
        complete: false,
        warnings: Vec::new(),
        run: run.map(Box::new),
        ..known.clone()
    };
    lines(BEGIN, &before)
}

/// The comment line with the number of rows that have a seventh column.
pub fn details(rows: u64) -> String {
    format!("# iosonar-run {DETAILS} {rows}\n")
}

/// The comment lines after the last row. `written` has the totals of the rows.
pub fn end(metadata: &Metadata, written: &Metadata) -> String {
    let Counts { requests, reads, writes, others, .. } = written.counts;
    let counts = Counts { requests, reads, writes, others, ..metadata.counts.clone() };
    lines(END, &Metadata { counts, span: written.span, ..metadata.clone() })
}

fn lines(place: &str, metadata: &Metadata) -> String {
    let metadata = Metadata { schema_version: SCHEMA_VERSION, kind: Kind::Replay, ..metadata.clone() };
    // Plain data never fails. `;` and ERROR can only be in texts, where JSON allows escapes.
    let json = serde_json::to_string(&metadata).unwrap_or_default();
    let json = json.replace(';', "\\u003b").replace("ERROR", "\\u0045RROR");
    let mut parts = Vec::new();
    let mut rest = json.as_str();
    while !rest.is_empty() {
        let mut length = rest.len().min(PART_BYTES);
        while !rest.is_char_boundary(length) {
            length -= 1;
        }
        let (part, more) = rest.split_at(length);
        parts.push(part);
        rest = more;
    }
    let all = parts.len();
    (1..).zip(parts).map(|(number, part)| format!("# iosonar-run {place} {number}/{all} {}\n", ended(part))).collect()
}

/// A part that does not end in a space, as readers of lines and editors remove those. JSON without indentation has them in
/// texts only.
fn ended(part: &str) -> String {
    part.strip_suffix(' ').map_or(part.to_owned(), |part| format!("{part}\\u0020"))
}

/// What was read of the comment lines so far.
#[derive(Default)]
pub struct CommentMetadata {
    begin: Parts,
    end: Parts,
    /// Rows with a seventh column.
    details: Option<u64>,
}

/// The lines of one place.
#[derive(Default)]
struct Parts {
    all: usize,
    bytes: usize,
    /// By number: `sort` may have moved the lines.
    read: BTreeMap<usize, Vec<u8>>,
    /// How often there was another line with the same number.
    repeated: u64,
    /// The mark of a fake result in lines that are no longer kept.
    fake: Option<String>,
}

impl CommentMetadata {
    /// Reads a comment line without [`PREFIX`]; false if it is damaged.
    pub fn take(&mut self, line: &[u8]) -> bool {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let Some((place, number)) = words.next().zip(words.next()) else { return false };
        let Ok(number) = std::str::from_utf8(number) else { return false };
        let parts = match place {
            place if place == BEGIN.as_bytes() => &mut self.begin,
            place if place == END.as_bytes() => &mut self.end,
            place if place == DETAILS.as_bytes() => {
                let Ok(rows) = number.parse::<u64>() else { return false };
                self.details = Some(self.details.unwrap_or(0).saturating_add(rows));
                return true;
            }
            _ => return false,
        };
        match (number.split_once('/').map(|(number, all)| (number.parse(), all.parse())), words.next()) {
            (Some((Ok(number), Ok(all))), Some(part)) => parts.take(number, all, part),
            _ => false,
        }
    }

    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.begin.all + self.end.all > 0 || self.details.is_some()
    }

    /// Whether there is any of those after the last row.
    pub fn has_end(&self) -> bool {
        self.end.all > 0 || self.details.is_some()
    }

    /// The number of rows with a seventh column; earlier versions did not write it.
    pub fn details(&self) -> Option<u64> {
        self.details
    }

    /// Whether lines are there again: the results of several runs are in one file.
    pub fn are_several(&self) -> bool {
        self.begin.repeated + self.end.repeated > 0
    }

    /// What was known before the run; `None` if it is missing.
    pub fn begin(&self) -> Option<Result<Metadata, FooterError>> {
        self.begin.metadata()
    }

    /// Everything; `None` if it is missing.
    pub fn end(&self) -> Option<Result<Metadata, FooterError>> {
        self.end.metadata()
    }

    /// The mark of a fake result, if any line has one.
    pub fn fake(&self) -> Option<String> {
        [&self.end, &self.begin].into_iter().find_map(|parts| parts.fake.clone().or_else(|| fake_in(&parts.joined())))
    }
}

impl Parts {
    fn take(&mut self, number: usize, all: usize, part: &[u8]) -> bool {
        if !(1..=all).contains(&number) {
            return false;
        }
        // The results of several runs in one file: the last counts.
        if all != self.all || self.read.contains_key(&number) {
            self.repeated += u64::from(self.all > 0);
            self.fake = self.fake.take().or_else(|| fake_in(&self.joined()));
            (self.all, self.bytes) = (all, 0);
            self.read.clear();
        }
        self.bytes += part.len();
        if self.bytes <= MAX_BYTES {
            self.read.insert(number, part.to_vec());
        }
        true
    }

    fn joined(&self) -> Vec<u8> {
        self.read.values().flatten().copied().collect()
    }

    fn metadata(&self) -> Option<Result<Metadata, FooterError>> {
        if self.all == 0 || self.read.len() != self.all {
            return None;
        }
        Some(Metadata::from_json(&self.joined()).map(|read| Metadata { kind: Kind::Replay, ..read }))
    }
}

/// The mark of a fake result in JSON of which parts are missing. In a text, its quotes would be escaped.
fn fake_in(json: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\"fake\":";
    let mut places = json.windows(KEY.len()).enumerate().filter(|(_, window)| *window == KEY);
    places.find_map(|(at, _)| {
        let value = serde_json::Deserializer::from_slice(&json[at + KEY.len()..]).into_iter::<Option<String>>().next();
        match value? {
            Ok(mark) => mark,
            // It is cut off.
            Err(_) => json.get(at + KEY.len()).is_some_and(|&byte| byte == b'"').then(|| UNKNOWN_FAKE.to_owned()),
        }
    })
}

/// The mark where its words are cut off.
const UNKNOWN_FAKE: &str = "FAKE RESULT";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_metadata_is_read_back_from_lines_without_semicolons(
            texts in prop::collection::vec("(ERROR|;|\\\\|\"|\n|[ -~]|\\PC){0,3000}", 1..4),
            shuffled in any::<bool>(),
        ) {
            let mut metadata = Metadata::new(Kind::Replay, "test");
            metadata.source.preamble = texts.concat();
            texts.into_iter().for_each(|text| metadata.warning(text));
            let text = end(&metadata, &metadata);
            prop_assert!(!text.contains(';') && !text.contains("ERROR"));
            let mut lines: Vec<&str> = text.lines().collect();
            prop_assert!(lines.iter().all(|line| line.len() < 4000));
            if shuffled {
                lines.sort_unstable();
            }
            let mut stated = CommentMetadata::default();
            prop_assert!(lines.iter().all(|line| stated.take(line.as_bytes().strip_prefix(PREFIX).unwrap())));
            prop_assert_eq!(stated.end().unwrap().unwrap(), metadata);
            prop_assert!(stated.begin().is_none());
        }
    }

    #[test]
    fn without_any_of_its_lines_there_is_no_metadata() {
        let mut metadata = Metadata::new(Kind::Replay, "test");
        metadata.source.preamble = "x".repeat(10_000);
        let text = end(&metadata, &metadata);
        for missing in 0..text.lines().count() {
            let mut stated = CommentMetadata::default();
            let lines = text.lines().enumerate().filter(|(number, _)| *number != missing);
            lines.for_each(|(_, line)| assert!(stated.take(line.as_bytes().strip_prefix(PREFIX).unwrap())));
            assert!(stated.end().is_none());
        }
    }
}
