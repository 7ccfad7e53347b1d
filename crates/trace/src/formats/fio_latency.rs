//! Latency logs of fio with offsets (`write_lat_log` with `log_offset=1`):
//! `time, value, ddir, bs, offset[, prio[, issue_time]]`.
//!
//! The time is the completion time in milliseconds, the value is the latency in nanoseconds, the direction is 0, 1 or 2 for
//! read, write or trim. Newer versions add the issue time in nanoseconds (`log_issue_time=1`), which is 0 in all logs except
//! clat logs. Times count from the start of the job, or from 1970 (`log_unix_epoch=1`), which their magnitude shows; issue
//! times always count from the start of the job. Sources: fio's HOWTO ("Log file formats"); for the issue time its `stat.c`.
//!
//! fio up to 3.17 writes no priority, and later versions write no offset without `log_offset=1`: both have five columns. The
//! fifth is an offset if it exceeds 16 bits, the size of a priority. Before 3.0, latencies are in microseconds, which the
//! file does not show.
//!
//! The file does not show which latency it has either. Logs of bandwidth and IOPS have the same columns.

use crate::formats::format::{Format, Opened, TestedWith};
use crate::formats::support::lines::open_lines;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::units::Nanos;
use crate::rows::{Context, LineFormat, Parsed, Zero, began, first_row, recognise_lines, separated, whole_lines};
use crate::text::human;
use crate::text::number::{whole, whole_or_hex};

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "latency log of fio, with offsets",
    tested_with: TestedWith::RealFiles,
    recognise: |head| recognise_lines(head, LatencyLog::of(head)),
    resembles: |head| recognise_lines(head, WithoutOffsets),
    open: |input, _| open(input),
    ..Format::named("fio-latency")
};

/// 1990 in nanoseconds since 1970. Times from here on count from 1970: no job lasts twenty years, and fio is younger.
const FROM_1970: Nanos = Nanos(631_152_000_000_000_000);

fn open(input: Input) -> crate::Result<Opened> {
    let log = LatencyLog::of(input.head());
    let zero = match first_row(whole_lines(input.head()), LatencyLog::of(input.head())) {
        Some(first) if first.at >= FROM_1970 => Zero::Unix,
        _ => Zero::TraceStart,
    };
    open_lines(input, FORMAT.name, zero, log)
}

#[derive(Default)]
struct LatencyLog {
    rows: u64,
    /// Requests whose issue time is computed from completion time and latency.
    computed_starts: u64,
    /// The zero of issue times, on the scale of completion times; set by the first issue time.
    job_start: Option<i64>,
    last: LastColumn,
}

/// The last required column.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LastColumn {
    /// The fifth column: fio up to 3.17.
    Offset,
    /// The sixth column.
    #[default]
    Priority,
}

impl LatencyLog {
    /// Detects the columns of a log that begins with `head`.
    fn of(head: &[u8]) -> Self {
        let mut has_offset = false;
        for line in whole_lines(head) {
            let mut fields = separated(line, b',').skip(4);
            let (fifth, sixth) = (fields.next(), fields.next());
            if sixth.is_some() {
                return Self::default();
            }
            has_offset |= fifth.and_then(|field| whole(field).ok()).is_some_and(|last| last > u64::from(u16::MAX));
        }
        Self { last: if has_offset { LastColumn::Offset } else { LastColumn::Priority }, ..Self::default() }
    }
}

impl LineFormat for LatencyLog {
    type Item = Request;

    fn parse(&mut self, line: &[u8], context: &mut Context<'_>) -> Parsed<Request> {
        self.row(line, context).into()
    }

