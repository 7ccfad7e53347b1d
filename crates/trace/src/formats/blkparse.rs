//! Text output of blkparse in its default format:
//! `maj,min cpu seq sec.nsec pid action RWBS sector + n [comm]`.
//!
//! Times count from the start of the trace. The summary at the end contains the number of skipped events. Events after a
//! summary are from another output, as in concatenated files, whose times restart at zero. Sources: blkparse(1), its
//! `blkparse_fmt.c`, and output of blkparse 1.3.

pub mod tracer;
mod write;

use crate::events::{Action, Event, WIDE, Window};
use crate::formats::format::{Format, Opened, Options, TestedWith};
use crate::formats::support::left_out::LeftOut;
use crate::formats::tracepoints::{is_device, open_events};
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, Op};
use crate::model::rwbs;
use crate::model::units::Nanos;
use crate::rows::{Context, LineFormat, Parsed, Words, Zero, lost_events, position, recognise_lines};
use crate::text::number::{decimal, whole};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "text of blkparse",
    tested_with: TestedWith::RealFiles,
    extensions: &[".blkparse"],
    recognise: |head| recognise_lines(head, Blkparse::default()),
    has_actions: true,
    open,
    create_load: Some(write::create_load),
    ..Format::named("blkparse")
};

/// The number of events that are sorted at a time. blkparse sorts its output, except for late events of a running trace.
const WINDOW: usize = 1 << 8;

fn open(input: Input, options: &Options) -> crate::Result<Opened> {
    let window = Window::sampling(WINDOW, WIDE);
    open_events(input, FORMAT.name, (Zero::TraceStart, window), options, Blkparse::default())
}

#[derive(Default)]
struct Blkparse {
    section: Section,
    left_out: LeftOut,
    newest: Nanos,
    /// Added to every time of the current output.
    shift: Nanos,
}

/// The section of the text that is being read.
#[derive(Default, PartialEq, Eq)]
enum Section {
    #[default]
    Events,
    Summary,
    /// The first event after a summary.
    NextOutput,
}

impl LineFormat for Blkparse {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        // Echoed by the terminal when Ctrl-C ended the trace.
        let line = line.strip_prefix(b"^C").unwrap_or(line);
        if line.starts_with(b"#") {
            return Parsed::Nothing;
        }
        // Events begin with a device number.
        let begins_with_word = line.first().is_some_and(u8::is_ascii_alphabetic);
        let begins = |word: &[u8]| line.starts_with(word);
        if begins_with_word && (begins(b"CPU") && line.ends_with(b":") || begins(b"Total (") || begins(b"Events (")) {
            self.section = Section::Summary;
        }
        if self.section == Section::Summary && is_event(line) {
            self.section = Section::NextOutput;
        }
        if self.section == Section::Summary {
            let is_skips = line.starts_with(b"Skips:");
            context.lose(if is_skips { skipped(line) } else { lost_events(line).unwrap_or(0) });
            return Parsed::Nothing;
        }
        // A message of blkparse on standard output.
        if begins_with_word && line.starts_with(b"Input file ") && line.ends_with(b" added") {
            return Parsed::Nothing;
        }
        match self.event(line, context) {
            Ok(Some(event)) => Parsed::Row(event),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        self.left_out.add_warnings(about);
    }
}

/// Parses `Skips: 3 forward (1,217 -   0.1%)`, with any thousands separator.
fn skipped(line: &[u8]) -> u64 {
    let number = line.iter().skip_while(|&&byte| byte != b'(').skip(1).take_while(|&&byte| byte != b'-');
    let digits: Vec<u8> = number.copied().filter(u8::is_ascii_digit).collect();
    whole(&digits).unwrap_or(0)
}

/// Whether a line is an event of any kind. No line of a summary begins with a device.
fn is_event(line: &[u8]) -> bool {
    let mut fields = Words::of(line);
    fields.next().is_some_and(|device| is_device(device).is_ok())
        && fields.nth(4).is_some_and(|action| kind(action).is_some())
}

/// The meaning of an action's letters.
enum Kind {
    Event(Action),
    Remap,
    /// Merge, plug, unplug, bounce, sleep or message, or one of the zone events of newer kernels.
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

/// The words in front of the operation.
struct Head<'l> {
    device: &'l [u8],
    time: &'l [u8],
    pid: Option<u32>,
    action: &'l [u8],
}

