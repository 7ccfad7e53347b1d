//! I/O logs of fio, versions 2 and 3, as written by `write_iolog` and replayed by `read_iolog`.
//!
//! Offsets and lengths are bytes. Version 2 has no times except `wait`, in microseconds; version 3 begins each line with the
//! microseconds since the start. Sources: fio's HOWTO ("Trace file format"); for the unit of version 3 its own logs. fio
//! does not handle `wait` as documented: 3.33 waits until that many milliseconds after its own start. fio appends to an
//! existing log: another heading begins another log, whose times restart at zero.
//!
//! fio's reader takes time 0 as no time (`delay_since_ttime` of its `iolog.c`): it issues the next request without delay,
//! and all later ones too early by as much (seen with 3.33). It holds lengths in 32 bits.

use std::io::Write;

use crate::error::Result;
use crate::formats::format::{Format, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::formats::support::losses::{Losses, Property, lost_properties, pieces};
use crate::formats::support::numbering::Names;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::{Context, LineFormat, Parsed, Zero, words};
use crate::text::human;
use crate::text::number::whole;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "I/O log of fio, version 2 or 3",
    tested_with: TestedWith::RealFiles,
    extensions: &[".iolog"],
    recognise: has_heading,
    open: |input, _| open_lines(input, "fio-iolog", Zero::TraceStart, Iolog::default()),
    create_load: Some(create_load),
    ..Format::named("fio-iolog")
};

/// The heading identifies the format. It may be followed by more `add` lines than are examined, or by nothing.
fn has_heading(head: &[u8]) -> bool {
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    matches!(first.trim_ascii_end(), b"fio version 2 iolog" | b"fio version 3 iolog")
}

#[derive(Default)]
struct Iolog {
    version: Option<Version>,
    /// The time of the current line; in version 2, the sum of all `wait`s.
    now_us: u64,
    /// The latest time of a request.
    newest_us: u64,
    /// The start of the current log in the file: the end of the previous one.
    start_us: u64,
    waits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl LineFormat for Iolog {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if let Some(rest) = line.strip_prefix(b"fio version ") {
            let version = match rest {
                b"2 iolog" => Version::Two,
                b"3 iolog" => Version::Three,
                _ => return Parsed::Bad("an I/O log of fio, but neither version 2 nor version 3"),
            };
            if self.version.replace(version).is_some() {
                self.begin_next_log(context.about);
            }
            return Parsed::Nothing;
        }
        match self.row(line, context) {
            Ok(Some(request)) => Parsed::Row(request),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.waits > 0 {
            about.warning(format!(
                "{} lines `wait`: read as microseconds since the previous line, as documented by fio; fio itself waits until \
                 that many milliseconds after its start; docs/formats.md has a command that converts such logs",
                human::count(self.waits)
            ));
        }
    }
}

impl Iolog {
    fn begin_next_log(&mut self, about: &mut Metadata) {
        (self.start_us, self.now_us) = (self.newest_us, self.newest_us);
        about.counts.time_jumps += 1;
        about.warning(format!(
            "the file has another log of fio, as from a second run: its times are shifted by {} so that time continues. If \
             several jobs wrote the file at the same time, the load is wrong: give each job its own log",
            Nanos((self.start_us * 1000).cast_signed())
        ));
    }

