//! Shared by the readers of recorded traces: parses lines into requests, puts requests in time order, makes times relative
//! to the trace's zero, and numbers the devices.

use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::{DeviceId, Op, Request};
use crate::model::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};
use crate::text::human;
use crate::text::lines::{LineEnd, Lines, Unit};

mod devices;
mod in_order;
mod lost_events;
mod text;

pub use devices::Devices;
pub use in_order::{InOrder, Source, Zero};
pub use lost_events::lost_events;
pub use text::{Words, excerpt, excerpt_up_to, separated, whole_lines, words};

/// The metadata of a trace before its first row is read.
pub fn metadata_of(input: &Input, format: &str) -> Metadata {
    let mut metadata = Metadata::new(Kind::Load, format);
    metadata.source.path = Some(crate::path_text(input.path()));
    metadata
}

/// Lets a parser of rows use `?`: an error is the reason why the line is bad.
impl<T> From<std::result::Result<T, &'static str>> for Parsed<T> {
    fn from(result: std::result::Result<T, &'static str>) -> Self {
        match result {
            Ok(row) => Self::Row(row),
            Err(problem) => Self::Bad(problem),
        }
    }
}

/// A parsed line.
pub enum Parsed<T> {
    /// A row.
    Row(T),
    /// A heading, a comment, or an event that is not needed.
    Nothing,
    /// A line that should be a row but is not, and the reason.
    Bad(&'static str),
}

/// The state that is shared by the parsers of all lines of a trace.
pub struct Context<'a> {
    /// The metadata so far.
    pub about: &'a mut Metadata,
    devices: &'a mut Devices,
    unaligned: &'a mut u64,
}

/// The reason why a line with yet another device is bad.
const TOO_MANY_DEVICES: &str = "more than 65536 devices";
/// The reason why a line is bad whose request ends beyond [`MAX_END_SECTOR`].
pub const TOO_FAR: &str = "the request is beyond any device";
/// The reason why a line is bad whose time does not fit into 64 bits of nanoseconds.
pub const TOO_LATE: &str = "the time is too large: are the times in another unit?";

impl Context<'_> {
    /// The number of the device of that name.
    pub fn device(&mut self, name: &[u8]) -> std::result::Result<DeviceId, &'static str> {
        self.devices.number(name, self.about).ok_or(TOO_MANY_DEVICES)
    }

    /// Whether this is the device of the previous row.
    pub fn is_last_device(&self, name: &[u8]) -> bool {
        self.devices.is_last(name)
    }

    /// Counts events that the recorder lost.
    pub fn lose(&mut self, events: u64) {
        self.about.counts.lost_events = self.about.counts.lost_events.saturating_add(events);
    }

    /// A range given in sectors.
    pub fn sectors(&self, sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        in_sectors(sector, sectors)
    }

    /// A range given in bytes. If it is not aligned to sectors, it is widened to whole sectors and counted.
    pub fn bytes(&mut self, offset: u64, length: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        let end = offset.checked_add(length).ok_or(TOO_FAR)?;
        let first = offset / SECTOR_BYTES;
        // A length of zero stays zero, also at an unaligned offset.
        let end = if length == 0 { first } else { end.div_ceil(SECTOR_BYTES) };
        *self.unaligned += u64::from(!offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES));
        self.sectors(first, end - first)
    }
}

fn in_sectors(sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
    match sector.checked_add(sectors) {
        Some(end) if end <= MAX_END_SECTOR => Ok((Sector(sector), Sectors(sectors))),
        _ => Err(TOO_FAR),
    }
}

/// When a request began that completed then. An impossible latency says nothing.
pub fn began(completed: Nanos, latency: Nanos) -> Nanos {
    if latency.is_possible_span() { completed - latency } else { completed }
}

/// The position and length of an event. A flush has no position; for other events of length zero, kernels may print -1.
pub fn position(op: Op, sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
    let has_none = sectors == 0 && (op == Op::Flush || sector > MAX_END_SECTOR);
    in_sectors(if has_none { 0 } else { sector }, sectors)
}

/// A text format with at most one row or event per line.
pub trait LineFormat: Send {
    /// The result of a line: a request or an event.
    type Item;

    /// Whether blanks at the ends of a line mean something.
    const KEEPS_BLANKS: bool = false;

    /// Parses a line, which is not empty and has no line end.
    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Self::Item>;

    /// Adds counts and warnings at the end of the file.
    fn conclude(&mut self, _about: &mut Metadata) {}
}

/// Parses a line; what is no row may be the recorder's report of lost events.
fn parse<F: LineFormat>(format: &mut F, line: &[u8], context: &mut Context<'_>) -> Parsed<F::Item> {
    match format.parse(line, context) {
        Parsed::Bad(problem) => match lost_events(line) {
            Some(lost) => {
                context.lose(lost);
                Parsed::Nothing
            }
            None => Parsed::Bad(problem),
        },
        parsed => parsed,
    }
}

