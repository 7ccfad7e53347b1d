//! Traces of SYSTOR '17 (SNIA IOTTA 4964): `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line.
//!
//! Times are seconds since 1970, the response time is in seconds; offset and size are bytes. A request without a recorded
//! response has a blank response time and a blank operation. Sources: the README of the traces and published lines of one.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::csv::{Column, Dialect, Unit};
use crate::rows::Zero;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "SYSTOR '17 trace (CSV)",
    tested_with: TestedWith::PublishedLines,
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
        Column::OperationOrBlank("R", "W"),
        Column::Device,
        Column::Offset(Unit::Bytes),
        Column::Length(Unit::Bytes),
    ],
    zero: Zero::Unix,
    earliest: i64::MIN,
};

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    const TRACE: &[u8] = b"\
Timestamp,Response,IOType,LUN,Offset,Size
1455592511.102342,0.001204,W,4,8690491904,4096
1455592511.102999,,R,2,512,1024
";

    #[test]
    fn requests_without_a_response_are_no_bad_lines() {
        let unanswered = "1455592511.000000000,,,0,4648471190016,4096\n".repeat(3000);
        let wrong = "1455592511.1,0.001,,4,512,512\n1455592511.1,,\n";
        let trace = [unanswered.as_bytes(), TRACE, wrong.as_bytes()].concat();
        assert_eq!(recognised_as(&trace[..64 << 10]), "systor17");
        let (rows, about) = load("systor17", &trace);
        assert_eq!((rows.len(), about.counts.bad_lines, about.devices.len()), (2, 2, 2));
        assert!(about.warnings.iter().any(|warning| warning.ends_with("operation were not recorded: 3,000")));
    }

    #[test]
    fn the_response_time_may_be_blank() {
        let (rows, about) = load("systor17", TRACE);
        assert_eq!(recognised_as(TRACE), "systor17");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Write, 16_973_617, 8));
        assert_eq!(rows[0].latency, Some(Nanos(1_204_000)));
        assert_eq!((rows[1].at.0, rows[1].latency, rows[1].device.0), (657_000, None, 1));
        assert_eq!(about.epoch_unix_ns, Some(1_455_592_511_102_342_000));
        assert_eq!(about.counts.bad_lines, 0);
    }
}
