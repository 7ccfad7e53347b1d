//! The output of bcc's biosnoop: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`.
//!
//! The time is that of the completion; the latency is from the issue to it, to 10 µs, and so the request's time is no
//! more exact than that. Seen from bcc 0.26. (bpftrace's biosnoop.bt prints neither place nor length, and can't be
//! made a load.)

use crate::formats::{Format, TriedOn};
use crate::metadata::{Metadata, RequestTime};
use crate::number::{decimal, whole};
use crate::request::{Comm, Op, Request};
use crate::rows::{Context, LineFormat, Parsed, Zero, open_lines, words};
use crate::units::{Nanos, Sector, Sectors};

/// The format's line in the list.
pub const FORMAT: Format = Format {
    title: "output of bcc's biosnoop",
    tried_on: TriedOn::RealFiles,
    recognise: is_heading,
    open: |input, _| open_lines(input, "biosnoop", Zero::Arbitrary, Biosnoop::default()),
    ..Format::named("biosnoop")
};

/// The heading is enough: what follows may be commands to the driver for as long as one looks.
fn is_heading(head: &[u8]) -> bool {
    let heading = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut of_it = words(heading);
    let needed: [&[u8]; 4] = [b"DISK", b"SECTOR", b"BYTES", b"LAT(ms)"];
    of_it.next() == Some(b"TIME(s)") && needed.iter().all(|needed| of_it.any(|word| word == *needed))
}

/// The columns behind the process' name, as the heading says.
struct Biosnoop {
    pattern: Column,
    queue: Column,
    driver_commands: u64,
}

/// What stands for the place of a request that has none.
const NOWHERE: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Absent,
    Present,
}

impl Default for Biosnoop {
    fn default() -> Self {
        Self { pattern: Column::Absent, queue: Column::Absent, driver_commands: 0 }
    }
}

impl LineFormat for Biosnoop {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(b"TIME") {
            let has = |name: &[u8]| if words(line).any(|word| word == name) { Column::Present } else { Column::Absent };
            (self.pattern, self.queue) = (has(b"P"), has(b"QUE(ms)"));
            context.about.request_time = RequestTime::Issued;
            return Parsed::Nothing;
        }
        match self.row(line, context) {
            Ok(Some(row)) => Parsed::Row(row),
            Ok(None) => Parsed::Nothing,
            Err(problem) => Parsed::Bad(problem),
        }
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.driver_commands > 0 {
            let count = self.driver_commands;
            about.notice(format!("left out, commands to the driver, which are no requests: {count}"));
        }
    }
}

impl Biosnoop {
    /// A request; nothing for a command to the driver.
    fn row(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<Option<Request>, &'static str> {
        // From the end, as the name of a process may hold blanks.
        let mut fields = words(line);
        let mut back = || fields.next_back().ok_or("fewer columns than the heading has");
        let latency = decimal(back()?, 6).map_err(|_| "the latency is no number of milliseconds")?;
        let queued = match self.queue {
            Column::Present => Some(decimal(back()?, 6).map_err(|_| "the queueing time is no number of milliseconds")?),
            Column::Absent => None,
        };
        if self.pattern == Column::Present {
            back()?;
        }
        let (bytes, sector, kind, disk) = (back()?, back()?, back()?, back()?);
        // Of a device without a name the column is blank. No device's name is a number, and every process' is.
        let (disk, pid) = if whole(disk).is_ok() { (&b""[..], disk) } else { (disk, back()?) };
        let time = fields.next().ok_or("fewer columns than the heading has")?;
        let comm = fields.collect::<Vec<_>>().join(&b' ');
        let completed = decimal(time, 9).map_err(|_| "the time is no number of seconds")?;
        let bytes = whole(bytes).map_err(|_| "the bytes are no whole number")?;
        let sector = whole(sector).map_err(|_| "the sector is no whole number")?;
        // It knows only these two; what is nowhere and moves nothing is a flush, which old versions take for a write and
        // newer ones for a read. A few commands look like that as well.
        let op = match kind {
            b"W" if bytes == 0 => Op::Flush,
            b"R" if bytes == 0 && sector == NOWHERE => Op::Flush,
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err("the type is neither R nor W"),
        };
        let (sector, sectors) = match op {
            Op::Flush => (Sector(0), Sectors(0)),
            _ if sector == NOWHERE => {
                self.driver_commands += 1;
                return Ok(None);
            }
            _ => context.sectors(sector, bytes.div_ceil(512))?,
        };
        Ok(Some(Request {
            device: context.device(disk)?,
            latency: Some(Nanos(latency)),
            queued: queued.map(Nanos),
            pid: whole(pid).ok().and_then(|pid| u32::try_from(pid).ok()),
            comm: Comm::new(&String::from_utf8_lossy(&comm)),
            ..Request::new(Nanos(completed - latency), op, sector, sectors)
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::check::{load, recognised_as};
    use crate::request::Op;
    use crate::units::Nanos;

    #[test]
    fn completions_become_starts() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    supervise      1950    xvda1     W 13092560   4096      0.10    0.74
0.001500    my program     1951    xvda1     R 13092432   8192      0.00    1.40
0.009500    jbd2/xvda1-8   1952    xvda1     W 18446744073709551615 0          0.00    1.00
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(recognised_as(text), "biosnoop");
        assert_eq!(rows.len(), 3, "{:?}", about.notices);
        // The second row began last but one: 0.74 ms before zero the first did.
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].queued), (0, Op::Write, Some(Nanos(100_000))));
        assert_eq!((rows[1].at.0, rows[1].comm.as_str(), rows[1].sectors.0), (840_000, "my program", 16));
        assert_eq!((rows[2].op, rows[2].sectors.0), (Op::Flush, 0));
        assert_eq!(about.devices[0].name, "xvda1");
    }

    #[test]
    fn commands_to_the_driver_are_told_from_flushes() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    kworker/1:1    35      sr0       R 18446744073709551615 8         0.70
0.010000    kworker/1:1H   56      sda       R 18446744073709551615 0         0.14
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(recognised_as(text), "biosnoop");
        assert_eq!(rows.iter().map(|row| row.op).collect::<Vec<_>>(), [Op::Flush]);
        assert!(about.counts.bad_lines == 0 && about.notices[0].ends_with("no requests: 1"), "{:?}", about.notices);
    }

    #[test]
    fn the_name_of_the_device_may_be_missing() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)
0.000000    Web Content 1  10      sda       R 1000       4096      1.000
0.010000    Web Content 1  10                R 1000       4096      1.000
0.020000    ?              0                 R 1000       4096      1.000
";
        let (rows, about) = load("biosnoop", text);
        let found: Vec<_> = rows.iter().map(|row| (row.device.0, row.pid, row.comm.as_str())).collect();
        assert_eq!(found, [(0, Some(10), "Web Content 1"), (1, Some(10), "Web Content 1"), (1, Some(0), "?")]);
        assert_eq!(about.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["sda", ""]);
    }

    #[test]
    fn without_a_queueing_time() {
        let text = b"TIME(s)  COMM  PID  DISK  T SECTOR BYTES LAT(ms)\n1.5 a 7 sda W 8 4096 0.50\n";
        let (rows, _) = load("biosnoop", text);
        assert_eq!((rows[0].latency, rows[0].queued, rows[0].pid), (Some(Nanos(500_000)), None, Some(7)));
    }
}
