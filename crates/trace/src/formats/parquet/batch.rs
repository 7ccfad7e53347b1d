//! A stretch of rows, read column by column and brought to one type, whatever the producer's types were.

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::RowGroupReader;
use ::parquet::schema::types::ColumnDescriptor;

use crate::model::request::Comm;

use super::column::{Column, Holds};
use super::meaning::{Meaning, TOO_LARGE, meaning};
use super::pages::CheckedPages;

/// Rows that are read at a time.
pub const BATCH_ROWS: usize = 4096;

/// Texts that the library makes at a time: each may be as long as its page, if that is damaged.
const TEXTS: usize = 64;

/// What stands for a name that is not in the column's set.
const UNKNOWN_NAME: i64 = -1;

/// A column of the file, in the row group that is being read.
pub struct ColumnBatch {
    holds: Holds,
    meaning: Meaning,
    reader: ColumnReader,
    levels: Vec<i16>,
    cells: Vec<Option<i64>>,
    comms: Vec<Comm>,
}

/// Why a column of the file can't stand for ours, if it can't.
pub fn mismatch(column: &Column, found: &ColumnDescriptor) -> Option<String> {
    let number =
        matches!(found.physical_type(), Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE);
    let fits = match column.holds {
        Holds::Time | Holds::Wide | Holds::Narrow => number,
        Holds::Truth => number || found.physical_type() == Physical::BOOLEAN,
        Holds::Name(_) | Holds::Comm => found.physical_type() == Physical::BYTE_ARRAY,
    };
    let flat = found.max_rep_level() == 0 && found.max_def_level() <= 1;
    if !fits || !flat {
        let kind = if flat { "" } else { "nested " };
        return Some(format!("its column {} is of the {kind}type {}", found.name(), found.physical_type()));
    }
    meaning(column, found).err()
}

impl ColumnBatch {
    /// The column of that number in a row group.
    pub fn open(column: &Column, group: &dyn RowGroupReader, index: usize) -> ParquetResult<Self> {
        let description = group.metadata().column(index).column_descr_ptr();
        let meaning = meaning(column, &description).map_err(ParquetError::General)?;
        let pages = CheckedPages::new(group.get_column_page_reader(index)?, &description);
        let reader = get_column_reader(description, Box::new(pages));
        Ok(Self { holds: column.holds, meaning, reader, levels: Vec::new(), cells: Vec::new(), comms: Vec::new() })
    }

    /// Reads the next rows; returns how many.
    pub fn fill(&mut self) -> ParquetResult<usize> {
        let Self { holds, meaning, reader, levels, cells, comms } = self;
        levels.clear();
        cells.clear();
        comms.clear();
        match reader {
            ColumnReader::Int64ColumnReader(reader) => read(reader, levels, cells, |v| Some(meaning.of(*v))),
            ColumnReader::Int32ColumnReader(reader) => read(reader, levels, cells, |v| Some(meaning.of(i64::from(*v)))),
            ColumnReader::BoolColumnReader(reader) => read(reader, levels, cells, |v| Some(i64::from(*v))),
            // What pandas makes of whole numbers with gaps.
            ColumnReader::DoubleColumnReader(reader) => read(reader, levels, cells, |v| from_float(*v)),
            ColumnReader::FloatColumnReader(reader) => read(reader, levels, cells, |v| from_float((*v).into())),
            ColumnReader::ByteArrayColumnReader(reader) => match holds {
                Holds::Name(number) => {
                    let mut last = (ByteArray::from(""), UNKNOWN_NAME);
                    read(reader, levels, cells, |v: &ByteArray| {
                        if v.data() != last.0.data() {
                            let name = v.as_utf8().unwrap_or_default();
                            last = (v.clone(), number(name).map_or(UNKNOWN_NAME, i64::from));
                        }
                        Some(last.1)
                    })
                }
                _ => {
                    let rows = read(reader, levels, cells, |v: &ByteArray| {
                        comms.push(Comm::from_bytes(v.data()));
                        Some(0)
                    })?;
                    spread(comms, cells);
                    Ok(rows)
                }
            },
            _ => Err(ParquetError::General("a column of a type that can't be read".to_owned())),
        }
    }
}

/// Reads a batch and puts each value into its row.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    cells: &mut Vec<Option<i64>>,
    mut convert: impl FnMut(&T::T) -> Option<i64>,
) -> ParquetResult<usize> {
    let at_a_time = if T::get_physical_type() == Physical::BYTE_ARRAY { TEXTS } else { BATCH_ROWS };
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

/// Puts each text into its row, from the last one on, as they lie in front of their places.
fn spread(comms: &mut Vec<Comm>, cells: &[Option<i64>]) {
    let mut values = std::mem::take(comms).into_iter();
    comms.extend(cells.iter().map(|cell| match cell {
        Some(_) => values.next().unwrap_or_default(),
        None => Comm::default(),
    }));
}

fn from_float(value: f64) -> Option<i64> {
    value.is_finite().then_some(value.round() as i64)
}

/// The cells of one row, handed out in the order of the table's columns.
pub struct Cells<'a> {
    columns: std::slice::Iter<'a, Option<ColumnBatch>>,
    row: usize,
    problem: Option<&'static str>,
}

impl<'a> Cells<'a> {
    /// Of that row of the batch.
    pub fn new(columns: &'a [Option<ColumnBatch>], row: usize) -> Self {
        Self { columns: columns.iter(), row, problem: None }
    }

    /// What is wrong with a cell that was handed out, if that is so.
    pub fn problem(&self) -> Option<&'static str> {
        self.problem
    }

    fn next(&mut self) -> Option<&'a ColumnBatch> {
        self.columns.next()?.as_ref()
    }

    /// The next cell: a number, a truth (0 or 1), or the number of a name.
    pub fn number(&mut self) -> Option<i64> {
        let column = self.next()?;
        let number = column.cells.get(self.row).copied()??;
        if number == TOO_LARGE && matches!(column.meaning, Meaning::Times(_)) {
            self.problem = Some("a time is too large to be counted in nanoseconds");
        }
        Some(number)
    }

    /// The next cell, of a column of processes.
    pub fn comm(&mut self) -> Comm {
        self.next().and_then(|column| column.comms.get(self.row)).copied().unwrap_or_default()
    }
}
