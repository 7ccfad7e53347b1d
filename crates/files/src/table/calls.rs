//! The table `NAME.calls.parquet`.

use iosonar_trace::Row;
use iosonar_trace::formats::parquet::{BadRows, Buffers, CellType, Cells, Column, Table};
use iosonar_trace::formats::parquet::{column, nullable, required, write_only};

use super::cells::{duration_or_null, kind, kind_number, name_or_null, number, number_or_null, saturated, time};
use crate::{Call, Metadata, Name};

/// A row: a call, and what other programs need to analyse it file by file.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRow {
    pub call: Call,
    /// The absolute path of the file that it uses. Not read.
    pub file: Option<Name>,
    /// Where in the file it began. Not read.
    pub position: Option<u64>,
}

impl Row for CallRow {
    type Metadata = Metadata;
    const NOUN: &'static str = "call";

    fn problem(&self) -> Option<&'static str> {
        self.call.problem()
    }
}

impl Table for CallRow {
    const KIND: &'static str = "calls";
    const BAD_ROWS: BadRows = BadRows::Refused;
    const COLUMNS: &'static [Column] = &[
        required("begin_ns", CellType::Time),
        nullable("duration_ns", CellType::Int64),
        required("thread", CellType::Int32),
        column("process", CellType::Int32),
        required("call", CellType::Name(kind_number)),
        column("uring", CellType::Bool),
        nullable("fd", CellType::Int32),
        nullable("fd2", CellType::Int32),
        nullable("fd_path", CellType::Text),
        nullable("path", CellType::Text),
        nullable("path2", CellType::Text),
        nullable("offset", CellType::Int64),
        nullable("length", CellType::Int64),
        column("flags", CellType::Int64),
        nullable("mode", CellType::Int32),
        nullable("result", CellType::Int64),
        column("errno", CellType::Int32),
        nullable("offset2", CellType::Int64),
        nullable("container", CellType::Text),
        nullable("waited_ns", CellType::Int64),
        write_only("file", CellType::Text),
        write_only("position", CellType::Int64),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        let call = &self.call;
        cells.int64(call.begin.0);
        cells.int64_or_null(call.duration.map(|duration| duration.0));
        cells.int32(call.thread as i32);
        cells.int32(call.process as i32);
        cells.name(call.kind.name());
        cells.boolean(call.is_uring);
        cells.int32_or_null(call.fd);
        cells.int32_or_null(call.fd2);
        cells.text_or_null(call.fd_path.as_ref().map(Name::as_bytes));
        cells.text_or_null(call.path.as_ref().map(Name::as_bytes));
        cells.text_or_null(call.path2.as_ref().map(Name::as_bytes));
        cells.int64_or_null(call.offset);
        cells.int64_or_null(call.length.map(saturated));
        cells.int64(call.flags as i64);
        cells.int32_or_null(call.mode.map(|mode| mode as i32));
        cells.int64_or_null(call.result);
        cells.int32(call.errno);
        cells.int64_or_null(call.offset2);
        cells.text_or_null(call.container.as_ref().map(Name::as_bytes));
        cells.int64_or_null(call.waited.map(|waited| waited.0));
        cells.text_or_null(self.file.as_ref().map(Name::as_bytes));
        cells.int64_or_null(self.position.map(saturated));
    }

    fn read_cells(cells: &mut Cells<'_>, _: u64) -> Result<Self, &'static str> {
        let call = Call {
            begin: time(cells, "begin_ns is missing")?,
            duration: duration_or_null(cells, "duration_ns is negative")?,
            thread: number_or_null(cells, "thread is not a thread number")?.ok_or("thread is missing")?,
            process: number(cells, "process is not a process number")?,
            kind: kind(cells)?,
            is_uring: cells.number() == Some(1),
            fd: number_or_null(cells, "fd is not a descriptor")?,
            fd2: number_or_null(cells, "fd2 is not a descriptor")?,
            fd_path: name_or_null(cells)?,
            path: name_or_null(cells)?,
            path2: name_or_null(cells)?,
            offset: cells.number(),
            length: number_or_null(cells, "length is negative")?,
            flags: cells.number().unwrap_or_default() as u64,
            mode: cells.number().map(|mode| mode as u32),
            result: cells.number(),
            errno: number::<u16>(cells, "errno is not an error number")?.into(),
            offset2: cells.number(),
            container: name_or_null(cells)?,
            waited: duration_or_null(cells, "waited_ns is negative")?,
        };
        Ok(Self { call, file: None, position: None })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_call(&self.call);
    }
}
