//! The cells of the row group that is being gathered, column by column.

use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::Result as ParquetResult;
use ::parquet::file::writer::SerializedFileWriter;

use crate::io::output::Output;
use crate::model::request::Comm;

use super::column::{Column, Holds, comm_or_null};

/// The columns of the row group that is being gathered; a row's cells are put in their order.
pub struct Buffers {
    columns: Vec<Buffer>,
    next: usize,
}

struct Buffer {
    values: Values,
    /// 1 for a value, 0 for a null; empty where a column has no nulls.
    levels: Vec<i16>,
    /// The name that was put last: mostly the next one is the same.
    last: ByteArray,
}

enum Values {
    Wide(Vec<i64>),
    Narrow(Vec<i32>),
    Truth(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Buffers {
    pub fn new(columns: &[Column]) -> Self {
        let buffer = |column: &Column| Buffer {
            values: match column.holds {
                Holds::Time | Holds::Wide => Values::Wide(Vec::new()),
                Holds::Narrow => Values::Narrow(Vec::new()),
                Holds::Truth => Values::Truth(Vec::new()),
                Holds::Name(_) | Holds::Comm => Values::Text(Vec::new()),
            },
            levels: Vec::new(),
            last: ByteArray::from(""),
        };
        Self { columns: columns.iter().map(buffer).collect(), next: 0 }
    }

    /// The next cell is that of the first column.
    pub fn begin_row(&mut self) {
        self.next = 0;
    }

    fn column(&mut self) -> &mut Buffer {
        self.next += 1;
        &mut self.columns[self.next - 1]
    }

    pub fn wide(&mut self, value: i64) {
        if let Values::Wide(values) = &mut self.column().values {
            values.push(value);
        }
    }

    pub fn wide_or_null(&mut self, value: Option<i64>) {
        let column = self.column();
        column.levels.push(value.is_some().into());
        if let (Values::Wide(values), Some(value)) = (&mut column.values, value) {
            values.push(value);
        }
    }

    pub fn narrow(&mut self, value: i32) {
        if let Values::Narrow(values) = &mut self.column().values {
            values.push(value);
        }
    }

    pub fn narrow_or_null(&mut self, value: Option<i32>) {
        let column = self.column();
        column.levels.push(value.is_some().into());
        if let (Values::Narrow(values), Some(value)) = (&mut column.values, value) {
            values.push(value);
        }
    }

    pub fn truth(&mut self, value: bool) {
        if let Values::Truth(values) = &mut self.column().values {
            values.push(value);
        }
    }

    pub fn name(&mut self, value: &str) {
        self.column().text(value);
    }

    pub fn comm(&mut self, comm: Comm) {
        let column = self.column();
        let name = comm_or_null(&comm);
        column.levels.push(name.is_some().into());
        if let Some(name) = name {
            column.text(name);
        }
    }

    /// Writes a row group, and is empty again.
    pub fn write(&mut self, writer: &mut SerializedFileWriter<Output>) -> ParquetResult<()> {
        let mut group = writer.next_row_group()?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            let levels = Some(buffer.levels.as_slice()).filter(|levels| !levels.is_empty());
            match &mut buffer.values {
                Values::Wide(values) => {
                    column.typed::<Int64Type>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Narrow(values) => {
                    column.typed::<Int32Type>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Truth(values) => {
                    column.typed::<BoolType>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Text(values) => {
                    column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                    values.clear();
                }
            }
            buffer.levels.clear();
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl Buffer {
    fn text(&mut self, text: &str) {
        if self.last.data() != text.as_bytes() {
            self.last = ByteArray::from(text);
        }
        if let Values::Text(values) = &mut self.values {
            values.push(self.last.clone());
        }
    }
}
