//! The table `NAME.scale.parquet`: how long each of several concurrent instances took.

use iosonar_trace::Row;
use iosonar_trace::formats::parquet::{BadRows, Buffers, CellType, Cells, Column, Table, nullable, required};

use super::cells::{name_or_null, number, number_or_null, saturated, value};
use crate::{Metadata, Name};

/// What the instances were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Executed {
    /// Runs of the program itself.
    Program,
    /// Instances of the replay.
    Replay,
}

impl Executed {
    const ALL: &[Self] = &[Self::Program, Self::Replay];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Replay => "replay",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// An instance among several concurrent ones.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTime {
    /// How many instances ran at the same time.
    pub instances: u32,
    /// What ran.
    pub executed: Executed,
    /// Which instance, from 0.
    pub instance: u32,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Its host, if it was one of several.
    pub host: Option<Name>,
    /// Bytes that the host of the instance received over the network while all instances ran, if known.
    pub received_bytes: Option<u64>,
    /// Bytes that it sent.
    pub sent_bytes: Option<u64>,
}

impl Row for JobTime {
    type Metadata = Metadata;
    const NOUN: &'static str = "instance";
}

impl Table for JobTime {
    const KIND: &'static str = "scale";
    const BAD_ROWS: BadRows = BadRows::Refused;
    const COLUMNS: &'static [Column] = &[
        required("instances", CellType::Int32),
        required("what", CellType::Name(|name| Executed::from_name(name).map(|value| value as u8))),
        required("instance", CellType::Int32),
        required("seconds", CellType::Float64),
        nullable("host", CellType::Text),
        nullable("received_bytes", CellType::Int64),
        nullable("sent_bytes", CellType::Int64),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        cells.int32(self.instances as i32);
        cells.name(self.executed.name());
        cells.int32(self.instance as i32);
        cells.float64(self.seconds);
        cells.text_or_null(self.host.as_ref().map(Name::as_bytes));
        cells.int64_or_null(self.received_bytes.map(saturated));
        cells.int64_or_null(self.sent_bytes.map(saturated));
    }

    fn read_cells(cells: &mut Cells<'_>, _: u64) -> Result<Self, &'static str> {
        Ok(Self {
            instances: number(cells, "instances is negative or too large")?,
            executed: value(cells, Executed::ALL).ok_or("what is neither program nor replay")?,
            instance: number(cells, "instance is negative or too large")?,
            seconds: cells.float64().ok_or("seconds is missing")?,
            host: name_or_null(cells)?,
            received_bytes: number_or_null(cells, "received_bytes is negative")?,
            sent_bytes: number_or_null(cells, "sent_bytes is negative")?,
        })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_row(0);
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::formats::parquet::{TableFile, TableReader, TableWriter};
    use iosonar_trace::input::Input;
    use iosonar_trace::output::Output;

    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.scale.parquet");
        let first = JobTime {
            instances: 1,
            executed: Executed::Program,
            instance: 0,
            seconds: 0.125,
            host: None,
            received_bytes: None,
            sent_bytes: None,
        };
        let of_host = JobTime {
            instances: 20,
            executed: Executed::Replay,
            instance: 19,
            seconds: 1e-9,
            host: Some(Name::from(&b"a"[..])),
            received_bytes: Some(1),
            sent_bytes: Some(u64::MAX >> 1),
        };
        let rows = [first, of_host];
        let mut writer = TableWriter::<JobTime>::new(Output::create(&path).unwrap()).unwrap();
        rows.iter().for_each(|row| writer.write(row).unwrap());
        writer.finish(&Metadata::new("scale", "scale")).unwrap();
        let file = TableFile::open(&path, Input::open(&path).unwrap().into_file().unwrap()).unwrap();
        let mut reader = TableReader::<JobTime>::new(file, |_| {}).unwrap();
        assert_eq!(reader.footer().counts.calls, 2);
        assert_eq!([reader.advance().unwrap().unwrap(), reader.advance().unwrap().unwrap()], rows);
        assert!(reader.advance().unwrap().is_none());
    }
}
