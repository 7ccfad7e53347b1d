//! Disk events of Event Tracing for Windows, in the CSV text of `xperf -a dumper`:
//! `DiskRead|DiskWrite, TimeStamp, Process (PID), ThreadID, [CPU,] IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, …`
//! and, without a position, `DiskFlush, TimeStamp, Process (PID), ThreadID, [CPU,] IrpPtr, ElapsedTime, DiskNum, …`.
//!
//! Times are microseconds. The timestamp is that of the completion: the request began `ElapsedTime` earlier. Offset and
//! size are bytes, in hexadecimal. Sources: the header that the dumper writes and published dumps; for flushes only the
//! header.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::model::request::{Comm, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::{Context, LineFormat, Parsed, Zero, began, lost_events, recognise_lines, separated, whole_lines};
use crate::text::number::{decimal, span, whole, whole_or_hex};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "disk events of ETW, dumped by xperf (CSV)",
    tested_with: TestedWith::PublishedLines,
    recognise: |head| whole_lines(head).any(is_heading) || recognise_lines(head, Etw),
    open: |input, _| open_lines(input, "etw", Zero::TraceStart, Etw),
    ..Format::named("etw")
};

/// Whether a line is the header of disk reads. In a dump with many kinds of events, the first disk event may come late.
fn is_heading(line: &[u8]) -> bool {
    separated(line, b',').take(2).eq([&b"DiskRead"[..], b"TimeStamp"])
}

struct Etw;

impl LineFormat for Etw {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        let mut fields = separated(line, b',');
        let op = match fields.next() {
            Some(b"DiskRead") => Op::Read,
            Some(b"DiskWrite") => Op::Write,
            Some(b"DiskFlush") => Op::Flush,
            // Another kind of event, or the header.
            first => {
                // Lines of events have columns.
                if fields.next().is_none() {
                    context.lose(first.and_then(lost_events).unwrap_or(0));
                }
                return Parsed::Nothing;
            }
        };
        match row(op, fields, context) {
            Ok(Some(request)) => Parsed::Row(request),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }
}

fn row<'a>(
    op: Op,
    mut fields: impl Iterator<Item = &'a [u8]>,
    context: &mut Context<'_>,
) -> Result<Option<Request>, &'static str> {
    let mut next = || fields.next().ok_or("fewer columns than a disk event has");
    let time = next()?;
    if time == b"TimeStamp" {
        return Ok(None);
    }
    let (process, _thread, cpu_or_irp) = (next()?, next()?, next()?);
    // Newer dumps have a CPU column in front of the pointer, which is hexadecimal.
    if !cpu_or_irp.starts_with(b"0x") {
        next()?;
    }
    let range = if op == Op::Flush { None } else { Some((next()?, next()?)) };
    let (elapsed, disk) = (next()?, next()?);
    let completed = decimal(time, 3).map_err(|_| "the timestamp is not a number of microseconds")?;
    let elapsed = span(elapsed, 3).map(Nanos).map_err(|_| "the elapsed time is not a number of microseconds")?;
    let (sector, sectors) = match range {
        None => (Sector(0), Sectors(0)),
        Some((offset, size)) => {
            let offset = whole_or_hex(offset).map_err(|_| "the offset is not a number")?;
            let size = whole_or_hex(size).map_err(|_| "the size is not a number")?;
            context.bytes(offset, size)?
        }
    };
    let (name, pid) = name_and_pid(process);
    Ok(Some(Request {
        device: context.device(disk)?,
        latency: Some(elapsed),
        pid,
        comm: Comm::from_bytes(name),
        ..Request::new(began(Nanos(completed), elapsed), op, sector, sectors)
    }))
}

/// Parses `name (pid)`.
fn name_and_pid(text: &[u8]) -> (&[u8], Option<u32>) {
    let Some(open) = text.iter().rposition(|&b| b == b'(') else { return (text, None) };
    let pid = text[open + 1..].strip_suffix(b")").map(<[u8]>::trim_ascii).and_then(|pid| whole(pid).ok());
    (text[..open].trim_ascii(), pid.and_then(|pid| u32::try_from(pid).ok()))
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    const TRACE: &[u8] = b"\
BeginHeader
                DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,     IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,  FileObject, FileName
EndHeader
               DiskWrite,        500,              System (   4),        120, 0xfffffa8001, 0x0000001000, 0x00002000,         100,        0, 0x060043,          90, Normal, Original, 0xfffff8a0, \"c:\\x\"
                DiskRead,       1000,      My App.exe (1234),       5678, 0xfffffa8002, 0x0000000200, 0x00000200,         900,        1, 0x060043,         300, Normal, Original, 0xfffff8a0, \"c:\\y\"
                   Other,       2000,  x
";

    #[test]
    fn newer_dumps_have_a_cpu_column() {
        let trace = b"\
                DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
                DiskRead,       1000,          tool.exe (1234),       5678,   1, 0xffffe28800000001, 0x0000000200, 0x00001000,         900,        0, 0x060043,         283,       3, Original, 0xffffe28800000002, \"c:\\y\"
";
        let (rows, about) = load("etw", trace);
        assert_eq!(recognised_as(trace), "etw");
        assert_eq!((rows[0].sector.0, rows[0].sectors.0, rows[0].latency), (1, 8, Some(Nanos(900_000))));
        assert_eq!((about.devices[0].name.as_str(), about.counts.bad_lines), ("0", 0));
    }

    #[test]
    fn flushes_have_no_position() {
        // The header is as published. The events follow it; the second one has the CPU column of newer dumps.
        let trace = b"\
               DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,                           ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri
           DiskFlushInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr
           DiskFlushInit,        400,              System (   4),        120, 0xfffffa8001
               DiskFlush,       1500,              System (   4),        120, 0xfffffa8001,                               1000,        1, 0x060043,         900, Normal
               DiskFlush,       2500,              System (   4),        120,   3, 0xfffffa8001,                           1000,        1, 0x060043,         900, Normal
";
        let (rows, about) = load("etw", trace);
        assert_eq!((rows.len(), about.counts.bad_lines), (2, 0), "{:?}", about.warnings);
        let flush = &rows[0];
        assert_eq!((flush.at.0, flush.op, flush.sectors.0), (500_000, Op::Flush, 0));
        assert_eq!((flush.latency, flush.pid, about.devices[0].name.as_str()), (Some(Nanos(1_000_000)), Some(4), "1"));
    }

    #[test]
    fn a_dump_is_recognised_by_its_header_or_by_its_disk_events() {
        let (header, events) = TRACE.split_at(TRACE.windows(9).position(|w| w == b"EndHeader").unwrap());
        let others = b"Other,       2000,  x\n".repeat(1000);
        assert_eq!(recognised_as(&[header, &others].concat()), "etw");
        assert_eq!(recognised_as(&[&others, events].concat()), "etw");
    }

    #[test]
    fn timestamps_are_those_of_completions() {
        let (rows, about) = load("etw", TRACE);
        assert_eq!(recognised_as(TRACE), "etw");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].latency), (100_000, Op::Read, Some(Nanos(900_000))));
        assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(1234), "My App.exe"));
        assert_eq!((rows[1].at.0, rows[1].sector.0, rows[1].sectors.0), (400_000, 8, 16));
        assert_eq!(about.counts.bad_lines, 0);
    }
}
