//! Traces of VMware's vscsiStats, as published by CloudPhysics: binary records of 32 bytes (version 1) or 40 (version 2).
//!
//! ```text
//! version 1:  u32 sn, len, nSG;  u16 cmd, ver;  u64 lbn, ts
//! version 2:  u16 cmd, ver;  u32 sn, len, nSG;  u64 lbn, ts, rt
//! ```
//! Little-endian; `len` is in bytes, `lbn` in sectors, `ts` and `rt` (the response time) in microseconds; the upper byte of
//! `ver` is the version. Source: the reader in libCacheSim, which its authors used on the published traces.

use std::io::Read;

use crate::error::{Error, Result};
use crate::formats::format::{Format, Opened, TestedWith};
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};
use crate::rows::{InOrder, Source, Zero, metadata_of, note_damage};
use crate::text::human;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "vscsiStats trace of CloudPhysics",
    tested_with: TestedWith::DescriptionOnly,
    recognise: |head| version(head).is_some(),
    open: |input, _| open(input),
    ..Format::named("vscsi")
};

/// A longer request is implausible: the file has another format.
const MAX_REQUEST_BYTES: u32 = 1 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }
}

struct Row {
    command: u16,
    version: u16,
    bytes: u32,
    sector: u64,
    at_us: u64,
    response_us: Option<u64>,
}

fn row(version: Version, record: &[u8]) -> Row {
    let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    match version {
        Version::One => Row {
            command: u16_at(12),
            version: u16_at(14),
            bytes: u32_at(4),
            sector: u64_at(16),
            at_us: u64_at(24),
            response_us: None,
        },
        Version::Two => Row {
            command: u16_at(0),
            version: u16_at(2),
            bytes: u32_at(8),
            sector: u64_at(16),
            at_us: u64_at(24),
            response_us: Some(u64_at(32)),
        },
    }
}

/// The version of the records at the beginning of a file.
fn version(head: &[u8]) -> Option<Version> {
    [(Version::One, 1), (Version::Two, 2)].into_iter().find_map(|(version, number)| {
        let mut records =
            head.chunks_exact(version.record_bytes()).take(100).map(|record| row(version, record)).peekable();
        records.peek()?;
        let fits = |row: Row| row.version >> 8 == number && row.command < 0x100 && row.bytes <= MAX_REQUEST_BYTES;
        records.all(fits).then_some(version)
    })
}

fn open(input: Input) -> Result<Opened> {
    let Some(version) = version(input.head()) else {
        return Err(Error::format(input.path(), "not a trace of vscsiStats, version 1 or 2"));
    };
    let metadata = metadata_of(&input, FORMAT.name);
    let source = Vscsi { input, version, number: 0, other_commands: 0 };
    Ok(Opened::Load(Box::new(InOrder::new(source, metadata, Zero::Arbitrary)?)))
}

struct Vscsi {
    input: Input,
    version: Version,
    number: u64,
    other_commands: u64,
}

impl Source for Vscsi {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>> {
        let mut buffer = [0; 40];
        let record = &mut buffer[..self.version.record_bytes()];
        loop {
            match read_whole(&mut self.input, record).map_err(|e| Error::io(self.input.path(), e))? {
                0 => break,
                n if n < record.len() => {
                    about.complete = false;
                    about.warning("the last record is incomplete: the file was cut short there");
                    break;
                }
                _ => {}
            }
            let number = self.number;
            self.number += 1;
            let row = row(self.version, record);
            // SCSI READ, WRITE and WRITE AND VERIFY with 6, 10, 12 and 16 bytes, and WRITE ATOMIC.
            let op = match row.command {
                0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
                0x0a | 0x2a | 0xaa | 0x8a => Op::Write,
                0x2e | 0xae | 0x8e | 0x9c => Op::Write,
                _ => {
                    self.other_commands += 1;
                    continue;
                }
            };
            match request(op, &row) {
                Some(request) => return Ok(Some(request)),
                None => {
                    about.counts.bad_lines += 1;
                    about.warning_of_line(format!("record {number} left out: its time or position is too large"));
                }
            }
        }
        if self.other_commands > 0 {
            let count = std::mem::take(&mut self.other_commands);
            about.warning(format!("{} left out that neither read nor write", human::counted(count, "SCSI command")));
        }
        note_damage(&self.input, about);
        Ok(None)
    }

    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

fn request(op: Op, row: &Row) -> Option<Request> {
    let sectors = u64::from(row.bytes).div_ceil(SECTOR_BYTES);
    row.sector.checked_add(sectors).filter(|&end| end <= MAX_END_SECTOR)?;
    let ns = |us: u64| i64::try_from(us).ok()?.checked_mul(1000).map(Nanos);
    Some(Request {
        latency: row.response_us.map(|us| ns(us).unwrap_or(Nanos::MAX)),
        ..Request::new(ns(row.at_us)?, op, Sector(row.sector), Sectors(sectors))
    })
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn read_whole(input: &mut Input, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    fn one(sn: u32, bytes: u32, command: u16, sector: u64, us: u64) -> Vec<u8> {
        let mut record = Vec::new();
        [sn, bytes, 1].iter().for_each(|x| record.extend(x.to_le_bytes()));
        [command, 0x0103].iter().for_each(|x| record.extend(x.to_le_bytes()));
        [sector, us].iter().for_each(|x| record.extend(x.to_le_bytes()));
        record
    }

    fn two(sn: u32, bytes: u32, command: u16, sector: u64, us: u64, response: u64) -> Vec<u8> {
        let mut record = Vec::new();
        [command, 0x0203].iter().for_each(|x| record.extend(x.to_le_bytes()));
        [sn, bytes, 1].iter().for_each(|x| record.extend(x.to_le_bytes()));
        [sector, us, response].iter().for_each(|x| record.extend(x.to_le_bytes()));
        record
    }

    #[test]
    fn version_one_has_no_response_times() {
        let trace =
            [one(1, 4096, 0x28, 64, 1_000_000), one(2, 512, 0x12, 0, 1_000_001), one(3, 8192, 0x2a, 8, 1_000_500)];
        let (rows, about) = load("vscsi", &trace.concat());
        assert_eq!(recognised_as(&trace.concat()), "vscsi");
        assert_eq!((rows.len(), rows[0].at.0, rows[0].op, rows[0].sector.0), (2, 0, Op::Read, 64));
        assert_eq!((rows[1].at.0, rows[1].sectors.0, rows[1].latency), (500_000, 16, None));
        assert!(about.warnings[0].contains("1 SCSI command"), "{:?}", about.warnings);
    }

    #[test]
    fn version_two_has_response_times_and_may_be_cut_short() {
        let trace = [two(1, 4096, 0x88, 64, 7, 30), two(2, 4096, 0x8a, 64, 9, 40)].concat();
        let (rows, about) = load("vscsi", &trace);
        assert_eq!((rows[1].latency, about.complete), (Some(Nanos(40_000)), true));
        let (rows, about) = load("vscsi", &trace[..79]);
        assert_eq!((rows.len(), about.complete), (1, false));
    }
}