    fn conclude(&mut self, about: &mut Metadata) {
        if self.rows > 0 {
            about.warning(
                "a log of fio does not say which latency it has (slat, clat, lat); a bandwidth or IOPS log looks the same, and \
                 the latencies read from it are wrong",
            );
        }
        if self.computed_starts > 0 {
            about.warning(format!(
                "{} requests: the issue time is the completion time, in milliseconds, minus the latency; only the clat log \
                 with log_issue_time=1 has exact issue times",
                human::count(self.computed_starts)
            ));
        }
        if self.last == LastColumn::Offset {
            about.warning(
                "five columns, as in logs of fio up to 3.17: latencies are read as nanoseconds; if the log is from fio before \
                 3.0, they are microseconds, and the real latencies a thousand times longer",
            );
        }
    }
}

impl LatencyLog {
    fn row(&mut self, line: &[u8], context: &mut Context<'_>) -> Result<Request, &'static str> {
        let mut fields = separated(line, b',');
        let mut field = || fields.next().ok_or("too few columns: fio logs offsets only with log_offset=1");
        // Priorities, which are ignored, may be hexadecimal.
        let number = |field| whole_or_hex(field).map_err(|_| "a column is not a whole number");
        let (time_ms, latency) = (number(field()?)?, field()?);
        let mut next = || number(field()?);
        let (direction, length, offset) = (next()?, next()?, next()?);
        // A clock that was set back makes a negative latency, printed as a huge number or with its sign.
        let latency = match latency.strip_prefix(b"-") {
            Some(digits) => number(digits).map(|_| Nanos(-1))?,
            None => Nanos(i64::try_from(number(latency)?).unwrap_or(i64::MAX)),
        };
        if self.last == LastColumn::Priority {
            next()?;
        } else if fields.next().is_some() {
            return Err("more columns than at the beginning of the log");
        }
        let issued = whole(fields.next().unwrap_or(b"0")).map_err(|_| "the issue time is not a whole number")?;
        let op = match direction {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Discard,
            _ => return Err("the direction is not 0, 1 or 2"),
        };
        let completed =
            i64::try_from(time_ms).ok().and_then(|ms| ms.checked_mul(1_000_000)).ok_or("the time is too large")?;
        let at = if issued == 0 {
            self.computed_starts += 1;
            // Completion times are truncated to milliseconds: in the first one, the result may be negative.
            began(Nanos(completed), latency).0.max(0)
        } else {
            let issued = i64::try_from(issued).map_err(|_| "the time is too large")?;
            let from_1970 = || began(Nanos(completed), latency).0.saturating_sub(issued);
            let start = *self.job_start.get_or_insert_with(|| if completed < FROM_1970.0 { 0 } else { from_1970() });
            issued.saturating_add(start)
        };
        let (sector, sectors) = context.bytes(offset, length)?;
        self.rows += 1;
        Ok(Request { latency: Some(latency), ..Request::new(Nanos(at), op, sector, sectors) })
    }
}

/// Recognises a log without offsets. Reading it then reports what is missing, which is more helpful than an unknown format.
struct WithoutOffsets;

impl LineFormat for WithoutOffsets {
    type Item = ();

    fn parse(&mut self, line: &[u8], _: &mut Context<'_>) -> Parsed<()> {
        // fio writes a blank after each comma.
        let columns: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
        let blanks = columns.iter().skip(1).all(|column| column.starts_with(b" "));
        let numbers: Option<Vec<u64>> = columns.iter().map(|column| whole_or_hex(column.trim_ascii()).ok()).collect();
        match numbers.as_deref() {
            // Logs of averages have lengths of 0.
            Some([_, _, 0..=2, length, ..]) if *length > 0 && blanks && matches!(columns.len(), 4 | 5) => {
                Parsed::Row(())
            }
            _ => Parsed::Bad("not a line of a log of fio"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{load, recognised_as};
    use crate::model::request::Op;
    use crate::model::units::Nanos;

    #[test]
    fn requests_begin_a_latency_before_their_completion() {
        // Lines of fio 3.33.
        let log =
            b"0, 120749, 0, 12288, 16187392, 0\n0, 121320, 1, 16384, 198717440, 0\n6, 22323, 0, 45056, 226336768, 0\n";
        let (rows, _) = load("fio-latency", log);
        assert_eq!(recognised_as(log), "fio-latency");
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].latency), (0, Op::Read, Some(Nanos(120_749))));
        assert_eq!((rows[2].at.0, rows[2].sector.0, rows[2].sectors.0), (5_977_677, 442_064, 88));
    }

