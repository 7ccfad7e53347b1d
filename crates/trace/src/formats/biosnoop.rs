//! Output of biosnoop, from bcc and its libbpf-tools: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`.
//!
//! The time is the completion time. The latency is from issue to completion, with a resolution of 10 µs, which is then also
//! that of the issue time. The version of libbpf-tools prints all letters of the operation, and with `-t` the time of day
//! when it prints the line (`TIMESTAMP`). The version of bcc prints only `R` and `W`, and for discards and write-zeroes `R`
//! (`W` on old kernels). Source: output of bcc 0.26. The output of bpftrace's biosnoop.bt has neither positions nor lengths,
//! so it cannot be converted to a load.

use crate::formats::format::{Format, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Comm, Flags, Op, Request};
use crate::model::rwbs;
use crate::model::rwbs::NotARequest;
use crate::model::units::{Nanos, SECTOR_BYTES, Sector, Sectors};
use crate::rows::{Context, LineFormat, Parsed, Zero, began, recognise_lines, words};
use crate::text::dates::DayClock;
use crate::text::human;
use crate::text::number::{decimal, span, whole};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "output of biosnoop (bcc, libbpf-tools)",
    tested_with: TestedWith::RealFiles,
    recognise: has_heading,
    open: |input, _| open_lines(input, "biosnoop", Zero::Arbitrary, Biosnoop::default()),
    ..Format::named("biosnoop")
};

/// The most lines before the heading, such as the command in text copied from a terminal.
const BEFORE_HEADING: usize = 5;

/// The heading identifies the format. All examined lines after it may be driver commands.
fn has_heading(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').take(BEFORE_HEADING + 1).any(is_heading)
}

fn is_heading(line: &[u8]) -> bool {
    let mut columns = words(line);
    let required: [&[u8]; 4] = [b"DISK", b"SECTOR", b"BYTES", b"LAT(ms)"];
    let begins = matches!(columns.next(), Some(b"TIME(s)" | b"TIMESTAMP"));
    begins && required.iter().all(|required| columns.any(|column| column == *required))
}

/// Whether lines are rows without the heading that names their columns.
pub(super) fn has_rows_without_queue(lines: &[&[u8]]) -> bool {
    has_rows(lines, Column::Absent)
}

/// The same with the column of the queueing time.
pub(super) fn has_rows_with_queue(lines: &[&[u8]]) -> bool {
    has_rows(lines, Column::Present)
}

fn has_rows(lines: &[&[u8]], queue: Column) -> bool {
    recognise_lines(&[&lines.join(&b'\n')[..], b"\n"].concat(), Biosnoop { queue, ..Biosnoop::default() })
}

/// Parses the lines, with the optional columns that the heading names.
struct Biosnoop {
    pattern: Column,
    queue: Column,
    driver_commands: u64,
    too_long: u64,
    day: DayClock,
    /// Requests with a time of day.
    of_day: u64,
}

/// Longer reads and writes are implausible: SCSI and ATA drivers take up to 32 MiB at once, NVMe drivers 8 MiB.
const MAX_DATA_BYTES: u64 = 64 << 20;

/// The sector of a request without a position.
const NO_SECTOR: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Absent,
    Present,
}

impl Default for Biosnoop {
    fn default() -> Self {
        Self {
            pattern: Column::Absent,
            queue: Column::Absent,
            driver_commands: 0,
            too_long: 0,
            day: DayClock::default(),
            of_day: 0,
        }
    }
}

impl LineFormat for Biosnoop {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        if line.starts_with(b"TIME") && is_heading(line) {
            let has = |name: &[u8]| if words(line).any(|word| word == name) { Column::Present } else { Column::Absent };
            (self.pattern, self.queue) = (has(b"P"), has(b"QUE(ms)"));
            return Parsed::Nothing;
        }
        // The command after root's prompt, in text copied from a terminal.
        if line.starts_with(b"#") {
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
            let count = human::count(self.driver_commands);
            about.warning(format!("driver commands left out: {count}"));
        }
        if self.too_long > 0 {
            about.warning(format!(
                "{} reads or writes are longer than 64 MiB, the limit of drivers: they are probably discards or write-zeroes, \
                 for which biosnoop of bcc has no letters (that of libbpf-tools has)",
                human::count(self.too_long)
            ));
        }
        if self.of_day > 0 {
            about.warning(format!(
                "{} requests: the time of day is the time when biosnoop printed the line, several lines at once; without -t \
                 it prints the completion time",
                human::count(self.of_day)
            ));
        }
    }
}

