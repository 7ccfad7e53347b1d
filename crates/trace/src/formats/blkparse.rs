//! The text of blkparse, in its default form:
//! `maj,min cpu seq sec.nsec pid action RWBS sector + n [comm]`.
//!
//! Times count from the start of the trace. What blkparse says at its end is read for the events that it skipped. Events
//! behind that are of another output, as of files that were put together; it begins at zero again. From blkparse(1) and
//! its `blkparse_fmt.c`; seen from blkparse 1.3.

mod write;

use crate::events::{Action, Event};
use crate::formats::tracepoints::{is_device, open_events};
use crate::formats::{Format, LeftOut, TriedOn};
use crate::metadata::Metadata;
use crate::number::{decimal, whole};
use crate::request::{Comm, Op};
use crate::rows::{Context, LineFormat, Parsed, Words, Zero, place, recognise_lines, words};
use crate::rwbs;
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "text of blkparse",
    tried_on: TriedOn::RealFiles,
    endings: &[".blkparse"],
    recognise: |head| recognise_lines(head, Blkparse::default()),
    has_actions: true,
    open: |input, options| open_events(input, "blkparse", (Zero::TraceStart, WINDOW), options, Blkparse::default()),
    create_load: Some(write::create_load),
    ..Format::named("blkparse")
};

/// How many events are held back to put them in order: blkparse sorts what it prints, but for what comes late from a trace that
/// is still being made. So few stay in the processor's cache, and cost next to nothing.
const WINDOW: usize = 1 << 8;

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
            // Skips: 3 forward (17 -   0.1%)
            if line.starts_with(b"Skips:")
                && let Some(skipped) = line.split(|&b| b == b'(').nth(1).and_then(|rest| words(rest).next())
            {
                let lost = &mut context.about.counts.lost_events;
                *lost = lost.saturating_add(whole(skipped).unwrap_or(0));
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
        self.left_out.tell(about);
    }
}

/// Whether a line is an event's, of whatever kind: nothing in the summary begins with a device.
fn is_event(line: &[u8]) -> bool {
    let mut fields = Words(line);
    fields.next().is_some_and(|device| is_device(device).is_ok())
        && fields.nth(4).is_some_and(|action| kind(action).is_some())
}

/// What an action's letters stand for.
enum Kind {
    Event(Action),
    Remap,
    /// Merged, plugged, unplugged, split, bounced, slept, a message; what newer kernels tell of zones beside.
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
        b"A" => Kind::Remap,
        b"M" | b"F" | b"P" | b"U" | b"UT" | b"X" | b"B" | b"S" | b"m" | b"T" => Kind::Other,
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
        let mut fields = Words(line);
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
            (first, second, _) if is_command(action, letters, first, second) => {
                return self.left_out.count(rwbs::NoRequest::DriverCommand).map(|()| None);
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
            (_, Some(open), [.., b']']) => Comm::new(&String::from_utf8_lossy(&line[open + 1..line.len() - 1])),
            _ => Comm::default(),
        };
        let device = context.device(device)?;
        let at = self.time(told, context.about);
        let pid = u32::try_from(pid).ok();
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, pid, comm }))
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
mod tests {
    use crate::formats::check::{about, load, recognised_as, written};
    use crate::request::{Comm, Flags, Op, Request};
    use crate::units::{Nanos, Sector, Sectors};

