//! Reads a table.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::FileReader;
use ::parquet::file::serialized_reader::SerializedFileReader;
use ::parquet::file::statistics::Statistics;

use crate::error::{Error, Result};
use crate::formats::format::Opened;
use crate::io::checkpoint::needs_recovery;
use crate::io::stream::Reader;
use crate::model::metadata::{Device, Metadata, SCHEMA_VERSION};
use crate::model::request::Request;
use crate::model::row::Footer;
use crate::model::units::Nanos;
use crate::order::external_sort::{SortedLoad, Sorter};

use super::batch::{BATCH_ROWS, Cells, ColumnBatch, mismatch};
use super::codecs;
use super::column::Missing;
use super::common::{CREATED_BY, MAGIC, Part, damaged, guard, read_error, wrong_footer};
use super::footer::{KindInFooter, json_in};
use super::kinds::another_table;
use super::source::CheckedFile;
use super::table::{BadRows, Table};

/// A file and its footer.
pub struct TableFile<F> {
    path: PathBuf,
    reader: SerializedFileReader<CheckedFile>,
    /// Our metadata in its footer, if it has any.
    footer: Option<F>,
    /// The version that its column names belong to, if it says so.
    version: Option<u32>,
    trust: Trust,
    warning: Option<String>,
}

/// The source of counts and span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The footer, because iosonar wrote it together with the rows.
    Footer,
    /// Only the rows.
    Rows,
}

impl<F: Footer> TableFile<F> {
    /// Reads the footer.
    ///
    /// # Errors
    /// If the file is not a Parquet file, is damaged, or holds a table of another kind than [`Footer::KINDS`].
    pub fn open(path: &Path, mut file: File) -> Result<Self> {
        if !ends_with_magic(&mut file).map_err(|e| Error::io(path, e))? {
            if !begins_with_magic(&mut file).map_err(|e| Error::io(path, e))? {
                return Err(Error::format(path, "not a Parquet file, which begins with PAR1"));
            }
            if needs_recovery(path) {
                let advice = format!("its recording was killed; `iosonar recover {}` completes it", path.display());
                return Err(Error::format(path, advice));
            }
            return Err(Error::format(
                path,
                "cut short: without its footer, which is at the end, nothing in a Parquet file can be read; copy or \
                 convert it again from its source",
            ));
        }
        let bytes = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let reader = guard(|| SerializedFileReader::new(CheckedFile::new(file)?))
            .map_err(|e| read_error(path, Part::Footer, e))?;
        if !points_inside(reader.metadata(), bytes) {
            return Err(damaged(path, Part::Footer));
        }
        let metadata = reader.metadata().file_metadata();
        let rows = metadata.num_rows();
        let (mut footer, mut warning) = (None, None);
        let mut version = None;
        if let Some(json) = json_in(metadata.key_value_metadata()) {
            refuse_other_kinds::<F>(path, json)?;
            let mut found = F::parse(json.as_bytes()).map_err(|error| wrong_footer(path, &error))?;
            if i64::try_from(found.rows()) != Ok(rows) {
                warning = Some(format!(
                    "the footer counts {} rows, but there are {rows}: another program changed the table, and iosonar \
                     counted the rows again",
                    found.rows()
                ));
            }
            version = Some(std::mem::replace(found.version(), SCHEMA_VERSION));
            footer = Some(found);
        }
        // Other programs copy our metadata although they change the rows.
        let is_own = metadata.created_by().is_some_and(|by| by.starts_with(CREATED_BY));
        let trust = if is_own && warning.is_none() && footer.is_some() { Trust::Footer } else { Trust::Rows };
        Ok(Self { path: path.to_owned(), reader, footer, version, trust, warning })
    }

    /// The path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of the table, according to its footer.
    pub fn kind(&self) -> Option<&str> {
        self.footer.as_ref().map(Footer::kind)
    }

    /// Whether it has a column of this name.
    pub fn has_column(&self, name: &str) -> bool {
        let columns = self.reader.metadata().file_metadata().schema_descr().columns();
        columns.iter().any(|column| column.path().string() == name)
    }

