//! The text of blkparse, in its default form:
//! `maj,min cpu seq sec.nsec pid action RWBS sector + n [comm]`.
//!
//! Times count from the start of the trace. What blkparse says at its end is read for the events that it skipped. Events
//! behind that are of another output, as of files that were put together; it begins at zero again. From blkparse(1) and
//! its `blkparse_fmt.c`; seen from blkparse 1.3.

mod write;

use crate::events::{Action, Event, WIDE, Window};
use crate::formats::format::{Format, Opened, Options, TriedOn};
use crate::formats::support::left_out::LeftOut;
use crate::formats::tracepoints::{is_device, open_events};
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, Op};
use crate::model::rwbs;
use crate::model::units::Nanos;
use crate::rows::{Context, LineFormat, Parsed, Words, Zero, place, recognise_lines};
use crate::text::number::{decimal, whole};

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "text of blkparse",
    tried_on: TriedOn::RealFiles,
    endings: &[".blkparse"],
    recognise: |head| recognise_lines(head, Blkparse::default()),
    has_actions: true,
    open,
    create_load: Some(write::create_load),
    ..Format::named("blkparse")
};

/// How many events are held back to put them in order: blkparse sorts what it prints, but for what comes late from a trace that
/// is still being made.
const WINDOW: usize = 1 << 8;

fn open(input: Input, options: &Options) -> crate::Result<Opened> {
    let window = Window::sampling(WINDOW, WIDE);
    open_events(input, FORMAT.name, (Zero::TraceStart, window), options, Blkparse::default())
}

#[derive(Default)]
struct Blkparse {
    part: Part,
    left_out: LeftOut,
    /// The latest time so far.
    newest: Nanos,
    /// What is added to every time of the output that is being read.
    shift: Nanos,
}

/// The events, or the statistics behind them, or the first event of another output.
#[derive(Default, PartialEq, Eq)]
enum Part {
    #[default]
    Events,
    Summary,
    Another,
}

impl LineFormat for Blkparse {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        // What a terminal shows of the key that ended the trace.
        let line = line.strip_prefix(b"^C").unwrap_or(line);
        if line.starts_with(b"#") {
            return Parsed::Nothing;
        }
        // Events begin with a device's number.
        let is_worded = line.first().is_some_and(u8::is_ascii_alphabetic);
        let begins = |word: &[u8]| line.starts_with(word);
        if is_worded && (begins(b"CPU") && line.ends_with(b":") || begins(b"Total (") || begins(b"Events (")) {
            self.part = Part::Summary;
        }
        if self.part == Part::Summary && is_event(line) {
            self.part = Part::Another;
        }
        if self.part == Part::Summary {
            if line.starts_with(b"Skips:") {
                let lost = &mut context.about.counts.lost_events;
                *lost = lost.saturating_add(skipped(line));
            }
            return Parsed::Nothing;
        }
        // What blkparse says of itself, on standard output.
        if is_worded && line.starts_with(b"Input file ") && line.ends_with(b" added") {
            return Parsed::Nothing;
        }
        match self.event(line, context) {
            Ok(Some(event)) => Parsed::Row(event),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        self.left_out.add_notices(about);
    }
}

/// `Skips: 3 forward (1,217 -   0.1%)`, with what separates thousands where the user lives.
fn skipped(line: &[u8]) -> u64 {
    let behind = line.iter().skip_while(|&&byte| byte != b'(').skip(1).take_while(|&&byte| byte != b'-');
    let digits: Vec<u8> = behind.copied().filter(u8::is_ascii_digit).collect();
    whole(&digits).unwrap_or(0)
}

/// Whether a line is an event's, of whatever kind: nothing in the summary begins with a device.
fn is_event(line: &[u8]) -> bool {
    let mut fields = Words::of(line);
    fields.next().is_some_and(|device| is_device(device).is_ok())
        && fields.nth(4).is_some_and(|action| kind(action).is_some())
}

/// What an action's letters stand for.
enum Kind {
    Event(Action),
    Remap,
    /// Merged, plugged, unplugged, bounced, slept, a message; what newer kernels tell of zones beside.
    Other,
}

fn kind(letters: &[u8]) -> Option<Kind> {
    Some(match letters {
        b"Q" => Kind::Event(Action::Queue),
        b"G" => Kind::Event(Action::GetRequest),
        b"I" => Kind::Event(Action::Insert),
        b"D" => Kind::Event(Action::Issue),
        b"R" => Kind::Event(Action::Requeue),
        b"C" => Kind::Event(Action::Complete),
        b"X" => Kind::Event(Action::Split),
        b"A" => Kind::Remap,
        b"M" | b"F" | b"P" | b"U" | b"UT" | b"B" | b"S" | b"m" | b"T" => Kind::Other,
        b"ZP" | b"ZU" | b"ZA" => Kind::Other,
        _ => return None,
    })
}

