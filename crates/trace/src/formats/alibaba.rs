//! Block traces of Alibaba Cloud, 2020: `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length are bytes, times are microseconds since 1970. From the README of github.com/alibaba/block-traces.

use crate::formats::{Format, TriedOn};
use crate::number::{decimal, whole};
use crate::request::{Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, recognise_lines, separated};
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "Alibaba block trace of 2020 (CSV)",
    tried_on: TriedOn::DescriptionOnly,
    recognise: |head| recognise_lines(head, Alibaba),
    open: |input, _| open_lines(input, "alibaba", Zero::Unix, Alibaba),
    ..Format::named("alibaba")
};

struct Alibaba;

impl LineFormat for Alibaba {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(b"device_id") {
            return Parsed::Nothing;
        }
        row(line, context).into()
    }
}

fn row(line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
    let mut fields = separated(line, b',');
    let mut next = || fields.next().ok_or("fewer than 5 columns");
    let (device, opcode, offset, length, time) = (next()?, next()?, next()?, next()?, next()?);
    let op = match opcode {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        _ => return Err("the opcode is neither R nor W"),
    };
    whole(device).map_err(|_| "the device is no whole number")?;
    let offset = whole(offset).map_err(|_| "the offset is no whole number")?;
    let length = whole(length).map_err(|_| "the length is no whole number")?;
    let at = decimal(time, 3).map_err(|_| "the timestamp is no number of microseconds")?;
    let (sector, sectors) = context.bytes(offset, length)?;
    Ok(Request { device: context.device(device)?, ..Request::new(Nanos(at), op, sector, sectors) })
}

#[cfg(test)]
mod tests {
    use crate::formats::check::{load, recognised_as};
    use crate::request::Op;

    #[test]
    fn rows_and_epoch() {
        let trace = b"419,W,8792731648,16384,1577808144360767\n7,R,0,4096,1577808144360768\n";
        let (rows, about) = load("alibaba", trace);
        assert_eq!(recognised_as(trace), "alibaba");
        assert_eq!((rows[0].op, rows[0].sector.0, rows[0].sectors.0), (Op::Write, 17_173_304, 32));
        assert_eq!((rows[1].at.0, rows[1].device.0), (1000, 1));
        assert_eq!(about.epoch_unix_ns, Some(1_577_808_144_360_767_000));
        assert_eq!(about.devices[0].name, "419");
    }
}