    #[test]
    fn issue_times_are_exact() {
        let (rows, about) = load("fio-latency", b"6, 22323, 2, 4096, 0, 0x4001, 5977111\n");
        assert_eq!((rows[0].at.0, rows[0].op), (5_977_111, Op::Discard));
        assert!(about.warnings.len() == 1 && about.warnings[0].contains("bandwidth"), "{:?}", about.warnings);
    }

    #[test]
    fn an_issue_time_of_zero_is_ignored() {
        // As in a lat log.
        let (rows, about) = load("fio-latency", b"6, 22323, 0, 4096, 0, 0, 0\n9, 40000, 1, 4096, 0, 0, 0\n");
        assert_eq!(rows.iter().map(|row| row.at.0).collect::<Vec<_>>(), [5_977_677, 8_960_000]);
        assert!(about.warnings.iter().any(|warning| warning.contains("only the clat log")), "{:?}", about.warnings);
    }

    #[test]
    fn issue_times_count_from_the_start_of_the_job() {
        let log = b"\
1700000000123, 1000, 0, 4096, 0, 0, 23000000
1700000000125, 1000, 0, 4096, 4096, 0, 24500000
";
        let (rows, about) = load("fio-latency", log);
        assert_eq!(rows.iter().map(|row| row.at.0).collect::<Vec<_>>(), [0, 1_500_000]);
        assert_eq!(about.epoch_unix_ns, Some(1_700_000_000_122_999_000));
    }

    #[test]
    fn the_first_time_since_1970_becomes_the_epoch() {
        let log = b"1700000000123, 1000, 0, 4096, 0, 0\n1700000000125, 1000, 0, 4096, 4096, 0\n";
        let (rows, about) = load("fio-latency", log);
        assert_eq!(rows.iter().map(|row| row.at.0).collect::<Vec<_>>(), [0, 2_000_000]);
        assert_eq!(about.epoch_unix_ns, Some(1_700_000_000_122_999_000));
    }

    #[test]
    fn for_logs_without_offsets_the_reason_names_the_option() {
        for log in [&b"0, 54339, 0, 12288, 0\n1, 54339, 1, 4096, 16388\n"[..], b"0, 54339, 0, 12288\n"] {
            assert_eq!(recognised_as(log), "fio-latency");
            let (rows, about) = load("fio-latency", log);
            assert!(rows.is_empty() && about.warnings[0].contains("log_offset=1"));
        }
    }

    #[test]
    fn five_columns_with_offsets_have_no_priority() {
        let log = b"0, 120749, 0, 12288, 0\n0, 121320, 1, 16384, 198717440\n6, 22323, 0, 45056, 226336768\n";
        assert_eq!(recognised_as(log), "fio-latency");
        let (rows, about) = load("fio-latency", log);
        assert_eq!((rows[2].at.0, rows[2].sector.0, rows[2].sectors.0), (5_977_677, 442_064, 88));
        assert!(about.warnings.iter().any(|warning| warning.contains("before 3.0")), "{:?}", about.warnings);
        let (rows, about) = load("fio-latency", &[&log.repeat(1000)[..], b"6, 22323, 0, 4096, 8192, 0\n"].concat());
        assert_eq!((rows.len(), about.counts.bad_lines), (3000, 1));
    }

    #[test]
    fn a_single_short_line_does_not_make_a_log_of_five_columns() {
        let line = |i: u64| format!("{i}, 22323, 0, 4096, {}, 0\n", i << 20);
        let log: String = (0..1000).map(line).chain(["7, 22323, 0, 4096, 226336768\n".to_owned()]).collect();
        let (rows, about) = load("fio-latency", log.as_bytes());
        assert_eq!((rows.len(), about.counts.bad_lines, rows[999].at.0), (1000, 1, 998_977_677));
    }
}