    fn rows(&self) -> u64 {
        u64::try_from(self.reader.metadata().file_metadata().num_rows()).unwrap_or(0)
    }
}

impl TableFile<Metadata> {
    /// The number of devices in the rows, according to the statistics of the column, which may be missing.
    fn devices_in_statistics(&self) -> usize {
        let highest = self.reader.metadata().row_groups().iter().filter_map(|group| {
            let column = group.columns().iter().find(|column| column.column_path().string() == "device")?;
            let Statistics::Int32(numbers) = column.statistics()? else { return None };
            numbers.max_opt().and_then(|&number| u16::try_from(number).ok())
        });
        highest.max().map_or(0, |number| usize::from(number) + 1)
    }
}

/// Refuses a table that says it is of another kind than the expected ones.
fn refuse_other_kinds<F: Footer>(path: &Path, json: &str) -> Result<()> {
    let kind = serde_json::from_str::<KindInFooter>(json).map_or_else(|_| String::new(), |footer| footer.kind);
    if kind.is_empty() || F::KINDS.contains(&kind.as_str()) {
        return Ok(());
    }
    Err(Error::format(path, another_table(&kind, F::KINDS)))
}

/// Whether all column chunks are inside the file, which the library does not check.
fn points_inside(metadata: &ParquetMetaData, bytes: u64) -> bool {
    let inside = |from: i64, length: i64| {
        let end = u64::try_from(from).ok().zip(u64::try_from(length).ok()).and_then(|(from, n)| from.checked_add(n));
        end.is_some_and(|end| end <= bytes)
    };
    metadata.row_groups().iter().all(|group| {
        let columns = group.columns().iter().all(|column| {
            let from = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            column.num_values() >= 0 && column.data_page_offset() >= 0 && inside(from, column.compressed_size())
        });
        group.num_rows() >= 0 && columns
    })
}