impl Blkparse {
    /// Converts the time of an event to the time of the load, which continues when the times of another output restart.
    fn time(&mut self, time: Nanos, about: &mut Metadata) -> Nanos {
        if self.section == Section::NextOutput {
            self.begin_next_output(time, about);
        }
        let at = time + self.shift;
        self.newest = self.newest.max(at);
        at
    }

    #[cold]
    fn begin_next_output(&mut self, first: Nanos, about: &mut Metadata) {
        self.section = Section::Events;
        self.shift = Nanos::ZERO;
        if first < self.newest {
            self.shift = self.newest - first;
            about.counts.time_jumps += 1;
            about.warning(format!(
                "another output of blkparse follows a summary; its times are shifted by {} so that time continues",
                self.shift
            ));
        }
    }

    fn event(&mut self, line: &[u8], context: &mut Context<'_>) -> std::result::Result<Option<Event>, &'static str> {
        let mut fields = Words::of(line);
        let mut next = || fields.next().ok_or("fewer columns than an event has");
        let (device, cpu, sequence, time, pid, action) = (next()?, next()?, next()?, next()?, next()?, next()?);
        whole(cpu).and(whole(sequence)).map_err(|_| "the CPU or the sequence is not a whole number")?;
        let pid = whole(pid).map_err(|_| "the pid is not a whole number")?;
        self.of(Head { device, time, pid: u32::try_from(pid).ok(), action }, fields, line, context)
    }

    /// The event that these words begin; the others follow in `fields`.
    fn of(
        &mut self,
        head: Head<'_>,
        mut fields: Words<'_>,
        line: &[u8],
        context: &mut Context<'_>,
    ) -> std::result::Result<Option<Event>, &'static str> {
        let Head { device, time, pid, action } = head;
        if !context.is_last_device(device) {
            is_device(device)?;
        }
        let time = Nanos(decimal(time, 9).map_err(|_| "the time is not a number of seconds")?);
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
        let range = match (fields.next(), fields.next(), fields.next()) {
            (Some(sector), Some(b"+"), Some(sectors)) => Some((
                whole(sector).map_err(|_| "the sector is not a whole number")?,
                whole(sectors).map_err(|_| "the length is not a whole number")?,
            )),
            (Some(_), Some(b"/"), Some(rest)) if action == Action::Split => {
                Some((whole(rest).map_err(|_| "the sector is not a whole number")?, 1))
            }
            (first, second, _) if is_command(action, letters, first, second) => {
                return self.left_out.count(rwbs::NotARequest::DriverCommand).map(|()| None);
            }
            // Events of length zero have no position: flushes, and the second completion of a write that is followed by a
            // flush.
            _ => None,
        };
        let (sector, sectors) = range.unwrap_or((0, 0));
        let (op, flags) = match rwbs::parse(letters, sectors) {
            Ok(request) => request,
            Err(other) => return self.left_out.count(other).map(|()| None),
        };
        if range.is_none() && op != Op::Flush && action != Action::Complete {
            return Err("no position (sector + length)");
        }
        let (sector, sectors) = position(op, sector, sectors)?;
        let comm = match (action, memchr::memchr(b'[', line), line) {
            // A completion has the error in the brackets.
            (Action::Complete, ..) | (_, None, _) => Comm::default(),
            (_, Some(open), [.., b']']) => Comm::from_bytes(&line[open + 1..line.len() - 1]),
            _ => Comm::default(),
        };
        // EAGAIN (-11), which blkparse prints as an unsigned number of 16 bits.
        let is_refused = action == Action::Complete && line.ends_with(b"[65525]");
        let action = if is_refused { Action::Refuse } else { action };
        let device = context.device(device)?;
        let at = self.time(time, context.about);
        let is_append = rwbs::is_append(letters);
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, is_append, pid, comm }))
    }
}

/// Whether an event is that of a driver command. Its letters may be those of a read or a write, but they are followed by
/// `36 (12 00 00 00 24 00) [smartctl]`, or by `(12 00 00 00 24 00) [0]` when it completes. Newer kernels do not print the
/// command in parentheses.
fn is_command(action: Action, letters: &[u8], first: Option<&[u8]>, second: Option<&[u8]>) -> bool {
    let is_bracket = |word: Option<&[u8]>| word.is_some_and(|word| word.starts_with(b"(") || word.starts_with(b"["));
    let has_bytes = || first.is_some_and(|bytes| whole(bytes).is_ok()) && is_bracket(second);
    !letters.starts_with(b"F") && if action == Action::Complete { is_bracket(first) } else { has_bytes() }
}

#[cfg(test)]
mod tests;
