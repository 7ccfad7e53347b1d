//! What the published traces of requests in comma-separated columns share: a table says what stands in which column.
//!
//! A dialect is a file beside this one with its table, and one line in the list of formats.

use std::borrow::Cow;

use crate::formats::format::Opened;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::{Nanos, SECTOR_BYTES};
use crate::rows::{Context, LineFormat, Parsed, TOO_FAR, TOO_LATE, Zero, open_lines, recognise_lines, separated};
use crate::text::human;
use crate::text::number::{Wrong, decimal, whole};

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
    /// The same, but blank of a request whose response was not recorded: nobody knows what it was.
    OperationOfAnswered(&'static str, &'static str),
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
            Self::Sectors => number.checked_mul(SECTOR_BYTES).ok_or(TOO_FAR),
        }
    }
}

/// 1970 in Windows' file time.
const UNIX_EPOCH: u64 = 116_444_736_000_000_000;

impl Dialect {
    /// Whether a file that begins like this is in this dialect.
    pub fn recognises(&'static self, head: &[u8]) -> bool {
        recognise_lines(head, Looking { dialect: self, times: Times::InUnit })
    }

    /// Opens a trace in this dialect.
    pub fn open(&'static self, input: Input) -> crate::Result<Opened> {
        open_lines(input, self.name, self.zero, Reading { dialect: self, unanswered: 0 })
    }

    /// Whether a file that begins like this is in this dialect but for the unit of its times: none of them can be one.
    /// Read, it names them, which helps more than not to know the file.
    pub fn resembles(&'static self, head: &[u8]) -> bool {
        recognise_lines(head, Looking { dialect: self, times: Times::OfAnyUnit })
    }

    fn row(&self, line: &[u8], context: &mut Context<'_>, times: Times) -> Result<Row, &'static str> {
        let mut fields = separated(line, b',');
        let (mut at, mut latency, mut op, mut is_answered) = (0, None, Op::Read, true);
        let (mut offset, mut length) = (0, 0);
        let (mut host, mut device): (&[u8], &[u8]) = (b"", b"");
        for column in self.columns {
            let field = fields.next().ok_or("fewer columns than this format has")?;
            match *column {
                Column::Time(_) | Column::FileTime => {
                    at = match time(*column, field) {
                        Err(BadTime::Outside(_)) if times == Times::OfAnyUnit => self.earliest,
                        Err(BadTime::NoNumber(why) | BadTime::Outside(why)) => return Err(why),
                        Ok(at) => at,
                    }
                }
                Column::Latency(_) if field.is_empty() => {}
                Column::Latency(places) => {
                    latency = Some(Nanos(decimal(field, places).map_err(|wrong| {
                        wrong.reason("the response time is no number", "the response time is too large")
                    })?));
                }
                Column::OperationOfAnswered(..) if field.is_empty() && latency.is_none() => is_answered = false,
                Column::Operation(read, write) | Column::OperationOfAnswered(read, write) => {
                    op = match () {
                        () if field.eq_ignore_ascii_case(read.as_bytes()) => Op::Read,
                        () if field.eq_ignore_ascii_case(write.as_bytes()) => Op::Write,
                        () => return Err("the operation is neither a read nor a write"),
                    }
                }
                Column::Offset(unit) => {
                    offset = unit
                        .bytes(whole(field).map_err(|wrong| wrong.reason("the offset is no whole number", TOO_FAR))?)?;
                }
                Column::Length(unit) => {
                    length = unit
                        .bytes(whole(field).map_err(|wrong| wrong.reason("the length is no whole number", TOO_FAR))?)?;
                }
                Column::Host => host = field,
                Column::Device => device = field,
                Column::DeviceNumber => {
                    whole(field).map_err(|wrong| {
                        wrong.reason("the device is no whole number", "the number of the device is too large")
                    })?;
                    device = field;
                }
            }
        }
        if at < self.earliest {
            return Err("the time lies too far back");
        }
        if times == Times::OfAnyUnit && (length == 0 || !is_answered) {
            // Rather one of the many other files of whole numbers, as fio's averages.
            return Err("no length");
        }
        let name = if host.is_empty() { Cow::Borrowed(device) } else { Cow::Owned([host, b".", device].concat()) };
        let (sector, sectors) = context.bytes(offset, length)?;
        let request = Request { latency, ..Request::new(Nanos(at), op, sector, sectors) };
        // What is left out shall not name a device.
        let device = if is_answered { context.device(&name)? } else { request.device };
        Ok(Row { request: Request { device, ..request }, is_answered })
    }
}

/// Which times are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// Those in the dialect's unit.
    InUnit,
    /// Any: only the form of the line is of interest.
    OfAnyUnit,
}

