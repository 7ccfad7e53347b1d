//! The block layer's tracepoints as text: `perf script`, `trace-cmd report`, and the kernel's own `trace` file.
//!
//! ```text
//! comm   pid [cpu]  sec.usec: block:block_rq_issue: maj,min RWBS bytes (cmd) sector + n prio [comm]
//! comm-pid   [cpu]  sec.usec: block_rq_complete:    maj,min RWBS (cmd) sector + n prio [error]
//! comm-pid   [cpu] d..2.  sec.usec: block_bio_queue: maj,min RWBS sector + n [comm]
//! ```
//! Which is which is told line by line. Times are those of the trace's clock. From `include/trace/events/block.h`; seen
//! from perf on Linux 6.18. `trace-cmd report -l` puts the processor and the flags into one word: `comm-pid 0d..2. sec`.

use memchr::memmem;

use crate::events::{Action, Ahead, Event, EventSource, Matcher};
use crate::formats::{Format, LeftOut, Opened, Options, TriedOn};
use crate::input::Input;
use crate::metadata::Metadata;
use crate::number::{decimal, whole};
use crate::request::Comm;
use crate::rows::{Context, InOrder, LineFormat, LineSource, Parsed, Zero, metadata_of, place, recognise_lines, words};
use crate::rwbs;
use crate::units::Nanos;

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
    open_events(input, FORMAT.name, Zero::Arbitrary, options, Tracepoints::default())
}

/// Opens a trace of lines that each are an event.
pub fn open_events<F>(input: Input, format: &str, zero: Zero, options: &Options, lines: F) -> crate::Result<Opened>
where
    F: LineFormat<Item = Event> + 'static,
{
    let mut metadata = metadata_of(&input, format);
    let matcher = Matcher::new(Ahead::start(LineSource::new(input, lines))?, options.action, &mut metadata)?;
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
}

impl LineFormat for Tracepoints {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        // Everything else in the file is some other event or a heading.
        let Some((before, name_and_rest)) = cut_at_event(line) else { return lost_events(line, context) };
        let name_and_rest = name_and_rest.strip_prefix(b"block:").unwrap_or(name_and_rest);
        let Some(colon) = name_and_rest.iter().position(|&b| b == b':') else { return Parsed::Nothing };
        let (name, rest) = (&name_and_rest[..colon], &name_and_rest[colon + 1..]);
        let action = match name {
            b"block_bio_queue" => Action::Queue,
            b"block_getrq" => Action::GetRequest,
            b"block_rq_insert" => Action::Insert,
            b"block_rq_issue" => Action::Issue,
            b"block_rq_requeue" => Action::Requeue,
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
        self.left_out.tell(about);
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
        // What a driver's command holds stands in between, in parentheses.
        let plus = memmem::find(rest, b" + ").ok_or("no place (sector + length)")?;
        let sector = words(&rest[..plus]).next_back().ok_or("no sector")?;
        let sectors = words(&rest[plus + 3..]).next().ok_or("no length")?;
        let sectors = whole(sectors).map_err(|_| "the length is no whole number")?;
        let sector = whole(sector).map_err(|_| "the sector is no whole number")?;
        is_device(device)?;
        if sector == NOWHERE && sectors > 0 {
            // The completion of a command to the driver tells what that moved.
            return self.left_out.count(rwbs::NoRequest::DriverCommand).map(|()| None);
        }
        let (op, flags) = match rwbs::parse(letters, sectors) {
            Ok(request) => request,
            Err(other) => return self.left_out.count(other).map(|()| None),
        };
        let (sector, sectors) = place(op, sector, sectors)?;
        let device = context.device(device)?;
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, pid, comm }))
    }
}

/// What stands in front of the event's name and its colon, and what from the name on.
fn cut_at_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    memmem::find_iter(line, b" block").find_map(|place| {
        let before = line[..place].trim_ascii_end().strip_suffix(b":")?;
        Some((before, &line[place + 1..]))
    })
}

/// `CPU:3 [LOST 17 EVENTS]` of ftrace and trace-cmd, while a ring was read. What was overwritten before stands in ftrace's
/// heading, `# entries-in-buffer/entries-written: 140080/250280   #P:8`, and makes no request doubtful that is in the trace.
fn lost_events(line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
    if let Some(counts) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
        let mut counts = words(counts).next().unwrap_or_default().splitn(2, |&byte| byte == b'/').map(whole);
        if let (Some(Ok(left)), Some(Ok(all))) = (counts.next(), counts.next())
            && all > left
        {
            context.about.notice(format!(
                "the trace's ring was full: of {all} events, of whatever kind, the first {} were overwritten, and some \
                 processors' events begin later than others'",
                all - left
            ));
        }
        return Parsed::Nothing;
    }
    if let Some(place) = memmem::find(line, b"LOST ")
        && let Some(count) = words(&line[place + 5..]).next().and_then(|count| whole(count).ok())
    {
        let lost = &mut context.about.counts.lost_events;
        *lost = lost.saturating_add(count);
    }
    Parsed::Nothing
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
    Ok((at, pid.and_then(|pid| u32::try_from(pid).ok()), Comm::new(&String::from_utf8_lossy(name))))
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
mod tests {
    use crate::formats::check::{load, load_with, recognised_as};
    use crate::formats::{Action, Options};
    use crate::request::{Flags, Op};
    use crate::units::Nanos;

