//! The closing statistics of a run. `docs/schemas/replay-statistics.json` is their contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counters::MachineUsage;
use super::times::{Quantiles, Within};
use super::value::{OpenMap, OptionValue};
use super::verdict::{Verdict, why};
use super::verification::Verification;

/// The object that `iosonar replay --json` prints. Times in µs come from histograms with a resolution of 0.1 %.
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
    /// Requests that waited for a request they overlap.
    pub pushed_back: u64,
    /// Requests left out because they overlapped one in flight.
    pub dropped: u64,
    /// Requests left out for another reason, by reason.
    pub skipped: Skipped,
    /// Requests widened to the target's logical blocks.
    pub widened: u64,
    /// How often all requests waited for an overlap; null in a recovered run, like all that is counted at the end of a run.
    pub ordered_waits: Option<u64>,
    /// Requests that ended with an error number.
    pub errors: u64,
    /// Requests that moved fewer bytes than their length, without an error.
    pub short: u64,
    /// Requests that never completed.
    pub unfinished: u64,
    /// Reads whose data differed from the data written.
    pub verify_errors: u64,
    /// Reads that returned only zeros, without those of areas that the run discarded or zeroed itself: a sign of areas that
    /// were never written. Null in a recovered run.
    pub zero_reads: Option<u64>,
    /// Lines of the load that could not be parsed; null in a recovered run.
    pub bad_lines: Option<u64>,
    /// From the first scheduled time to the last completion, in seconds.
    pub elapsed_s: f64,
    /// Completed requests per second of `elapsed_s`.
    pub iops: f64,
    /// Bytes moved per second of `elapsed_s`.
    pub bytes_per_s: f64,
    /// Highest end sector of the load divided by the target's sectors: 1 is ideal, above 1 the load wrapped around. With
    /// several devices, the largest factor.
    pub wrap_factor: f64,
    /// The most requests in flight.
    pub max_in_flight: u32,
    /// The most requests that waited for an overlap at once; null in a recovered run.
    pub max_pushed_back: Option<u32>,
    /// Issue − scheduled time, over all issued requests; null with `--asap`, which has no scheduled times.
    pub delay_us: Option<Quantiles>,
    /// The same over the requests that were not held back.
    pub delay_not_held_back_us: Option<Quantiles>,
    /// Percentage of issued requests whose delay is at most 10, 25, 50 and 100 µs.
    pub within_pct: Option<Within>,
    /// The same over the requests that were not held back.
    pub within_not_held_back_pct: Option<Within>,
    /// Growth of the delay, in µs per minute. It is that of the smallest delay in each part of the run, so that single
    /// late requests do not count. Null for runs of a few seconds.
    pub drift_us_per_min: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
    /// From issue to completion, by operation.
    #[serde(default)]
    pub latency_by_op_us: BTreeMap<String, Quantiles>,
    /// From the scheduled time to completion.
    pub latency_from_scheduled_us: Option<Quantiles>,
    /// Whether the replay was faithful, and why not; null with `--asap`, or if nothing was issued.
    pub verdict: Option<Verdict>,
    /// Submission calls in which the kernel or the device blocked the loop for more than 50 µs; null in a recovered
    /// run.
    pub slow_submissions: Option<u64>,
    /// How often the loop waited because the completion log could not write fast enough; null in a recovered run.
    pub completion_log_stalls: Option<u64>,
    /// Rows lost because the disk of the result was full; null in a recovered run.
    pub unrecorded: Option<u64>,
    /// The extent and result of verification; null without `--verify`, and in a recovered run.
    pub verify: Option<Verification>,
    /// What all programs of the machine did meanwhile; missing in virtual time, in a recovered run and in those of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<MachineUsage>>,
    /// Whether the run reached the end of its window and all rows were written.
    pub complete: bool,
    /// Null for a real run; else the reason why the result says nothing about a device.
    pub fake: Option<String>,
    /// The same for each device of the load.
    pub devices: Vec<DeviceStatistics>,
}

