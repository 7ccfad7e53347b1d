//! Writes a table: buffers rows column by column, and writes a row group for every [`GROUP_ROWS`] rows.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};

use crate::error::{Error, Result};
use crate::formats::format::refuse_compression;
use crate::io::output::{Location, Output};
use crate::io::stream::{ConversionLoss, Impossible, Writer};
use crate::model::metadata::FOOTER_KEY;
use crate::model::row::Footer;

use super::buffers::Buffers;
use super::column::{CellType, Column, Nulls};
use super::common::{self, CREATED_BY, NAME};
use super::table::{BadRows, Table};

/// Rows in a row group: some 20 MB in memory, and enough groups for a query engine to read them in parallel.
pub const GROUP_ROWS: usize = 1 << 18;

/// The most bytes of texts in a row group.
const GROUP_TEXT_BYTES: usize = 64 << 20;

/// The most bytes after a checkpoint that are held in memory, unless its footer is larger.
const MAX_HELD_BYTES: usize = 16 << 20;

/// Writes rows of one of the tables.
pub struct TableWriter<Row: Table> {
    writer: SerializedFileWriter<Output>,
    buffers: Buffers,
    rows: usize,
    /// Counts and span of the rows written.
    written: Row::Metadata,
    checkpoint: Option<Checkpoint<Row::Metadata>>,
    left_out: Impossible,
    row: std::marker::PhantomData<fn(Row)>,
}

/// The state at the last [`TableWriter::checkpoint`].
struct Checkpoint<Footer> {
    /// The metadata at that time.
    so_far: Footer,
    /// Bytes written, without the footer.
    bytes: usize,
    /// Bytes of the footer.
    footer_bytes: usize,
}

impl<Row: Table> TableWriter<Row> {
    /// Creates a table.
    ///
    /// # Errors
    /// If the name of the file has the ending of a compression.
    pub fn new(output: Output) -> Result<Self> {
        let path = output.path().to_owned();
        refuse_compression(NAME, &path)?;
        let properties = Arc::new(properties(Row::COLUMNS));
        let make = || SerializedFileWriter::new(output, Arc::new(schema(Row::COLUMNS)?), properties);
        let writer = make().map_err(|e| common::write_error(&path, e))?;
        Ok(Self {
            writer,
            buffers: Buffers::new(Row::COLUMNS),
            rows: 0,
            written: Row::Metadata::empty(Row::KIND, &path),
            checkpoint: None,
            left_out: Impossible::default(),
            row: std::marker::PhantomData,
        })
    }

    /// The hidden name of the file that is being written.
    pub fn hidden(&self) -> Option<&Path> {
        self.writer.inner().hidden()
    }

