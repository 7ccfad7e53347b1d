//! What a table is; the columns of loads and runs, and the conversion of their rows to cells and back.

use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::metadata::Metadata;
use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::row::Row;
use crate::model::units::{MAX_END_SECTOR, Sector, Sectors};

use super::batch::Cells;
use super::buffers::Buffers;
use super::column::{CellType, Column, Missing, column, nullable, required};

/// A row of a table. `write_cells` and `read_cells` handle the cells in the order of [`Table::COLUMNS`].
pub trait Table: Row {
    /// The kind of the table: one of [`Footer::KINDS`](crate::model::row::Footer::KINDS).
    const KIND: &'static str;
    /// The columns, in the order of the file.
    const COLUMNS: &'static [Column];
    /// What happens to rows that [`Table::read_cells`] refuses.
    const BAD_ROWS: BadRows;

    /// Adds the cells of a row.
    fn write_cells(&self, cells: &mut Buffers);

    /// Reads the row with this number in the file.
    ///
    /// # Errors
    /// If a cell is missing or invalid.
    fn read_cells(cells: &mut Cells<'_>, number: u64) -> Result<Self, &'static str>;

    /// Adds the row to the totals of the footer.
    fn count(&self, metadata: &mut Self::Metadata);
}

/// What happens to invalid rows of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BadRows {
    /// They are left out and counted.
    LeftOut,
    /// They are errors, because later rows depend on them.
    Refused,
}

fn op_number(name: &str) -> Option<u8> {
    Op::from_name(name).map(|op| op as u8)
}

const BAD_RANGE: &str = "sector or sectors are missing, negative or beyond any device";

fn range(sector: Option<i64>, sectors: Option<i64>) -> Result<(Sector, Sectors), &'static str> {
    let (sector, sectors) = (unsigned(sector)?, unsigned(sectors)?);
    let end = sector.checked_add(sectors).ok_or(BAD_RANGE)?;
    if end > MAX_END_SECTOR { Err(BAD_RANGE) } else { Ok((Sector(sector), Sectors(sectors))) }
}

fn unsigned(value: Option<i64>) -> Result<u64, &'static str> {
    u64::try_from(value.ok_or(BAD_RANGE)?).map_err(|_| BAD_RANGE)
}

fn op(number: Option<i64>) -> Result<Op, &'static str> {
    number
        .and_then(|n| u8::try_from(n).ok())
        .and_then(Op::from_number)
        .ok_or("op is not read, write, flush, discard or write_zeroes")
}

fn device(number: Option<i64>) -> Result<DeviceId, &'static str> {
    u16::try_from(number.unwrap_or(0)).map(DeviceId).map_err(|_| "device is not an index into the table of devices")
}

