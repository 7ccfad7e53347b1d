//! Reads a batch of rows column by column, and converts the types of other producers.

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::RowGroupReader;
use ::parquet::schema::types::ColumnDescriptor;

use std::sync::Arc;

use crate::model::request::Comm;
use crate::model::units::Nanos;

use super::column::{CellType, Column};
use super::conversion::{Conversion, conversion};
use super::pages::CheckedPages;
use super::texts::Texts;
use crate::text::escape::unescape;

/// Rows that are read at a time.
pub const BATCH_ROWS: usize = 4096;

/// Texts that are read at a time: in a damaged file, each may be as long as its page.
const BATCH_TEXTS: usize = 64;

/// The longest text of a cell. The system's longest path has 4096 bytes, each of which may be escaped.
pub const MAX_TEXT: usize = 64 * 1024;

/// The number of a name that is not in the column's set.
const UNKNOWN_NAME: i64 = -1;

/// The current batch of a column.
pub struct ColumnBatch {
    cell_type: CellType,
    conversion: Conversion,
    reader: ColumnReader,
    levels: Vec<i16>,
    cells: Vec<Option<i64>>,
    comms: Vec<Comm>,
    /// The texts that are not null; their cells have the indices. `None` for one that is longer than [`MAX_TEXT`].
    texts: Vec<Option<Arc<[u8]>>>,
    cache: Texts<Arc<[u8]>>,
}

/// Why a column of the file cannot be read as `column`; `None` if it can.
pub fn mismatch(column: &Column, found: &ColumnDescriptor) -> Option<String> {
    let number =
        matches!(found.physical_type(), Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE);
    let fits = match column.cell_type {
        CellType::Time | CellType::Int64 | CellType::Int32 => number,
        CellType::Float64 => found.physical_type() == Physical::DOUBLE,
        CellType::Bool => number || found.physical_type() == Physical::BOOLEAN,
        CellType::Name(_) | CellType::Comm | CellType::Text => found.physical_type() == Physical::BYTE_ARRAY,
    };
    let flat = found.max_rep_level() == 0 && found.max_def_level() <= 1;
    if !fits || !flat {
        let kind = if flat { "" } else { "nested " };
        return Some(format!("its column {} has the {kind}type {}", found.name(), found.physical_type()));
    }
    conversion(column, found).err()
}

impl ColumnBatch {
    /// Opens the column with this index in a row group.
    pub fn open(column: &Column, group: &dyn RowGroupReader, index: usize) -> ParquetResult<Self> {
        let description = group.metadata().column(index).column_descr_ptr();
        let conversion = conversion(column, &description).map_err(ParquetError::General)?;
        let pages = CheckedPages::new(group.get_column_page_reader(index)?, &description);
        let reader = get_column_reader(description, Box::new(pages));
        let cell_type = column.cell_type;
        Ok(Self {
            cell_type,
            conversion,
            reader,
            levels: Vec::new(),
            cells: Vec::new(),
            comms: Vec::new(),
            texts: Vec::new(),
            cache: Texts::new(),
        })
    }

    /// Reads the next batch; returns the number of rows.
    pub fn fill(&mut self) -> ParquetResult<usize> {
        let Self { cell_type, conversion, reader, levels, cells, comms, texts, cache } = self;
        levels.clear();
        cells.clear();
        comms.clear();
        texts.clear();
        match reader {
            // Another conversion in the loop would cost each row.
            ColumnReader::Int64ColumnReader(reader) if *conversion == Conversion::None => {
                read(reader, levels, cells, |v| Some(*v))
            }
            ColumnReader::Int64ColumnReader(reader) => read(reader, levels, cells, |v| Some(conversion.apply(*v))),
            ColumnReader::Int32ColumnReader(reader) => {
                read(reader, levels, cells, |v| Some(conversion.apply(i64::from(*v))))
            }
            ColumnReader::BoolColumnReader(reader) => read(reader, levels, cells, |v| Some(i64::from(*v))),
            ColumnReader::DoubleColumnReader(reader) if matches!(cell_type, CellType::Float64) => {
                read(reader, levels, cells, |v| Some(v.to_bits() as i64))
            }
            // pandas stores whole numbers with gaps as floats.
            ColumnReader::DoubleColumnReader(reader) => read(reader, levels, cells, |v| from_float(*v)),
            ColumnReader::FloatColumnReader(reader) => read(reader, levels, cells, |v| from_float((*v).into())),
            ColumnReader::ByteArrayColumnReader(reader) => match cell_type {
                CellType::Name(number) => {
                    let mut last = (ByteArray::from(""), UNKNOWN_NAME);
                    read(reader, levels, cells, |v: &ByteArray| {
                        if v.data() != last.0.data() {
                            let name = v.as_utf8().unwrap_or_default();
                            last = (v.clone(), number(name).map_or(UNKNOWN_NAME, i64::from));
                        }
                        Some(last.1)
                    })
                }
                CellType::Text => read(reader, levels, cells, |v: &ByteArray| {
                    let text = v.data();
                    texts.push((text.len() <= MAX_TEXT).then(|| cache.get(text, |text| unescape(text).into())));
                    Some(texts.len() as i64 - 1)
                }),
                _ => {
                    let rows = read(reader, levels, cells, |v: &ByteArray| {
                        comms.push(Comm::from_bytes(v.data()));
                        Some(0)
                    })?;
                    align_with_rows(comms, cells);
                    Ok(rows)
                }
            },
            _ => Err(ParquetError::General("a column has a type that cannot be read".to_owned())),
        }
    }
}