/// Requests that were not issued, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// They crossed the end of the target.
    pub beyond_end: u64,
    /// They were not aligned to the target's logical blocks.
    pub unaligned: u64,
    /// They exceeded the memory for buffers.
    pub too_large: u64,
    /// The target does not support the operation.
    pub unsupported: u64,
    /// Writes were forbidden, or their device was mapped to no target.
    pub excluded: u64,
}

/// The statistics of one device of the load. Rates are over the time of the whole run, so that they add up to those of
/// the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatistics {
    /// The index of the device in the load.
    pub device: u16,
    /// Its name in the load; empty if it has none.
    pub source: String,
    /// The target that it was mapped to; null if there is none.
    pub target: Option<String>,
    /// Its requests that have a row.
    pub requests: u64,
    /// Of these, completed by the target, with or without error.
    pub completed: u64,
    /// Reads, skipped ones included.
    pub reads: u64,
    /// Writes, skipped ones included.
    pub writes: u64,
    /// Flushes, discards and write-zeroes, skipped ones included.
    pub others: u64,
    /// Requests that were not issued, for any reason.
    pub left_out: u64,
    /// Requests that waited for a request they overlap.
    pub pushed_back: u64,
    /// Requests that ended with an error number.
    pub errors: u64,
    /// Requests that moved fewer bytes than their length, without an error.
    pub short: u64,
    /// Requests that never completed.
    pub unfinished: u64,
    /// Completed requests per second of the run.
    pub iops: f64,
    /// Bytes moved per second of the run.
    pub bytes_per_s: f64,
    /// Its highest end sector in the load divided by its target's sectors; null without a target.
    pub wrap_factor: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
}

/// The closing statistics in a footer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunStatistics {
    /// All statistics of this version.
    Whole(Box<Statistics>),
    /// Statistics of another program, of classic text, or of another version.
    Part(OpenMap),
}

impl Statistics {
    /// Why the result is fake, if it is: then its verdict is none.
    pub fn set_fake(&mut self, fake: Option<String>) {
        if fake.is_some() {
            self.verdict = self.verdict.take().map(Verdict::of_fake);
        }
        self.fake = fake;
    }
}

impl RunStatistics {
    /// Requests that have a row, or in partial statistics, requests that the other program counted.
    pub fn requests(&self) -> Option<u64> {
        self.count("requests", |all| Some(all.requests))
    }

    /// Requests left out because they overlapped one in flight.
    pub fn dropped(&self) -> Option<u64> {
        self.count("dropped", |all| Some(all.dropped))
    }

    /// Requests that waited for a request they overlap.
    pub fn pushed_back(&self) -> Option<u64> {
        self.count("pushed_back", |all| Some(all.pushed_back))
    }

    /// How often all requests waited for an overlap.
    pub fn ordered_waits(&self) -> Option<u64> {
        self.count("ordered_waits", |all| all.ordered_waits)
    }

    /// Reads whose data differed from the data written.
    pub fn verify_errors(&self) -> Option<u64> {
        self.count("verify_errors", |all| Some(all.verify_errors))
    }

    fn count(&self, name: &str, of: impl Fn(&Statistics) -> Option<u64>) -> Option<u64> {
        match self {
            Self::Whole(all) => of(all),
            Self::Part(some) => some.get(name).integer(),
        }
    }

    /// The verdict; `None` in partial statistics.
    pub fn verdict(&self) -> Option<&Verdict> {
        if let Self::Whole(all) = self { all.verdict.as_ref() } else { None }
    }

    /// The sentence of the verdict, if the run was not faithful, or fake and did not keep its times.
    pub fn unfaithful(&self) -> Option<&str> {
        match self {
            Self::Whole(all) => all.verdict.as_ref()?.unfaithful(),
            Self::Part(some) => {
                let OptionValue::Map(verdict) = some.get("verdict") else { return None };
                let is_false = |key| *verdict.get(key) == OptionValue::Flag(false);
                (is_false("faithful") || is_false("kept_times"))
                    .then(|| why(verdict.get("sentence").text().unwrap_or_default()))
            }
        }
    }
}

impl From<Statistics> for RunStatistics {
    fn from(all: Statistics) -> Self {
        Self::Whole(Box::new(all))
    }
}
