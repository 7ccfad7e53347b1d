//! Makes a request of the values of a row.

use std::borrow::Cow;

use crate::description::field::{Raw, Role, Slots};
use crate::description::units::{SizeUnit, TimeUnit, bad_time};
use crate::description::values::{Digits, Origin, Spelling, TimeText, Units};
use crate::description::words::Meaning;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Comm, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::{Context, TOO_LATE, began};
use crate::text::dates::{DayClock, date, formatted};
use crate::text::human;
use crate::text::number::{NumberError, whole};

/// 1970 in nanoseconds since 1601, as Windows counts.
const SINCE_1601: i128 = 11_644_473_600_000_000_000;

/// Makes requests of rows, which may depend on the rows before.
pub struct Requests {
    pub units: Units,
    clock: DayClock,
    /// The time of the row before, if times count from there.
    before: i64,
    /// Rows that `only` does not take.
    others: u64,
    /// Rows whose operation is `skip`.
    skipped: u64,
}

/// The result of a row: `None` if it is left out on purpose.
type RowResult = Result<Option<Request>, &'static str>;

impl Requests {
    pub fn new(units: Units) -> Self {
        Self { units, clock: DayClock::default(), before: 0, others: 0, skipped: 0 }
    }

    /// The request of a row.
    pub fn of(&mut self, row: &Slots<'_>, context: &mut Context<'_>) -> RowResult {
        let raw = |role: Role| row[role as usize];
        // Times count from the row before, whatever that was.
        let at = self.time(raw(Role::At))?;
        if !self.units.only.is_empty() && !self.units.only.iter().any(|word| word.is(raw(Role::Only))) {
            self.others += 1;
            return Ok(None);
        }
        let digits = self.units.digits;
        let size = match self.units.always_size {
            Some(bytes) => bytes,
            None => bytes(self.units.size, raw(Role::Size), digits, "the size is not a whole number")?,
        };
        let (mut op, mut flags) = match self.units.op.of(raw(Role::Op), size)? {
            Meaning::Op(op, flags) => (op, flags),
            Meaning::Skip => {
                self.skipped += 1;
                return Ok(None);
            }
        };
        for (role, flag) in [(Role::Fua, Flags::FUA), (Role::Preflush, Flags::PREFLUSH)] {
            if is_true(raw(role)) {
                flags = flags.with(flag);
            }
        }
        if size == 0 && flags.has(Flags::PREFLUSH) {
            (op, flags) = (Op::Flush, Flags::NONE);
        }
        let (sector, sectors) = if op == Op::Flush && size == 0 {
            (Sector(0), Sectors(0))
        } else {
            let offset = bytes(self.units.offset, raw(Role::Offset), digits, "the offset is not a whole number")?;
            context.bytes(offset, size)?
        };
        let queued = span(self.units.queued, raw(Role::Queued), digits, "the queueing time is not a number")?;
        let latency = span(self.units.latency, raw(Role::Latency), digits, "the latency is not a number")?;
        let (at, latency) = self.times(at, raw(Role::Completed), latency, queued)?;
        let device = self.device(raw(Role::Device), raw(Role::Minor))?;
        context.about.request_time = self.units.request_time;
        Ok(Some(Request {
            device: if let Some(name) = device { context.device(&name)? } else { context.device(b"")? },
            flags,
            latency: latency.map(Nanos),
            queued: queued.map(Nanos),
            pid: pid(raw(Role::Pid)),
            comm: comm(raw(Role::Comm)),
            ..Request::new(Nanos(at), op, sector, sectors)
        }))
    }

    /// Adds warnings about rows that were left out on purpose.
    pub fn conclude(&mut self, about: &mut Metadata) {
        let (others, skipped) = (std::mem::take(&mut self.others), std::mem::take(&mut self.skipped));
        for (count, why) in [(others, "match no word of `only`"), (skipped, "are not requests")] {
            if count > 0 {
                about.warning(format!("rows left out that {why}: {}", human::count(count)));
            }
        }
    }