    const TEXT: &[u8] = b"\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000003000   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000004000   697  P   N [kjournald]
  8,0    3        5     0.000005000   697  Q  FWFS 223498 + 8 [my proc]
  8,0    3        6     0.000006000   697  D   W 223490 + 8 [kjournald]
  8,0    3        7     0.000006500   697  X   R 5 / 9 [kjournald]
  8,0    3        8     0.000007000   697  m   N cfq697 insert_request
  8,0    3        9     0.000008000   697  D   N 24 (12 00 00 00 18 00 ..) [smartd]
  8,0    1        1     0.000106000     0  C   W 223490 + 8 [0]
  8,0    1        2     0.000200000    44  Q FWS [fio]
  8,0    1        3     0.000210000    44  C FWS 0 [0]
  8,0    1        4     0.000220000    43  C WSM 32788 [0]
CPU3 (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,        8KiB
Total (8,0):
Skips: 3 forward (17 -   0.1%)
";

    #[test]
    fn events_and_summary() {
        let (rows, about) = load("blkparse", TEXT);
        assert_eq!(recognised_as(TEXT), "blkparse");
        assert_eq!(rows.len(), 3, "{:?}", about.notices);
        assert_eq!((rows[2].op, rows[2].latency), (Op::Flush, Some(Nanos(10_000))));
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0), (1829, Op::Write, 223_490));
        assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(4171)), Some(Nanos(100_000))));
        assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(697), "kjournald"));
        assert_eq!(rows[1].flags, Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC));
        assert_eq!(rows[1].comm.as_str(), "my proc");
        assert_eq!((about.counts.bad_lines, about.counts.lost_events, about.counts.unmatched), (0, 17, 1));
        assert!(about.notices.iter().any(|n| n.contains("remapped")));
    }

    #[test]
    fn what_blkparse_says_of_its_input_is_no_bad_line() {
        let (events, summary) = TEXT.split_at(TEXT.windows(4).position(|w| w == b"CPU3").unwrap());
        let said: &[u8] = b"Input file p.blktrace.0 added\n";
        for text in [[said, events, summary].concat(), [events, said].concat(), [events, summary, said].concat()] {
            let (rows, about) = load("blkparse", &text);
            assert_eq!((rows.len(), about.counts.bad_lines), (3, 0), "{:?}", about.notices);
            assert_eq!(recognised_as(&text), "blkparse");
        }
    }

    #[test]
    fn what_stands_around_a_trace_in_a_terminal_is_no_bad_line() {
        let text = String::from_utf8_lossy(TEXT);
        let command = "# blktrace -d /dev/sda -o - | blkparse -i -";
        for summary in ["^CCPU3 (8,0):", "Events (8,0): 20 entries, 0 skips"] {
            let text = format!("{command}\n{}", text.replace("CPU3 (8,0):", summary).replace("Total (8,0):\n", ""));
            let (rows, about) = load("blkparse", text.as_bytes());
            assert_eq!((rows.len(), about.counts.bad_lines), (3, 0), "{:?}", about.notices);
        }
    }

    #[test]
    fn another_output_behind_a_summary_is_read_and_time_goes_on() {
        let other = b"\
  8,16   0        1     0.000000000   697  A   R 100 + 8 <- (8,17) 36
  8,16   0        2     0.000001000   697  Q   R 100 + 8 [a]
  8,16   0        3     0.000002000   697  C   R 100 + 8 [0]
CPU0 (8,16):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB
Skips: 1 forward (2 -   0.1%)
";
        let (alone, _) = load("blkparse", TEXT);
        let (rows, about) = load("blkparse", &[TEXT, other].concat());
        assert_eq!((rows.len(), &rows[..3]), (4, &alone[..]));
        // Behind the last event of the first output.
        assert_eq!((rows[3].at, rows[3].latency), (Nanos(220_000), Some(Nanos(1000))));
        assert_eq!((about.counts.lost_events, about.counts.time_jumps, about.counts.bad_lines), (19, 1, 0));
        assert!(about.notices.iter().any(|n| n.contains("another output")), "{:?}", about.notices);
        assert_eq!(about.devices.len(), 2);
    }

    #[test]
    fn commands_to_the_driver_and_zones_are_counted_and_appends_are_writes() {
        let text = b"\
  8,0    0        1     0.000000000   697  I   N 36 (12 00 00 00 24 00) [smartctl]
  8,0    0        2     0.000000100   697  D   R 36 (12 00 00 00 24 00) [smartctl]
  8,0    0        3     0.000000200   697  D   W 36 [smartctl]
  8,0    0        4     0.000000300     0  C   R (12 00 00 00 24 00) [0]
  8,0    0        5     0.000000400     0  C   W [0]
  8,0    0        6     0.000001000   697  Q   R 100 + 8 [a]
  8,0    0        7     0.000001500   697  Q  ZA 800 + 8 [a]
  8,0    0        8     0.000001500   697  ZP   N [a]
  8,0    0        9     0.000002000   697  Q  ZR [a]
  8,0    0       10     0.000002000   697  D ZRA 0 + 524288 [a]
";
        let (rows, about) = load("blkparse", text);
        assert_eq!(about.counts.bad_lines, 0, "{:?}", about.notices);
        let found: Vec<_> = rows.iter().map(|row| (row.op, row.sector.0)).collect();
        assert_eq!(found, [(Op::Read, 100), (Op::Write, 800)]);
        for said in ["commands to the driver, which are no requests: 5", "zones, which move no data: 2"] {
            assert!(about.notices.iter().any(|notice| notice.ends_with(said)), "{:?}", about.notices);
        }
    }

    #[test]
    fn what_moves_nothing_keeps_its_place() {
        let nothing = Request {
            pid: Some(1),
            latency: Some(Nanos(10)),
            ..Request::new(Nanos(0), Op::Read, Sector(10), Sectors(0))
        };
        let rows = [
            nothing,
            Request { at: Nanos(100), op: Op::Write, sector: Sector(11), ..nothing },
            Request { at: Nanos(200), op: Op::Discard, sector: Sector(12), ..nothing },
        ];
        let (text, said) = written("blkparse", &rows, &about(&["8,0"]));
        assert_eq!(said, [""; 0]);
        assert_eq!(load("blkparse", &text).0, rows, "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn processes_that_nobody_knows_are_told_of() {
        let rows = [Request::new(Nanos(0), Op::Read, Sector(10), Sectors(8))];
        let (_, said) = written("blkparse", &rows, &about(&["8,0"]));
        assert!(said.len() == 1 && said[0].contains("1 requests of an unknown one"), "{said:?}");
    }

    #[test]
    fn written_and_read() {
        let request = Request {
            flags: Flags::SYNC,
            pid: Some(7),
            comm: Comm::new("a b"),
            queued: Some(Nanos(5)),
            latency: Some(Nanos(1000)),
            ..Request::new(Nanos(100), Op::Write, Sector(8), Sectors(16))
        };
        let rows = [
            request,
            Request { at: Nanos(200), op: Op::Discard, latency: None, queued: None, ..request },
            Request { at: Nanos(300), op: Op::Flush, sector: Sector(0), sectors: Sectors(0), ..request },
            Request { at: Nanos(400), op: Op::WriteZeroes, sector: Sector(99), ..request },
        ];
        let (text, said) = written("blkparse", &rows, &about(&["8,0"]));
        assert_eq!(said, [""; 0]);
        let (back, read) = load("blkparse", &text);
        assert_eq!(back, rows);
        assert_eq!(read.devices[0].name, "8,0");
    }

    #[test]
    fn nobody_asked_for_a_request_of_which_only_the_issue_is_known() {
        let issued = Request {
            pid: Some(7),
            latency: Some(Nanos(1000)),
            ..Request::new(Nanos(500), Op::Write, Sector(8), Sectors(16))
        };
        let rows = [issued, Request { at: Nanos(600), queued: Some(Nanos(50)), sector: Sector(99), ..issued }];
        let about = crate::Metadata { request_time: crate::RequestTime::Issued, ..about(&["8,0"]) };
        for (format, words) in [("blkparse", 0), ("blktrace", 1)] {
            let (trace, said) = written(format, &rows, &about);
            assert_eq!(said.iter().filter(|said| said.contains("have no event Q")).count(), words, "{said:?}");
            let (back, read) = load(format, &trace);
            // Taken from what is most frequent: each has its D. The zero of a binary trace is arbitrary.
            let zero = back[0].at.0 - 500;
            let back: Vec<_> = back.iter().map(|row| Request { at: Nanos(row.at.0 - zero), ..*row }).collect();
            assert_eq!((&back[..], read.request_time), (&rows[..], about.request_time), "{format}");
        }
        let early = Request { at: Nanos(20), queued: Some(Nanos(50)), ..issued };
        let (_, said) = written("blkparse", &[early], &about);
        assert!(said.len() == 1 && said[0].contains("1 requests were asked for before the zero"), "{said:?}");
    }
}
