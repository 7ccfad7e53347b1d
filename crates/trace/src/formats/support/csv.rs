//! Reads published traces with a request per line in comma-separated columns. A [`Dialect`] describes the columns of each;
//! see `alibaba.rs` for an example.

use std::borrow::Cow;

use crate::formats::format::Opened;
use crate::formats::support::lines::open_lines;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::{Nanos, SECTOR_BYTES};
use crate::rows::{Context, LineFormat, Parsed, TOO_FAR, TOO_LATE, Zero, recognise_lines, separated};
use crate::text::human;
use crate::text::number::{NumberError, decimal, span, whole};

/// A format of comma-separated columns.
pub struct Dialect {
    pub name: &'static str,
    /// The beginning of lines that are headings or comments.
    pub heading: &'static str,
    /// The columns, from the left; further columns are ignored.
    pub columns: &'static [Column],
    pub zero: Zero,
    /// The lower limit of plausible times, in nanoseconds: a column with smaller numbers is something else.
    pub earliest: i64,
}

#[derive(Clone, Copy)]
pub enum Column {
    /// The time, as a decimal number in units of 10^n nanoseconds: 9 for seconds.
    Time(u32),
    /// The time as a Windows file time: units of 100 ns since 1601.
    FileTime,
    /// The latency, as a decimal number in units of 10^n nanoseconds; blank if unknown.
    Latency(u32),
    /// The operation: the names of read and write, in any case.
    Operation(&'static str, &'static str),
    /// The same, but blank for a request without a recorded response, whose operation is unknown.
    OperationOrBlank(&'static str, &'static str),
    Offset(Unit),
    Length(Unit),
    /// The host, a prefix of the device's name.
    Host,
    Device,
    /// The name of the device, which must be a number.
    DeviceNumber,
}

/// The unit of an offset or a length.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
}

impl Unit {
    /// Converts to bytes.
    fn bytes(self, number: u64) -> Result<u64, &'static str> {
        match self {
            Self::Bytes => Ok(number),
            Self::Sectors => number.checked_mul(SECTOR_BYTES).ok_or(TOO_FAR),
        }
    }
}

/// 1970 as a Windows file time.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

impl Dialect {
    /// Whether a file that begins with `head` is in this dialect.
    pub fn recognises(&'static self, head: &[u8]) -> bool {
        recognise_lines(head, DialectProbe { dialect: self, times: Times::InUnit })
    }

    /// Opens a trace in this dialect.
    pub fn open(&'static self, input: Input) -> crate::Result<Opened> {
        open_lines(input, self.name, self.zero, DialectLines { dialect: self, without_response: 0 })
    }

    /// Whether a file that begins with `head` is in this dialect except that its times are in another unit. Reading it then
    /// reports the times as bad, which is more helpful than an unknown format.
    pub fn resembles(&'static self, head: &[u8]) -> bool {
        recognise_lines(head, DialectProbe { dialect: self, times: Times::InAnyUnit })
    }

