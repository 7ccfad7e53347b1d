//! Traces of SYSTOR '17 (SNIA IOTTA 4964): `Timestamp,Response,IOType,LUN,Offset,Size`, with a header line.
//!
//! Times are seconds since 1970, the response is in seconds and may be blank; offset and size are bytes. From the README.

use crate::formats::{Format, TriedOn};
use crate::number::{decimal, whole};
use crate::request::{Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, recognise_lines, separated};
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "SYSTOR '17 trace (CSV)",
    tried_on: TriedOn::DescriptionOnly,
    recognise: |head| recognise_lines(head, Systor),
    open: |input, _| open_lines(input, "systor17", Zero::Unix, Systor),
    ..Format::named("systor17")
};

struct Systor;

impl LineFormat for Systor {
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
    let mut next = || fields.next().ok_or("fewer than 6 columns");
    let (time, response, kind, lun, offset, size) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let at = decimal(time, 9).map_err(|_| "the timestamp is no number of seconds")?;
    let latency = match response {
        b"" => None,
        text => Some(Nanos(decimal(text, 9).map_err(|_| "the response is no number of seconds")?)),
    };
    let op = match kind {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err("the type is neither R nor W"),
    };
    let offset = whole(offset).map_err(|_| "the offset is no whole number")?;
    let size = whole(size).map_err(|_| "the size is no whole number")?;
    let (sector, sectors) = context.bytes(offset, size)?;
    Ok(Request { device: context.device(lun)?, latency, ..Request::new(Nanos(at), op, sector, sectors) })
}

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
