//! The metadata in the footer of a table.

use std::path::Path;

use crate::model::metadata::{FOOTER_KEY, Kind, Metadata, SCHEMA_VERSION, Span};
use crate::model::versions::FooterError;

use super::common::NAME;

/// The metadata in the footer of a table: JSON under the key [`FOOTER_KEY`]. It has totals, which are numbers computed from
/// the rows, and other values.
pub trait Footer: Clone + Send + 'static {
    /// The kinds of tables that have this metadata, as in its key `kind`.
    const KINDS: &'static [&'static str];

    /// The metadata of a table of this kind without rows.
    fn empty(kind: &'static str, path: &Path) -> Self;

    /// Parses the metadata of this or an earlier version.
    ///
    /// # Errors
    /// If it is of a newer version, or not valid.
    fn parse(json: &[u8]) -> Result<Self, FooterError>;

    /// The JSON.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    fn to_json(&self) -> serde_json::Result<String>;

    /// The version of the table that was parsed.
    fn version(&mut self) -> &mut u32;

    /// The kind of the table.
    fn kind(&self) -> &str;

    /// The total number of rows.
    fn rows(&self) -> u64;

    /// Sets the totals to those of no rows.
    fn clear_totals(&mut self);

    /// Whether all totals are equal.
    fn has_totals_of(&self, other: &Self) -> bool;

    /// This metadata, with the kind and the totals of `written`.
    fn with_totals_of(&self, written: &Self) -> Self;

    /// Adds a message for users about the whole file.
    fn add_notice(&mut self, text: String);

    /// Counts a row that was left out, with a message for users.
    fn count_bad_row(&mut self, text: String);
}

impl Footer for Metadata {
    const KINDS: &'static [&'static str] = &["load", "replay"];

    fn empty(kind: &'static str, path: &Path) -> Self {
        let mut metadata = Self::new(if kind == "load" { Kind::Load } else { Kind::Replay }, NAME);
        metadata.source.path = Some(crate::path_text(path));
        metadata
    }

    fn parse(json: &[u8]) -> Result<Self, FooterError> {
        Self::from_json(json)
    }

    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    fn version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }

    fn kind(&self) -> &str {
        match self.kind {
            Kind::Load => "load",
            Kind::Replay => "replay",
        }
    }

    fn rows(&self) -> u64 {
        self.counts.requests
    }

    fn clear_totals(&mut self) {
        // The other counts, such as lost events, cannot be computed from the rows and are kept.
        let counts = &mut self.counts;
        (counts.requests, counts.reads, counts.writes, counts.others) = (0, 0, 0, 0);
        self.span = Span::default();
    }

    fn has_totals_of(&self, other: &Self) -> bool {
        (&self.counts, self.span) == (&other.counts, other.span)
    }

    fn with_totals_of(&self, written: &Self) -> Self {
        let mut footer = self.clone();
        footer.schema_version = SCHEMA_VERSION;
        footer.kind = written.kind;
        footer.span = written.span;
        let counts = &mut footer.counts;
        counts.requests = written.counts.requests;
        counts.reads = written.counts.reads;
        counts.writes = written.counts.writes;
        counts.others = written.counts.others;
        footer
    }

    fn add_notice(&mut self, text: String) {
        self.notice(text);
    }

    fn count_bad_row(&mut self, text: String) {
        self.counts.bad_lines += 1;
        self.notice_of_line(text);
    }
}

/// The key `kind` in the JSON of a footer.
#[derive(serde::Deserialize)]
pub struct KindInFooter {
    #[serde(default)]
    pub kind: String,
}

/// The JSON of the metadata among the pairs of a footer.
pub fn json_in(pairs: Option<&Vec<::parquet::file::metadata::KeyValue>>) -> Option<&str> {
    pairs?.iter().find(|pair| pair.key == FOOTER_KEY)?.value.as_deref()
}
