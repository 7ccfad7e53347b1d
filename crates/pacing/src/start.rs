//! When a run starts: after `--grace`, or at the time of `--start-at` or in `--start-file`.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use std::{io, thread};

use iosonar_trace::{Nanos, small_file, system_text};
use serde::Serialize;

use crate::clock::{Monotonic, wall};
use crate::progress::Progress;
use crate::{Error, Result, Stop};

/// A start further ahead is more likely a mistake in the time or in a clock.
const LONGEST_WAIT: Nanos = Nanos(86_400_000_000_000);

/// How often a waiting run reads the wall clock, which may be set meanwhile, and checks for a stop.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// The wait ends at least this long before the start: waking up and starting the stages take time.
const SHORTEST_LEAD: Nanos = Nanos(200_000_000);

/// A busy machine may wake a waiting run so late: its first requests then have that delay. After more, the clock was set.
const LATEST_WAKE: Nanos = Nanos(1_000_000_000);

/// The value of `--start-at`: a time of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UnixTime {
    /// Since 1970 UTC.
    pub since_epoch: Nanos,
}

impl FromStr for UnixTime {
    type Err = String;

    /// Parses digits, not a float: that has no nanoseconds at today's times.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = || {
            let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
            seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
        };
        (is_number(seconds) && is_number(fraction) && fraction.len() <= 9)
            .then(parsed)
            .flatten()
            .map(|nanos| Self { since_epoch: Nanos(nanos) })
            .ok_or_else(|| "expected seconds since 1970 UTC with up to 9 decimals, as `date +%s.%N` prints them".into())
    }
}

/// When a run starts.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// `--start-at`
    pub at: Option<UnixTime>,
    /// `--start-file`
    pub file: Option<&'a Path>,
    /// `--grace`
    pub grace: Nanos,
}

/// Refuses a start time that has passed or is too far away, and a file that has one already.
pub fn check(start: Start<'_>) -> Result<()> {
    if let Some(path) = start.file.filter(|path| path.exists()) {
        let path = path.display();
        return Err(Error::Options(format!(
            "--start-file: {path} exists already; remove it, and write it at the start"
        )));
    }
    start.at.map_or(Ok(()), check_time)
}

fn check_time(start_at: UnixTime) -> Result<()> {
    let ahead = start_at.since_epoch - wall();
    if ahead > LONGEST_WAIT {
        let days = ahead.0 as f64 / LONGEST_WAIT.0 as f64;
        return Err(Error::Options(format!(
            "the start time is {days:.1} days ahead, and the limit is one day; check the time and this machine's clock"
        )));
    }
    refuse_passed(ahead)
}

/// Waits for the start time, except for the last part as long as `--grace`, and returns the run's clock.
pub fn clock(start: Start<'_>, stop: &Stop, progress: &Progress) -> Result<Monotonic> {
    let start_at = match start.file {
        Some(path) => Some(time_in(path, stop, progress)?),
        None => start.at,
    };
    let Some(start_at) = start_at else { return Ok(Monotonic::starting_in(start.grace)) };
    let lead = start.grace.max(SHORTEST_LEAD);
    refuse_passed(start_at.since_epoch - wall())?;
    loop {
        let clock = Monotonic::starting_at(start_at.since_epoch);
        progress.set_zero(clock);
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
        let left = start_at.since_epoch - wall();
        if left + LATEST_WAKE < Nanos::ZERO {
            refuse_passed(left)?;
        }
        if left <= lead {
            return Ok(clock);
        }
        thread::sleep(Duration::from_nanos((left - lead).0.unsigned_abs()).min(WAIT_STEP));
    }
}

/// Waits until the file has a line, and parses it as the start time.
fn time_in(path: &Path, stop: &Stop, progress: &Progress) -> Result<UnixTime> {
    progress.set_ready();
    loop {
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
        let text = match small_file::read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(Error::Options(format!(
                    "--start-file: cannot read {}: {}",
                    path.display(),
                    system_text(&error)
                )));
            }
        };
        // Without the end of its line, it is still being written.
        if let Some((line, _)) = text.split_once('\n') {
            let time: UnixTime =
                line.parse().map_err(|error| Error::Options(format!("--start-file: {}: {error}", path.display())))?;
            check_time(time)?;
            return Ok(time);
        }
        thread::sleep(WAIT_STEP);
    }
}

fn refuse_passed(left: Nanos) -> Result<()> {
    if left >= Nanos::ZERO {
        return Ok(());
    }
    let late = format!("{:.3}", -left.as_secs());
    Err(Error::Options(format!(
        "the start time passed {late} s ago, before all was prepared: nothing was written; choose a later time"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_keeps_its_nanoseconds() {
        let parsed = |text: &str| text.parse::<UnixTime>().map(|time| time.since_epoch.0).ok();
        assert_eq!(parsed("1767225600.123456789"), Some(1_767_225_600_123_456_789));
        assert_eq!(parsed("1767225600.25"), Some(1_767_225_600_250_000_000));
        assert_eq!(parsed("1767225600"), Some(1_767_225_600_000_000_000));
        for wrong in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1.0000000001",
            "1e9",
            "now",
            "10m",
            "99999999999999999999",
            "9999999999999",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