    fn row(&mut self, line: &[u8], context: &mut Context<'_>) -> std::result::Result<Option<Request>, &'static str> {
        let version = self.version.ok_or("there is no line `fio version … iolog` before it")?;
        let mut words = words(line);
        let mut next = || words.next().ok_or("fewer columns than the action needs");
        if version == Version::Three {
            let since_start = whole(next()?).map_err(|_| "the line does not begin with its time in µs")?;
            self.now_us = self.start_us.saturating_add(since_start);
        }
        let file = next()?;
        let action = next()?;
        let op = match action {
            b"add" | b"open" | b"close" => return Ok(None),
            b"wait" => {
                // Some writers omit the length.
                let wait = whole(next()?).map_err(|_| "the wait is not a whole number")?;
                if version == Version::Two {
                    self.now_us = self.now_us.checked_add(wait).ok_or("the sum of the waits is too large")?;
                    self.waits += 1;
                }
                return Ok(None);
            }
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" | b"datasync" => Op::Flush,
            _ => return Err("an unknown action"),
        };
        let at = i64::try_from(self.now_us).ok().and_then(|us| us.checked_mul(1000)).ok_or("the time is too large")?;
        self.newest_us = self.newest_us.max(self.now_us);
        let device = context.device(file)?;
        let (sector, sectors) = if op == Op::Flush {
            (Sector(0), Sectors(0))
        } else {
            let offset = whole(next()?).map_err(|_| "the offset is not a whole number")?;
            let length = whole(next()?).map_err(|_| "the length is not a whole number")?;
            context.bytes(offset, length)?
        };
        Ok(Some(Request { device, ..Request::new(Nanos(at), op, sector, sectors) }))
    }
}

/// The lowest time that is written, because fio takes 0 as no time.
const FIRST_US: u64 = 1;

/// Properties of a load that the format does not store.
const UNSUPPORTED: [Property; 5] =
    [Property::Preamble, Property::Epoch, Property::Sizes, Property::RequestTime, Property::Losses];

fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let names = Names::new(file_name, |number| format!("device{number}"), &known.devices);
    let opened = names.len();
    let mut writer = IologWriter { output, names, opened, losses: Losses::default(), rounded: 0 };
    writer.line("fio version 3 iolog")?;
    // Opens all files first, so that fio opens none between requests.
    for word in ["add", "open"] {
        for index in 0..opened {
            let line = format!("{FIRST_US} {} {word}", writer.names.get(index));
            writer.line(&line)?;
        }
    }
    Ok(Box::new(writer))
}

/// The name, if it has no blanks, which would end it.
fn file_name(name: &str) -> Option<String> {
    let ends = |c: char| c.is_whitespace() || c.is_control();
    (!name.is_empty() && !name.contains(ends)).then(|| name.to_owned())
}

struct IologWriter {
    output: Output,
    names: Names<String>,
    /// The number of names with lines `add` and `open`.
    opened: usize,
    losses: Losses,
    /// Requests whose time changed.
    rounded: u64,
}

impl IologWriter {
    fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.output, "{line}").map_err(|e| self.output.error(e))
    }
}