impl Biosnoop {
    /// A request; `None` for a driver command.
    fn row(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<Option<Request>, &'static str> {
        context.about.request_time = RequestTime::Issued;
        // Parsed from the end, because the name of a process may contain blanks.
        let mut fields = words(line);
        let mut back = || fields.next_back().ok_or("fewer columns than the heading has");
        let latency = span(back()?, 6).map(Nanos).map_err(|_| "the latency is not a number of milliseconds")?;
        let queued = match self.queue {
            Column::Present => {
                let queued = span(back()?, 6).map_err(|_| "the queueing time is not a number of milliseconds")?;
                // biosnoop prints -1 if it missed the queue event.
                Some(Nanos(queued)).filter(|&queued| queued != Nanos(-1_000_000))
            }
            Column::Absent => None,
        };
        if self.pattern == Column::Present {
            back()?;
        }
        let (bytes, sector, kind, disk) = (back()?, back()?, back()?, back()?);
        // The column of an unnamed device is blank: the word is then the pid. Names of devices are never numbers.
        let (disk, pid) = if whole(disk).is_ok() { (&b""[..], disk) } else { (disk, back()?) };
        let time = fields.next().ok_or("fewer columns than the heading has")?;
        let comm = fields.collect::<Vec<_>>().join(&b' ');
        let completed = match time.contains(&b':') {
            true => {
                let completed = self.day.time(time).ok_or("the time is not a time of day")?;
                self.of_day += 1;
                completed
            }
            false => decimal(time, 9).map_err(|_| "the time is not a number of seconds")?,
        };
        let bytes = whole(bytes).map_err(|_| "the number of bytes is not a whole number")?;
        let sector = match sector {
            b"-1" => NO_SECTOR,
            _ => whole(sector).map_err(|_| "the sector is not a whole number")?,
        };
        // A flush has a device. Without a device and without data, it is a driver command.
        let request = if disk.is_empty() && bytes == 0 { None } else { operation(kind, sector, bytes)? };
        let Some((op, flags)) = request else {
            self.driver_commands += 1;
            return Ok(None);
        };
        self.too_long += u64::from(matches!(op, Op::Read | Op::Write) && bytes > MAX_DATA_BYTES);
        let (sector, sectors) = match op {
            Op::Flush => (Sector(0), Sectors(0)),
            _ => context.sectors(sector, bytes.div_ceil(SECTOR_BYTES))?,
        };
        Ok(Some(Request {
            device: context.device(disk)?,
            latency: Some(latency),
            queued,
            pid: whole(pid).ok().and_then(|pid| u32::try_from(pid).ok()),
            comm: Comm::from_bytes(&comm),
            flags,
            ..Request::new(began(Nanos(completed), latency), op, sector, sectors)
        }))
    }
}

/// The operation of the letters; `None` for a driver command or a zone operation.
fn operation(letters: &[u8], sector: u64, bytes: u64) -> Result<Option<(Op, Flags)>, &'static str> {
    // bcc prints only R and W. A request without position and length is a flush, which old versions print as W and newer
    // ones as R. A few driver commands look the same.
    let is_flush = bytes == 0 && (letters == b"W" || letters == b"R" && sector == NO_SECTOR);
    if is_flush {
        return Ok(Some((Op::Flush, Flags::NONE)));
    }
    let parsed = rwbs::parse(letters, bytes / SECTOR_BYTES);
    // Only driver commands transfer parts of sectors.
    let is_data = bytes.is_multiple_of(SECTOR_BYTES) && sector != NO_SECTOR;
    match parsed {
        Err(NotARequest::Unknown) => Err("the type is not an operation of the block layer (R, W, WS, …)"),
        Ok((Op::Flush, flags)) => Ok(Some((Op::Flush, flags))),
        Ok(request) if is_data => Ok(Some(request)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::{Flags, Op};
    use crate::model::units::Nanos;
    use crate::text::dates::DayClock;

    #[test]
    fn requests_begin_a_latency_before_their_completion() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    supervise      1950    xvda1     W 13092560   4096      0.10    0.74
0.001500    my program     1951    xvda1     R 13092432   8192      0.00    1.40
0.009500    jbd2/xvda1-8   1952    xvda1     W 18446744073709551615 0          0.00    1.00
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(recognised_as(text), "biosnoop");
        assert_eq!(rows.len(), 3, "{:?}", about.warnings);
        // The first request was issued 0.74 ms before the first completion, which is time 0 in the file.
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].queued), (0, Op::Write, Some(Nanos(100_000))));
        assert_eq!((rows[1].at.0, rows[1].comm.as_str(), rows[1].sectors.0), (840_000, "my program", 16));
        assert_eq!((rows[2].op, rows[2].sectors.0), (Op::Flush, 0));
        assert_eq!(about.devices[0].name, "xvda1");
    }

    #[test]
    fn losses_that_biosnoop_reports_between_the_rows_are_counted() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
Possibly lost 1024 samples
0.000000    supervise      1950    xvda1     W 13092560   4096      0.74
lost 12 events on CPU #0
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(
            (rows.len(), about.counts.lost_events, about.counts.bad_lines),
            (1, 1036, 0),
            "{:?}",
            about.warnings
        );
    }

    #[test]
    fn a_request_with_an_impossible_latency_is_kept_without_it() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    a              1950    xvda1     W 8          4096   18446744073709.33 0.50