    fn row(&self, line: &[u8], context: &mut Context<'_>, times: Times) -> Result<Row, &'static str> {
        let mut fields = separated(line, b',');
        let (mut at, mut latency, mut op, mut has_response) = (0, None, Op::Read, true);
        let (mut offset, mut length) = (0, 0);
        let (mut host, mut device): (&[u8], &[u8]) = (b"", b"");
        for column in self.columns {
            let field = fields.next().ok_or("fewer columns than this format has")?;
            match *column {
                Column::Time(_) | Column::FileTime => {
                    at = match time(*column, field) {
                        Err(BadTime::OutOfRange(_)) if times == Times::InAnyUnit => self.earliest,
                        Err(BadTime::NotANumber(why) | BadTime::OutOfRange(why)) => return Err(why),
                        Ok(at) => at,
                    }
                }
                Column::Latency(_) if field.is_empty() => {}
                Column::Latency(places) => {
                    latency = Some(Nanos(span(field, places).map_err(|_| "the response time is not a number")?));
                }
                Column::OperationOrBlank(..) if field.is_empty() && latency.is_none() => has_response = false,
                Column::Operation(read, write) | Column::OperationOrBlank(read, write) => {
                    op = match () {
                        () if field.eq_ignore_ascii_case(read.as_bytes()) => Op::Read,
                        () if field.eq_ignore_ascii_case(write.as_bytes()) => Op::Write,
                        () => return Err("the operation is neither a read nor a write"),
                    }
                }
                Column::Offset(unit) => {
                    offset =
                        unit.bytes(whole(field).map_err(|e| e.reason("the offset is not a whole number", TOO_FAR))?)?;
                }
                Column::Length(unit) => {
                    length =
                        unit.bytes(whole(field).map_err(|e| e.reason("the length is not a whole number", TOO_FAR))?)?;
                }
                Column::Host => host = field,
                Column::Device => device = field,
                Column::DeviceNumber => {
                    whole(field)
                        .map_err(|e| e.reason("the device is not a whole number", "the device number is too large"))?;
                    device = field;
                }
            }
        }
        if at < self.earliest {
            return Err("the time is too early");
        }
        if times == Times::InAnyUnit && (length == 0 || !has_response) {
            // More likely another kind of file with columns of whole numbers, such as averages logged by fio.
            return Err("no length");
        }
        let name = if host.is_empty() { Cow::Borrowed(device) } else { Cow::Owned([host, b".", device].concat()) };
        let (sector, sectors) = context.bytes(offset, length)?;
        let request = Request { latency, ..Request::new(Nanos(at), op, sector, sectors) };
        // A request that is left out does not add its device to the trace.
        let device = if has_response { context.device(&name)? } else { request.device };
        Ok(Row { request: Request { device, ..request }, has_response })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// Plausible times in the dialect's unit.
    InUnit,
    /// Any number: only the form of the line is checked.
    InAnyUnit,
}

/// Why a time is not accepted.
enum BadTime {
    /// It is not a number.
    NotANumber(&'static str),
    /// It is a number, but not a possible time.
    OutOfRange(&'static str),
}

fn time(column: Column, field: &[u8]) -> Result<i64, BadTime> {
    let bad = |error| match error {
        NumberError::NotANumber => BadTime::NotANumber("the time is not a number"),
        NumberError::TooLarge => BadTime::OutOfRange(TOO_LATE),
    };
    if let Column::Time(places) = column {
        return decimal(field, places).map_err(bad);
    }
    let ticks = whole(field).map_err(bad)?;
    let ticks = ticks
        .checked_sub(UNIX_EPOCH)
        .ok_or(BadTime::OutOfRange("the time is before 1970: are the times in another unit?"))?;
    i64::try_from(ticks).ok().and_then(|t| t.checked_mul(100)).ok_or(BadTime::OutOfRange(TOO_LATE))
}

/// A parsed line.
struct Row {
    request: Request,
    /// Without a response, the operation is unknown.
    has_response: bool,
}

/// Reads the lines of a trace in a dialect.
struct DialectLines {
    dialect: &'static Dialect,
    without_response: u64,
}

impl LineFormat for DialectLines {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(self.dialect.heading.as_bytes()) {
            return Parsed::Nothing;
        }
        match self.dialect.row(line, context, Times::InUnit) {
            Ok(row) if row.has_response => Parsed::Row(row.request),
            Ok(_) => {
                self.without_response += 1;
                Parsed::Nothing
            }
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.without_response > 0 {
            let count = human::count(self.without_response);
            about.warning(format!("requests left out whose response and operation were not recorded: {count}"));
        }
    }
}

/// Checks whether lines are in a dialect.
struct DialectProbe {
    dialect: &'static Dialect,
    times: Times,
}

impl LineFormat for DialectProbe {
    type Item = Row;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Row> {
        if line.starts_with(self.dialect.heading.as_bytes()) {
            return Parsed::Nothing;
        }
        self.dialect.row(line, context, self.times).into()
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::of_content;
    use crate::formats::support::check::{input, load, recognised_as};

    #[test]
    fn the_reason_names_the_bad_field() {
        for (line, reason) in [
            ("x,0.001,W,4,512,512", "the time is not a number"),
            ("1455592511102.1,0.001,W,4,512,512", "the time is too large: are the times in another unit?"),
            ("1455592511.1,0.001,W,4,99999999999999999999,512", "beyond any device"),
            ("1455592511.1,x,W,4,512,512", "the response time"),
            ("1455592511.1,0.001,T,4,512,512", "the operation"),
            ("1455592511.1,0.001,W,4,-512,512", "the offset"),
            ("1455592511.1,0.001,W,4,512,5.5", "the length"),
            ("1455592511.1,0.001,W,4,512", "fewer columns"),
            ("1455592511.1,0.001,W,4,18446744073709551615,512", "beyond any device"),
        ] {
            let (rows, about) = load("systor17", format!("{line}\n").as_bytes());
            assert_eq!((rows.len(), about.counts.bad_lines), (0, 1), "{line}");
            assert!(about.warnings.iter().any(|warning| warning.contains(reason)), "{line}: {:?}", about.warnings);
        }
    }

    #[test]
    fn a_length_of_zero_is_not_widened_to_a_sector() {
        let (rows, about) = load("alibaba", b"7,R,100,0,1577808000000001\n7,R,100,1,1577808000000002\n");
        assert_eq!(rows.iter().map(|row| (row.sector.0, row.sectors.0)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
        assert!(about.warnings[0].starts_with("2 requests were not aligned"), "{:?}", about.warnings);
    }

    #[test]
    fn times_in_another_unit_are_bad_lines_with_a_question() {
        for (format, line) in [
            ("tencent", "1538323200123,12910952,128,0,1063"),
            ("systor17", "1455592511102.342,1.204,W,4,8690491904,4096"),
            ("alibaba", "419,W,8792731648,16384,1577808144360767000"),
            ("msr", "1172163203500000,hm,1,Read,383496192,32768,413"),
        ] {
            let text = format!("{line}\n").repeat(3);
            assert_eq!(recognised_as(text.as_bytes()), format);
            let (rows, about) = load(format, text.as_bytes());
            assert_eq!((rows.len(), about.counts.bad_lines), (0, 3), "{line}");
            assert!(about.warnings[0].contains("are the times in another unit?"), "{:?}", about.warnings);
        }
        // Averages logged by fio, with times since 1970; and a line whose times are in the unit of another format.
        let fio = "1700000000000, 250, 0, 0, 0\n".repeat(3);
        assert!(of_content(&input(fio.as_bytes())).is_err());
        assert_eq!(recognised_as(b"1700000000000, 250, 0, 4096, 0, 0\n"), "fio-latency");
    }
}