/// A number that may have fewer bits than its cell; the default if the column or the cell is missing.
fn fitting<T: TryFrom<i64> + Default>(value: Option<i64>, problem: &'static str) -> Result<T, &'static str> {
    value.map_or(Ok(T::default()), |n| T::try_from(n).map_err(|_| problem))
}

/// A count, which is written as a signed number of 32 bits.
fn count(value: Option<i64>, problem: &'static str) -> Result<u32, &'static str> {
    fitting::<i32>(value, problem).and_then(|n| u32::try_from(n).map_err(|_| problem))
}

fn flags(bits: Option<i64>) -> Flags {
    Flags(bits.unwrap_or(0) as u16)
}

impl Table for Request {
    const KIND: &'static str = "load";
    const BAD_ROWS: BadRows = BadRows::LeftOut;
    const COLUMNS: &'static [Column] = &[
        required("at_ns", CellType::Time),
        column("device", CellType::Int32),
        required("sector", CellType::Int64),
        required("sectors", CellType::Int64),
        required("op", CellType::Name(op_number)),
        column("flags", CellType::Int32),
        nullable("latency_ns", CellType::Int64),
        nullable("queued_ns", CellType::Int64),
        nullable("pid", CellType::Int32),
        nullable("process", CellType::Comm),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        cells.int64(self.at.0);
        cells.int32(self.device.0.into());
        cells.int64(self.sector.0 as i64);
        cells.int64(self.sectors.0 as i64);
        cells.name(self.op.name());
        cells.int32(self.flags.0.into());
        cells.int64_or_null(self.latency.map(|t| t.0));
        cells.int64_or_null(self.queued.map(|t| t.0));
        cells.int32_or_null(self.pid.map(|pid| pid as i32));
        cells.comm(self.comm);
    }

    fn read_cells(cells: &mut Cells<'_>, _: u64) -> Result<Self, &'static str> {
        let at = cells.time().ok_or("at_ns is missing")?;
        let device = device(cells.number())?;
        let (sector, sectors) = range(cells.number(), cells.number())?;
        Ok(Self {
            at,
            device,
            sector,
            sectors,
            op: op(cells.number())?,
            flags: flags(cells.number()),
            latency: cells.time(),
            queued: cells.time(),
            pid: cells.number().map(|pid| pid as u32),
            comm: cells.comm(),
        })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_request(self);
    }
}

impl Table for IoResult {
    const KIND: &'static str = "replay";
    const BAD_ROWS: BadRows = BadRows::LeftOut;
    const COLUMNS: &'static [Column] = &[
        column("request", CellType::Time),
        column("iteration", CellType::Int32).until(1, "round"),
        column("device", CellType::Int32),
        column("source_sector", CellType::Int64),
        required("sector", CellType::Int64),
        required("sectors", CellType::Int64),
        required("op", CellType::Name(op_number)),
        column("flags", CellType::Int32),
        required("scheduled_ns", CellType::Time).until(1, "intended_ns"),
        Column { missing: Missing::Refused, ..nullable("issued_ns", CellType::Time) },
        Column { missing: Missing::Refused, ..nullable("completed_ns", CellType::Time) },
        nullable("ready_ns", CellType::Time),
        nullable("submitted_ns", CellType::Time),
        nullable("last_empty_poll_ns", CellType::Time).until(1, "unanswered_ns"),
        column("bytes_done", CellType::Int64),
        nullable("in_flight", CellType::Int32),
        nullable("waiting", CellType::Int32),
        column("pushed_back", CellType::Bool),
        column("widened", CellType::Bool),
        column("delay_reason", CellType::Name(|name| DelayReason::from_name(name).map(|x| x as u8)))
            .until(1, "held_by"),
        column("outcome", CellType::Name(|name| Outcome::from_name(name).map(|x| x as u8))),
        column("errno", CellType::Int32),
        nullable("stream", CellType::Int32),
        nullable("cause", CellType::Time),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        // The request itself is in flight when it is issued, so 0 means that requests in flight were not counted.
        let counted = self.in_flight > 0;
        cells.int64(self.request as i64);
        cells.int32(self.iteration as i32);
        cells.int32(self.device.0.into());
        cells.int64(self.source_sector.0 as i64);
        cells.int64(self.sector.0 as i64);
        cells.int64(self.sectors.0 as i64);
        cells.name(self.op.name());
        cells.int32(self.flags.0.into());
        cells.int64(self.scheduled.0);
        cells.int64_or_null(self.issued.map(|t| t.0));
        cells.int64_or_null(self.completed.map(|t| t.0));
        cells.int64_or_null(self.ready.map(|t| t.0));
        cells.int64_or_null(self.submitted.map(|t| t.0));
        cells.int64_or_null(self.last_empty_poll.map(|t| t.0));
        cells.int64(self.bytes_done as i64);
        cells.int32_or_null(counted.then_some(self.in_flight as i32));
        cells.int32_or_null(counted.then_some(self.waiting as i32));
        cells.boolean(self.pushed_back);
        cells.boolean(self.widened);
        cells.name(self.delay_reason.name());
        cells.name(self.outcome.name());
        cells.int32(self.errno);
        cells.int32_or_null(self.stream.map(i32::from));
        cells.int64_or_null(self.cause.map(|request| request as i64));
    }

    fn read_cells(cells: &mut Cells<'_>, number: u64) -> Result<Self, &'static str> {
        let request = cells.number().map_or(Ok(number), u64::try_from).map_err(|_| "request is negative")?;
        let iteration = count(cells.number(), "iteration is negative or too large")?;
        let device = device(cells.number())?;
        let source_sector = cells.number();
        let (sector, sectors) = range(cells.number(), cells.number())?;
        let op = op(cells.number())?;
        let flags = flags(cells.number());
        let scheduled = cells.time().ok_or("scheduled_ns is missing")?;
        let issued = cells.time();
        let completed = cells.time();
        let [ready, submitted, last_empty_poll] = [cells.time(), cells.time(), cells.time()];
        let done = cells.number();
        let mut result = Self {
            request,
            iteration,
            device,
            source_sector: source_sector
                .map_or(Ok(sector), |s| range(Some(s), Some(sectors.0 as i64)).map(|(s, _)| s))?,
            sector,
            sectors,
            op,
            flags,
            scheduled,
            issued,
            completed,
            ready,
            submitted,
            last_empty_poll,
            bytes_done: done.map_or(0, |done| done.max(0) as u64),
            in_flight: count(cells.number(), "in_flight is negative or too large")?,
            waiting: count(cells.number(), "waiting is negative or too large")?,
            pushed_back: cells.number() == Some(1),
            widened: cells.number() == Some(1),
            delay_reason: match cells.number() {
                None => DelayReason::Unknown,
                number => name(number, DelayReason::from_number).ok_or("delay_reason is not a known name")?,
            },
            outcome: name(cells.number(), Outcome::from_number).ok_or("outcome is not a known name")?,
            errno: fitting(cells.number(), "errno is not an error number")?,
            stream: optional(cells.number(), "stream is negative or too large")?,
            cause: optional(cells.number(), "cause is negative")?,
        };
        if done.is_none() && matches!(result.outcome, Outcome::Ok | Outcome::Corrupt) {
            result.bytes_done = sectors.bytes();
        }
        Ok(result)
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_record(self);
    }
}

/// The value of a name; the default if the column or the cell is missing.
fn name<T: Default>(number: Option<i64>, from: fn(u8) -> Option<T>) -> Option<T> {
    number.map_or(Some(T::default()), |n| u8::try_from(n).ok().and_then(from))
}

/// A number that may be missing.
fn optional<T: TryFrom<i64>>(number: Option<i64>, problem: &'static str) -> Result<Option<T>, &'static str> {
    number.map(T::try_from).transpose().map_err(|_| problem)
}
