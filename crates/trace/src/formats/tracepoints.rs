//! Text of the block layer's tracepoints: from `perf script`, `trace-cmd report` and the kernel's `trace` file.
//!
//! ```text
//! comm   pid [cpu]  sec.usec: block:block_rq_issue: maj,min RWBS bytes (cmd) sector + n prio [comm]
//! comm-pid   [cpu]  sec.usec: block_rq_complete:    maj,min RWBS (cmd) sector + n prio [error]
//! comm-pid   [cpu] d..2.  sec.usec: block_bio_queue: maj,min RWBS sector + n [comm]
//! comm-pid   [cpu] d..2.  sec.usec: block_split:     maj,min RWBS sector / sector of the rest [comm]
//! ```
//! Each line is parsed by its own form. Times are those of the trace's clock. `trace-cmd report -l` prints CPU and flags as
//! one word: `comm-pid 0d..2. sec`. Sources: `include/trace/events/block.h`, and output of perf on Linux 6.18.

mod losses;

use memchr::memmem;

use crate::events::{Action, Event, EventSource, Matcher, ReadAhead, TimeOrder, WIDE, Window};
use crate::formats::format::{Format, Opened, Options, TestedWith};
use crate::formats::support::left_out::LeftOut;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::Comm;
use crate::model::rwbs;
use crate::model::units::Nanos;
use crate::rows::{
    Context, InOrder, LineFormat, LineSource, Parsed, Zero, metadata_of, position, recognise_lines, words,
};
use crate::text::number::{decimal, whole};

use losses::Losses;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "block tracepoints as text (perf script, trace-cmd report, ftrace)",
    tested_with: TestedWith::RealFiles,
    recognise: |head| recognise_lines(head, Tracepoints::default()),
    has_actions: true,
    open,
    ..Format::named("tracepoints")
};

fn open(input: Input, options: &Options) -> crate::Result<Opened> {
    open_events(input, FORMAT.name, (Zero::Arbitrary, Window::fixed(WIDE)), options, Tracepoints::default())
}

/// Opens a trace in a format whose lines are events, with the zero of its times and the window within which it is sorted.
pub fn open_events<F>(
    input: Input,
    format: &str,
    (zero, window): (Zero, Window<Nanos>),
    options: &Options,
    lines: F,
) -> crate::Result<Opened>
where
    F: LineFormat<Item = Event> + 'static,
{
    let mut metadata = metadata_of(&input, format);
    let events = ReadAhead::start(TimeOrder::new(window, LineSource::new(input, lines)))?;
    let matcher = Matcher::new(events, options.action, &mut metadata)?;
    Ok(Opened::Load(Box::new(InOrder::of_events(matcher, metadata, zero)?)))
}

impl<F: LineFormat<Item = Event>> EventSource for LineSource<F> {
    fn next(&mut self, about: &mut Metadata) -> crate::Result<Option<Event>> {
        self.next_item(about)
    }

    fn progress(&self) -> Option<f64> {
        LineSource::progress(self)
    }
}

/// The sector of an event without a position.
const NO_SECTOR: u64 = u64::MAX;

#[derive(Default)]
struct Tracepoints {
    left_out: LeftOut,
    losses: Losses,
}

impl LineFormat for Tracepoints {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        // Other lines are other events, headings, or reports of lost events.
        let Some((before, name_and_rest)) = split_at_event(line) else {
            self.losses.read(line, context.about);
            return Parsed::Nothing;
        };
        let name_and_rest = name_and_rest.strip_prefix(b"block:").unwrap_or(name_and_rest);
        let Some(colon) = name_and_rest.iter().position(|&b| b == b':') else { return Parsed::Nothing };
        let (name, rest) = (&name_and_rest[..colon], &name_and_rest[colon + 1..]);
        let action = match name {
            b"block_bio_queue" => Action::Queue,
            b"block_getrq" => Action::GetRequest,
            b"block_rq_insert" => Action::Insert,
            b"block_rq_issue" => Action::Issue,
            b"block_rq_requeue" => Action::Requeue,
            b"block_split" => Action::Split,
            // EAGAIN is 11.
            b"block_bio_complete" if rest.trim_ascii_end().ends_with(b"[-11]") => Action::Refuse,
            b"block_rq_complete" | b"block_bio_complete" => Action::Complete,
            b"block_bio_remap" | b"block_rq_remap" => {
                self.left_out.remaps += 1;
                return Parsed::Nothing;
            }
            _ => return Parsed::Nothing,
        };
        match self.event(action, before, rest, context) {
            Ok(Some(event)) => Parsed::Row(event),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        self.left_out.add_warnings(about);
        self.losses.conclude(about);
    }
}