/// Why a time is none.
enum BadTime {
    /// Something else stands there.
    NoNumber(&'static str),
    /// It is a number, but that can't be when.
    Outside(&'static str),
}

fn time(column: Column, field: &[u8]) -> Result<i64, BadTime> {
    let bad = |wrong| match wrong {
        Wrong::NotANumber => BadTime::NoNumber("the time is no number"),
        Wrong::TooLarge => BadTime::Outside(TOO_LATE),
    };
    if let Column::Time(places) = column {
        return decimal(field, places).map_err(bad);
    }
    let ticks = whole(field).map_err(bad)?;
    let ticks = ticks
        .checked_sub(UNIX_EPOCH)
        .ok_or(BadTime::Outside("the time lies before 1970: are the times in another unit?"))?;
    i64::try_from(ticks).ok().and_then(|t| t.checked_mul(100)).ok_or(BadTime::Outside(TOO_LATE))
}

/// What a line says.
struct Row {
    request: Request,
    /// Otherwise nobody knows what it was.
    is_answered: bool,
}

/// A trace in a dialect that is being read.
struct Reading {
    dialect: &'static Dialect,
    unanswered: u64,
}

impl LineFormat for Reading {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(self.dialect.heading.as_bytes()) {
            return Parsed::Nothing;
        }
        match self.dialect.row(line, context, Times::InUnit) {
            Ok(row) if row.is_answered => Parsed::Row(row.request),
            Ok(_) => {
                self.unanswered += 1;
                Parsed::Nothing
            }
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.unanswered > 0 {
            let count = human::count(self.unanswered);
            about.notice(format!("left out, requests without a response, which may have read or written: {count}"));
        }
    }
}

/// A file that may be in a dialect.
struct Looking {
    dialect: &'static Dialect,
    times: Times,
}

impl LineFormat for Looking {
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
    fn bad_fields_are_named_and_none_is_taken_for_another() {
        for (line, reason) in [
            ("x,0.001,W,4,512,512", "the time is no number"),
            ("1455592511102.1,0.001,W,4,512,512", "the time lies beyond any clock: are the times in another unit?"),
            ("1455592511.1,99999999999,W,4,512,512", "the response time is too large"),
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
            assert!(about.notices.iter().any(|notice| notice.contains(reason)), "{line}: {:?}", about.notices);
        }
    }

    #[test]
    fn no_length_at_an_odd_byte_does_not_grow_to_a_sector() {
        let (rows, about) = load("alibaba", b"7,R,100,0,1577808000000001\n7,R,100,1,1577808000000002\n");
        assert_eq!(rows.iter().map(|row| (row.sector.0, row.sectors.0)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
        assert!(about.notices[0].starts_with("2 requests are not aligned"), "{:?}", about.notices);
    }

    #[test]
    fn a_wrong_unit_of_time_is_asked_about() {
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
            assert!(about.notices[0].contains("are the times in another unit?"), "{:?}", about.notices);
        }
        // Averages of fio, with times since 1970; and a line that is in the unit of another format.
        let fio = "1700000000000, 250, 0, 0, 0\n".repeat(3);
        assert!(of_content(&input(fio.as_bytes())).is_err());
        assert_eq!(recognised_as(b"1700000000000, 250, 0, 4096, 0, 0\n"), "fio-latency");
    }
}