    /// The time of a row; `None` if only its completion is known.
    fn time(&mut self, raw: Raw<'_>) -> Result<Option<i64>, &'static str> {
        const NO_DATE: &str = "the time is not a date as described";
        let time = match (&self.units.at, raw) {
            (_, Raw::Missing) => return Ok(None),
            (TimeText::Number(unit), raw) => match self.units.origin {
                Origin::Since1601 => since_1601(*unit, raw)?,
                _ => number(*unit, raw, self.units.digits).map_err(bad_time)?,
            },
            (_, Raw::Number(_)) => return Err(NO_DATE),
            (TimeText::Date, Raw::Text(text)) => date(text).ok_or(NO_DATE)?,
            (TimeText::Formatted(format), Raw::Text(text)) => formatted(text, format).ok_or(NO_DATE)?,
            (TimeText::Clock, Raw::Text(text)) => self.clock.time(text).ok_or("the time is not a time of day")?,
        };
        if self.units.origin != Origin::Before {
            return Ok(Some(time));
        }
        self.before = self.before.checked_add(time).ok_or(TOO_LATE)?;
        Ok(Some(self.before))
    }

    /// When the request was made, and its latency, of what the row has.
    fn times(
        &self,
        at: Option<i64>,
        completed: Raw<'_>,
        latency: Option<i64>,
        queued: Option<i64>,
    ) -> Result<(i64, Option<i64>), &'static str> {
        let completed = match completed {
            Raw::Missing | Raw::Text(b"" | b"-") => None,
            raw if self.units.origin == Origin::Since1601 => Some(since_1601(self.units.completed, raw)?),
            raw => Some(number(self.units.completed, raw, self.units.digits).map_err(bad_time)?),
        };
        match (at, completed, latency) {
            (Some(at), Some(completed), None) => {
                let in_queue = if self.units.request_time == RequestTime::Queued { queued.unwrap_or(0) } else { 0 };
                Ok((at, Some(completed.saturating_sub(at).saturating_sub(in_queue))))
            }
            (Some(at), _, latency) => Ok((at, latency)),
            (None, Some(completed), Some(latency)) => Ok((began(Nanos(completed), Nanos(latency)).0, Some(latency))),
            (None, ..) => Err("no time"),
        }
    }

    fn device<'r>(&'r self, name: Raw<'r>, minor: Raw<'_>) -> Result<Option<Cow<'r, [u8]>>, &'static str> {
        let name: Cow<'_, [u8]> = match (name, &self.units.always_device) {
            (_, Some(name)) => Cow::Borrowed(name),
            (Raw::Missing, None) => return Ok(None),
            (raw, None) if self.units.spelling == Spelling::DevT => {
                let number = match raw {
                    Raw::Text(text) => whole(text).ok(),
                    Raw::Number(number) => u64::try_from(number).ok(),
                    Raw::Missing => None,
                };
                let number = number.ok_or("the device is not a whole number")?;
                Cow::Owned(format!("{},{}", number >> 20, number & 0xf_ffff).into_bytes())
            }
            (Raw::Text(text), None) => Cow::Borrowed(text),
            (Raw::Number(number), None) => Cow::Owned(number.to_string().into_bytes()),
        };
        if self.units.spelling == Spelling::Number && !is_whole(&name) {
            return Err("the device is not a whole number");
        }
        let name = match (self.units.spelling, minor) {
            (Spelling::MajorMinor, Raw::Missing) => {
                let mark = name.iter().position(|byte| b":,".contains(byte)).ok_or("the device is not MAJOR:MINOR")?;
                if !is_whole(&name[..mark]) || !is_whole(&name[mark + 1..]) {
                    return Err("the device is not MAJOR:MINOR");
                }
                if name[mark] == b',' { name } else { Cow::Owned([&name[..mark], b",", &name[mark + 1..]].concat()) }
            }
            (_, Raw::Missing) => name,
            (_, Raw::Text(minor)) => joined(&name, minor),
            (_, Raw::Number(minor)) => joined(&name, minor.to_string().as_bytes()),
        };
        Ok(Some(name))
    }
}

