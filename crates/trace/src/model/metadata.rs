//! The metadata of a file: the JSON in a Parquet footer under the key `iosonar`.

use serde::{Deserialize, Serialize};

use crate::model::io_result::IoResult;
use crate::model::request::{Op, Request};
use crate::model::run_info::RunInfo;
use crate::model::units::Nanos;

/// The version of the tables that this build writes; it reads earlier ones too. `docs/schema.md` lists the differences.
pub const SCHEMA_VERSION: u32 = 3;
/// The key in the Parquet footer.
pub const FOOTER_KEY: &str = "iosonar";

/// Most warnings in a file. A merged load has those of all its sources.
const MAX_WARNINGS: usize = 1000;
/// Most warnings about single lines.
const MAX_LINE_WARNINGS: usize = 100;

/// The metadata of a load or a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The version of the table: [`SCHEMA_VERSION`] when written by this build.
    pub schema_version: u32,
    /// Load or run.
    pub kind: Kind,
    /// Where the rows came from.
    pub source: Source,
    /// The devices that the rows' `device` column points to. Never empty.
    pub devices: Vec<Device>,
    /// Wall-clock time of the trace's zero, in nanoseconds since 1970 UTC, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_unix_ns: Option<i64>,
    /// The recorder's clocks at one moment. Transforms that move rows in time do not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The event that the times of the rows refer to.
    #[serde(default, skip_serializing_if = "RequestTime::is_default")]
    pub request_time: RequestTime,
    /// Numbers of rows and of losses.
    pub counts: Counts,
    /// The extent of the rows in time and space.
    pub span: Span,
    /// False if the file, or the file it was made from, was cut short.
    pub complete: bool,
    /// Messages for users, oldest first, at most 1000.
    #[serde(default, alias = "notices", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// For a run: options, machine, target and closing statistics (`docs/schema.md` lists the keys).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::model::run_info::object")]
    pub run: Option<Box<RunInfo>>,
}

/// The readings of two clocks of a machine at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// The time of day, in nanoseconds since 1970 UTC.
    pub unix_ns: i64,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: i64,
}

/// Load or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Requests to be issued.
    Load,
    /// Replayed requests with their results.
    Replay,
}

/// The event that the time of a request refers to. The queueing time lies after it or before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestTime {
    /// It was queued (`Q`); it was issued to the device one queueing time later.
    #[default]
    #[serde(alias = "asked")]
    Queued,
    /// It was issued to the device (`D`), one queueing time after it was queued.
    Issued,
}

impl RequestTime {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where the rows came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The file it was read from, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The format of that file, by its name in `iosonar convert --from`.
    pub format: String,
    /// Free text before the rows: licence, origin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preamble: String,
}

/// A device of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name in the trace; empty if it has none.
    pub name: String,
    /// Its size in sectors of 512 bytes, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
}

/// Numbers of rows, and of losses while recording and converting them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Rows.
    pub requests: u64,
    /// Of these, reads.
    pub reads: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Of these, flushes, discards and write-zeroes.
    pub others: u64,
    /// Lines or records of the source that could not be parsed, and were left out.
    pub bad_lines: u64,
    /// Of these, damaged rows of a table or of a result: of this file, or of the file it was made from.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreadable_rows: u64,
    /// How often the source jumped back in time; later rows were shifted so that time increases.
    pub time_jumps: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Requests whose completion is missing from a source that has completions.
    pub unmatched: u64,
    /// Completions that belong to no request of a trace of events: the beginning of their requests is missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub unmatched_completions: u64,
    /// Latencies and queueing times that no request can have, such as negative ones: left out, but not their requests.
    #[serde(skip_serializing_if = "is_zero")]
    pub impossible_times: u64,
}

impl Counts {
    /// The losses alone.
    pub fn losses(&self) -> Self {
        Self { requests: 0, reads: 0, writes: 0, others: 0, ..self.clone() }
    }

    /// Adds the losses of another file, or of an earlier step.
    pub fn add_losses(&mut self, of: &Self) {
        let Self {
            bad_lines,
            unreadable_rows,
            time_jumps,
            lost_events,
            unmatched,
            unmatched_completions,
            impossible_times,
            requests: _,
            reads: _,
            writes: _,
            others: _,
        } = *of;
        for (count, more) in [
            (&mut self.bad_lines, bad_lines),
            (&mut self.unreadable_rows, unreadable_rows),
            (&mut self.time_jumps, time_jumps),
            (&mut self.lost_events, lost_events),
            (&mut self.unmatched, unmatched),
            (&mut self.unmatched_completions, unmatched_completions),
            (&mut self.impossible_times, impossible_times),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The times and sectors that the rows cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    /// Time of the earliest row.
    pub first_ns: i64,
    /// Time of the latest row.
    pub last_ns: i64,
    /// The highest end sector of all requests with a length.
    pub max_end_sector: u64,
    /// The length of the largest request, in sectors.
    pub max_sectors: u64,
}

impl Metadata {
    /// The metadata of an empty file, converted from `format`, with one unnamed device.
    pub fn new(kind: Kind, format: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind,
            source: Source { format: format.to_owned(), ..Source::default() },
            devices: vec![Device::default()],
            epoch_unix_ns: None,
            clocks: None,
            request_time: RequestTime::Queued,
            counts: Counts::default(),
            span: Span::default(),
            complete: true,
            warnings: Vec::new(),
            run: None,
        }
    }

    /// Adds a request to counts and span.
    pub fn count_request(&mut self, request: &Request) {
        self.count(request.op, request.at, request.end().0, request.sectors.0);
    }

    /// Adds a row of a run to counts and span, by its scheduled time and its sector in the load.
    pub fn count_record(&mut self, record: &IoResult) {
        let end = record.source_sector + record.sectors;
        self.count(record.op, record.scheduled, end.0, record.sectors.0);
    }

    fn count(&mut self, op: Op, at: Nanos, end: u64, sectors: u64) {
        let (counts, span) = (&mut self.counts, &mut self.span);
        if counts.requests == 0 {
            (span.first_ns, span.last_ns) = (at.0, at.0);
        }
        counts.requests += 1;
        match op {
            Op::Read => counts.reads += 1,
            Op::Write => counts.writes += 1,
            _ => counts.others += 1,
        }
        span.first_ns = span.first_ns.min(at.0);
        span.last_ns = span.last_ns.max(at.0);
        // The position of a request without a length has no meaning.
        if sectors > 0 {
            span.max_end_sector = span.max_end_sector.max(end);
        }
        span.max_sectors = span.max_sectors.max(sectors);
    }

    /// Adds a message for users about the whole file.
    pub fn warning(&mut self, text: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(text.into());
        }
    }

    /// Adds a message about one bad line or record. Drops it if there are 100 messages already: the counts include all
    /// bad lines, and room remains for messages about the whole file.
    pub fn warning_of_line(&mut self, text: impl Into<String>) {
        if self.warnings.len() < MAX_LINE_WARNINGS {
            self.warnings.push(text.into());
        }
    }
}
