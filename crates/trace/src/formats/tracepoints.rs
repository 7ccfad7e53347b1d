//! The block layer's tracepoints as text: `perf script`, `trace-cmd report`, and the kernel's own `trace` file.
//!
//! ```text
//! comm   pid [cpu]  sec.usec: block:block_rq_issue: maj,min RWBS bytes (cmd) sector + n prio [comm]
//! comm-pid   [cpu]  sec.usec: block_rq_complete:    maj,min RWBS (cmd) sector + n prio [error]
//! comm-pid   [cpu] d..2.  sec.usec: block_bio_queue: maj,min RWBS sector + n [comm]
//! comm-pid   [cpu] d..2.  sec.usec: block_split:     maj,min RWBS sector / sector of the rest [comm]
//! ```
//! Which is which is told line by line. Times are those of the trace's clock. From `include/trace/events/block.h`; seen
//! from perf on Linux 6.18. `trace-cmd report -l` puts the processor and the flags into one word: `comm-pid 0d..2. sec`.

mod losses;

use memchr::memmem;

use crate::events::{Action, Event, EventSource, Matcher, ReadAhead, TimeOrder, WIDE, Window};
use crate::formats::format::{Format, Opened, Options, TriedOn};
use crate::formats::support::left_out::LeftOut;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::Comm;
use crate::model::rwbs;
use crate::model::units::Nanos;
use crate::rows::{Context, InOrder, LineFormat, LineSource, Parsed, Zero, metadata_of, place, recognise_lines, words};
use crate::text::number::{decimal, whole};

use losses::Losses;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "block tracepoints as text (perf script, trace-cmd report, ftrace)",
    tried_on: TriedOn::RealFiles,
    recognise: |head| recognise_lines(head, Tracepoints::default()),
    has_actions: true,
    open,
    ..Format::named("tracepoints")
};

/// Opens a trace of such lines.
fn open(input: Input, options: &Options) -> crate::Result<Opened> {
    open_events(input, FORMAT.name, (Zero::Arbitrary, Window::fixed(WIDE)), options, Tracepoints::default())
}

/// Opens a trace of lines that each are an event: what their times count from, and within how many they are put in order.
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

/// The place of what has none.
const NOWHERE: u64 = u64::MAX;

#[derive(Default)]
struct Tracepoints {
    left_out: LeftOut,
    losses: Losses,
}

impl LineFormat for Tracepoints {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        // Everything else in the file is some other event or a heading.
        let Some((before, name_and_rest)) = cut_at_event(line) else {
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
            // EAGAIN.
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
        self.left_out.add_notices(about);
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
        let (at, pid, comm) = who_and_when(before)?;
        let mut fields = words(rest);
        let device = fields.next().ok_or("no device")?;
        let letters = fields.next().ok_or("no operation")?;
        let separator: &[u8] = if action == Action::Split { b" / " } else { b" + " };
        let plus = memmem::find(rest, separator).ok_or("no place (sector + length)")?;
        let sector = words(&rest[..plus]).next_back().ok_or("no sector")?;
        let sectors = words(&rest[plus + 3..]).next().ok_or("no length")?;
        // Of what was split, the rest begins there.
        let (sector, sectors) = if action == Action::Split { (sectors, &b"1"[..]) } else { (sector, sectors) };
        let sectors = whole(sectors).map_err(|_| "the length is no whole number")?;
        let sector = whole(sector).map_err(|_| "the sector is no whole number")?;
        is_device(device)?;
        // The completion of a command to the driver tells what that moved.
        if sector == NOWHERE && sectors > 0 || holds_command(&rest[..plus]) {
            return self.left_out.count(rwbs::NotARequest::DriverCommand).map(|()| None);
        }
        let (op, flags) = match rwbs::parse(letters, sectors) {
            Ok(request) => request,
            Err(other) => return self.left_out.count(other).map(|()| None),
        };
        let (sector, sectors) = place(op, sector, sectors)?;
        let device = context.device(device)?;
        let is_append = rwbs::is_append(letters);
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, is_append, pid, comm }))
    }
}

/// Whether a driver's command stands in front of the place, in parentheses: `8,0 R 36 (12 00 00 00 24 00) 0`. Its letters
/// may well be those of a read or a write; kernels since 4.11 tell no command.
fn holds_command(before_length: &[u8]) -> bool {
    let command = memchr::memchr(b'(', before_length).and_then(|open| before_length.get(open + 1));
    command.is_some_and(|&first| first != b')')
}

/// What stands in front of the event's name and its colon, and what from the name on.
fn cut_at_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    memmem::find_iter(line, b" block").find_map(|place| {
        let before = line[..place].trim_ascii_end().strip_suffix(b":")?;
        Some((before, &line[place + 1..]))
    })
}

/// Whether a word is `major,minor`.
pub fn is_device(word: &[u8]) -> Result<(), &'static str> {
    let comma = word.iter().position(|&b| b == b',').ok_or("the device is no pair of numbers")?;
    let number = |part: &[u8]| whole(part).is_ok();
    if number(&word[..comma]) && number(&word[comma + 1..]) { Ok(()) } else { Err("the device is no pair of numbers") }
}

/// `comm pid [cpu] time` or `comm-pid [cpu] flags time`; the name may hold blanks.
fn who_and_when(before: &[u8]) -> Result<(Nanos, Option<u32>, Comm), &'static str> {
    let time = words(before).next_back().ok_or("no time")?;
    let at = Nanos(decimal(time, 9).map_err(|_| "the time is no number of seconds")?);
    let end = before.len() - time.len();
    let who = match memchr::memrchr(b'[', &before[..end]) {
        Some(cpu) => &before[..cpu],
        None => without_cpu_and_flags(before[..end].trim_ascii_end()),
    };
    // With the option record-tgid ftrace tells the process behind the thread, or `(-----)`: `fio-18719 (  18700)`.
    let who = match who.trim_ascii() {
        who @ [.., b')'] => who[..memchr::memrchr(b'(', who).unwrap_or(who.len())].trim_ascii_end(),
        who => who,
    };
    let cut = who.iter().rposition(|b| !b.is_ascii_digit() && *b != b'/').map_or(0, |i| i + 1);
    // perf may write pid/tid.
    let pid = who[cut..].split(|&b| b == b'/').next().and_then(|pid| whole(pid).ok());
    let name = match who[..cut].trim_ascii() {
        [name @ .., b'-'] => name,
        name => name,
    };
    Ok((at, pid.and_then(|pid| u32::try_from(pid).ok()), Comm::from_bytes(name)))
}

/// What stands in front of `0d..2.`, where that is the last word.
fn without_cpu_and_flags(who: &[u8]) -> &[u8] {
    const FLAGS: std::ops::RangeInclusive<usize> = 4..=6;
    let Some(blank) = who.iter().rposition(u8::is_ascii_whitespace) else { return who };
    let word = &who[blank + 1..];
    let flags = &word[word.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    let are_flags =
        FLAGS.contains(&flags.len()) && flags.iter().all(|b| b".#".contains(b) || b.is_ascii_alphanumeric());
    if flags.len() < word.len() && are_flags { &who[..blank] } else { who }
}

#[cfg(test)]
mod tests;
