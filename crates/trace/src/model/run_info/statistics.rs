//! The closing statistics of a run. `docs/schemas/replay-statistics.json` is their contract.

use serde::{Deserialize, Serialize};

use super::times::{Quantiles, Within};
use super::value::{OpenMap, OptionValue};
use super::verdict::Verdict;
use super::verification::Verification;

/// The object that `iosonar replay --json` prints. Times in µs are rounded to 0.1 % by their histograms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Requests of the window that have a row.
    pub requests: u64,
    /// Of these, completed by the target, with or without error.
    pub completed: u64,
    /// Reads, skipped ones included.
    pub reads: u64,
    /// Writes, skipped ones included.
    pub writes: u64,
    /// Flushes, discards and write-zeroes, skipped ones included.
    pub others: u64,
    /// Waited for a request that they overlap.
    pub pushed_back: u64,
    /// Left out because they overlap one in flight.
    pub dropped: u64,
    /// Left out for another reason, by reason.
    pub skipped: Skipped,
    /// Widened to the target's logical blocks.
    pub widened: u64,
    /// Times that everything waited for an overlap.
    pub ordered_waits: u64,
    /// Ended with an error number.
    pub errors: u64,
    /// Moved less than asked, without an error.
    pub short: u64,
    /// Never came back.
    pub unfinished: u64,
    /// Reads whose data was not what had been written.
    pub verify_errors: u64,
    /// Reads that came back all zero: a sign of areas that were never written.
    pub zero_reads: u64,
    /// Lines of the load that could not be understood.
    pub bad_lines: u64,
    /// From virtual zero to the last completion, in seconds.
    pub elapsed_s: f64,
    /// Completed requests for each second of that.
    pub iops: f64,
    /// Bytes moved in each second of that.
    pub bytes_per_s: f64,
    /// Highest end sector of the load over the target's sectors: 1 is ideal, above 1 the load wrapped around. Of several
    /// devices the greatest.
    pub wrap_factor: f64,
    /// The most requests in flight.
    pub max_in_flight: u32,
    /// The most requests that waited for an overlap.
    pub max_pushed_back: u32,
    /// Issue time less scheduled time, over all issued requests; null with `--asap`, which has no scheduled times.
    pub delay_us: Option<Quantiles>,
    /// The same over the requests that were not held back.
    pub delay_not_held_back_us: Option<Quantiles>,
    /// Percentage of issued requests whose delay is at most so many µs.
    pub within_pct: Option<Within>,
    /// The same over the requests that were not held back.
    pub within_not_held_back_pct: Option<Within>,
    /// Growth of the delay, in µs for each minute: of the least one in each part of the run, so that single late
    /// requests don't count. Null for runs of a few seconds.
    pub drift_us_per_min: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
    /// From the scheduled time to completion.
    pub latency_from_scheduled_us: Option<Quantiles>,
    /// Whether the replayer kept the load's times, and why not; null with `--asap`, or if nothing was issued.
    pub verdict: Option<Verdict>,
    /// Submission calls in which the kernel or the device held the loop for more than 50 µs.
    pub slow_submissions: u64,
    /// Times that the loop waited because the record could not be written fast enough.
    pub completion_log_stalls: u64,
    /// Rows that could not be recorded because the disk of the result was full.
    pub unrecorded: u64,
    /// How much was checked of what was written and read; null if that was not asked for.
    pub verify: Option<Verification>,
    /// Whether the run came to the end of its window and everything was recorded.
    pub complete: bool,
    /// Null for a real run; else why nothing of this says anything about a device.
    pub fake: Option<String>,
    /// Each device of the load by itself.
    pub devices: Vec<DeviceStatistics>,
}

/// Requests that were never given to the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Crossed the end of the target.
    pub beyond_end: u64,
    /// Were not aligned.
    pub unaligned: u64,
    /// Exceeded the memory for buffers.
    pub too_large: u64,
    /// Asked for what the target can't do.
    pub unsupported: u64,
    /// Were forbidden, or mapped to no target.
    pub excluded: u64,
}

/// One device of the load. Rates are over the time of the whole run, so that those of all devices add up to its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatistics {
    /// Its number in the load.
    pub device: u16,
    /// Its name in the load; empty where that has none.
    pub source: String,
    /// The target that it was mapped to; null if to none.
    pub target: Option<String>,
    /// Its requests that have a row.
    pub requests: u64,
    /// Of these, completed by the target, with or without error.
    pub completed: u64,
    /// Reads, those that were left out included.
    pub reads: u64,
    /// Writes, those that were left out included.
    pub writes: u64,
    /// Flushes, discards and write-zeroes, those that were left out included.
    pub others: u64,
    /// Never given to the target, for whatever reason.
    pub left_out: u64,
    /// Waited for a request that they overlap.
    pub pushed_back: u64,
    /// Ended with an error number.
    pub errors: u64,
    /// Moved less than asked, without an error.
    pub short: u64,
    /// Never came back.
    pub unfinished: u64,
    /// Completed requests for each second of the run.
    pub iops: f64,
    /// Bytes moved in each second of the run.
    pub bytes_per_s: f64,
    /// Its highest end sector in the load over its target's sectors; null without a target.
    pub wrap_factor: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
}

/// The statistics that stand in a footer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunStatistics {
    /// All of them.
    Whole(Box<Statistics>),
    /// Those of another program, of the classic text, or of a version that had others.
    Part(OpenMap),
}

impl RunStatistics {
    /// Requests that have a row, or that the program of a partial result counted.
    pub fn requests(&self) -> Option<u64> {
        self.count("requests", |all| all.requests)
    }

    /// Requests left out because they overlap one in flight.
    pub fn dropped(&self) -> Option<u64> {
        self.count("dropped", |all| all.dropped)
    }

    /// Requests that waited for one that they overlap.
    pub fn pushed_back(&self) -> Option<u64> {
        self.count("pushed_back", |all| all.pushed_back)
    }

    /// Times that everything waited for an overlap.
    pub fn ordered_waits(&self) -> Option<u64> {
        self.count("ordered_waits", |all| all.ordered_waits)
    }

    /// Reads whose data was not what had been written.
    pub fn verify_errors(&self) -> Option<u64> {
        self.count("verify_errors", |all| all.verify_errors)
    }

    fn count(&self, name: &str, of: impl Fn(&Statistics) -> u64) -> Option<u64> {
        match self {
            Self::Whole(all) => Some(of(all)),
            Self::Part(some) => some.get(name).integer(),
        }
    }

    /// The whole verdict.
    pub fn verdict(&self) -> Option<&Verdict> {
        if let Self::Whole(all) = self { all.verdict.as_ref() } else { None }
    }

    /// What the verdict says, if it is that the run was not faithful.
    pub fn unfaithful(&self) -> Option<&str> {
        match self {
            Self::Whole(all) => all.verdict.as_ref().filter(|verdict| !verdict.faithful).map(|v| v.sentence.as_str()),
            Self::Part(some) => {
                let OptionValue::Map(verdict) = some.get("verdict") else { return None };
                let is_unfaithful = *verdict.get("faithful") == OptionValue::Flag(false);
                is_unfaithful.then(|| verdict.get("sentence").text().unwrap_or_default())
            }
        }
    }
}

impl From<Statistics> for RunStatistics {
    fn from(all: Statistics) -> Self {
        Self::Whole(Box::new(all))
    }
}