fn joined(name: &[u8], minor: &[u8]) -> Cow<'static, [u8]> {
    let mark: &[u8] = if is_whole(name) && is_whole(minor) { b"," } else { b"." };
    Cow::Owned([name, mark, minor].concat())
}

fn is_whole(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Numbers with groups of digits or another decimal sign are rewritten.
fn plain(text: &[u8], digits: Digits) -> Cow<'_, [u8]> {
    if digits == Digits::default() {
        return Cow::Borrowed(text);
    }
    let kept = text.iter().copied().filter(|byte| Some(*byte) != digits.thousands);
    kept.map(|byte| if Some(byte) == digits.decimal { b'.' } else { byte }).collect()
}

#[inline]
fn number(unit: TimeUnit, raw: Raw<'_>, digits: Digits) -> Result<i64, NumberError> {
    match raw {
        Raw::Text(text) => unit.text(&plain(text, digits)),
        Raw::Number(number) => unit.number(number),
        Raw::Missing => Err(NumberError::NotANumber),
    }
}

/// Nanoseconds since 1970 of a whole number that counts from 1601.
fn since_1601(unit: TimeUnit, raw: Raw<'_>) -> Result<i64, &'static str> {
    let number: i128 = match raw {
        Raw::Text(text) => whole(text).map_err(bad_time)?.into(),
        Raw::Number(number) => number,
        Raw::Missing => return Err("no time"),
    };
    // Times of now do not fit into 64 bits of nanoseconds since 1601.
    let epoch = unit.ticks(SINCE_1601).ok_or(TOO_LATE)?;
    match number - epoch {
        ..0 => Err("the time is before 1970: are the times in another unit?"),
        ticks => unit.number(ticks).map_err(bad_time),
    }
}

/// A span of time; `None` if the row does not have it.
fn span(unit: TimeUnit, raw: Raw<'_>, digits: Digits, wrong: &'static str) -> Result<Option<i64>, &'static str> {
    match raw {
        Raw::Missing | Raw::Text(b"" | b"-") => Ok(None),
        raw => match number(unit, raw, digits) {
            Ok(span) => Ok(Some(span)),
            // As a recorder prints a negative difference.
            Err(NumberError::TooLarge) => Ok(Some(i64::MAX)),
            Err(NumberError::NotANumber) => Err(wrong),
        },
    }
}

#[inline]
fn bytes(unit: SizeUnit, raw: Raw<'_>, digits: Digits, wrong: &'static str) -> Result<u64, &'static str> {
    match raw {
        Raw::Text(text) => unit.text(&plain(text, digits), wrong),
        Raw::Number(number) => unit.number(number),
        Raw::Missing => Err(wrong),
    }
}

fn is_true(raw: Raw<'_>) -> bool {
    match raw {
        Raw::Missing => false,
        Raw::Number(number) => number != 0,
        Raw::Text(text) => {
            let words: [&[u8]; 4] = [b"true", b"yes", b"1", b"y"];
            words.iter().any(|word| word.eq_ignore_ascii_case(text))
        }
    }
}

fn pid(raw: Raw<'_>) -> Option<u32> {
    match raw {
        Raw::Text(text) => whole(text).ok().and_then(|pid| u32::try_from(pid).ok()),
        Raw::Number(number) => u32::try_from(number).ok(),
        Raw::Missing => None,
    }
}

fn comm(raw: Raw<'_>) -> Comm {
    match raw {
        // Quotes within quotes are doubled.
        Raw::Text(text) if memchr::memchr(b'"', text).is_some() => {
            Comm::new(&String::from_utf8_lossy(text).replace("\"\"", "\""))
        }
        Raw::Text(text) => Comm::from_bytes(text),
        _ => Comm::default(),
    }
}
