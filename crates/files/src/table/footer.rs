//! The footer of the tables of this crate.

use std::path::Path;

use iosonar_trace::{Footer, FooterError, SCHEMA_VERSION, Source, Span, parse_footer, path_text, rename_keys};

use crate::{Call, CallCounts, CallKind, CallResult, Metadata};

/// Most warnings in a file.
const MAX_WARNINGS: usize = 1000;

/// Keys of `run.statistics` up to version 2, and their new names.
const STATISTICS: [(&str, &str); 5] = [
    ("issue_error_us", "delay_not_held_back_us"),
    ("within_pct", "within_not_held_back_pct"),
    ("response_us", "latency_us"),
    ("original_response_us", "original_latency_us"),
    ("held", "delay_reasons"),
];
/// Reasons up to version 2, and their new names.
const DELAY_REASONS: [(&str, &str); 2] = [("pool", "depth"), ("replayer", "backlog")];

impl Metadata {
    /// The metadata of an empty table of this kind (`calls`, `calls_run`, `tree`, `scale`), made from `format`.
    pub fn new(kind: &str, format: &str) -> Self {
        let mut metadata =
            Self { schema_version: SCHEMA_VERSION, kind: kind.to_owned(), complete: true, ..Self::default() };
        metadata.source.format = format.to_owned();
        metadata
    }

    /// Adds a message for users, unless there are very many.
    pub fn warning(&mut self, text: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(text.into());
        }
    }

    /// Adds a call to counts and span.
    pub fn count_call(&mut self, call: &Call) {
        self.count_row(call.begin.0);
        self.counts.unfinished += u64::from(call.duration.is_none());
        self.counts.uring += u64::from(call.is_uring);
        self.counts.faults += u64::from(call.kind == CallKind::PageFault);
    }

    /// Adds a call of a run to counts and span.
    pub fn count_result(&mut self, result: &CallResult) {
        self.count_row(result.scheduled.0);
    }

    /// Adds a row that begins at this time to counts and span.
    pub(crate) fn count_row(&mut self, begin_ns: i64) {
        let span = &mut self.span;
        if self.counts.calls == 0 {
            (span.first_ns, span.last_ns) = (begin_ns, begin_ns);
        }
        self.counts.calls += 1;
        span.first_ns = span.first_ns.min(begin_ns);
        span.last_ns = span.last_ns.max(begin_ns);
    }
}

/// Copies the numbers that are computed from rows.
fn copy_totals(from: &CallCounts, to: &mut CallCounts) {
    to.calls = from.calls;
    to.unfinished = from.unfinished;
    to.uring = from.uring;
    to.faults = from.faults;
}

impl Footer for Metadata {
    const KINDS: &'static [&'static str] = &["calls", "calls_run", "tree", "scale"];

    fn empty(kind: &'static str, path: &Path) -> Self {
        let mut metadata = Self::new(kind, "parquet");
        metadata.source.path = Some(path_text(path));
        metadata
    }

    fn parse(json: &[u8]) -> Result<Self, FooterError> {
        parse_footer(json, |_, footer| {
            if footer["kind"] == "calls_run"
                && let Some(statistics) = footer.pointer_mut("/run/statistics")
            {
                rename_keys(statistics, &STATISTICS);
                statistics.get_mut("delay_reasons").into_iter().for_each(|held| rename_keys(held, &DELAY_REASONS));
            }
        })
    }

    fn version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn rows(&self) -> u64 {
        self.counts.calls
    }

    fn clear_totals(&mut self) {
        copy_totals(&CallCounts::default(), &mut self.counts);
        self.span = Span::default();
    }

    fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    /// What a trace says is known at its end.
    fn follow(&mut self, _known: &Self) {}

    fn follow_to_end(&mut self, known: &Self) {
        *self = Self { source: std::mem::take(&mut self.source), ..known.clone() };
    }

    fn has_totals_of(&self, other: &Self) -> bool {
        (&self.counts, self.span) == (&other.counts, other.span)
    }

    fn with_totals_of(&self, written: &Self) -> Self {
        let mut footer = self.clone();
        footer.schema_version = SCHEMA_VERSION;
        footer.kind.clone_from(&written.kind);
        footer.span = written.span;
        copy_totals(&written.counts, &mut footer.counts);
        footer
    }

    fn add_warning(&mut self, text: String) {
        self.warning(text);
    }

    fn count_bad_rows(&mut self, rows: u64, text: String) {
        self.counts.bad_lines += rows;
        self.warning(text);
    }
}