impl Writer<Request> for IologWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        let us = (at / 1000).max(FIRST_US);
        let device = usize::from(request.device.0);
        while self.opened <= device {
            let name = self.names.get(self.opened);
            let lines = format!("{us} {name} add\n{us} {name} open");
            self.line(&lines)?;
            self.opened += 1;
        }
        let action = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => "sync",
            Op::WriteZeroes => {
                self.losses.unsupported_ops += 1;
                return Ok(());
            }
        };
        if !self.losses.fits(request) {
            return Ok(());
        }
        self.losses.flags(request.flags).process(request).times(request).length(request);
        self.rounded += u64::from(at != us * 1000);
        let name = self.names.used(device);
        for (sector, sectors) in pieces(request) {
            let (offset, length) = (sector.bytes(), sectors.bytes());
            writeln!(self.output, "{us} {name} {action} {offset} {length}").map_err(|e| self.output.error(e))?;
        }
        Ok(())
    }

    fn learn(&mut self, known: &Metadata) {
        self.names.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        for index in 0..self.opened {
            let us = (metadata.span.last_ns.max(0).cast_unsigned() / 1000).max(FIRST_US);
            let line = format!("{us} {} close", self.names.get(index));
            self.line(&line)?;
        }
        let mut loss = self.losses.conversion_loss(&self.output, "fio-iolog")?;
        loss.warnings.extend(lost_properties("fio-iolog", &UNSUPPORTED, metadata));
        loss.warnings
            .extend(self.names.describe_renamed("the format fio-iolog needs unique file names without blanks"));
        if self.rounded > 0 {
            let moved = format!("times were truncated, or moved from 0 to {FIRST_US} µs");
            loss.warnings.push(format!(
                "the format fio-iolog has whole microseconds, and fio takes 0 as no time: {}",
                human::agreed(self.rounded, &moved)
            ));
        }
        self.output.finish()?;
        Ok(loss)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{about, load, recognised_as, written};
    use crate::model::request::{DeviceId, Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn version_three_has_times() {
        // The first lines are from a log of fio 3.33.
        let log = b"\
fio version 3 iolog
20 /dev/loop0 add
582 /dev/loop0 open
585 /dev/loop0 read 16187392 12288
697 /dev/loop0 write 198717440 16384
700 /dev/loop0 sync 0 0
800 /dev/loop0 trim 4096 4096
900 /dev/loop0 close
";
        let (rows, about) = load("fio-iolog", log);
        assert_eq!(recognised_as(log), "fio-iolog");
        let ops: Vec<_> = rows.iter().map(|r| r.op).collect();
        assert_eq!(ops, [Op::Read, Op::Write, Op::Flush, Op::Discard]);
        assert_eq!((rows[0].at.0, rows[0].sector.0, rows[0].sectors.0), (585_000, 31_616, 24));
        assert_eq!((about.devices[0].name.as_str(), about.counts.bad_lines), ("/dev/loop0", 0));
    }

    #[test]
    fn a_log_without_requests_is_recognised_by_its_heading() {
        assert_eq!(recognised_as(b"fio version 3 iolog\n"), "fio-iolog");
        assert_eq!(load("fio-iolog", b"fio version 3 iolog\n").0, []);
        let many_files: String = (0..300).map(|file| format!("15 f{file} add\n")).collect();
        assert_eq!(recognised_as(format!("fio version 3 iolog\n{many_files}").as_bytes()), "fio-iolog");
    }

    #[test]
    fn version_two_has_waits() {
        let log = b"fio version 2 iolog\na add\na open\na read 0 512\na wait 1500 0\nb write 512 512\na wait 500\na sync\na close\n";
        let (rows, about) = load("fio-iolog", log);
        assert_eq!(rows.iter().map(|r| r.at.0).collect::<Vec<_>>(), [0, 1_500_000, 2_000_000]);
        assert_eq!((rows[1].device.0, rows[2].op, about.counts.bad_lines), (1, Op::Flush, 0));
        assert!(about.warnings[0].starts_with("2 lines `wait`: read as microseconds"), "{:?}", about.warnings);
    }

    #[test]
    fn times_of_an_appended_log_continue() {
        // Written by two runs of fio 3.33.
        let log = b"\
fio version 3 iolog
22 f add
125 f open
128 f read 61440 4096
4109 f write 884736 4096
4125 f close
fio version 3 iolog
19 f add
111 f open
114 f read 61440 4096
4092 f write 884736 4096
";
        let (rows, about) = load("fio-iolog", log);
        assert_eq!(rows.iter().map(|row| row.at.0 / 1000).collect::<Vec<_>>(), [128, 4109, 4223, 8201]);
        assert_eq!((about.counts.time_jumps, about.counts.bad_lines), (1, 0));
        assert!(
            about.warnings.iter().any(|warning| warning.contains("has another log of fio")),
            "{:?}",
            about.warnings
        );
    }

    #[test]
    fn a_written_log_is_read_back_unchanged() {
        let request = Request::new(Nanos(1_500_000), Op::Write, Sector(8), Sectors(16));
        let rows = [
            request,
            Request { op: Op::Discard, device: DeviceId(1), ..request },
            Request { op: Op::Flush, sector: Sector(0), sectors: Sectors(0), at: Nanos(2_000_000), ..request },
        ];
        let (text, said) = written("fio-iolog", &rows, &about(&["sda", "sdb"]));
        assert_eq!(said, [""; 0]);
        let (back, read) = load("fio-iolog", &text);
        // The reader numbers devices as they appear, here in the same order.
        assert_eq!(back, rows);
        assert_eq!(read.devices[1].name, "sdb");
    }

    /// fio would issue the request after one at time 0 without delay.
    #[test]
    fn no_line_has_time_zero() {
        let request = Request::new(Nanos(0), Op::Write, Sector(8), Sectors(8));
        let rows = [request, Request { at: Nanos(1_000_000), ..request }];
        let (text, said) = written("fio-iolog", &rows, &about(&["sda"]));
        let text = String::from_utf8(text).unwrap();
        let times = text.lines().skip(1).map(|line| line.split(' ').next().unwrap());
        assert_eq!(times.collect::<Vec<_>>(), ["1", "1", "1", "1000", "1"], "{text}");
        assert!(said[0].contains(": 1 time was truncated"), "{said:?}");
    }

    #[test]
    fn requests_of_4_gib_and_more_are_split() {
        let discard = Request::new(Nanos(1000), Op::Discard, Sector(8), Sectors((1 << 33) / 512));
        let (text, said) = written("fio-iolog", &[discard], &about(&["sda"]));
        assert!(said.len() == 1 && said[0].contains("1 request of 4 GiB and more was split"), "{said:?}");
        let (rows, read) = load("fio-iolog", &text);
        assert!(rows.iter().all(|row| row.sectors.bytes() <= u64::from(u32::MAX)), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.sectors.0).sum::<u64>(), discard.sectors.0);
        assert_eq!((rows.len(), rows[2].at, rows[2].sector.0), (3, discard.at, 8 + 2 * ((1 << 23) - 2048)));
        assert_eq!(read.counts.bad_lines, 0);
    }
}