    /// As perf wrote them on Linux 6.18.
    const PERF: &[u8] = b"\
             fio 18719 [001]  3632.974325:   block:block_bio_queue: 7,0 R 31616 + 24 [fio]
             fio 18719 [001]  3632.974335:    block:block_rq_issue: 7,0 R 12288 () 31616 + 24 0x2,0,4 [fio]
             fio 18719 [001]  3632.974406:   block:block_bio_queue: 7,0 WS 388120 + 32 [fio]
             fio 18719 [001]  3632.974408:    block:block_rq_issue: 7,0 WS 16384 () 388120 + 32 0x2,0,4 [fio]
     ksoftirqd/1    22 [001]  3632.974454: block:block_rq_complete: 7,0 R () 31616 + 24 0x2,0,4 [0]
     ksoftirqd/1    22 [001]  3632.974460: block:block_rq_complete: 7,0 WS () 388120 + 32 0x2,0,4 [0]
             fio 18719 [001]  3633.770315:   block:block_bio_queue: 7,0 FWS 0 + 0 [fio]
 kworker/1:1H-kb    44 [001]  3633.770330:    block:block_rq_issue: 7,0 FF 0 () 0 + 0 0x0,0,0 [kworker/1:1H]
     ksoftirqd/1    22 [001]  3633.770356: block:block_rq_complete: 7,0 FF () 18446744073709551615 + 0 0x0,0,0 [0]
   opt cgu.08 18747 [001]  3633.800000:   block:block_bio_queue: 254,0 RA 26302400 + 8 [opt cgu.08]
";

