//! The columns of the two tables, in their order, and how a row goes into them and comes out of them.

use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{MAX_END_SECTOR, Nanos, Sector, Sectors};

use super::batch::Cells;
use super::buffers::Buffers;
use super::column::{Column, Holds, Missing, column, needed, nullable};

/// A row that stands in a table. `put` and `take` go through [`Table::COLUMNS`] in their order.
pub trait Table: Sized + Copy + Send + 'static {
    const KIND: Kind;
    const COLUMNS: &'static [Column];

    fn put(&self, cells: &mut Buffers);

    /// The row at that place of the file, or what is wrong with it.
    fn take(cells: &mut Cells<'_>, place: u64) -> Result<Self, &'static str>;

    fn count(&self, metadata: &mut Metadata);
}

fn op_number(name: &str) -> Option<u8> {
    Op::from_name(name).map(|op| op as u8)
}

const BAD_PLACE: &str = "sector or sectors are missing, negative or beyond any device";

fn place(sector: Option<i64>, sectors: Option<i64>) -> Result<(Sector, Sectors), &'static str> {
    let (sector, sectors) = (whole(sector)?, whole(sectors)?);
    let end = sector.checked_add(sectors).ok_or(BAD_PLACE)?;
    if end > MAX_END_SECTOR { Err(BAD_PLACE) } else { Ok((Sector(sector), Sectors(sectors))) }
}

fn whole(value: Option<i64>) -> Result<u64, &'static str> {
    u64::try_from(value.ok_or(BAD_PLACE)?).map_err(|_| BAD_PLACE)
}

fn op(number: Option<i64>) -> Result<Op, &'static str> {
    number
        .and_then(|n| u8::try_from(n).ok())
        .and_then(Op::from_number)
        .ok_or("op is none of read, write, flush, discard, write_zeroes")
}

fn device(number: Option<i64>) -> Result<DeviceId, &'static str> {
    u16::try_from(number.unwrap_or(0)).map(DeviceId).map_err(|_| "device is no index into the table of devices")
}

