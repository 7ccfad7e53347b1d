//! Traces of Tencent Cloud Block Storage (SNIA IOTTA 27917): `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Times are seconds since 1970, offset and size are sectors, the type is 0 for a read and 1 for a write. From the README.

use crate::formats::{Format, TriedOn};
use crate::number::{decimal, whole};
use crate::request::{Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, recognise_lines, separated};
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "Tencent CBS trace (CSV)",
    tried_on: TriedOn::DescriptionOnly,
    recognise: |head| recognise_lines(head, Tencent),
    open: |input, _| open_lines(input, "tencent", Zero::Unix, Tencent),
    ..Format::named("tencent")
};

struct Tencent;

/// 2001 in nanoseconds since 1970. Earlier times are no times but something else in whole numbers, as fio's logs.
const EARLIEST: i64 = 1_000_000_000_000_000_000;

impl LineFormat for Tencent {
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
    let mut next = || fields.next().ok_or("fewer than 5 columns");
    let (time, offset, size, kind, volume) = (next()?, next()?, next()?, next()?, next()?);
    let at = decimal(time, 9).map_err(|_| "the timestamp is no number of seconds")?;
    if at < EARLIEST {
        return Err("the timestamp is no time since 1970");
    }
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err("the type is neither 0 nor 1"),
    };
    let offset = whole(offset).map_err(|_| "the offset is no whole number")?;
    let size = whole(size).map_err(|_| "the size is no whole number")?;
    whole(volume).map_err(|_| "the volume is no whole number")?;
    let (sector, sectors) = context.sectors(offset, size)?;
    Ok(Request { device: context.device(volume)?, ..Request::new(Nanos(at), op, sector, sectors) })
}

#[cfg(test)]
mod tests {
    use crate::formats::check::{load, recognised_as};
    use crate::request::Op;

    #[test]
    fn rows_and_epoch() {
        let trace = b"1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n1538323201,1,2,1,1063\n";
        let (rows, about) = load("tencent", trace);
        assert_eq!(recognised_as(trace), "tencent");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Read, 12_910_952, 128));
        assert_eq!((rows[2].at.0, rows[2].op, rows[2].device.0), (1_000_000_000, Op::Write, 0));
        assert_eq!(about.epoch_unix_ns, Some(1_538_323_200_000_000_000));
    }
}
