//! Block traces of Alibaba Cloud, 2020: `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length are bytes, times are microseconds since 1970. Source: the README of
//! <https://github.com/alibaba/block-traces>.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::csv::{Column, Dialect, Unit};
use crate::rows::Zero;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "Alibaba block trace of 2020 (CSV)",
    tested_with: TestedWith::PublishedLines,
    recognise: |head| DIALECT.recognises(head),
    resembles: |head| DIALECT.resembles(head),
    open: |input, _| DIALECT.open(input),
    ..Format::named("alibaba")
};

static DIALECT: Dialect = Dialect {
    name: "alibaba",
    heading: "device_id",
    columns: &[
        Column::DeviceNumber,
        Column::Operation("R", "W"),
        Column::Offset(Unit::Bytes),
        Column::Length(Unit::Bytes),
        Column::Time(3),
    ],
    zero: Zero::Unix,
    earliest: i64::MIN,
};

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;

    #[test]
    fn offsets_are_bytes_and_times_since_1970() {
        let trace = b"419,W,8792731648,16384,1577808144360767\n7,R,0,4096,1577808144360768\n";
        let (rows, about) = load("alibaba", trace);
        assert_eq!(recognised_as(trace), "alibaba");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Write, 17_173_304, 32));
        assert_eq!((rows[1].at.0, rows[1].device.0), (1000, 1));
        assert_eq!(about.epoch_unix_ns, Some(1_577_808_144_360_767_000));
        assert_eq!(about.devices[0].name, "419");
    }
}