/// A number of fewer bits than its cell may have; the default where the column or the cell is missing.
fn fitting<T: TryFrom<i64> + Default>(value: Option<i64>, problem: &'static str) -> Result<T, &'static str> {
    value.map_or(Ok(T::default()), |n| T::try_from(n).map_err(|_| problem))
}

/// A count, which is written with 31 bits.
fn count(value: Option<i64>, problem: &'static str) -> Result<u32, &'static str> {
    fitting::<i32>(value, problem).and_then(|n| u32::try_from(n).map_err(|_| problem))
}

fn flags(bits: Option<i64>) -> Flags {
    Flags(bits.unwrap_or(0) as u16)
}

impl Table for Request {
    const KIND: Kind = Kind::Load;
    const COLUMNS: &'static [Column] = &[
        needed("at_ns", Holds::Time),
        column("device", Holds::Narrow),
        needed("sector", Holds::Wide),
        needed("sectors", Holds::Wide),
        needed("op", Holds::Name(op_number)),
        column("flags", Holds::Narrow),
        nullable("latency_ns", Holds::Wide),
        nullable("queued_ns", Holds::Wide),
        nullable("pid", Holds::Narrow),
        nullable("process", Holds::Comm),
    ];

    fn put(&self, cells: &mut Buffers) {
        cells.wide(self.at.0);
        cells.narrow(self.device.0.into());
        cells.wide(self.sector.0 as i64);
        cells.wide(self.sectors.0 as i64);
        cells.name(self.op.name());
        cells.narrow(self.flags.0.into());
        cells.wide_or_null(self.latency.map(|t| t.0));
        cells.wide_or_null(self.queued.map(|t| t.0));
        cells.narrow_or_null(self.pid.map(|pid| pid as i32));
        cells.comm(self.comm);
    }

    fn take(cells: &mut Cells<'_>, _: u64) -> Result<Self, &'static str> {
        let at = Nanos(cells.number().ok_or("at_ns is missing")?);
        let device = device(cells.number())?;
        let (sector, sectors) = place(cells.number(), cells.number())?;
        Ok(Self {
            at,
            device,
            sector,
            sectors,
            op: op(cells.number())?,
            flags: flags(cells.number()),
            latency: cells.number().map(Nanos),
            queued: cells.number().map(Nanos),
            pid: cells.number().map(|pid| pid as u32),
            comm: cells.comm(),
        })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_request(self);
    }
}

impl Table for IoResult {
    const KIND: Kind = Kind::Replay;
    const COLUMNS: &'static [Column] = &[
        column("request", Holds::Time),
        column("iteration", Holds::Narrow).once("round"),
        column("device", Holds::Narrow),
        column("source_sector", Holds::Wide),
        needed("sector", Holds::Wide),
        needed("sectors", Holds::Wide),
        needed("op", Holds::Name(op_number)),
        column("flags", Holds::Narrow),
        needed("scheduled_ns", Holds::Time).once("intended_ns"),
        Column { missing: Missing::Refused, ..nullable("issued_ns", Holds::Time) },
        Column { missing: Missing::Refused, ..nullable("completed_ns", Holds::Time) },
        nullable("ready_ns", Holds::Time),
        nullable("submitted_ns", Holds::Time),
        nullable("last_empty_poll_ns", Holds::Time).once("unanswered_ns"),
        column("bytes_done", Holds::Wide),
        nullable("in_flight", Holds::Narrow),
        nullable("waiting", Holds::Narrow),
        column("pushed_back", Holds::Truth),
        column("widened", Holds::Truth),
        column("delay_reason", Holds::Name(|name| DelayReason::from_name(name).map(|x| x as u8))).once("held_by"),
        column("outcome", Holds::Name(|name| Outcome::from_name(name).map(|x| x as u8))),
        column("errno", Holds::Narrow),
    ];

    fn put(&self, cells: &mut Buffers) {
        // A request that was issued is in flight itself, so that 0 says that nobody counted.
        let counted = self.in_flight > 0;
        cells.wide(self.request as i64);
        cells.narrow(self.iteration as i32);
        cells.narrow(self.device.0.into());
        cells.wide(self.source_sector.0 as i64);
        cells.wide(self.sector.0 as i64);
        cells.wide(self.sectors.0 as i64);
        cells.name(self.op.name());
        cells.narrow(self.flags.0.into());
        cells.wide(self.scheduled.0);
        cells.wide_or_null(self.issued.map(|t| t.0));
        cells.wide_or_null(self.completed.map(|t| t.0));
        cells.wide_or_null(self.ready.map(|t| t.0));
        cells.wide_or_null(self.submitted.map(|t| t.0));
        cells.wide_or_null(self.last_empty_poll.map(|t| t.0));
        cells.wide(self.bytes_done as i64);
        cells.narrow_or_null(counted.then_some(self.in_flight as i32));
        cells.narrow_or_null(counted.then_some(self.waiting as i32));
        cells.truth(self.pushed_back);
        cells.truth(self.widened);
        cells.name(self.delay_reason.name());
        cells.name(self.outcome.name());
        cells.narrow(self.errno);
    }

    fn take(cells: &mut Cells<'_>, place_in_file: u64) -> Result<Self, &'static str> {
        let request = cells.number().map_or(Ok(place_in_file), u64::try_from).map_err(|_| "request is negative")?;
        let iteration = count(cells.number(), "iteration is negative or too large")?;
        let device = device(cells.number())?;
        let source_sector = cells.number();
        let (sector, sectors) = place(cells.number(), cells.number())?;
        let op = op(cells.number())?;
        let flags = flags(cells.number());
        let scheduled = Nanos(cells.number().ok_or("scheduled_ns is missing")?);
        let issued = cells.number().map(Nanos);
        let completed = cells.number().map(Nanos);
        Ok(Self {
            request,
            iteration,
            device,
            source_sector: source_sector
                .map_or(Ok(sector), |s| place(Some(s), Some(sectors.0 as i64)).map(|(s, _)| s))?,
            sector,
            sectors,
            op,
            flags,
            scheduled,
            issued,
            completed,
            ready: cells.number().map(Nanos),
            submitted: cells.number().map(Nanos),
            last_empty_poll: cells.number().map(Nanos),
            bytes_done: cells.number().map_or(sectors.bytes(), |n| n.max(0) as u64),
            in_flight: count(cells.number(), "in_flight is negative or too large")?,
            waiting: count(cells.number(), "waiting is negative or too large")?,
            pushed_back: cells.number() == Some(1),
            widened: cells.number() == Some(1),
            delay_reason: name(cells.number(), DelayReason::from_number).ok_or("delay_reason is no known name")?,
            outcome: name(cells.number(), Outcome::from_number).ok_or("outcome is no known name")?,
            errno: fitting(cells.number(), "errno is no error number")?,
        })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_record(self);
    }
}

/// A name's value; the default where the column or the cell is missing.
fn name<T: Default>(number: Option<i64>, from: fn(u8) -> Option<T>) -> Option<T> {
    number.map_or(Some(T::default()), |n| u8::try_from(n).ok().and_then(from))
}