/// Reads the lines of a file in a format; bad lines are reported and counted.
pub struct LineSource<F> {
    lines: Lines<Input>,
    format: F,
    devices: Devices,
    unaligned: u64,
}

impl<F: LineFormat> LineSource<F> {
    /// Reads `input` in `format`.
    pub fn new(input: Input, format: F) -> Self {
        Self { lines: Lines::new(input), format, devices: Devices::default(), unaligned: 0 }
    }

    /// The same for a binary file of records of so many bytes, which are its lines.
    pub fn of_records(input: Input, bytes: usize, format: F) -> Self {
        Self { lines: Lines::of_records(input, bytes), format, devices: Devices::default(), unaligned: 0 }
    }

    /// The item of the next line that has one.
    pub fn next_item(&mut self, about: &mut Metadata) -> Result<Option<F::Item>> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return Err(Error::io(self.lines.source().path(), e)),
            };
            let text = if line.unit == Unit::Line && !F::KEEPS_BLANKS { line.text.trim_ascii() } else { line.text };
            if text.is_empty() || line.unit == Unit::Line && text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if line.end == LineEnd::EndOfFile {
                about.complete = false;
                about.warning(match line.unit {
                    // Its last number may lack digits.
                    Unit::Line => format!(
                        "line {} has no newline: the file was cut short there; the line is left out",
                        line.number
                    ),
                    Unit::Record => format!(
                        "record {} has only {} bytes: the file was cut short there, or its records have another length",
                        line.number,
                        text.len()
                    ),
                });
                break;
            }
            let mut context = Context { about, devices: &mut self.devices, unaligned: &mut self.unaligned };
            match parse(&mut self.format, text, &mut context) {
                Parsed::Row(item) => return Ok(Some(item)),
                Parsed::Nothing => {}
                Parsed::Bad(problem) => {
                    about.counts.bad_lines += 1;
                    about.warning_of_line(match line.unit {
                        Unit::Line => format!("line {} left out: {problem}: {}", line.number, excerpt(text)),
                        Unit::Record => format!("record {} left out: {problem}", line.number),
                    });
                }
            }
        }
        self.format.conclude(about);
        if self.unaligned > 0 {
            let count = std::mem::take(&mut self.unaligned);
            about.warning(human::agreed(count, "requests were not aligned to sectors of 512 bytes and were widened"));
        }
        note_damage(self.lines.source(), about);
        Ok(None)
    }

    /// The share of the file that has been read, from 0 to 1, if known.
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

/// The number of rows and bad lines after which a format is recognised or not.
const RECOGNITION_LINES: usize = 200;

/// Whether a file that begins with `head` is in this format: it has rows, and at most one bad line or a tenth as many.
pub fn recognise_lines<F: LineFormat>(head: &[u8], format: F) -> bool {
    recognise_rows(whole_lines(head), format)
}

/// The same for the first lines or records of a file.
pub fn recognise_rows<'h, F: LineFormat>(lines: impl Iterator<Item = &'h [u8]>, mut format: F) -> bool {
    let (mut about, mut devices, mut unaligned) = (Metadata::new(Kind::Load, ""), Devices::default(), 0);
    let (mut rows, mut bad) = (0, 0);
    for line in lines {
        if rows + bad == RECOGNITION_LINES {
            break;
        }
        let mut context = Context { about: &mut about, devices: &mut devices, unaligned: &mut unaligned };
        match parse(&mut format, line, &mut context) {
            Parsed::Row(_) => rows += 1,
            Parsed::Nothing => {}
            Parsed::Bad(_) => bad += 1,
        }
    }
    rows > 0 && (bad <= 1 || bad * 10 <= rows)
}

/// The whole records of so many bytes at the beginning of a file.
pub fn records(head: &[u8], bytes: usize) -> impl Iterator<Item = &[u8]> {
    head.chunks_exact(bytes)
}

/// The item of the first line or record that has one, at the beginning of a file.
pub fn first_row<'h, F: LineFormat>(mut lines: impl Iterator<Item = &'h [u8]>, mut format: F) -> Option<F::Item> {
    let (mut about, mut devices, mut unaligned) = (Metadata::new(Kind::Load, ""), Devices::default(), 0);
    let mut context = Context { about: &mut about, devices: &mut devices, unaligned: &mut unaligned };
    lines.find_map(|line| match format.parse(line, &mut context) {
        Parsed::Row(row) => Some(row),
        _ => None,
    })
}

/// Marks the trace as incomplete if its input ended early.
pub fn note_damage(input: &Input, about: &mut Metadata) {
    if let Some(damage) = input.damage() {
        about.complete = false;
        about.warning(damage);
    }
}
