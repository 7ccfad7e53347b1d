//! Traces of SYSTOR '17 (SNIA IOTTA 4964): `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line.
//!
//! Times are seconds since 1970, the response is in seconds and may be blank; offset and size are bytes. From the README.

use crate::formats::csv::{Column, Dialect, Unit};
use crate::formats::{Format, TriedOn};
use crate::rows::Zero;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "SYSTOR '17 trace (CSV)",
    tried_on: TriedOn::DescriptionOnly,
    recognise: |head| DIALECT.recognises(head),
    resembles: |head| DIALECT.resembles(head),
    open: |input, _| DIALECT.open(input),
    ..Format::named("systor17")
};

static DIALECT: Dialect = Dialect {
    name: "systor17",
    heading: "Timestamp",
    columns: &[
        Column::Time(9),
        Column::Latency(9),
        Column::Operation("R", "W"),
        Column::Device,
        Column::Offset(Unit::Bytes),
        Column::Length(Unit::Bytes),
    ],
    zero: Zero::Unix,
    earliest: i64::MIN,
};

#[cfg(test)]
mod tests {
    use crate::formats::check::{load, recognised_as};
    use crate::request::Op;
    use crate::units::Nanos;

    const TRACE: &[u8] = b"\
Timestamp,Response,IOType,LUN,Offset,Size
1455592511.102342,0.001204,W,4,8690491904,4096
1455592511.102999,,R,2,512,1024
";

    #[test]
    fn rows_and_blank_responses() {
        let (rows, about) = load("systor17", TRACE);
        assert_eq!(recognised_as(TRACE), "systor17");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Write, 16_973_617, 8));
        assert_eq!(rows[0].latency, Some(Nanos(1_204_000)));
        assert_eq!((rows[1].at.0, rows[1].latency, rows[1].device.0), (657_000, None, 1));
        assert_eq!(about.epoch_unix_ns, Some(1_455_592_511_102_342_000));
        assert_eq!(about.counts.bad_lines, 0);
    }
}
