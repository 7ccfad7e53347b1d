//! Traces of MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Times are Windows file times, units of 100 ns since 1601; offset and size are bytes. Sources: the README of the traces
//! and published lines of four of them.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::csv::{Column, Dialect, Unit};
use crate::rows::Zero;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "MSR Cambridge trace (CSV)",
    tested_with: TestedWith::PublishedLines,
    recognise: |head| DIALECT.recognises(head),
    resembles: |head| DIALECT.resembles(head),
    open: |input, _| DIALECT.open(input),
    ..Format::named("msr")
};

static DIALECT: Dialect = Dialect {
    name: "msr",
    heading: "Timestamp",
    columns: &[
        Column::FileTime,
        Column::Host,
        Column::Device,
        Column::Operation("Read", "Write"),
        Column::Offset(Unit::Bytes),
        Column::Length(Unit::Bytes),
        Column::Latency(2),
    ],
    zero: Zero::Unix,
    earliest: i64::MIN,
};

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;

    const TRACE: &[u8] = b"\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,2822144000,4096,7058
128166372026382245,hm,0,Write,1000,4096,1000
oops
";

    #[test]
    fn times_are_file_times_and_devices_are_host_and_disk() {
        let (rows, about) = load("msr", TRACE);
        assert_eq!(recognised_as(&TRACE[..100]), "msr");
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0, rows[0].sectors.0), (0, Op::Read, 749_016, 64));
        assert_eq!(rows[0].latency.unwrap().0, 41_300);
        assert_eq!(rows[1].at.0, 1_332_052_600);
        assert_eq!((rows[2].sector.0, rows[2].sectors.0), (1, 9));
        assert_eq!(about.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["hm.1", "hm.0"]);
        assert_eq!(about.epoch_unix_ns, Some(1_172_163_600_306_162_900));
        assert_eq!(about.counts.bad_lines, 1);
        assert!(about.warnings.iter().any(|n| n.contains("not aligned")));
    }
}
