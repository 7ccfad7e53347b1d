//! Writes a table: rows gather in columns, and every so many of them make a row group.

use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};

use crate::error::{Error, Result};
use crate::formats::format::refuse_packing;
use crate::io::output::{Location, Output};
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::SCHEMA_VERSION;
use crate::model::metadata::{FOOTER_KEY, Metadata};

use super::buffers::Buffers;
use super::column::{Column, Holds, Nulls};
use super::common::{CREATED_BY, NAME, empty_metadata, wrap};
use super::table::Table;

/// Rows in a row group: some 20 MB in memory, and enough groups for a query engine to read them in parallel.
pub const GROUP_ROWS: usize = 1 << 18;

/// Bytes of a kept table that may wait in memory, or as many as its end has.
const MOST_WAITING: usize = 16 << 20;

/// Writes rows of one of the tables.
pub struct TableWriter<Row> {
    writer: SerializedFileWriter<Output>,
    buffers: Buffers,
    rows: usize,
    /// Counts and span of what was written.
    written: Metadata,
    kept: Option<Kept>,
    row: std::marker::PhantomData<fn(Row)>,
}

/// A table that is kept.
struct Kept {
    /// What was known of it then.
    so_far: Metadata,
    /// How many bytes there were, without the end.
    bytes: usize,
    /// How long the end was.
    end: usize,
}

impl<Row: Table> TableWriter<Row> {
    /// Begins a table.
    pub fn new(output: Output) -> Result<Self> {
        let path = output.path().to_owned();
        refuse_packing(NAME, &path)?;
        let properties = Arc::new(properties(Row::COLUMNS));
        let make = || SerializedFileWriter::new(output, Arc::new(schema(Row::COLUMNS)?), properties);
        let writer = make().map_err(|e| wrap(&path, e))?;
        Ok(Self {
            writer,
            buffers: Buffers::new(Row::COLUMNS),
            rows: 0,
            written: empty_metadata(Row::KIND, &path),
            kept: None,
            row: std::marker::PhantomData,
        })
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let written = self.buffers.write(&mut self.writer);
        written.map_err(|e| failed(self.writer.inner().location(), e))
    }

    /// Our own part of the footer.
    fn own(&self, metadata: &Metadata) -> Result<KeyValue> {
        let json = serde_json::to_string(&footer(metadata, &self.written));
        let json = json.map_err(|e| Error::format(self.writer.inner().path(), e.to_string()))?;
        Ok(KeyValue::new(FOOTER_KEY.to_owned(), json))
    }

    /// What makes a table of the row groups that were written so far.
    fn end(&self, so_far: &Metadata) -> Result<Vec<u8>> {
        let groups = self.writer.flushed_row_groups().to_vec();
        let properties = self.writer.properties();
        let about = FileMetaData::new(
            properties.writer_version().as_num(),
            groups.iter().map(RowGroupMetaData::num_rows).sum(),
            Some(properties.created_by().to_owned()),
            Some(vec![self.own(so_far)?]),
            Arc::new(self.writer.schema_descr().clone()),
            None,
        );
        let mut end = Vec::new();
        let contents = ParquetMetaData::new(about, groups);
        // The indexes of pages are written at the end, and are not there yet.
        let writer = ParquetMetaDataWriter::new(&mut end, &contents).with_preserve_page_index_locations(false);
        writer.finish().map_err(|e| wrap(self.writer.inner().path(), e))?;
        Ok(end)
    }
}

impl<Row: Table> Writer<Row> for TableWriter<Row> {
    fn write(&mut self, row: &Row) -> Result<()> {
        row.count(&mut self.written);
        self.buffers.begin_row();
        row.put(&mut self.buffers);
        self.rows += 1;
        if self.rows < GROUP_ROWS {
            return Ok(());
        }
        self.end_group()?;
        // Behind an end everything waits in memory for the next one. As ends grow with the number of row groups, so does
        // what may wait: else the ends of a long recording would be more to write than its rows.
        let bytes = self.writer.bytes_written();
        match self.kept.take_if(|kept| bytes - kept.bytes > kept.end.max(MOST_WAITING)) {
            Some(kept) => self.checkpoint(&kept.so_far),
            None => Ok(()),
        }
    }

    fn checkpoint(&mut self, so_far: &Metadata) -> Result<()> {
        self.end_group()?;
        let end = self.end(so_far)?;
        self.writer.flush().map_err(|e| self.writer.inner().error(e))?;
        let (bytes, length) = (self.writer.bytes_written(), end.len());
        self.writer.inner_mut().checkpoint(end)?;
        self.kept = Some(Kept { so_far: so_far.clone(), bytes, end: length });
        Ok(())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        self.end_group()?;
        let own = self.own(metadata)?;
        self.writer.append_key_value_metadata(own);
        let location = self.writer.inner().location().clone();
        self.writer.into_inner().map_err(|e| failed(&location, e))?.finish()?;
        Ok(ConversionLoss::default())
    }
}

/// Adds where the data written so far is, if there is a checkpoint.
fn failed(location: &Location, error: ParquetError) -> Error {
    match wrap(location.path(), error) {
        Error::Io { source, .. } => location.error(source),
        other => other,
    }
}

/// Counts and span of what was written, everything else as it was given.
fn footer(metadata: &Metadata, written: &Metadata) -> Metadata {
    let mut footer = metadata.clone();
    footer.schema_version = SCHEMA_VERSION;
    footer.kind = written.kind;
    footer.span = written.span;
    let counts = &mut footer.counts;
    counts.requests = written.counts.requests;
    counts.reads = written.counts.reads;
    counts.writes = written.counts.writes;
    counts.others = written.counts.others;
    footer
}

fn schema(columns: &[Column]) -> ParquetResult<Type> {
    let field = |column: &Column| {
        let (physical, converted) = match column.holds {
            Holds::Time | Holds::Wide => (Physical::INT64, ConvertedType::NONE),
            Holds::Narrow => (Physical::INT32, ConvertedType::NONE),
            Holds::Truth => (Physical::BOOLEAN, ConvertedType::NONE),
            Holds::Name(_) | Holds::Comm => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
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
    for column in columns.iter().filter(|column| matches!(column.holds, Holds::Time)) {
        // Times differ little from row to row: their differences take a fraction of their own size.
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