    /// Bytes of the row groups so far.
    pub fn bytes_written(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// As [`Output::error`].
    pub fn error(&self, source: io::Error) -> Error {
        self.writer.inner().error(source)
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let written = self.buffers.write(&mut self.writer);
        written.map_err(|e| write_error(self.writer.inner().location(), e))
    }

    /// Our metadata for the footer.
    fn key_value(&self, metadata: &Row::Metadata) -> Result<KeyValue> {
        let json = serde_json::to_string(&metadata.with_totals_of(&self.written));
        let json = json.map_err(|e| Error::format(self.writer.inner().path(), e.to_string()))?;
        Ok(KeyValue::new(FOOTER_KEY.to_owned(), json))
    }

    /// The footer that completes a table of the row groups written so far.
    fn footer_so_far(&self, so_far: &Row::Metadata) -> Result<Vec<u8>> {
        let groups = self.writer.flushed_row_groups().to_vec();
        let properties = self.writer.properties();
        let file = FileMetaData::new(
            properties.writer_version().as_num(),
            groups.iter().map(RowGroupMetaData::num_rows).sum(),
            Some(properties.created_by().to_owned()),
            Some(vec![self.key_value(so_far)?]),
            Arc::new(self.writer.schema_descr().clone()),
            None,
        );
        let mut bytes = Vec::new();
        let metadata = ParquetMetaData::new(file, groups);
        // The page indexes are written at the end of the file: there are none yet.
        let writer = ParquetMetaDataWriter::new(&mut bytes, &metadata).with_preserve_page_index_locations(false);
        writer.finish().map_err(|e| common::write_error(self.writer.inner().path(), e))?;
        Ok(bytes)
    }

    /// Writes a row. One that a reader would leave out is left out and counted.
    ///
    /// # Errors
    /// If the file cannot be written, or a reader would refuse the row.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        match row.problem() {
            None => {}
            Some(problem) if Row::BAD_ROWS == BadRows::Refused => {
                return Err(Error::format(self.writer.inner().path(), format!("a {} left out: {problem}", Row::NOUN)));
            }
            Some(problem) => {
                self.left_out.add(problem);
                return Ok(());
            }
        }
        row.count(&mut self.written);
        self.buffers.begin_row();
        row.write_cells(&mut self.buffers);
        self.rows += 1;
        if self.rows < GROUP_ROWS && self.buffers.text_bytes() < GROUP_TEXT_BYTES {
            return Ok(());
        }
        self.end_group()?;
        // Everything after a checkpoint is held in memory until the next one. The limit grows with the footer, which grows
        // with the number of row groups: otherwise the footers of a long recording would be larger than its rows.
        let bytes = self.writer.bytes_written();
        match self.checkpoint.take_if(|last| bytes - last.bytes > last.footer_bytes.max(MAX_HELD_BYTES)) {
            Some(last) => self.checkpoint(&last.so_far),
            None => Ok(()),
        }
    }

    /// Makes the rows written so far survive the end of this program; see [`Writer::checkpoint`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn checkpoint(&mut self, so_far: &Row::Metadata) -> Result<()> {
        self.end_group()?;
        let footer = self.footer_so_far(so_far)?;
        self.writer.flush().map_err(|e| self.writer.inner().error(e))?;
        let (bytes, footer_bytes) = (self.writer.bytes_written(), footer.len());
        self.writer.inner_mut().checkpoint(footer)?;
        self.checkpoint = Some(Checkpoint { so_far: so_far.clone(), bytes, footer_bytes });
        Ok(())
    }

    /// Finishes the file. The totals of the footer are those of the rows written; the rest comes from `metadata`.
    ///
    /// # Errors
    /// If the file cannot be written, or its final name was taken meanwhile.
    pub fn finish(mut self, metadata: &Row::Metadata) -> Result<()> {
        self.end_group()?;
        let key_value = self.key_value(metadata)?;
        self.writer.append_key_value_metadata(key_value);
        let location = self.writer.inner().location().clone();
        self.writer.into_inner().map_err(|e| write_error(&location, e))?.finish()
    }
}

impl<Row: Table> Writer<Row> for TableWriter<Row> {
    fn write(&mut self, row: &Row) -> Result<()> {
        self.write(row)
    }

    fn error(&self, source: io::Error) -> Error {
        self.error(source)
    }

    fn checkpoint(&mut self, so_far: &Row::Metadata) -> Result<()> {
        self.checkpoint(so_far)
    }

    fn finish(self: Box<Self>, metadata: &Row::Metadata) -> Result<ConversionLoss> {
        let loss = self.left_out.conversion_loss(self.writer.inner().path(), Row::NOUN, self.written.rows())?;
        (*self).finish(metadata).map(|()| loss)
    }
}

/// An error of the library; an I/O error names the file of the last checkpoint, if there is one.
fn write_error(location: &Location, error: ParquetError) -> Error {
    match common::write_error(location.path(), error) {
        Error::Io { source, .. } => location.error(source),
        other => other,
    }
}

fn schema(columns: &[Column]) -> ParquetResult<Type> {
    let field = |column: &Column| {
        let (physical, converted) = match column.cell_type {
            CellType::Time | CellType::Int64 => (Physical::INT64, ConvertedType::NONE),
            CellType::Int32 => (Physical::INT32, ConvertedType::NONE),
            CellType::Float64 => (Physical::DOUBLE, ConvertedType::NONE),
            CellType::Bool => (Physical::BOOLEAN, ConvertedType::NONE),
            CellType::Name(_) | CellType::Comm | CellType::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let repetition = match column.nulls {
            Nulls::Never => Repetition::REQUIRED,
            Nulls::MeanUnknown => Repetition::OPTIONAL,
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_converted_type(converted)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder("iosonar").with_fields(fields).build()
}

fn properties(columns: &[Column]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("{CREATED_BY}{}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::default()));
    for column in columns {
        let path = ColumnPath::from(column.name);
        properties = match column.cell_type {
            // Times grow slowly from row to row: their differences are much smaller than the times.
            CellType::Time => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // No reader searches for texts between two others, and each value would be compared with the least and the largest.
            CellType::Name(_) | CellType::Comm | CellType::Text => {
                properties.set_column_statistics_enabled(path, EnabledStatistics::None)
            }
            CellType::Int64 | CellType::Int32 | CellType::Float64 | CellType::Bool => properties,
        };
    }
    properties.build()
}
