//! The metadata of a run in comment lines, which blkreplay's tools skip: no such line has a `;`, by which they find rows, or the
//! word ERROR, by which people find errors. It is the JSON of the footer of a table, in numbered parts:
//!
//! - `begin`, before the first row: what was known before the run. A result that was cut short has only this.
//! - `end`, after the last row: everything.

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

/// The metadata of the comment lines that were read so far.
#[derive(Default)]
pub struct CommentMetadata {
    begin: Parts,
    end: Parts,
}

#[derive(Default)]
struct Parts {
    all: usize,
    bytes: usize,
    /// By number: `sort` may have moved the lines.
    read: BTreeMap<usize, Vec<u8>>,
}

impl CommentMetadata {
    /// Reads a comment line without [`PREFIX`]. Lines of later versions are skipped.
    pub fn take(&mut self, line: &[u8]) {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let (Some(place), Some(number), Some(part)) = (words.next(), words.next(), words.next()) else { return };
        let parts = match place {
            place if place == BEGIN.as_bytes() => &mut self.begin,
            place if place == END.as_bytes() => &mut self.end,
            _ => return,
        };
        let number = std::str::from_utf8(number).ok().and_then(|number| number.split_once('/'));
        if let Some((Ok(number), Ok(all))) = number.map(|(number, all)| (number.parse(), all.parse())) {
            parts.take(number, all, part);
        }
    }

    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.begin.all + self.end.all > 0
    }

    /// What was known before the run; `None` if it is missing.
    pub fn begin(&self) -> Option<Result<Metadata, FooterError>> {
        self.begin.metadata()
    }

    /// Everything; `None` if it is missing.
    pub fn end(&self) -> Option<Result<Metadata, FooterError>> {
        self.end.metadata()
    }
}

impl Parts {
    fn take(&mut self, number: usize, all: usize, part: &[u8]) {
        // The results of several runs in one file: the last counts.
        if all != self.all || self.read.contains_key(&number) {
            *self = Self { all, ..Self::default() };
        }
        self.bytes += part.len();
        if self.bytes <= MAX_BYTES && (1..=all).contains(&number) {
            self.read.insert(number, part.to_vec());
        }
    }

    fn metadata(&self) -> Option<Result<Metadata, FooterError>> {
        if self.all == 0 || self.read.len() != self.all {
            return None;
        }
        let json: Vec<u8> = self.read.values().flatten().copied().collect();
        Some(Metadata::from_json(&json).map(|read| Metadata { kind: Kind::Replay, ..read }))
    }
}

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
            lines.iter().for_each(|line| stated.take(line.as_bytes().strip_prefix(PREFIX).unwrap()));
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
            lines.for_each(|(_, line)| stated.take(line.as_bytes().strip_prefix(PREFIX).unwrap()));
            assert!(stated.end().is_none());
        }
    }
}
