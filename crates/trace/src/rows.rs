//! What the readers of recorded traces share: lines become requests, requests come out in the order of time, times count
//! from the trace's zero, devices get numbers.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::formats::Opened;
use crate::input::Input;
use crate::lines::{LineEnd, Lines};
use crate::metadata::{Device, Kind, Metadata};
use crate::reorder::Reorder;
use crate::request::{DeviceId, Request};
use crate::sort::Head;
use crate::stream::Reader;
use crate::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};

/// How many requests may be held back to put them in the order of time. Traces that are written in the order of
/// completion are out of order by no more than were in flight; this is far beyond that, and some 30 MB.
const WINDOW: usize = 1 << 18;

/// The same for traces of events, which come in their order but for a few of another processor: what fits into the
/// processor's cache is several times as fast.
const EVENTS_WINDOW: usize = 1 << 13;

/// Hands out the requests of a trace, roughly in the order of time.
pub trait Source: Send {
    /// The next request, its time in whatever the trace counts from. Bad lines, lost events, devices and the like go
    /// into the metadata.
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>>;

    /// How far it is through its file, from 0 to 1, where that can be said.
    fn progress(&self) -> Option<f64>;
}

/// What a trace's times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// The beginning of the trace.
    TraceStart,
    /// Some moment that means nothing, as a clock that began at boot: the first request becomes the zero.
    Arbitrary,
    /// 1970 UTC: the first request becomes the zero, and its time is kept as the trace's epoch.
    Unix,
}

/// Puts the requests of a source in the order of time, within a bounded window, and counts them.
pub struct InOrder<S> {
    source: S,
    metadata: Metadata,
    window: usize,
    waiting: Reorder<Head>,
    arrived: u64,
    source_ended: bool,
    zero: Nanos,
    last: Nanos,
    late: u64,
}

impl<S: Source> InOrder<S> {
    /// Reads the first window, so that devices, zero and order are known from the first request on.
    pub fn new(source: S, metadata: Metadata, zero: Zero) -> Result<Self> {
        Self::with_window(source, metadata, zero, WINDOW)
    }

    /// The same for requests that were made of events.
    pub fn of_events(source: S, metadata: Metadata, zero: Zero) -> Result<Self> {
        Self::with_window(source, metadata, zero, EVENTS_WINDOW)
    }

    fn with_window(source: S, metadata: Metadata, zero: Zero, window: usize) -> Result<Self> {
        let mut reader = Self {
            source,
            metadata,
            window,
            waiting: Reorder::default(),
            arrived: 0,
            source_ended: false,
            zero: Nanos::ZERO,
            last: Nanos(i64::MIN),
            late: 0,
        };
        reader.fill()?;
        if let Some(first) = reader.waiting.peek().map(|head| head.at)
            && zero != Zero::TraceStart
        {
            reader.zero = first;
            if zero == Zero::Unix {
                reader.metadata.epoch_unix_ns = Some(first.0);
            } else if let Some(epoch) = &mut reader.metadata.epoch_unix_ns {
                // The source knows when its own zero was.
                *epoch = epoch.saturating_add(first.0);
            }
        }
        Ok(reader)
    }

    fn fill(&mut self) -> Result<()> {
        while !self.source_ended && self.waiting.len() < self.window {
            match self.source.next(&mut self.metadata)? {
                Some(request) => {
                    self.waiting.push(Head { at: request.at, number: self.arrived, request });
                    self.arrived += 1;
                }
                None => self.source_ended = true,
            }
        }
        Ok(())
    }
}