0.001000    a              1950    xvda1     W 16         4096      0.10 18446744073709.33
0.002000    a              1950    xvda1     W 24         4096     -1.00 -0.67
0.003000    a              1950    xvda1     W 32         4096      0.10 word
";
        let (rows, about) = load("biosnoop", text);
        let found: Vec<_> = rows.iter().map(|row| (row.at.0, row.queued, row.latency)).collect();
        let expected =
            [(0, None, Some(Nanos(500_000))), (1_500_000, Some(Nanos(100_000)), None), (2_500_000, None, None)];
        assert_eq!(found, expected, "{:?}", about.warnings);
        assert_eq!((about.counts.impossible_times, about.counts.bad_lines), (3, 1));
    }

    #[test]
    fn libbpf_tools_print_all_letters_and_with_t_the_time_of_day() {
        let text = b"\
# biosnoop -tQ
TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
23:59:59.900 mount          163467  sde     WSM  41944043   524288    0.250   1.000
23:59:59.950 jbd2/sde-8     163400  sde     FF   0          0        -1.000   2.000
00:00:00.050 mount          163467  sde     RA   8          4096      0.001  10.000
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(recognised_as(text), "biosnoop");
        let found: Vec<_> = rows.iter().map(|row| (row.at.0, row.op, row.queued.map(|queued| queued.0))).collect();
        let expected =
            [(0, Op::Write, Some(250_000)), (49_000_000, Op::Flush, None), (141_000_000, Op::Read, Some(1000))];
        assert_eq!(found, expected, "{:?}", about.warnings);
        assert_eq!(rows[0].flags, Flags::SYNC.with(Flags::META));
        assert_eq!(about.counts.bad_lines, 0);
        assert!(about.warnings[0].starts_with("3 requests: the time of day"), "{:?}", about.warnings);
    }

    #[test]
    fn a_clock_set_back_over_midnight_does_not_add_a_day() {
        let mut day = DayClock::default();
        let mut time = |text: &str| day.time(text.as_bytes()).map(|ns| ns / 1_000_000_000);
        for _ in 0..3 {
            assert_eq!(time("23:59:59.9"), Some(86_399));
            assert_eq!(time("00:00:00.1"), Some(86_400));
        }
        assert_eq!(time("12:00:00"), Some(86_400 * 3 / 2));
        for wrong in ["24:00:00", "23:60:00", "23:59:60", "23:59", "-1:00:00"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn driver_commands_in_old_output_are_left_out() {
        let text = b"\
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)
0.000000    ?              0              R 0          8         4.04
0.500000    ?              0              R -1         8         4.04
0.600000    ?              0              R 0          0         0.21
0.700000    kworker/1:1    9126           R 18446744073709551615 0         0.61
3.740882    jbd2/sda1-8    184    sda     W 2694656    12288     6.72
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!((rows.len(), about.devices.len(), about.counts.bad_lines), (1, 1, 0));
        assert!(about.warnings[0].ends_with("driver commands left out: 4"), "{:?}", about.warnings);
    }

    #[test]
    fn driver_commands_are_not_flushes() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    kworker/1:1    35      sr0       R 18446744073709551615 8         0.70
0.010000    kworker/1:1H   56      sda       R 18446744073709551615 0         0.14
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(recognised_as(text), "biosnoop");
        assert_eq!(rows.iter().map(|row| row.op).collect::<Vec<_>>(), [Op::Flush]);
        assert_eq!(about.counts.bad_lines, 0);
        assert!(about.warnings[0].ends_with("driver commands left out: 1"), "{:?}", about.warnings);
    }

    #[test]
    fn reads_longer_than_64_mib_are_reported_as_probable_discards() {
        let text = b"\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)
0.000000    dd             10      sda       R 0          67108864   1.000
0.010000    fstrim         11      sda       R 131072     2147483136 1.000
0.020000    fstrim         11      sda       D 131072     2147483136 1.000
";
        let (rows, about) = load("biosnoop", text);
        assert_eq!(rows.iter().map(|row| row.op).collect::<Vec<_>>(), [Op::Read, Op::Read, Op::Discard]);
        assert!(about.warnings[0].starts_with("1 reads or writes are longer than 64 MiB"), "{:?}", about.warnings);
    }

    #[test]
    fn the_name_of_the_device_may_be_blank() {
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
    fn the_queueing_time_is_optional() {
        let text = b"TIME(s)  COMM  PID  DISK  T SECTOR BYTES LAT(ms)\n1.5 a 7 sda W 8 4096 0.50\n";
        let (rows, _) = load("biosnoop", text);
        assert_eq!((rows[0].latency, rows[0].queued, rows[0].pid), (Some(Nanos(500_000)), None, Some(7)));
    }
}
