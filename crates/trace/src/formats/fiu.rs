//! Traces of FIU, IODedup (SNIA IOTTA 391): `ts pid process lba size R|W major minor MD5`.
//!
//! Times are nanoseconds, apparently since the start of the trace; positions and sizes are sectors; the last column is a
//! hash of the content, or one per sector. Sources: the README of the traces and published lines.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::model::request::{Comm, Op, Request};
use crate::model::units::Nanos;
use crate::rows::{Context, LineFormat, Parsed, TOO_FAR, TOO_LATE, Zero, recognise_lines, words};
use crate::text::number::whole;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "FIU trace (IODedup)",
    tested_with: TestedWith::PublishedLines,
    recognise: |head| recognise_lines(head, Fiu),
    open: |input, _| open_lines(input, "fiu", Zero::Arbitrary, Fiu),
    ..Format::named("fiu")
};

struct Fiu;

impl LineFormat for Fiu {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        row(line, context).into()
    }
}

fn row(line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
    // Parsed from both ends, because the name of a process may contain blanks.
    let mut fields = words(line);
    let mut back = || fields.next_back().ok_or("fewer than 9 columns");
    let (hash, minor, major, kind, size, lba) = (back()?, back()?, back()?, back()?, back()?, back()?);
    let mut front = || fields.next().ok_or("fewer than 9 columns");
    let (time, pid) = (front()?, front()?);
    let process = fields.collect::<Vec<_>>().join(&b' ');
    if process.is_empty() {
        return Err("fewer than 9 columns");
    }
    if !hash.iter().all(u8::is_ascii_hexdigit) {
        return Err("the last column is not a hash");
    }
    let at = whole(time).map_err(|e| e.reason("the time is not a number of nanoseconds", TOO_LATE))?;
    let at = i64::try_from(at).map_err(|_| TOO_LATE)?;
    let pid = whole(pid).ok().and_then(|pid| u32::try_from(pid).ok()).ok_or("the pid is not a whole number")?;
    let op = match kind {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err("the operation is neither R nor W"),
    };
    let lba = whole(lba).map_err(|e| e.reason("the position is not a whole number", TOO_FAR))?;
    let size = whole(size).map_err(|e| e.reason("the size is not a whole number", TOO_FAR))?;
    whole(major).and(whole(minor)).map_err(|_| "the device is not MAJOR MINOR")?;
    let (sector, sectors) = context.sectors(lba, size)?;
    Ok(Request {
        device: context.device(&[major, b",", minor].concat())?,
        pid: Some(pid),
        comm: Comm::from_bytes(&process),
        ..Request::new(Nanos(at), op, sector, sectors)
    })
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;

    #[test]
    fn requests_have_processes_that_may_contain_blanks() {
        let trace = b"\
89966104304297 4892 syslogd 904265560 8 W 6 0 531e779f8bb2d0c4fe37eb2b2a2b1c3d
89966104400000 4892 my proc 904265568 8 R 6 0 00007e779f8bb2d0c4fe37eb2b2a2b1c
";
        let (rows, about) = load("fiu", trace);
        assert_eq!(recognised_as(trace), "fiu");
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0, rows[0].sectors.0), (0, Op::Write, 904_265_560, 8));
        assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(4892), "syslogd"));
        assert_eq!((rows[1].at.0, rows[1].op), (95_703, Op::Read));
        assert_eq!((rows[1].pid, rows[1].comm.as_str()), (Some(4892), "my proc"));
        assert_eq!(about.devices[0].name, "6,0");
        assert_eq!(about.epoch_unix_ns, None);
    }

    #[test]
    fn too_large_and_malformed_numbers_have_different_reasons() {
        for (line, reason) in [
            ("9966104304297000000 1 x 8 8 W 6 0 00ff", "the time is too large"),
            ("99661043042970000000 1 x 8 8 W 6 0 00ff", "the time is too large"),
            ("1e9 1 x 8 8 W 6 0 00ff", "the time is not a number"),
            ("1 1 x 99661043042970000000 8 W 6 0 00ff", "beyond any device"),
            ("1 1 x 8 -8 W 6 0 00ff", "the size is not a whole number"),
        ] {
            let (_, about) = load("fiu", format!("{line}\n").as_bytes());
            assert!(about.warnings[0].contains(reason), "{line}: {:?}", about.warnings);
        }
    }
}
