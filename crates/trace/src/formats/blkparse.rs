//! The text of blkparse, in its default form:
//! `maj,min cpu seq sec.nsec pid action RWBS sector + n [comm]`.
//!
//! Times count from the start of the trace. What blkparse says at its end is read for the events that it skipped. From
//! blkparse(1) and its `blkparse_fmt.c`; seen from blkparse 1.3.

use std::io::Write;

use crate::error::Result;
use crate::events::{Action, Event};
use crate::formats::tracepoints::{is_device, open_events};
use crate::formats::{Format, Losses, TriedOn};
use crate::metadata::{Device, Metadata};
use crate::number::{decimal, whole};
use crate::output::Output;
use crate::request::{Comm, Request};
use crate::rows::{Context, LineFormat, Parsed, Words, Zero, recognise_lines, words};
use crate::rwbs;
use crate::stream::{Unheld, Writer};
use crate::units::Nanos;

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "text of blkparse",
    tried_on: TriedOn::RealFiles,
    endings: &[".blkparse"],
    recognise: |head| recognise_lines(head, Blkparse::default()),
    has_actions: true,
    open: |input, options| open_events(input, "blkparse", Zero::TraceStart, options, Blkparse::default()),
    create_load: Some(create_load),
    ..Format::named("blkparse")
};

#[derive(Default)]
struct Blkparse {
    part: Part,
    remaps: u64,
}

/// The events, or the statistics behind them.
#[derive(Default, PartialEq, Eq)]
enum Part {
    #[default]
    Events,
    Summary,
}

impl LineFormat for Blkparse {
    type Item = Event;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Event> {
        if line.starts_with(b"CPU") && line.ends_with(b":") || line.starts_with(b"Total (") {
            self.part = Part::Summary;
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
        if line.starts_with(b"Input file ") && line.ends_with(b" added") {
            return Parsed::Nothing;
        }
        match self.event(line, context) {
            Ok(Some(event)) => Parsed::Row(event),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.remaps > 0 {
            about.notice(format!("{} requests were handed from one device to another (remapped)", self.remaps));
        }
    }
}

impl Blkparse {
    fn event(&mut self, line: &[u8], context: &mut Context<'_>) -> std::result::Result<Option<Event>, &'static str> {
        let mut fields = Words(line);
        let mut next = || fields.next().ok_or("fewer columns than an event has");
        let (device, cpu, sequence, time, pid, action) = (next()?, next()?, next()?, next()?, next()?, next()?);
        if !context.is_last_device(device) {
            is_device(device)?;
        }
        whole(cpu).and(whole(sequence)).map_err(|_| "the CPU or the sequence is no whole number")?;
        let at = Nanos(decimal(time, 9).map_err(|_| "the time is no number of seconds")?);
        let pid = whole(pid).map_err(|_| "the pid is no whole number")?;
        let action = match action {
            b"Q" => Action::Queue,
            b"G" => Action::GetRequest,
            b"I" => Action::Insert,
            b"D" => Action::Issue,
            b"C" => Action::Complete,
            b"A" => {
                self.remaps += 1;
                return Ok(None);
            }
            // Merged, plugged, unplugged, split, bounced, slept, requeued, a message.
            b"M" | b"F" | b"P" | b"U" | b"UT" | b"X" | b"B" | b"S" | b"R" | b"m" | b"T" => return Ok(None),
            _ => return Err("an unknown action"),
        };
        let letters = fields.next().ok_or("no operation")?;
        let (sector, sectors) = match (fields.next(), fields.next(), fields.next()) {
            (Some(sector), Some(b"+"), Some(sectors)) => (
                whole(sector).map_err(|_| "the sector is no whole number")?,
                whole(sectors).map_err(|_| "the length is no whole number")?,
            ),
            // What moves nothing is written without a place: flushes, commands to the driver, and the second completion
            // of a write that had to be followed by a flush.
            _ if action == Action::Complete || letters.contains(&b'F') || letters.contains(&b'N') => (0, 0),
            _ => return Err("no place (sector + length)"),
        };
        let Some((op, flags)) = rwbs::parse(letters, sectors) else { return Ok(None) };
        let (sector, sectors) = context.sectors(if sectors == 0 { 0 } else { sector }, sectors)?;
        let comm = match (action, memchr::memchr(b'[', line), line) {
            // There it is the error.
            (Action::Complete, ..) | (_, None, _) => Comm::default(),
            (_, Some(open), [.., b']']) => Comm::new(&String::from_utf8_lossy(&line[open + 1..line.len() - 1])),
            _ => Comm::default(),
        };
        let device = context.device(device)?;
        let pid = u32::try_from(pid).ok();
        Ok(Some(Event { at, action, device, sector, sectors, op, flags, pid, comm }))
    }
}

fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let names = known.devices.iter().map(|device| device.name.clone()).collect();
    Ok(Box::new(BlkparseWriter {
        output,
        names,
        made_up: 0,
        sequence: 0,
        pending: Default::default(),
        losses: Losses::default(),
    }))
}

/// Writes a `Q` for each request, and `D` and `C` where its times are known.
struct BlkparseWriter {
    output: Output,
    names: Vec<String>,
    made_up: u64,
    sequence: u64,
    pending: crate::formats::Unfolded,
    losses: Losses,
}

impl BlkparseWriter {
    fn put(&mut self, event: Option<(u64, Action, Request)>) -> Result<bool> {
        let Some((at, action, request)) = event else { return Ok(false) };
        self.sequence += 1;
        let device = self.device(request.device.0);
        let (secs, ns, sequence, pid) =
            (at / 1_000_000_000, at % 1_000_000_000, self.sequence, request.pid.unwrap_or(0));
        let letters = rwbs::letters(request.op, request.flags);
        let letter = action.letter();
        let comm = request.comm;
        // As blkparse does: no place for what moves nothing, and an error in place of the process at the completion.
        let place = match (request.sectors.0, action) {
            (0, Action::Complete) => "0 ".to_owned(),
            (0, _) => String::new(),
            (sectors, _) => format!("{} + {sectors} ", request.sector.0),
        };
        let tail = if action == Action::Complete { "0" } else { comm.as_str() };
        writeln!(
            self.output,
            "{device:>7} {cpu:>3} {sequence:>8} {secs:>5}.{ns:09} {pid:>5}  {letter} {letters:>3} {place}[{tail}]",
            cpu = 0
        )
        .map_err(|e| self.output.error(e))?;
        Ok(true)
    }

    /// The device's numbers; made up where its name is no pair of them.
    fn device(&mut self, index: u16) -> String {
        match self.names.get(usize::from(index)) {
            Some(name) if is_device(name.as_bytes()).is_ok() => name.clone(),
            _ => {
                self.made_up += 1;
                format!("259,{index}")
            }
        }
    }
}

impl Writer<Request> for BlkparseWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        self.pending.push(at, request);
        while let event @ Some(_) = self.pending.before(at) {
            self.put(event)?;
        }
        Ok(())
    }

    fn learn_devices(&mut self, new: &[Device]) {
        self.names.extend(new.iter().map(|device| device.name.clone()));
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<Unheld> {
        while let event @ Some(_) = self.pending.before(u64::MAX) {
            self.put(event)?;
        }
        let mut unheld = self.losses.told("blkparse", metadata);
        if self.made_up > 0 {
            unheld.said.push("blkparse knows devices by number: those with other names are 259,0 259,1 …".into());
        }
        self.output.finish()?;
        Ok(unheld)
    }
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
}