impl Blkparse {
    /// The time in the load. That of an output behind another one begins at zero again, and goes on here.
    fn time(&mut self, told: Nanos, about: &mut Metadata) -> Nanos {
        if self.part == Part::Another {
            self.begin_another(told, about);
        }
        let at = told + self.shift;
        self.newest = self.newest.max(at);
        at
    }

    #[cold]
    fn begin_another(&mut self, told: Nanos, about: &mut Metadata) {
        self.part = Part::Events;
        self.shift = Nanos::ZERO;
        if told < self.newest {
            self.shift = self.newest - told;
            about.counts.time_jumps += 1;
            about.notice(format!(
                "another output of blkparse follows the summary of one; its times are shifted by {}, so that time goes on",
                self.shift
            ));
        }
    }

    fn event(&mut self, line: &[u8], context: &mut Context<'_>) -> std::result::Result<Option<Event>, &'static str> {
        let mut fields = Words::of(line);
        let mut next = || fields.next().ok_or("fewer columns than an event has");
        let (device, cpu, sequence, time, pid, action) = (next()?, next()?, next()?, next()?, next()?, next()?);
        if !context.is_last_device(device) {
            is_device(device)?;
        }
        whole(cpu).and(whole(sequence)).map_err(|_| "the CPU or the sequence is no whole number")?;
        let told = Nanos(decimal(time, 9).map_err(|_| "the time is no number of seconds")?);
        let pid = whole(pid).map_err(|_| "the pid is no whole number")?;
        let action = match kind(action) {
            Some(Kind::Event(action)) => action,
            Some(Kind::Remap) => {
                self.left_out.remaps += 1;
                return Ok(None);
            }
            Some(Kind::Other) => return Ok(None),
            None => return Err("an unknown action"),
        };
        let letters = fields.next().ok_or("no operation")?;
        let told_place = match (fields.next(), fields.next(), fields.next()) {
            (Some(sector), Some(b"+"), Some(sectors)) => Some((
                whole(sector).map_err(|_| "the sector is no whole number")?,
                whole(sectors).map_err(|_| "the length is no whole number")?,
            )),
            (Some(_), Some(b"/"), Some(rest)) if action == Action::Split => {
                Some((whole(rest).map_err(|_| "the sector is no whole number")?, 1))
            }
            (first, second, _) if is_command(action, letters, first, second) => {
                return self.left_out.count(rwbs::NotARequest::DriverCommand).map(|()| None);
            }
            // What moves nothing is written without a place: flushes, and the second completion of a write that had to
            // be followed by a flush.
            _ => None,
        };
        let (sector, sectors) = told_place.unwrap_or((0, 0));
        let (op, flags) = match rwbs::parse(letters, sectors) {
            Ok(request) => request,
            Err(other) => return self.left_out.count(other).map(|()| None),
        };
        if told_place.is_none() && op != Op::Flush && action != Action::Complete {
            return Err("no place (sector + length)");
        }
        let (sector, sectors) = place(op, sector, sectors)?;
        let comm = match (action, memchr::memchr(b'[', line), line) {
            // There it is the error.
            (Action::Complete, ..) | (_, None, _) => Comm::default(),
            (_, Some(open), [.., b']']) => Comm::from_bytes(&line[open + 1..line.len() - 1]),
            _ => Comm::default(),
        };
        // EAGAIN, as blkparse shows it, in 16 bits without a sign.
        let is_refused = action == Action::Complete && line.ends_with(b"[65525]");
        let action = if is_refused { Action::Refuse } else { action };
        let device = context.device(device)?;
        let at = self.time(told, context.about);
        let pid = u32::try_from(pid).ok();
        let is_append = rwbs::is_append(letters);
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, is_append, pid, comm }))
    }
}

/// Whether it is a command to the driver by what stands behind the letters, which may well be those of a read or a write:
/// `36 (12 00 00 00 24 00) [smartctl]`, and `(12 00 00 00 24 00) [0]` when it completes. Newer kernels tell no command.
fn is_command(action: Action, letters: &[u8], first: Option<&[u8]>, second: Option<&[u8]>) -> bool {
    let opens = |word: Option<&[u8]>| word.is_some_and(|word| word.starts_with(b"(") || word.starts_with(b"["));
    let moves = || first.is_some_and(|bytes| whole(bytes).is_ok()) && opens(second);
    !letters.starts_with(b"F") && if action == Action::Complete { opens(first) } else { moves() }
}

#[cfg(test)]
mod tests;