impl Tracepoints {
    fn event(
        &mut self,
        action: Action,
        before: &[u8],
        rest: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Event>, &'static str> {
        let (at, pid, comm) = time_and_process(before)?;
        let mut fields = words(rest);
        let device = fields.next().ok_or("no device")?;
        let letters = fields.next().ok_or("no operation")?;
        let separator: &[u8] = if action == Action::Split { b" / " } else { b" + " };
        let plus = memmem::find(rest, separator).ok_or("no position (sector + length)")?;
        let sector = words(&rest[..plus]).next_back().ok_or("no sector")?;
        let sectors = words(&rest[plus + 3..]).next().ok_or("no length")?;
        // After the slash is the sector where the rest begins.
        let (sector, sectors) = if action == Action::Split { (sectors, &b"1"[..]) } else { (sector, sectors) };
        let sectors = whole(sectors).map_err(|_| "the length is not a whole number")?;
        let sector = whole(sector).map_err(|_| "the sector is not a whole number")?;
        is_device(device)?;
        // The completion of a driver command has a length, but no position.
        if sector == NO_SECTOR && sectors > 0 || has_command(&rest[..plus]) {
            return self.left_out.count(rwbs::NotARequest::DriverCommand).map(|()| None);
        }
        let (op, flags) = match rwbs::parse(letters, sectors) {
            Ok(request) => request,
            Err(other) => return self.left_out.count(other).map(|()| None),
        };
        let (sector, sectors) = position(op, sector, sectors)?;
        let device = context.device(device)?;
        let is_append = rwbs::is_append(letters);
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, is_append, pid, comm }))
    }
}

/// Whether there is a driver command in parentheses before the position: `8,0 R 36 (12 00 00 00 24 00) 0`. Its letters may
/// be those of a read or a write. Kernels since 4.11 leave the parentheses empty.
fn has_command(before_length: &[u8]) -> bool {
    let command = memchr::memchr(b'(', before_length).and_then(|open| before_length.get(open + 1));
    command.is_some_and(|&first| first != b')')
}

/// Splits a line into the part before the colon in front of the event's name, and the part from the name on.
fn split_at_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    memmem::find_iter(line, b" block").find_map(|index| {
        let before = line[..index].trim_ascii_end().strip_suffix(b":")?;
        Some((before, &line[index + 1..]))
    })
}

/// Whether a word is `major,minor`.
pub fn is_device(word: &[u8]) -> Result<(), &'static str> {
    let comma = word.iter().position(|&b| b == b',').ok_or("the device is not MAJOR,MINOR")?;
    let number = |part: &[u8]| whole(part).is_ok();
    if number(&word[..comma]) && number(&word[comma + 1..]) { Ok(()) } else { Err("the device is not MAJOR,MINOR") }
}

/// Parses `comm pid [cpu] time` or `comm-pid [cpu] flags time`; the name may contain blanks.
fn time_and_process(before: &[u8]) -> Result<(Nanos, Option<u32>, Comm), &'static str> {
    let time = words(before).next_back().ok_or("no time")?;
    let at = Nanos(decimal(time, 9).map_err(|_| "the time is not a number of seconds")?);
    let end = before.len() - time.len();
    let process = match memchr::memrchr(b'[', &before[..end]) {
        Some(cpu) => &before[..cpu],
        None => without_cpu_and_flags(before[..end].trim_ascii_end()),
    };
    // With the option record-tgid, ftrace prints the thread group after the thread, or `(-----)`: `fio-18719 (  18700)`.
    let process = match process.trim_ascii() {
        process @ [.., b')'] => process[..memchr::memrchr(b'(', process).unwrap_or(process.len())].trim_ascii_end(),
        process => process,
    };
    let name_end = process.iter().rposition(|b| !b.is_ascii_digit() && *b != b'/').map_or(0, |i| i + 1);
    // perf may write pid/tid.
    let pid = process[name_end..].split(|&b| b == b'/').next().and_then(|pid| whole(pid).ok());
    let name = match process[..name_end].trim_ascii() {
        [name @ .., b'-'] => name,
        name => name,
    };
    Ok((at, pid.and_then(|pid| u32::try_from(pid).ok()), Comm::from_bytes(name)))
}

/// The process without CPU and flags (`0d..2.`), if these are the last word.
fn without_cpu_and_flags(process: &[u8]) -> &[u8] {
    const FLAGS: std::ops::RangeInclusive<usize> = 4..=6;
    let Some(blank) = process.iter().rposition(u8::is_ascii_whitespace) else { return process };
    let word = &process[blank + 1..];
    let flags = &word[word.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    let are_flags =
        FLAGS.contains(&flags.len()) && flags.iter().all(|b| b".#".contains(b) || b.is_ascii_alphanumeric());
    if flags.len() < word.len() && are_flags { &process[..blank] } else { process }
}

#[cfg(test)]
mod tests;
