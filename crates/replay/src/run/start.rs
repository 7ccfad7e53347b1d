//! When a run starts: after `--grace`, or at the time of `--start-at` or in `--start-file`.

use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use iosonar_trace::{Nanos, small_file, system_text};

use crate::config::issuing::{IssueOptions, UnixTime};
use crate::error::{Error, Result};
use crate::issuer::Stop;
use crate::result::completion_log::Progress;
use crate::schedule::clock::{Monotonic, wall};

/// A start further ahead is more likely a mistake in the time or in a clock.
const LONGEST_WAIT: Nanos = Nanos(86_400_000_000_000);

/// How often a waiting run reads the wall clock, which may be set meanwhile, and checks for a stop.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// The wait ends at least this long before the start: waking up and starting the stages take time.
const SHORTEST_LEAD: Nanos = Nanos(200_000_000);

/// Refuses a start time that has passed or is too far away, and a file that has one already.
pub fn check(options: &IssueOptions) -> Result<()> {
    if let Some(path) = options.start_file.as_ref().filter(|path| path.exists()) {
        let path = path.display();
        return Err(Error::Options(format!(
            "--start-file: {path} exists already; remove it, and write it at the start"
        )));
    }
    options.start_at.map_or(Ok(()), check_time)
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
pub fn clock(options: &IssueOptions, stop: &Stop, progress: &Progress) -> Result<Monotonic> {
    let start_at = match &options.start_file {
        Some(path) => Some(time_in(path, stop, progress)?),
        None => options.start_at,
    };
    let Some(start_at) = start_at else { return Ok(Monotonic::starting_in(options.grace)) };
    let lead = options.grace.max(SHORTEST_LEAD);
    loop {
        let clock = Monotonic::starting_at(start_at.since_epoch);
        progress.set_zero(clock);
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
        let left = start_at.since_epoch - wall();
        refuse_passed(left)?;
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
