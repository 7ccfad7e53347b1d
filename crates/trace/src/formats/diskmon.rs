//! Logs of Sysinternals' DiskMon: `# time duration disk request sector length`.
//!
//! Time and duration are in seconds, position and length in sectors. Source: the program's description.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::model::request::{Op, Request};
use crate::model::units::Nanos;
use crate::rows::{Context, LineFormat, Parsed, Zero, recognise_lines, words};
use crate::text::number::{decimal, span, whole};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "log of Windows DiskMon",
    tested_with: TestedWith::DescriptionOnly,
    recognise: |head| recognise_lines(head, DiskMon),
    open: |input, _| open_lines(input, "diskmon", Zero::TraceStart, DiskMon),
    ..Format::named("diskmon")
};

struct DiskMon;

impl LineFormat for DiskMon {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(b"#") {
            return Parsed::Nothing;
        }
        row(line, context).into()
    }
}

fn row(line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
    let mut fields = words(line);
    let mut next = || fields.next().ok_or("fewer than 7 columns");
    let (number, time, duration, disk, kind, sector, length) =
        (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    whole(number).map_err(|_| "the line does not begin with its number")?;
    let at = decimal(time, 9).map_err(|_| "the time is not a number of seconds")?;
    let duration = span(duration, 9).map_err(|_| "the duration is not a number of seconds")?;
    let op = if kind.eq_ignore_ascii_case(b"read") {
        Op::Read
    } else if kind.eq_ignore_ascii_case(b"write") {
        Op::Write
    } else {
        return Err("the request is neither Read nor Write");
    };
    let sector = whole(sector).map_err(|_| "the sector is not a whole number")?;
    let length = whole(length).map_err(|_| "the length is not a whole number")?;
    let (sector, sectors) = context.sectors(sector, length)?;
    Ok(Request {
        device: context.device(disk)?,
        latency: Some(Nanos(duration)),
        ..Request::new(Nanos(at), op, sector, sectors)
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    #[test]
    fn durations_are_latencies_and_positions_sectors() {
        let trace = b"0\t0.000000\t0.00005245\t0\tRead\t4098088\t8\r\n1\t0.125000\t0.001\t1\tWrite\t64\t128\r\n";
        let (rows, about) = load("diskmon", trace);
        assert_eq!(recognised_as(trace), "diskmon");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].latency), (Op::Read, 4_098_088, Some(Nanos(52_450))));
        assert_eq!((rows[1].at.0, rows[1].sectors.0, rows[1].device.0), (125_000_000, 128, 1));
        assert_eq!(about.counts.bad_lines, 0);
    }
}
