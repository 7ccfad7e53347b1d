//! What a row is, and the metadata of its files.

use std::path::Path;

use serde::Serialize;

use super::io_result::IoResult;
use super::metadata::{Kind, Metadata, SCHEMA_VERSION, Source, Span};
use super::request::Request;
use super::versions::FooterError;

/// A row of a file, such as a request or a call. Readers, writers and transforms are the same for all of them.
pub trait Row: Sized + Send + 'static {
    /// What a file says about its rows.
    type Metadata: Footer;
    /// A row in messages.
    const NOUN: &'static str;

    /// Why no file may have the row: one of its times is impossible.
    fn problem(&self) -> Option<&'static str> {
        None
    }

    /// Removes values that are impossible and do not make the row itself doubtful, and returns their number.
    fn remove_impossible(&mut self) -> u64 {
        0
    }
}

impl Row for Request {
    type Metadata = Metadata;
    const NOUN: &'static str = "request";

    #[inline]
    fn problem(&self) -> Option<&'static str> {
        self.problem_of_times()
    }

    #[inline]
    fn remove_impossible(&mut self) -> u64 {
        self.remove_impossible_times()
    }
}

impl Row for IoResult {
    type Metadata = Metadata;
    const NOUN: &'static str = "request";

    #[inline]
    fn problem(&self) -> Option<&'static str> {
        self.problem_of_times()
    }

    #[inline]
    fn remove_impossible(&mut self) -> u64 {
        self.remove_impossible_times()
    }
}

/// The metadata in the footer of a table: JSON under the key [`FOOTER_KEY`](super::metadata::FOOTER_KEY). It has totals, which are numbers computed from
/// the rows, and other values.
pub trait Footer: Clone + Serialize + Send + 'static {
    /// The kinds of tables that have this metadata, as in its key `kind`.
    const KINDS: &'static [&'static str];

    /// The metadata of a table of this kind without rows.
    fn empty(kind: &'static str, path: &Path) -> Self;

    /// Parses the metadata of this or an earlier version.
    ///
    /// # Errors
    /// If it is of a newer version, or not valid.
    fn parse(json: &[u8]) -> Result<Self, FooterError>;

    /// The version of the table that was parsed.
    fn version(&mut self) -> &mut u32;

    /// The kind of the table.
    fn kind(&self) -> &str;

    /// The total number of rows.
    fn rows(&self) -> u64;

    /// Sets the totals to those of no rows.
    fn clear_totals(&mut self);

    /// The number of devices, or whatever else rows name by their index in the metadata. It only grows.
    fn named(&self) -> usize {
        0
    }

    /// Where the rows came from.
    fn source(&mut self) -> &mut Source;

    /// Takes over what a reader has learned since this was copied from its metadata, after a row.
    fn follow(&mut self, known: &Self);

    /// The same at the end of the rows.
    fn follow_to_end(&mut self, known: &Self) {
        self.follow(known);
    }

    /// Whether all totals are equal.
    fn has_totals_of(&self, other: &Self) -> bool;

    /// This metadata, with the kind and the totals of `written`.
    fn with_totals_of(&self, written: &Self) -> Self;

    /// Warnings about implausible values, one sentence each, after all rows were read.
    fn doubts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Adds a message for users about the whole file.
    fn add_warning(&mut self, text: String);

    /// Counts values of rows that were left out as impossible.
    fn count_impossible(&mut self, _values: u64) {}

    /// Counts a row that was left out, with a message for users.
    fn count_bad_row(&mut self, text: String) {
        self.count_bad_rows(1, text);
    }

    /// Counts so many rows that were left out, with one message for users.
    fn count_bad_rows(&mut self, rows: u64, text: String);
}

impl Metadata {
    /// As [`Footer::follow`], without the devices.
    pub(crate) fn follow_except_devices(&mut self, known: &Self) {
        self.counts.clone_from(&known.counts);
        (self.span, self.complete) = (known.span, known.complete);
        self.warnings.extend_from_slice(&known.warnings[self.warnings.len()..]);
    }
}

impl Footer for Metadata {
    const KINDS: &'static [&'static str] = &["load", "replay"];

    fn empty(kind: &'static str, path: &Path) -> Self {
        let mut metadata = Self::new(if kind == "load" { Kind::Load } else { Kind::Replay }, "parquet");
        metadata.source.path = Some(crate::path_text(path));
        metadata
    }

    fn parse(json: &[u8]) -> Result<Self, FooterError> {
        Self::from_json(json)
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

    fn named(&self) -> usize {
        self.devices.len()
    }

    fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    fn follow(&mut self, known: &Self) {
        self.devices.extend_from_slice(&known.devices[self.devices.len()..]);
        self.follow_except_devices(known);
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

    fn doubts(&self) -> Vec<String> {
        super::sanity::plausibility_warnings(self)
    }

    fn add_warning(&mut self, text: String) {
        self.warning(text);
    }

    fn count_impossible(&mut self, values: u64) {
        self.counts.impossible_times += values;
    }

    fn count_bad_rows(&mut self, rows: u64, text: String) {
        self.counts.bad_lines += rows;
        self.counts.unreadable_rows += rows;
        self.warning_of_line(text);
    }
}