impl<S: Source> Reader<Request> for InOrder<S> {
    fn next(&mut self) -> Result<Option<Request>> {
        self.fill()?;
        let Some(Head { mut request, .. }) = self.waiting.pop() else {
            if self.late > 0 {
                let window = self.window;
                self.metadata.notice(format!(
                    "{} requests were more than {window} places out of the order of time; they were moved behind their \
                     predecessors",
                    std::mem::take(&mut self.late)
                ));
            }
            return Ok(None);
        };
        request.at = request.at - self.zero;
        if request.at < self.last {
            self.late += 1;
            self.metadata.counts.time_jumps += 1;
            request.at = self.last;
        }
        self.last = request.at;
        self.metadata.count_request(&request);
        Ok(Some(request))
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        self.source_ended
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

/// The metadata of a trace of which nothing is known yet but its file.
pub fn metadata_of(input: &Input, format: &str) -> Metadata {
    let mut metadata = Metadata::new(Kind::Load, format);
    metadata.source.path = Some(input.path().display().to_string());
    metadata
}

/// The devices of a trace, numbered as they appear.
#[derive(Default)]
pub struct Devices {
    numbers: HashMap<Box<[u8]>, DeviceId>,
    last: Option<(Box<[u8]>, DeviceId)>,
}

impl Devices {
    /// The number of the device of that name; `None` if there are too many.
    pub fn number(&mut self, name: &[u8], about: &mut Metadata) -> Option<DeviceId> {
        if let Some((last, number)) = &self.last
            && **last == *name
        {
            return Some(*number);
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = DeviceId(u16::try_from(self.numbers.len()).ok()?);
                if number == DeviceId(0) {
                    // The nameless device stands for none that was seen.
                    about.devices.clear();
                }
                let text = String::from_utf8_lossy(name).into_owned();
                about.devices.push(Device { name: text, sectors: None });
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last = Some((name.into(), number));
        Some(number)
    }
}

/// A row, or why there is none: what the parser of one says by `?`.
impl<T> From<std::result::Result<T, &'static str>> for Parsed<T> {
    fn from(result: std::result::Result<T, &'static str>) -> Self {
        match result {
            Ok(row) => Self::Row(row),
            Err(problem) => Self::Bad(problem),
        }
    }
}

/// What a line is.
pub enum Parsed<T> {
    /// It says this.
    Row(T),
    /// A heading, a comment, or an event of no interest.
    Nothing,
    /// It should say something, and does not, for this reason.
    Bad(&'static str),
}

/// What the parser of a line works with beside the line.
pub struct Context<'a> {
    /// The metadata as far as it is known.
    pub about: &'a mut Metadata,
    devices: &'a mut Devices,
    unaligned: &'a mut u64,
}

/// Why a line is bad that names too many devices.
const TOO_MANY_DEVICES: &str = "more than 65536 devices";
/// Why a line is bad that points too far.
pub const TOO_FAR: &str = "the request lies beyond any device";
/// Why a line is bad that tells a time which no number here holds.
pub const TOO_LATE: &str = "the time lies beyond any clock: are the times in another unit?";

impl Context<'_> {
    /// The number of the device of that name.
    pub fn device(&mut self, name: &[u8]) -> std::result::Result<DeviceId, &'static str> {
        self.devices.number(name, self.about).ok_or(TOO_MANY_DEVICES)
    }

    /// Whether that is the name of the device before.
    pub fn is_last_device(&self, name: &[u8]) -> bool {
        self.devices.last.as_ref().is_some_and(|(last, _)| **last == *name)
    }

    /// A place in sectors.
    pub fn sectors(&self, sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        match sector.checked_add(sectors) {
            Some(end) if end <= MAX_END_SECTOR => Ok((Sector(sector), Sectors(sectors))),
            _ => Err(TOO_FAR),
        }
    }

    /// A place in bytes. What is not aligned to sectors is widened to them, and counted.
    pub fn bytes(&mut self, offset: u64, length: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        let end = offset.checked_add(length).ok_or(TOO_FAR)?;
        let (first, behind) = (offset / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES));
        *self.unaligned += u64::from(!offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES));
        self.sectors(first, behind - first)
    }
}

/// A format of lines, each of which says one thing.
pub trait LineFormat: Send {
    /// What a line says.
    type Item;

    /// Reads a line; it has no line end, and is not empty.
    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Self::Item>;

    /// At the end of the file: what else is to be said about it.
    fn conclude(&mut self, _about: &mut Metadata) {}
}

/// The lines of a file in a format; bad ones are named and counted.
pub struct LineSource<F> {
    lines: Lines<Input>,
    format: F,
    devices: Devices,
    unaligned: u64,
}

impl<F: LineFormat> LineSource<F> {
    /// Of that file.
    pub fn new(input: Input, format: F) -> Self {
        Self { lines: Lines::new(input), format, devices: Devices::default(), unaligned: 0 }
    }

    /// What the next line says that says something.
    pub fn next_item(&mut self, about: &mut Metadata) -> Result<Option<F::Item>> {
        loop {
            let line = match self.lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return Err(Error::io(self.lines.source().path(), e)),
            };
            let text = line.text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if line.end == LineEnd::EndOfFile {
                // Its last number may have lost digits.
                about.complete = false;
                about.notice(format!(
                    "line {} has no line end: the file was cut short there; it is left out",
                    line.number
                ));
                break;
            }
            let mut context = Context { about, devices: &mut self.devices, unaligned: &mut self.unaligned };
            match self.format.parse(text, &mut context) {
                Parsed::Row(item) => return Ok(Some(item)),
                Parsed::Nothing => {}
                Parsed::Bad(problem) => {
                    about.counts.bad_lines += 1;
                    about.notice_of_line(format!("line {} left out, {problem}: {}", line.number, shown(text)));
                }
            }
        }
        self.format.conclude(about);
        if self.unaligned > 0 {
            let count = std::mem::take(&mut self.unaligned);
            about.notice(format!("{count} requests are not aligned to sectors of 512 bytes, and were widened to them"));
        }
        note_damage(self.lines.source(), about);
        Ok(None)
    }

    /// How far it is through the file.
    pub fn progress(&self) -> Option<f64> {
        self.lines.source().progress()
    }
}

impl<F: LineFormat<Item = Request>> Source for LineSource<F> {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>> {
        self.next_item(about)
    }

