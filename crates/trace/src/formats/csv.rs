//! What the published traces of requests in comma-separated columns share: a table says what stands in which column.
//!
//! A dialect is a file beside this one with its table, and one line in the list of formats.

use std::borrow::Cow;

use crate::formats::Opened;
use crate::input::Input;
use crate::number::{decimal, whole};
use crate::request::{Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, recognise_lines, separated};
use crate::units::{Nanos, SECTOR_BYTES};

/// A dialect: what its columns are.
pub struct Dialect {
    /// The name of the format.
    pub name: &'static str,
    /// What a line begins with that is a heading or a comment.
    pub heading: &'static str,
    /// The columns, from the left; what follows behind the last is of no interest.
    pub columns: &'static [Column],
    /// What the times count from.
    pub zero: Zero,
    /// Earlier times, in nanoseconds, are no times but something else that is a number.
    pub earliest: i64,
}

/// What stands in a column.
#[derive(Clone, Copy)]
pub enum Column {
    /// When, as a decimal number of a unit that has so many decimal places of nanoseconds: 9 of seconds.
    Time(u32),
    /// When, in Windows' file time: units of 100 ns since 1601.
    FileTime,
    /// How long the request took, as a decimal number of such a unit; blank if that is not known.
    Latency(u32),
    /// The operation: what a read and what a write is called, in any case.
    Operation(&'static str, &'static str),
    /// Where it begins.
    Offset(Unit),
    /// How long it is.
    Length(Unit),
    /// Where the device is: what stands before its name.
    Host,
    /// The name of the device.
    Device,
    /// The name of the device, which is a number.
    DeviceNumber,
}

/// In which unit a place is told.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
}

impl Unit {
    /// So many of them in bytes.
    fn bytes(self, number: u64) -> Result<u64, &'static str> {
        match self {
            Self::Bytes => Ok(number),
            Self::Sectors => number.checked_mul(SECTOR_BYTES).ok_or("the request lies beyond any device"),
        }
    }
}

/// 1970 in Windows' file time.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

impl Dialect {
    /// Whether a file that begins like this is in this dialect.
    pub fn recognises(&'static self, head: &[u8]) -> bool {
        recognise_lines(head, self)
    }

    /// Opens a trace in this dialect.
    pub fn open(&'static self, input: Input) -> crate::Result<Opened> {
        open_lines(input, self.name, self.zero, self)
    }

    fn row(&self, line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
        let mut fields = separated(line, b',');
        let (mut at, mut latency, mut op) = (0, None, Op::Read);
        let (mut offset, mut length) = (0, 0);
        let (mut host, mut device): (&[u8], &[u8]) = (b"", b"");
        for column in self.columns {
            let field = fields.next().ok_or("fewer columns than this format has")?;
            match *column {
                Column::Time(places) => at = decimal(field, places).map_err(|_| "the time is no number")?,
                Column::FileTime => at = file_time(field)?,
                Column::Latency(_) if field.is_empty() => {}
                Column::Latency(places) => {
                    latency = Some(Nanos(decimal(field, places).map_err(|_| "the response time is no number")?));
                }
                Column::Operation(read, _) if field.eq_ignore_ascii_case(read.as_bytes()) => op = Op::Read,
                Column::Operation(_, write) if field.eq_ignore_ascii_case(write.as_bytes()) => op = Op::Write,
                Column::Operation(..) => return Err("the operation is neither a read nor a write"),
                Column::Offset(unit) => {
                    offset = unit.bytes(whole(field).map_err(|_| "the offset is no whole number")?)?;
                }
                Column::Length(unit) => {
                    length = unit.bytes(whole(field).map_err(|_| "the length is no whole number")?)?;
                }
                Column::Host => host = field,
                Column::Device => device = field,
                Column::DeviceNumber => {
                    whole(field).map_err(|_| "the device is no whole number")?;
                    device = field;
                }
            }
        }
        if at < self.earliest {
            return Err("the time lies too far back");
        }
        let name = if host.is_empty() { Cow::Borrowed(device) } else { Cow::Owned([host, b".", device].concat()) };
        let (sector, sectors) = context.bytes(offset, length)?;
        Ok(Request { device: context.device(&name)?, latency, ..Request::new(Nanos(at), op, sector, sectors) })
    }
}

fn file_time(field: &[u8]) -> Result<i64, &'static str> {
    let ticks = whole(field).map_err(|_| "the time is no whole number")?;
    let ticks = ticks.checked_sub(UNIX_EPOCH).ok_or("the time lies before 1970")?;
    i64::try_from(ticks).ok().and_then(|t| t.checked_mul(100)).ok_or("the time lies beyond 2262")
}

impl LineFormat for &'static Dialect {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(self.heading.as_bytes()) {
            return Parsed::Nothing;
        }
        self.row(line, context).into()
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::check::load;

    #[test]
    fn bad_fields_are_named_and_none_is_taken_for_another() {
        for (line, reason) in [
            ("x,0.001,W,4,512,512", "the time"),
            ("1455592511.1,x,W,4,512,512", "the response time"),
            ("1455592511.1,0.001,T,4,512,512", "the operation"),
            ("1455592511.1,0.001,W,4,-512,512", "the offset"),
            ("1455592511.1,0.001,W,4,512,5.5", "the length"),
            ("1455592511.1,0.001,W,4,512", "fewer columns"),
            ("1455592511.1,0.001,W,4,18446744073709551615,512", "beyond any device"),
        ] {
            let (rows, about) = load("systor17", format!("{line}\n").as_bytes());
            assert_eq!((rows.len(), about.counts.bad_lines), (0, 1), "{line}");
            assert!(about.notices.iter().any(|notice| notice.contains(reason)), "{line}: {:?}", about.notices);
        }
    }
}
