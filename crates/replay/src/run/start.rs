//! When a run starts: after `--grace`, or at the time of `--start-at`.

use std::thread;
use std::time::Duration;

use iosonar_trace::Nanos;

use crate::config::issuing::IssueOptions;
use crate::error::{Error, Result};
use crate::issuer::Stop;
use crate::result::completion_log::Progress;
use crate::schedule::clock::{Monotonic, wall};

/// A start further ahead is more likely a mistake in the time or in a clock.
const LONGEST_WAIT: Nanos = Nanos(86_400_000_000_000);

/// How often a waiting run reads the wall clock, which may be set meanwhile, and checks for a stop.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// Refuses a start time that has passed or is too far away.
pub fn check(options: &IssueOptions) -> Result<()> {
    let Some(start_at) = options.start_at else { return Ok(()) };
    let ahead = start_at.since_epoch - wall();
    if ahead > LONGEST_WAIT {
        let days = ahead.0 as f64 / LONGEST_WAIT.0 as f64;
        return Err(Error::Options(format!(
            "--start-at is {days:.1} days ahead, and the limit is one day; check the time and this machine's clock"
        )));
    }
    refuse_passed(ahead)
}

/// Waits for `--start-at`, except for the last part as long as `--grace`, and returns the run's clock.
pub fn clock(options: &IssueOptions, stop: &Stop, progress: &Progress) -> Result<Monotonic> {
    let Some(start_at) = options.start_at else { return Ok(Monotonic::starting_in(options.grace)) };
    loop {
        let clock = Monotonic::starting_at(start_at.since_epoch);
        progress.set_zero(clock);
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
        let left = start_at.since_epoch - wall();
        refuse_passed(left)?;
        if left <= options.grace {
            return Ok(clock);
        }
        thread::sleep(Duration::from_nanos((left - options.grace).0.unsigned_abs()).min(WAIT_STEP));
    }
}

fn refuse_passed(left: Nanos) -> Result<()> {
    if left >= Nanos::ZERO {
        return Ok(());
    }
    let late = format!("{:.3}", -left.as_secs());
    Err(Error::Options(format!(
        "the time of --start-at passed {late} s ago, before all was prepared: nothing was written; choose a later time"
    )))
}