    #[test]
    fn perf_script() {
        let (rows, about) = load("tracepoints", PERF);
        assert_eq!(recognised_as(PERF), "tracepoints");
        assert_eq!(rows.len(), 4, "{:?}", about.notices);
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0, rows[0].sectors.0), (0, Op::Read, 31_616, 24));
        assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(10_000)), Some(Nanos(119_000))));
        assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(18_719), "fio"));
        assert_eq!((rows[1].flags, rows[1].latency), (Flags::SYNC, Some(Nanos(52_000))));
        assert_eq!((rows[2].op, rows[2].latency), (Op::Flush, Some(Nanos(26_000))));
        assert_eq!((rows[3].comm.as_str(), rows[3].device.0), ("opt cgu.08", 1));
        assert_eq!(about.counts.unmatched, 1);
        assert_eq!(about.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["7,0", "254,0"]);
    }

    #[test]
    fn absurd_numbers_of_lost_events_are_no_panic() {
        let lost = format!("CPU:1 [LOST {} EVENTS]\nCPU:1 [LOST 17 EVENTS]\n", u64::MAX);
        assert_eq!(load("tracepoints", &[PERF, lost.as_bytes()].concat()).1.counts.lost_events, u64::MAX);
    }

    #[test]
    fn the_action_can_be_chosen() {
        let (rows, _) = load_with("tracepoints", PERF, &Options { action: Some(Action::Issue) });
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[2].comm.as_str(), rows[0].queued), ("kworker/1:1H-kb", Some(Nanos(10_000))));
    }

    #[test]
    fn trace_cmd_and_ftrace() {
        let text = b"\
cpus=2
             fio-18719 [001]  3632.974325: block_bio_queue:      8,0 WS 100 + 8 [fio]
CPU:1 [LOST 17 EVENTS]
      my-app-1-200   [001] d..2.  3632.974326: block_bio_queue: 8,0 R 200 + 8 [my-app-1]
          <idle>-0     [001]  3632.974454: block_rq_complete:    8,0 WS () 100 + 8 [0]
            tool-7   [000] .....  3632.974500: sched_switch: prev_comm=x
";
        let (rows, about) = load("tracepoints", text);
        assert_eq!(rows.len(), 2, "{:?}", about.notices);
        assert_eq!((rows[0].pid, rows[0].comm.as_str(), rows[0].latency), (Some(18_719), "fio", Some(Nanos(129_000))));
        assert_eq!((rows[1].pid, rows[1].comm.as_str()), (Some(200), "my-app-1"));
        assert_eq!((about.counts.lost_events, about.counts.bad_lines), (17, 0));
    }

    #[test]
    fn what_the_ring_overwrote_is_told() {
        let heading = b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 140080/250280   #P:8\n";
        let (_, about) = load("tracepoints", &[heading, PERF].concat());
        assert_eq!((about.counts.lost_events, about.counts.bad_lines), (0, 0));
        assert!(about.notices.iter().any(|notice| notice.contains("ring was full")), "{:?}", about.notices);
        let whole = b"# entries-in-buffer/entries-written: 10/10   #P:8\n";
        let (_, about) = load("tracepoints", &[whole, PERF].concat());
        assert!(!about.notices.iter().any(|notice| notice.contains("ring was full")), "{:?}", about.notices);
    }

    #[test]
    fn trace_cmd_with_processor_and_flags_in_one_word() {
        let text = b"\
    test-2991    0.....   119.255974: block_rq_issue: 8,0 R 4096 () 8 + 8 [test]
my app.2-2992    1dNh21   119.255984: block_rq_issue: 8,0 R 4096 () 16 + 8 [test]
";
        let (rows, _) = load("tracepoints", text);
        let found: Vec<_> = rows.iter().map(|row| (row.pid, row.comm.as_str())).collect();
        assert_eq!(found, [(Some(2991), "test"), (Some(2992), "my app.2")]);
    }

    #[test]
    fn zeros_that_are_written_are_no_commands_to_the_driver() {
        // As Linux 6.18 wrote it.
        let text = b"\
      blkdiscard-3211    [000] ..... 81719.542141: block_bio_queue: 7,0 NS 0 + 128 [blkdiscard]
    kworker/0:1H-54      [000] ..... 81719.542159: block_rq_issue: 7,0 NS 65536 () 0 + 128 be,0,4 [kworker/0:1H]
     ksoftirqd/1-22      [001] ..s.. 81719.542728: block_rq_complete: 7,0 NS () 0 + 128 be,0,4 [0]
";
        let (rows, _) = load("tracepoints", text);
        assert_eq!((rows.len(), rows[0].op, rows[0].sectors.0), (1, Op::WriteZeroes, 128));
        assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(18_000)), Some(Nanos(569_000))));
    }

    #[test]
    fn a_trace_of_completions_says_what_is_missing() {
        let completions =
            PERF.split_inclusive(|&byte| byte == b'\n').filter(|line| line.windows(8).any(|w| w == b"complete"));
        let (rows, about) = load("tracepoints", &completions.collect::<Vec<_>>().concat());
        assert!(rows.is_empty() && about.notices[0].contains("only completions"), "{:?}", about.notices);
    }

    #[test]
    fn ftrace_with_the_process_behind_the_thread() {
        let text = b"\
# tracer: nop
             fio-18719 (  18700) [001] ...1  3632.974325: block_bio_queue:      8,0 WS 100 + 8 [fio]
        (sd-pam)-18720   (-----) [001] ...1  3632.974326: block_bio_queue:      8,0 WS 200 + 8 [fio]
          <idle>-0     (-------) [001] ...1  3632.974454: block_rq_complete:    8,0 WS () 100 + 8 [0]
";
        let (rows, about) = load("tracepoints", text);
        assert_eq!(about.counts.bad_lines, 0, "{:?}", about.notices);
        assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(18_719), "fio"));
        assert_eq!((rows[1].pid, rows[1].comm.as_str()), (Some(18_720), "(sd-pam)"));
    }

    #[test]
    fn commands_to_the_driver_and_zones_are_counted_and_appends_are_writes() {
        let text = b"\
  smartctl   1 [000] 1.000000: block:block_rq_issue: 8,0 N 512 (85 08 0e 00 d0 00) 0 + 0 [smartctl]
  smartctl   1 [000] 1.000010: block:block_rq_complete: 8,0 N (85 08 0e 00 d0 00) 18446744073709551615 + 1 [0]
  a   1 [000] 1.100000: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [a]
  a   1 [000] 1.200000: block:block_rq_issue: 8,0 ZAS 4096 () 800 + 8 [a]
  a   1 [000] 1.300000: block:block_rq_issue: 8,0 ZR 0 () 524288 + 0 [a]
  a   1 [000] 1.400000: block:block_rq_issue: 8,0 ZRA 0 () 18446744073709551615 + 0 [a]
  a   1 [000] 1.500000: block:block_rq_issue: 8,0 R 0 () 96 + 0 [a]
";
        let (rows, about) = load("tracepoints", text);
        let found: Vec<_> = rows.iter().map(|row| (row.op, row.sector.0, row.sectors.0)).collect();
        assert_eq!(found, [(Op::Read, 8, 8), (Op::Write, 800, 8), (Op::Read, 96, 0)]);
        assert_eq!((recognised_as(text), about.counts.bad_lines), ("tracepoints", 0));
        for said in ["commands to the driver, which are no requests: 2", "zones, which move no data: 2"] {
            assert!(about.notices.iter().any(|notice| notice.ends_with(said)), "{:?}", about.notices);
        }
    }
}
