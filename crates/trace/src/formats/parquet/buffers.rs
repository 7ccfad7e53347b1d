//! Buffers the cells of a row group, column by column.

use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use ::parquet::errors::Result as ParquetResult;
use ::parquet::file::writer::SerializedFileWriter;

use crate::io::output::Output;
use crate::model::request::Comm;

use crate::text::escape::escape;

use super::column::{CellType, Column, comm_or_null};
use super::texts::Texts;

/// The columns of a row group. The cells of a row are added in the order of the columns.
pub struct Buffers {
    columns: Vec<Buffer>,
    /// The column of the next cell.
    next: usize,
    /// Bytes of all texts.
    bytes: usize,
}

struct Buffer {
    values: Values,
    /// Definition levels: 1 for a value, 0 for a null; empty if the column has no nulls.
    levels: Vec<i16>,
    /// Recent texts by their address: rows share them. Those of any bytes have nothing to escape.
    recent: Vec<ByteArray>,
    texts: Texts<ByteArray>,
}

enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Buffers {
    pub(super) fn new(columns: &[Column]) -> Self {
        let buffer = |column: &Column| Buffer {
            values: match column.cell_type {
                CellType::Time | CellType::Int64 => Values::Int64(Vec::new()),
                CellType::Int32 => Values::Int32(Vec::new()),
                CellType::Float64 => Values::Float64(Vec::new()),
                CellType::Bool => Values::Bool(Vec::new()),
                CellType::Name(_) | CellType::Comm | CellType::Text => Values::Text(Vec::new()),
            },
            levels: Vec::new(),
            recent: Vec::new(),
            texts: Texts::new(),
        };
        Self { bytes: 0, columns: columns.iter().map(buffer).collect(), next: 0 }
    }

    /// Begins a row: the next cell is that of the first column.
    pub(super) fn begin_row(&mut self) {
        self.next = 0;
    }

    fn column(&mut self) -> &mut Buffer {
        self.next += 1;
        &mut self.columns[self.next - 1]
    }

    /// Adds a cell of 64 bits.
    pub fn int64(&mut self, value: i64) {
        if let Values::Int64(values) = &mut self.column().values {
            values.push(value);
        }
    }

    /// Adds a cell of 64 bits, or a null.
    pub fn int64_or_null(&mut self, value: Option<i64>) {
        let column = self.column();
        column.levels.push(value.is_some().into());
        if let (Values::Int64(values), Some(value)) = (&mut column.values, value) {
            values.push(value);
        }
    }

    /// Adds a cell of 32 bits.
    pub fn int32(&mut self, value: i32) {
        if let Values::Int32(values) = &mut self.column().values {
            values.push(value);
        }
    }

    /// Adds a cell of 32 bits, or a null.
    pub fn int32_or_null(&mut self, value: Option<i32>) {
        let column = self.column();
        column.levels.push(value.is_some().into());
        if let (Values::Int32(values), Some(value)) = (&mut column.values, value) {
            values.push(value);
        }
    }

    /// Adds a floating-point number.
    pub fn float64(&mut self, value: f64) {
        if let Values::Float64(values) = &mut self.column().values {
            values.push(value);
        }
    }

    /// Adds a cell that is true or false.
    pub fn boolean(&mut self, value: bool) {
        if let Values::Bool(values) = &mut self.column().values {
            values.push(value);
        }
    }

    /// Adds a cell with one of the names of the column.
    pub fn name(&mut self, value: &str) {
        self.column().text(value);
    }

    /// Adds a cell with the name of a process.
    pub fn comm(&mut self, comm: Comm) {
        let column = self.column();
        let name = comm_or_null(&comm);
        column.levels.push(name.is_some().into());
        if let Some(name) = name {
            column.text(name);
        }
    }

    /// Adds a cell of any bytes, in a column without nulls.
    pub fn text(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.column().bytes(bytes);
    }

    /// Adds a cell of any bytes, or a null.
    pub fn text_or_null(&mut self, bytes: Option<&[u8]>) {
        self.bytes += bytes.map_or(0, <[u8]>::len);
        let column = self.column();
        column.levels.push(bytes.is_some().into());
        if let Some(bytes) = bytes {
            column.bytes(bytes);
        }
    }

    /// Bytes of all texts in the row group.
    pub(super) fn text_bytes(&self) -> usize {
        self.bytes
    }

    /// Writes the row group and clears the buffers.
    pub(super) fn write(&mut self, writer: &mut SerializedFileWriter<Output>) -> ParquetResult<()> {
        self.bytes = 0;
        let mut group = writer.next_row_group()?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            let levels = Some(buffer.levels.as_slice()).filter(|levels| !levels.is_empty());
            match &mut buffer.values {
                Values::Int64(values) => {
                    column.typed::<Int64Type>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Int32(values) => {
                    column.typed::<Int32Type>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Float64(values) => {
                    column.typed::<DoubleType>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Bool(values) => {
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

/// Places for recent texts of a column.
const RECENT: usize = 256;

impl Buffer {
    /// Adds any bytes, as text.
    fn bytes(&mut self, bytes: &[u8]) {
        if self.recent(bytes).data() != bytes {
            let text = self.texts.get(bytes, |bytes| ByteArray::from(escape(bytes).as_bytes().to_vec()));
            if text.data() != bytes {
                self.push(text);
                return;
            }
            *self.recent(bytes) = text;
        }
        let text = self.recent(bytes).clone();
        self.push(text);
    }

    /// Adds a name.
    fn text(&mut self, text: &str) {
        let recent = self.recent(text.as_bytes());
        if recent.data() != text.as_bytes() {
            *recent = ByteArray::from(text);
        }
        let text = recent.clone();
        self.push(text);
    }

    /// The recent text at this address. Other bytes may be there by now.
    fn recent(&mut self, bytes: &[u8]) -> &mut ByteArray {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, ByteArray::from(""));
        }
        &mut self.recent[(bytes.as_ptr() as usize >> 4) % RECENT]
    }

    fn push(&mut self, text: ByteArray) {
        if let Values::Text(values) = &mut self.values {
            values.push(text);
        }
    }
}
