//! The table `NAME.calls-run.parquet`.

use iosonar_trace::Row;
use iosonar_trace::formats::parquet::{BadRows, Buffers, CellType, Cells, Column, Missing, Table};
use iosonar_trace::formats::parquet::{column, nullable, required};

use super::cells::{
    duration_or_null, kind, kind_number, name_or_null, number, number_or_null, saturated, time, value_or_default,
};
use crate::{CallOutcome, CallResult, DelayReason, Metadata, Name};

/// A column with nulls that every file must have.
const fn required_with_nulls(name: &'static str, cell_type: CellType) -> Column {
    Column { missing: Missing::Refused, ..nullable(name, cell_type) }
}

impl Row for CallResult {
    type Metadata = Metadata;
    const NOUN: &'static str = "call";

    fn problem(&self) -> Option<&'static str> {
        self.problem_of_times()
    }
}

impl Table for CallResult {
    const KIND: &'static str = "calls_run";
    const BAD_ROWS: BadRows = BadRows::Refused;
    const COLUMNS: &'static [Column] = &[
        required("call_number", CellType::Time),
        column("instance", CellType::Int32),
        required("thread", CellType::Int32),
        required("call", CellType::Name(kind_number)),
        nullable("path", CellType::Text),
        nullable("position", CellType::Int64),
        nullable("length", CellType::Int64),
        required("scheduled_ns", CellType::Time),
        required_with_nulls("issued_ns", CellType::Time),
        required_with_nulls("completed_ns", CellType::Time),
        nullable("predecessors_end_ns", CellType::Time),
        nullable("gap_ns", CellType::Time),
        column("delay_reason", CellType::Name(|name| DelayReason::from_name(name).map(|value| value as u8)))
            .until(2, "held_by"),
        nullable("result", CellType::Int64),
        column("errno", CellType::Int32),
        nullable("expected_result", CellType::Int64),
        column("expected_errno", CellType::Int32),
        nullable("expected_duration_ns", CellType::Int64),
        column("outcome", CellType::Name(|name| CallOutcome::from_name(name).map(|value| value as u8))),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        cells.int64(saturated(self.call));
        cells.int32(self.instance as i32);
        cells.int32(self.thread as i32);
        cells.name(self.kind.name());
        cells.text_or_null(self.path.as_ref().map(Name::as_bytes));
        cells.int64_or_null(self.position.map(saturated));
        cells.int64_or_null(self.length.map(saturated));
        cells.int64(self.scheduled.0);
        cells.int64_or_null(self.issued.map(|time| time.0));
        cells.int64_or_null(self.completed.map(|time| time.0));
        cells.int64_or_null(self.predecessors_end.map(|time| time.0));
        cells.int64_or_null(self.gap.map(|time| time.0));
        cells.name(self.delay_reason.name());
        cells.int64_or_null(self.result);
        cells.int32(self.errno);
        cells.int64_or_null(self.expected_result);
        cells.int32(self.expected_errno);
        cells.int64_or_null(self.expected_duration.map(|time| time.0));
        cells.name(self.outcome.name());
    }

    fn read_cells(cells: &mut Cells<'_>, _: u64) -> Result<Self, &'static str> {
        Ok(Self {
            call: number_or_null(cells, "call_number is negative")?.ok_or("call_number is missing")?,
            instance: number(cells, "instance is negative or too large")?,
            thread: number_or_null(cells, "thread is not a thread number")?.ok_or("thread is missing")?,
            kind: kind(cells)?,
            path: name_or_null(cells)?,
            position: number_or_null(cells, "position is negative")?,
            length: number_or_null(cells, "length is negative")?,
            scheduled: time(cells, "scheduled_ns is missing")?,
            issued: cells.time(),
            completed: cells.time(),
            predecessors_end: cells.time(),
            gap: cells.time(),
            delay_reason: value_or_default(cells, DelayReason::ALL, "delay_reason is not a known name")?,
            result: cells.number(),
            errno: number::<u16>(cells, "errno is not an error number")?.into(),
            expected_result: cells.number(),
            expected_errno: number::<u16>(cells, "expected_errno is not an error number")?.into(),
            expected_duration: duration_or_null(cells, "expected_duration_ns is negative")?,
            outcome: value_or_default(cells, CallOutcome::ALL, "outcome is not a known name")?,
        })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_row(self.scheduled.0);
    }
}
