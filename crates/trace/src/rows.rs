//! What the readers of recorded traces share: lines become requests, requests come out in the order of time, times count
//! from the trace's zero, devices get numbers.

use crate::error::{Error, Result};
use crate::formats::format::Opened;
use crate::io::input::Input;
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::{DeviceId, Op, Request};
use crate::model::units::{MAX_END_SECTOR, SECTOR_BYTES, Sector, Sectors};
use crate::text::human;
use crate::text::lines::{LineEnd, Lines};

mod devices;
mod in_order;
mod text;

pub use devices::Devices;
pub use in_order::{InOrder, Source, Zero};
pub use text::{Words, separated, shown, shown_up_to, whole_lines, words};

/// The metadata of a trace of which nothing is known yet but its file.
pub fn metadata_of(input: &Input, format: &str) -> Metadata {
    let mut metadata = Metadata::new(Kind::Load, format);
    metadata.source.path = Some(crate::path_text(input.path()));
    metadata
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
        self.devices.is_last(name)
    }

    /// A place in sectors.
    pub fn sectors(&self, sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        in_sectors(sector, sectors)
    }

    /// A place in bytes. What is not aligned to sectors is widened to them, and counted.
    pub fn bytes(&mut self, offset: u64, length: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
        let end = offset.checked_add(length).ok_or(TOO_FAR)?;
        // What moves nothing must not grow a sector.
        let behind = if length == 0 { offset / SECTOR_BYTES } else { end.div_ceil(SECTOR_BYTES) };
        let first = offset / SECTOR_BYTES;
        *self.unaligned += u64::from(!offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES));
        self.sectors(first, behind - first)
    }
}

fn in_sectors(sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
    match sector.checked_add(sectors) {
        Some(end) if end <= MAX_END_SECTOR => Ok((Sector(sector), Sectors(sectors))),
        _ => Err(TOO_FAR),
    }
}

/// The place of an event, in sectors. What moves nothing has none if it is a flush; and of others, too, kernels may say -1.
pub fn place(op: Op, sector: u64, sectors: u64) -> std::result::Result<(Sector, Sectors), &'static str> {
    let is_nowhere = sectors == 0 && (op == Op::Flush || sector > MAX_END_SECTOR);
    in_sectors(if is_nowhere { 0 } else { sector }, sectors)
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
            let count = human::count(std::mem::take(&mut self.unaligned));
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

/// How many lines that say something, or should, tell the format.
const TELLING: usize = 200;

/// Whether the beginning of a file is in that format: lines say something, and hardly one is bad.
pub fn recognise_lines<F: LineFormat>(head: &[u8], mut format: F) -> bool {
    let (mut about, mut devices, mut unaligned) = (Metadata::new(Kind::Load, ""), Devices::default(), 0);
    let (mut rows, mut bad) = (0, 0);
    for line in whole_lines(head) {
        if rows + bad == TELLING {
            break;
        }
        let mut context = Context { about: &mut about, devices: &mut devices, unaligned: &mut unaligned };
        match format.parse(line, &mut context) {
            Parsed::Row(_) => rows += 1,
            Parsed::Nothing => {}
            Parsed::Bad(_) => bad += 1,
        }
    }
    rows > 0 && bad * 10 <= rows
}

/// The first thing that a line says at the beginning of a file.
pub fn first_row<F: LineFormat>(head: &[u8], mut format: F) -> Option<F::Item> {
    let (mut about, mut devices, mut unaligned) = (Metadata::new(Kind::Load, ""), Devices::default(), 0);
    let mut context = Context { about: &mut about, devices: &mut devices, unaligned: &mut unaligned };
    whole_lines(head).find_map(|line| match format.parse(line, &mut context) {
        Parsed::Row(row) => Some(row),
        _ => None,
    })
}

/// Takes over from an input that it ended before its end.
pub fn note_damage(input: &Input, about: &mut Metadata) {
    if let Some(damage) = input.damage() {
        about.complete = false;
        about.notice(damage);
    }
}