    fn progress(&self) -> Option<f64> {
        LineSource::progress(self)
    }
}

/// Opens a trace of lines, each a request.
pub fn open_lines<F>(input: Input, format: &str, zero: Zero, lines: F) -> Result<Opened>
where
    F: LineFormat<Item = Request> + 'static,
{
    let metadata = metadata_of(&input, format);
    Ok(Opened::Load(Box::new(InOrder::new(LineSource::new(input, lines), metadata, zero)?)))
}

/// Whether the beginning of a file is in that format: lines say something, and hardly one is bad.
pub fn recognise_lines<F: LineFormat>(head: &[u8], mut format: F) -> bool {
    let (mut about, mut devices, mut unaligned) = (Metadata::new(Kind::Load, ""), Devices::default(), 0);
    let (mut rows, mut bad) = (0, 0);
    for line in whole_lines(head).take(200) {
        let mut context = Context { about: &mut about, devices: &mut devices, unaligned: &mut unaligned };
        match format.parse(line, &mut context) {
            Parsed::Row(_) => rows += 1,
            Parsed::Nothing => {}
            Parsed::Bad(_) => bad += 1,
        }
    }
    rows > 0 && bad * 10 <= rows
}

/// Takes over from an input that it ended before its end.
pub fn note_damage(input: &Input, about: &mut Metadata) {
    if let Some(damage) = input.damage() {
        about.complete = false;
        about.notice(damage);
    }
}

/// A line as it is shown to a person: its beginning, without what a terminal would take for a command.
pub fn shown(line: &[u8]) -> String {
    shown_up_to(line, 60)
}

/// The same, up to another length.
pub fn shown_up_to(line: &[u8], bytes: usize) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(bytes)]);
    let text: String = text.trim().chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if line.len() > bytes { format!("{text}…") } else { text }
}

/// The lines of the beginning of a file, without the last, which may be a part of one.
pub fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = head.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    head[..end].split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// The fields of a line that a byte separates, without the white space around them.
pub fn separated(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&b| b == separator).map(<[u8]>::trim_ascii)
}

/// The words of a line, from its beginning: quicker than [`words`].
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let from = self.0.iter().position(|&b| !is_blank(b))?;
        let rest = &self.0[from..];
        let (word, rest) = rest.split_at(rest.iter().position(|&b| is_blank(b)).unwrap_or(rest.len()));
        self.0 = rest;
        Some(word)
    }
}

/// The same bytes as [`u8::is_ascii_whitespace`].
#[inline]
fn is_blank(byte: u8) -> bool {
    byte <= b' ' && byte.is_ascii_whitespace()
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    struct Given(Vec<i64>);

    impl Source for Given {
        fn next(&mut self, _: &mut Metadata) -> Result<Option<Request>> {
            Ok(self.0.pop().map(|at| Request::new(Nanos(at), Op::Read, Sector(0), Sectors(1))))
        }

        fn progress(&self) -> Option<f64> {
            None
        }
    }

    fn ordered(times: &[i64], zero: Zero, window: usize) -> (Vec<i64>, Metadata) {
        let metadata = Metadata::new(Kind::Load, "given");
        let mut reader =
            InOrder::with_window(Given(times.iter().rev().copied().collect()), metadata, zero, window).unwrap();
        let mut got = Vec::new();
        while let Some(request) = reader.next().unwrap() {
            got.push(request.at.0);
        }
        (got, reader.metadata().clone())
    }

    #[test]
    fn times_are_ordered_within_the_window() {
        assert_eq!(ordered(&[5, 3, 4, 9, 7], Zero::TraceStart, 3).0, [3, 4, 5, 7, 9]);
        let (times, metadata) = ordered(&[5, 6, 7, 8, 1], Zero::TraceStart, 2);
        assert_eq!(times, [5, 6, 7, 7, 8]);
        assert_eq!(metadata.counts.time_jumps, 1);
        assert_eq!(metadata.notices.len(), 1);
    }

    #[test]
    fn zeros() {
        assert_eq!(ordered(&[50, 30], Zero::Arbitrary, 9).0, [0, 20]);
        let (times, metadata) = ordered(&[50, 30], Zero::Unix, 9);
        assert_eq!((times, metadata.epoch_unix_ns), (vec![0, 20], Some(30)));
    }

    #[test]
    fn devices_are_numbered_as_they_appear() {
        let mut metadata = Metadata::new(Kind::Load, "given");
        let mut devices = Devices::default();
        let numbers: Vec<_> =
            [&b"b"[..], b"a", b"b"].iter().map(|name| devices.number(name, &mut metadata).unwrap().0).collect();
        assert_eq!(numbers, [0, 1, 0]);
        let names: Vec<_> = metadata.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        for i in 2..=65_535_u32 {
            assert!(devices.number(&i.to_le_bytes(), &mut metadata).is_some());
        }
        assert!(devices.number(b"one more", &mut metadata).is_none());
    }
}
