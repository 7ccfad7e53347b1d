//! What a file says about itself: the JSON in a Parquet footer under the key `iosonar`.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::io_result::IoResult;
use crate::model::request::{Op, Request};
use crate::model::run_info::RunInfo;
use crate::model::units::Nanos;

/// The version of the tables that this build writes; it reads earlier ones too. `docs/schema.md` has the differences.
pub const SCHEMA_VERSION: u32 = 2;
/// The name of the footer's key.
pub const FOOTER_KEY: &str = "iosonar";

/// Notices that are kept: a file that was merged of many has those of all of them.
const MOST_NOTICES: usize = 1000;
/// How many of them may tell of single lines.
const MOST_OF_LINES: usize = 100;

/// What is known about a load or a run as a whole.
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
    /// What the recorder's clocks showed at one moment, of a recording. It stays as it is when rows are moved in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// Which event the rows' time is the time of.
    #[serde(default, skip_serializing_if = "RequestTime::is_default")]
    pub request_time: RequestTime,
    /// How many, and how many of them went wrong.
    pub counts: Counts,
    /// From when to when, and up to where.
    pub span: Span,
    /// False if the file, or what it was made from, was cut short.
    pub complete: bool,
    /// Things about the file that a person should know, oldest first; bounded in number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// For a run: options, machine, target and closing statistics (`docs/schema.md` lists the keys).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object", serialize_with = "sorted")]
    pub run: Option<Box<RunInfo>>,
}

/// An object, whatever is in it, or nothing.
fn object<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Box<RunInfo>>, D::Error> {
    match Option::deserialize(found)? {
        None => Ok(None),
        Some(run @ serde_json::Value::Object(_)) => {
            RunInfo::deserialize(run).map(Box::new).map(Some).map_err(D::Error::custom)
        }
        Some(_) => Err(D::Error::custom("`run` is not an object")),
    }
}

/// Keys in alphabetical order, whichever of them are known here: a table that is written again stays the same.
fn sorted<S: Serializer>(run: &Option<Box<RunInfo>>, to: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(run).map_err(S::Error::custom)?.serialize(to)
}

/// Two clocks of a machine at the same moment.
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
    /// Requests that were replayed, with what happened.
    Replay,
}

/// Which event of its life a request's time is the time of. Queueing time and latency count from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestTime {
    /// It was queued (`Q`); it was issued to the device one queueing time later.
    #[default]
    #[serde(rename = "asked")]
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
    /// The free text in front of the rows: licence, origin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preamble: String,
}

/// A device of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name in the trace; empty where the format has none.
    pub name: String,
    /// Its size in sectors of 512 bytes, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
}

/// How many rows, and how much was lost on the way to them.
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
    /// Lines or records of the source that could not be understood, and are missing here.
    pub bad_lines: u64,
    /// Times at which the source jumped back in time; what followed was shifted so that time goes on.
    pub time_jumps: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Requests whose completion is missing from a source that has completions.
    pub unmatched: u64,
}

/// The extent of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    /// Time of the earliest row.
    pub first_ns: i64,
    /// Time of the latest row.
    pub last_ns: i64,
    /// The first sector behind the highest request that has a length.
    pub max_end_sector: u64,
    /// The length of the largest request, in sectors.
    pub max_sectors: u64,
}

impl Metadata {
    /// Of a file that holds nothing yet, made from a source of that format, with one nameless device.
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
            notices: Vec::new(),
            run: None,
        }
    }

    /// Takes one more request into account: counts and span.
    pub fn count_request(&mut self, request: &Request) {
        self.count(request.op, request.at, request.end().0, request.sectors.0);
    }

    /// Takes one more row of a run into account, by its scheduled time and its sector in the load.
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
        // What has no length is at no place, whatever is written there.
        if sectors > 0 {
            span.max_end_sector = span.max_end_sector.max(end);
        }
        span.max_sectors = span.max_sectors.max(sectors);
    }

    /// Adds something that a person should know of the whole.
    pub fn notice(&mut self, text: impl Into<String>) {
        if self.notices.len() < MOST_NOTICES {
            self.notices.push(text.into());
        }
    }

    /// Adds what is wrong with one line or record of many. Only the first 100 are kept, the counts tell the rest: so
    /// there is room for what is said of the whole, which stands nowhere else.
    pub fn notice_of_line(&mut self, text: impl Into<String>) {
        if self.notices.len() < MOST_OF_LINES {
            self.notices.push(text.into());
        }
    }
}
