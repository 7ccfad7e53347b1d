//! Traces of Tencent Cloud Block Storage (SNIA IOTTA 27917): `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Times are seconds since 1970, offset and size are sectors, the type is 0 for a read and 1 for a write. Source: the
//! README of the traces.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::csv::{Column, Dialect, Unit};
use crate::rows::Zero;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "Tencent CBS trace (CSV)",
    tested_with: TestedWith::PublishedLines,
    recognise: |head| DIALECT.recognises(head),
    resembles: |head| DIALECT.resembles(head),
    open: |input, _| DIALECT.open(input),
    ..Format::named("tencent")
};

/// 2001, in nanoseconds since 1970. Files with smaller numbers in the first column are something else, such as logs of fio.
const EARLIEST: i64 = 1_000_000_000_000_000_000;

static DIALECT: Dialect = Dialect {
    name: "tencent",
    heading: "Timestamp",
    columns: &[
        Column::Time(9),
        Column::Offset(Unit::Sectors),
        Column::Length(Unit::Sectors),
        Column::Operation("0", "1"),
        Column::DeviceNumber,
    ],
    zero: Zero::Unix,
    earliest: EARLIEST,
};

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;

    #[test]
    fn offsets_are_sectors_and_times_since_1970() {
        let trace = b"1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n1538323201,1,2,1,1063\n";
        let (rows, about) = load("tencent", trace);
        assert_eq!(recognised_as(trace), "tencent");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Read, 12_910_952, 128));
        assert_eq!((rows[2].at.0, rows[2].op, rows[2].device.0), (1_000_000_000, Op::Write, 0));
        assert_eq!(about.epoch_unix_ns, Some(1_538_323_200_000_000_000));
    }
}
