//! The kernel's `blk` tracer, read from ftrace's `trace` or `trace_pipe`, in either of its forms:
//!
//! ```text
//! fio-305   [000] d..1.  3046.491227:   8,1    Q   R 6367 + 8 [fio]
//!   8,1    0  3046.491227123   305  Q   R 6367 + 8 [fio]            with the option blk_classic
//! ```
//! What follows the action is as blkparse prints it. Sources: the message of the kernel's commit c71a89615411, and output of
//! Linux 6.18.

use super::{Blkparse, Head};
use crate::events::{Event, WIDE, Window};
use crate::formats::format::{Format, TestedWith};
use crate::formats::tracepoints::{is_device, open_events};
use crate::model::metadata::Metadata;
use crate::rows::{Context, LineFormat, Parsed, Words, Zero, recognise_lines, words};
use crate::text::number::{decimal, whole};

/// The entry in [`FORMATS`](crate::formats::FORMATS).
pub const FORMAT: Format = Format {
    title: "text of the kernel's blk tracer (ftrace)",
    tested_with: TestedWith::RealFiles,
    recognise: |head| recognise_lines(head, Tracer::default()),
    has_actions: true,
    open: |input, options| {
        open_events(input, "ftrace-blk", (Zero::Arbitrary, Window::fixed(WIDE)), options, Tracer::default())
    },
    ..Format::named("ftrace-blk")
};

#[derive(Default)]
struct Tracer(Blkparse);

impl LineFormat for Tracer {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        if line.starts_with(b"#") {
            return Parsed::Nothing;
        }
        let Some((head, fields, event)) = classic(line).or_else(|| usual(line)) else {
            return Parsed::Bad("neither an event of the blk tracer nor a comment");
        };
        match self.0.of(head, fields, event, context) {
            Ok(Some(event)) => Parsed::Row(event),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        self.0.conclude(about);
    }
}

/// The words in front of the operation, those from there, and the text from the device on.
type Parts<'l> = (Head<'l>, Words<'l>, &'l [u8]);

/// `maj,min cpu time pid action …`; blkparse has a sequence number before the time.
fn classic(line: &[u8]) -> Option<Parts<'_>> {
    let mut fields = Words::of(line);
    let (device, cpu, time, pid, action) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    is_device(device).ok()?;
    whole(cpu).ok()?;
    (time.contains(&b'.') && decimal(time, 9).is_ok()).then_some(())?;
    let pid = u32::try_from(whole(pid).ok()?).ok();
    Some((Head { device, time, pid, action }, fields, line))
}

/// `comm-pid [cpu] flags time: maj,min action …`; the name may contain blanks and colons.
fn usual(line: &[u8]) -> Option<Parts<'_>> {
    memchr::memmem::find_iter(line, b": ").find_map(|colon| {
        let event = &line[colon + 2..];
        let mut fields = Words::of(event);
        let (device, action) = (fields.next()?, fields.next()?);
        is_device(device).ok()?;
        let before = &line[..colon];
        let time = words(before).next_back()?;
        decimal(time, 9).ok()?;
        let process = &before[..memchr::memchr(b'[', before)?];
        let pid = process.trim_ascii_end().rsplit(|&byte| byte == b'-').next().and_then(|pid| whole(pid).ok());
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        Some((Head { device, time, pid, action }, fields, event))
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    const USUAL: &[u8] = b"\
# tracer: blk
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
     kjournald-305   [000] d..1.  3046.491224:   8,1    A  WS 6367 + 8 <- (8,1) 6304
     kjournald-305   [000] d..1.  3046.491227:   8,1    Q  WS 6367 + 8 [kjournald]
     kjournald-305   [000] d..1.  3046.491236:   8,1    G  WS 6367 + 8 [kjournald]
     kjournald-305   [000] d..1.  3046.491239:   8,1    P   N [kjournald]
     kjournald-305   [000] d..1.  3046.491251:   8,1    D  WS 6367 + 8 [kjournald]
     kjournald-305   [000] d..1.  3046.491610:   8,1    U   N [kjournald] 1
CPU:1 [LOST 3 EVENTS]
        <idle>-0     [001] d.h1.  3046.511914:   8,1    C  WS 6367 + 8 [0]
";

    #[test]
    fn events_are_matched_as_those_of_blkparse() {
        let (rows, about) = load("ftrace-blk", USUAL);
        assert_eq!(recognised_as(USUAL), "ftrace-blk");
        assert_eq!((rows.len(), about.counts.bad_lines, about.counts.lost_events), (1, 0, 3), "{:?}", about.warnings);
        let request = &rows[0];
        assert_eq!((request.at.0, request.op, request.sector.0, request.sectors.0), (0, Op::Write, 6367, 8));
        assert_eq!((request.queued, request.latency), (Some(Nanos(24_000)), Some(Nanos(20_663_000))));
        assert_eq!((request.pid, request.comm.as_str()), (Some(305), "kjournald"));
        assert_eq!(about.devices[0].name, "8,1");
    }

    #[test]
    fn the_classic_form_has_no_sequence_numbers() {
        let text = b"\
# DEV   CPU TIMESTAMP     PID ACT FLG
#  |     |     |           |   |   |
  8,1    0  3046.491227123   305  Q   R 6367 + 8 [my fio]
  8,1    1  3046.491251456   305  D   R 6367 + 8 [my fio]
  8,1    1  3046.491261456     0  C   R 6367 + 8 [0]
";
        let (rows, about) = load("ftrace-blk", text);
        assert_eq!(recognised_as(text), "ftrace-blk");
        assert_eq!((rows.len(), about.counts.bad_lines), (1, 0), "{:?}", about.warnings);
        assert_eq!((rows[0].latency, rows[0].comm.as_str()), (Some(Nanos(10_000)), "my fio"));
    }
}
