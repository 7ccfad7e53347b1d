//! Traces of MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Times are Windows' file times, units of 100 ns since 1601; offset and size are bytes. From the README of the traces.

use crate::formats::{Format, TriedOn};
use crate::number::whole;
use crate::request::{Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, recognise_lines, separated};
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "MSR Cambridge trace (CSV)",
    tried_on: TriedOn::DescriptionOnly,
    recognise: |head| recognise_lines(head, Msr),
    open: |input, _| open_lines(input, "msr", Zero::Unix, Msr),
    ..Format::named("msr")
};

struct Msr;

/// 1970 in Windows' file time.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

impl LineFormat for Msr {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(b"Timestamp") {
            return Parsed::Nothing;
        }
        row(line, context).into()
    }
}

fn row(line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
    let mut fields = separated(line, b',');
    let mut next = || fields.next().ok_or("fewer than 7 columns");
    let (time, host, disk, kind, offset, size, response) =
        (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    let ticks = whole(time).map_err(|_| "the timestamp is no whole number")?;
    let ticks = ticks.checked_sub(UNIX_EPOCH).ok_or("the timestamp lies before 1970")?;
    let at = i64::try_from(ticks).ok().and_then(|t| t.checked_mul(100)).ok_or("the timestamp lies beyond 2262")?;
    let op = if kind.eq_ignore_ascii_case(b"read") {
        Op::Read
    } else if kind.eq_ignore_ascii_case(b"write") {
        Op::Write
    } else {
        return Err("the type is neither Read nor Write");
    };
    let offset = whole(offset).map_err(|_| "the offset is no whole number")?;
    let size = whole(size).map_err(|_| "the size is no whole number")?;
    let response = whole(response).map_err(|_| "the response time is no whole number")?;
    let (sector, sectors) = context.bytes(offset, size)?;
    Ok(Request {
        device: context.device(&[host, b".", disk].concat())?,
        latency: i64::try_from(response).ok().and_then(|r| r.checked_mul(100)).map(Nanos),
        ..Request::new(Nanos(at), op, sector, sectors)
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::check::{load, recognised_as};
    use crate::request::Op;

    const TRACE: &[u8] = b"\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,2822144000,4096,7058
128166372026382245,hm,0,Write,1000,4096,1000
oops
";

    #[test]
    fn rows_and_epoch() {
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
        assert!(about.notices.iter().any(|n| n.contains("not aligned")));
    }
}