fn begins_with_magic(file: &mut File) -> std::io::Result<bool> {
    let mut head = Vec::with_capacity(MAGIC.len());
    file.seek(SeekFrom::Start(0))?;
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

fn ends_with_magic(file: &mut File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    if length < 12 {
        return Ok(false);
    }
    let mut magic = [0; 4];
    file.seek(SeekFrom::End(-4))?;
    file.read_exact(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(magic == MAGIC)
}

/// Reads the rows of a table.
pub struct TableReader<Row: Table> {
    file: TableFile<Row::Metadata>,
    metadata: Row::Metadata,
    /// The index in the file of each of our columns.
    indices: Vec<Option<usize>>,
    columns: Vec<Option<ColumnBatch>>,
    next_group: usize,
    batch_rows: usize,
    next_in_batch: usize,
    next_row: u64,
    totals: Totals,
    row: std::marker::PhantomData<fn() -> Row>,
}

/// Where the totals in the metadata come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Totals {
    /// This reader is counting the rows.
    Counting,
    /// This reader has counted all rows.
    Counted,
    /// From the footer, written by the program that wrote the rows.
    FromFooter,
    /// The same, but some of those rows could not be read.
    FromFooterOfMore,
}

impl<Row: Table> TableReader<Row> {
    /// Opens the table. If its footer does not describe the rows, reads all rows once and passes each of them to `look`.
    ///
    /// # Errors
    /// If a column is missing or has the wrong type, or the rows cannot be read.
    pub fn new(mut file: TableFile<Row::Metadata>, mut look: impl FnMut(&Row)) -> Result<Self> {
        if let Some(kind) = file.kind().filter(|&kind| kind != Row::KIND) {
            return Err(Error::format(&file.path, another_table(kind, &[Row::KIND])));
        }
        let indices = column_indices::<Row>(&file)?;
        let mut metadata = file.footer.take().unwrap_or_else(|| Row::Metadata::empty(Row::KIND, &file.path));
        let in_footer = metadata.clone();
        if file.trust == Trust::Rows {
            metadata.clear_totals();
        }
        if let Some(warning) = file.warning.take() {
            metadata.add_warning(warning);
        }
        let trust = file.trust;
        let mut reader = Self {
            file,
            metadata,
            indices,
            columns: Vec::new(),
            next_group: 0,
            batch_rows: 0,
            next_in_batch: 0,
            next_row: 0,
            totals: if trust == Trust::Footer { Totals::FromFooter } else { Totals::Counting },
            row: std::marker::PhantomData,
        };
        if trust == Trust::Rows {
            while let Some(row) = reader.advance()? {
                look(&row);
            }
            reader.rewind();
            let metadata = &mut reader.metadata;
            // A different number of rows was already reported.
            if in_footer.rows() == reader.file.rows() && !in_footer.has_totals_of(metadata) {
                metadata.add_warning(
                    "the footer does not describe the rows: another program changed the table, and iosonar counted the \
                     rows again"
                        .to_owned(),
                );
            }
        }
        Ok(reader)
    }

    fn rewind(&mut self) {
        self.columns.clear();
        (self.next_group, self.batch_rows, self.next_in_batch, self.next_row) = (0, 0, 0, 0);
        self.totals = Totals::Counted;
    }

    /// Reads all rows again for the totals, which are those of the rows that can be read.
    fn recount(&mut self) -> Result<()> {
        self.rewind();
        self.metadata.clear_totals();
        while let Some(row) = self.advance()? {
            row.count(&mut self.metadata);
        }
        Ok(())
    }

    /// The metadata, which describes the whole file from the start. After the last row, its totals leave out damaged rows.
    pub fn footer(&self) -> &Row::Metadata {
        &self.metadata
    }

    /// The part of the rows that has been read, from 0 to 1.
    pub fn part_read(&self) -> f64 {
        let rows = self.file.rows().max(1) as f64;
        (self.next_row.saturating_sub(BATCH_ROWS as u64 / 2) as f64 / rows).min(1.0)
    }

    /// The next valid row; `None` at the end.
    ///
    /// # Errors
    /// If the file is damaged, or a row is invalid and [`Table::BAD_ROWS`] refuses it.
    pub fn advance(&mut self) -> Result<Option<Row>> {
        loop {
            if self.next_in_batch == self.batch_rows && !self.next_batch()? {
                if self.totals == Totals::FromFooterOfMore {
                    self.recount()?;
                }
                return Ok(None);
            }
            let mut cells = Cells::new(&self.columns, self.next_in_batch);
            let row = Row::read_cells(&mut cells, self.next_row);
            let row = match cells.problem() {
                Some(problem) => Err(problem),
                None => row.and_then(|row| row.problem().map_or(Ok(row), Err)),
            };
            let number = self.next_row;
            self.next_in_batch += 1;
            self.next_row += 1;
            match row {
                Ok(mut row) => {
                    let impossible = row.remove_impossible();
                    if self.totals != Totals::Counted {
                        self.metadata.count_impossible(impossible);
                    }
                    if self.totals == Totals::Counting {
                        row.count(&mut self.metadata);
                    }
                    return Ok(Some(row));
                }
                Err(problem) if Row::BAD_ROWS == BadRows::Refused => {
                    return Err(Error::format(&self.file.path, format!("row {number}: {problem}")));
                }
                Err(_) if self.totals == Totals::Counted => {}
                Err(problem) => {
                    self.metadata.count_bad_row(format!("row {number} left out: {problem}"));
                    if self.totals == Totals::FromFooter {
                        self.totals = Totals::FromFooterOfMore;
                    }
                }
            }
        }
    }

    fn next_batch(&mut self) -> Result<bool> {
        loop {
            if let Some(rows) = self.fill()?.filter(|&rows| rows > 0) {
                (self.batch_rows, self.next_in_batch) = (rows, 0);
                return Ok(true);
            }
            if self.next_group == self.file.reader.num_row_groups() {
                return Ok(false);
            }
            let open = || -> ParquetResult<Vec<Option<ColumnBatch>>> {
                let group = self.file.reader.get_row_group(self.next_group)?;
                let of_column = |(column, index): (_, &Option<usize>)| {
                    index.map(|index| ColumnBatch::open(column, group.as_ref(), index)).transpose()
                };
                Row::COLUMNS.iter().zip(&self.indices).map(of_column).collect()
            };
            self.columns = guard(open).map_err(|e| self.read_error(e))?;
            self.next_group += 1;
        }
    }

    fn read_error(&self, error: ParquetError) -> Error {
        read_error(&self.file.path, Part::RowsFrom(self.next_row), error)
    }

    /// Reads the next batch of every column; `None` before the first row group.
    fn fill(&mut self) -> Result<Option<usize>> {
        let mut rows = None;
        let (path, part) = (&self.file.path, Part::RowsFrom(self.next_row));
        for column in self.columns.iter_mut().flatten() {
            let read = guard(|| column.fill()).map_err(|e| read_error(path, part, e))?;
            if rows.is_some_and(|rows| rows != read) {
                return Err(damaged(path, part));
            }
            rows = Some(read);
        }
        Ok(rows)
    }
}

/// The index in the file of each of our columns.
fn column_indices<Row: Table>(file: &TableFile<Row::Metadata>) -> Result<Vec<Option<usize>>> {
    let found = file.reader.metadata().file_metadata().schema_descr().columns();
    let mut problems = Vec::new();
    let indices: Vec<Option<usize>> = Row::COLUMNS
        .iter()
        .map(|column| {
            if column.missing == Missing::NeverRead {
                return None;
            }
            let name = column.name_in(file.version, |name| file.has_column(name));
            let index = found.iter().position(|f| f.path().string() == name);
            match index {
                Some(index) => problems.extend(mismatch(column, &found[index])),
                None if column.missing == Missing::Refused => problems.push(format!("its column {name} is missing")),
                None => {}
            }
            index
        })
        .collect();
    if let Some(problem) = codecs::unsupported(file.reader.metadata(), &indices) {
        return Err(Error::format(&file.path, problem));
    }
    if problems.is_empty() {
        return Ok(indices);
    }
    Err(Error::format(&file.path, format!("{}; docs/schema.md lists the columns", problems.join(", "))))
}

impl<Row: Table> Reader<Row> for TableReader<Row> {
    fn next(&mut self) -> Result<Option<Row>> {
        self.advance()
    }

    fn metadata(&self) -> &Row::Metadata {
        &self.metadata
    }

    fn has_totals(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        Some(self.part_read())
    }
}

/// Opens a load. A load of another producer may be out of order, and may use devices that the footer does not list; so may
/// a load of an early version of iosonar, which did not list devices that appeared late.
pub fn open_load(file: TableFile<Metadata>) -> Result<Opened> {
    let (mut last, mut sorted, mut devices) = (Nanos(i64::MIN), true, file.devices_in_statistics());
    let has_table = file.footer.is_some();
    let mut reader = TableReader::new(file, |request: &Request| {
        sorted &= last <= request.at;
        last = request.at;
        devices = devices.max(usize::from(request.device.0) + 1);
    })?;
    let listed = reader.metadata.devices.len();
    if has_table && devices > listed {
        reader.metadata.warning(format!(
            "there are requests for device {}, but the footer lists only {listed}; the others were named `device {listed}` \
             and so on",
            devices - 1
        ));
    }
    for number in listed..devices {
        reader.metadata.devices.push(Device { name: format!("device {number}"), sectors: None });
    }
    if sorted {
        return Ok(Opened::Load(Box::new(reader)));
    }
    let mut sorter = Sorter::default();
    while let Some(request) = reader.advance()? {
        sorter.push(request)?;
    }
    let mut metadata = reader.metadata;
    metadata.warning("the rows were not in time order and were sorted");
    Ok(Opened::Load(Box::new(SortedLoad::new(sorter, metadata)?)))
}
