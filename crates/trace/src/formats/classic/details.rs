//! What a row of a run has beside the six columns of blkreplay, as words `name=value` by the names of `docs/schema.md`. They are
//! a seventh column, or a comment line if the six columns cannot hold the row.

use std::io::Write as _;

use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{MAX_END_SECTOR, Nanos, Sector, Sectors};

/// The name of the seventh column.
pub const COLUMN_NAME: &str = "details";

/// The reason for a row whose words cannot be used.
pub const UNREADABLE: &str = "the details are not words name=value as in docs/schema.md";

/// A value as a word.
trait Word: Copy + PartialEq {
    fn put(self, line: &mut Vec<u8>);
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($kind:ty: $held:ty,)*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                _ = write!(line, "{self}");
            }
            /// Within the range that a table can hold.
            fn parse(text: &str) -> Option<Self> {
                Self::try_from(text.parse::<$held>().ok()?).ok()
            }
        })*
    };
}

numbers! { u16: i32, u32: i32, u64: i64, i32: i32, }

macro_rules! wrapped {
    ($($kind:ident: $inner:ty,)*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                self.0.put(line);
            }
            fn parse(text: &str) -> Option<Self> {
                <$inner as Word>::parse(text).map(Self)
            }
        })*
    };
}

wrapped! { Sector: u64, Sectors: u64, DeviceId: u16, Flags: u16, }

macro_rules! named {
    ($($kind:ident),*) => {
        $(impl Word for $kind {
            fn put(self, line: &mut Vec<u8>) {
                line.extend_from_slice(self.name().as_bytes());
            }
            fn parse(text: &str) -> Option<Self> {
                Self::from_name(text)
            }
        })*
    };
}

named! { DelayReason, Outcome, Op }

impl Word for Nanos {
    fn put(self, line: &mut Vec<u8>) {
        _ = write!(line, "{}", self.0);
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self).filter(|time| time.is_time())
    }
}

impl Word for bool {
    fn put(self, line: &mut Vec<u8>) {
        line.push(if self { b'1' } else { b'0' });
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
}

impl<T: Word> Word for Option<T> {
    fn put(self, line: &mut Vec<u8>) {
        match self {
            Some(known) => known.put(line),
            None => line.push(b'-'),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "-" { Some(None) } else { T::parse(text).map(Some) }
    }
}

macro_rules! details {
    ($($field:ident $name:literal,)*) => {
        /// Appends the values that `record` does not share with `plain`.
        fn put_differences(line: &mut Vec<u8>, record: &IoResult, plain: &IoResult) {
            $(if record.$field != plain.$field {
                line.extend_from_slice(concat!(" ", $name, "=").as_bytes());
                record.$field.put(line);
            })*
        }

        /// Sets the value of that name. False if it cannot be parsed; names of later versions are ignored.
        fn set(record: &mut IoResult, name: &str, text: &str) -> bool {
            match name {
                $($name => match Word::parse(text) {
                    Some(value) => record.$field = value,
                    None => return false,
                },)*
                _ => {}
            }
            true
        }
    };
}

details! {
    request "request", iteration "iteration", device "device", op "op", scheduled "scheduled_ns", sector "sector",
    sectors "sectors", source_sector "source_sector", flags "flags", issued "issued_ns", completed "completed_ns",
    ready "ready_ns", submitted "submitted_ns", last_empty_poll "last_empty_poll_ns", bytes_done "bytes_done",
    in_flight "in_flight", waiting "waiting", pushed_back "pushed_back", widened "widened",
    delay_reason "delay_reason", outcome "outcome", errno "errno", stream "stream", cause "cause",
}

/// Appends the seventh column for a row that reads as `plain` without it; nothing if they are equal.
pub fn put_column(line: &mut Vec<u8>, record: &IoResult, plain: &IoResult) {
    if record == plain {
        return;
    }
    line.extend_from_slice(b" ; request=");
    record.request.put(line);
    put_differences(line, record, &with_details(*plain, record.request));
}

/// Appends all values of a row.
pub fn put_row(line: &mut Vec<u8>, record: &IoResult) {
    let IoResult { request, scheduled, op, sector, sectors, .. } = *record;
    _ = write!(
        line,
        " request={request} scheduled_ns={} op={} sector={} sectors={}",
        scheduled.0,
        op.name(),
        sector.0,
        sectors.0
    );
    put_differences(line, record, &IoResult::of(&Request::new(scheduled, op, sector, sectors), request));
}

/// Adds the seventh column to a row without it. False if the column cannot be used.
pub fn apply_column(record: &mut IoResult, text: &[u8]) -> bool {
    let mut read = with_details(*record, record.request);
    let is_valid = apply(&mut read, text) && fits(read.source_sector, read.sectors);
    if is_valid {
        *record = read;
    }
    is_valid
}

/// The row that [`put_row`] wrote.
pub fn parse_row(text: &[u8]) -> Option<IoResult> {
    let mut stated = IoResult::of(&Request::new(Nanos::MAX, Op::Read, Sector(0), Sectors(0)), 0);
    if !apply(&mut stated, text) || stated.scheduled == Nanos::MAX {
        return None;
    }
    // The other values are what they are without a word.
    let IoResult { request, scheduled, op, sector, sectors, .. } = stated;
    let mut row = IoResult::of(&Request::new(scheduled, op, sector, sectors), request);
    (apply(&mut row, text) && fits(row.source_sector, row.sectors)).then_some(row)
}

/// A row that has details, before they are applied. Only they say that the reason for a delay is known.
fn with_details(plain: IoResult, request: u64) -> IoResult {
    IoResult { request, delay_reason: DelayReason::None, ..plain }
}

fn apply(record: &mut IoResult, text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut words = text.split_ascii_whitespace();
    words.all(|word| word.split_once('=').is_some_and(|(name, value)| set(record, name, value)))
        && fits(record.sector, record.sectors)
}

fn fits(sector: Sector, sectors: Sectors) -> bool {
    sector.0.checked_add(sectors.0).is_some_and(|end| end <= MAX_END_SECTOR)
}