/// Reads a batch into a cell for each row; null cells are `None`.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    cells: &mut Vec<Option<i64>>,
    mut convert: impl FnMut(&T::T) -> Option<i64>,
) -> ParquetResult<usize> {
    let at_a_time = if T::get_physical_type() == Physical::BYTE_ARRAY { BATCH_TEXTS } else { BATCH_ROWS };
    let mut values = Vec::with_capacity(at_a_time);
    let mut rows = 0;
    while rows < BATCH_ROWS {
        let levels_before = levels.len();
        values.clear();
        let (read, _, _) = reader.read_records(at_a_time, Some(levels), None, &mut values)?;
        if read == 0 {
            break;
        }
        rows += read;
        let levels = &levels[levels_before..];
        if levels.is_empty() {
            cells.extend(values.iter().map(&mut convert));
        } else {
            let mut values = values.iter();
            let of_level = |&level| if level == 1 { values.next().and_then(&mut convert) } else { None };
            cells.extend(levels.iter().map(of_level));
        }
    }
    if cells.len() == rows { Ok(rows) } else { Err(ParquetError::General("fewer values than rows".to_owned())) }
}

/// Inserts defaults for null cells, so that each text has the index of its row.
fn align_with_rows(comms: &mut Vec<Comm>, cells: &[Option<i64>]) {
    let mut values = std::mem::take(comms).into_iter();
    comms.extend(cells.iter().map(|cell| match cell {
        Some(_) => values.next().unwrap_or_default(),
        None => Comm::default(),
    }));
}

/// A float outside the range of i64 becomes its end, which no table holds as a time or a position.
fn from_float(value: f64) -> Option<i64> {
    (!value.is_nan()).then_some(value.round() as i64)
}

/// The cells of a row, in the order of the table's columns.
pub struct Cells<'a> {
    columns: std::slice::Iter<'a, Option<ColumnBatch>>,
    row: usize,
    problem: Option<&'static str>,
}

impl<'a> Cells<'a> {
    /// The cells of a row of the batch.
    pub(super) fn new(columns: &'a [Option<ColumnBatch>], row: usize) -> Self {
        Self { columns: columns.iter(), row, problem: None }
    }

    /// The problem of a cell that was read, if there is one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        self.problem
    }

    #[inline(always)]
    fn next(&mut self) -> Option<&'a ColumnBatch> {
        self.columns.next()?.as_ref()
    }

    /// The next cell: a number, a boolean (0 or 1), or the number of a name.
    #[inline(always)]
    pub fn number(&mut self) -> Option<i64> {
        self.next()?.cells.get(self.row).copied()?
    }

    /// The next cell, in a column of floating-point numbers.
    pub fn float64(&mut self) -> Option<f64> {
        self.number().map(|bits| f64::from_bits(bits as u64))
    }

    /// The next cell, a time.
    #[inline(always)]
    pub fn time(&mut self) -> Option<Nanos> {
        self.number().map(Nanos)
    }

    /// The next cell, in a column of texts.
    pub fn text(&mut self) -> Option<Arc<[u8]>> {
        let column = self.next()?;
        let index = usize::try_from(column.cells.get(self.row).copied()??).ok()?;
        let text = column.texts.get(index)?;
        if text.is_none() {
            self.problem = Some("a text is longer than 64 KiB");
        }
        text.clone()
    }

    /// The next cell, in a column of process names.
    pub fn comm(&mut self) -> Comm {
        self.next().and_then(|column| column.comms.get(self.row)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::from_float;

    #[test]
    fn floats_beyond_the_range_become_its_ends() {
        assert_eq!([f64::NAN, 2.6, -0.4].map(from_float), [None, Some(3), Some(0)]);
        assert_eq!([1e300, f64::INFINITY, -1e300].map(from_float), [Some(i64::MAX), Some(i64::MAX), Some(i64::MIN)]);
    }
}
