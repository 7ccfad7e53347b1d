//! The closing statistics of a run: counted row by row, in constant memory. `docs/schemas/replay-statistics.json` is
//! their contract.

mod devices;
mod drift;

use std::path::PathBuf;

use hdrhistogram::Histogram;
use iosonar_trace::{DeviceId, Nanos, Outcome, Record};
use serde::{Deserialize, Serialize};

use self::devices::Devices;
use self::drift::Drift;
use crate::feeder::Fed;
use crate::fidelity::{Fidelity, Verdict};
use crate::issuer::Tally;
use crate::mapping::Map;
use crate::placement::Geometry;
use crate::verify::report::Verification;

pub use self::devices::DeviceStatistics;

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
    /// Issue time less intended time, over all issued requests; null with `--asap`, which has no intended times.
    pub issue_error_us: Option<Quantiles>,
    /// The same over the requests that nothing but the replayer kept from their time.
    pub issue_error_free_us: Option<Quantiles>,
    /// Percentage of issued requests whose issue error is at most so many µs.
    pub within_pct: Option<Within>,
    /// The same over the requests that nothing but the replayer kept from their time.
    pub within_free_pct: Option<Within>,
    /// Growth of the issue error, in µs for each minute: of the least one in each part of the run, so that single late
    /// requests don't count. Null for runs of a few seconds.
    pub drift_us_per_min: Option<f64>,
    /// From issue to completion.
    pub latency_us: Option<Quantiles>,
    /// From the intended time to completion.
    pub latency_intended_us: Option<Quantiles>,
    /// Whether the replayer kept the load's times, and why not; null with `--asap`, or if nothing was issued.
    pub verdict: Option<Verdict>,
    /// Submission calls in which the kernel or the device held the loop for more than 50 µs.
    pub slow_submissions: u64,
    /// Times that the loop waited because the record could not be written fast enough.
    pub recorder_stalls: u64,
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

/// Quantiles of a time, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the quantile of its name")]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p98: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Shares within 10, 25, 50 and 100 µs, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the bound of its name")]
pub struct Within {
    #[serde(rename = "10")]
    pub us10: f64,
    #[serde(rename = "25")]
    pub us25: f64,
    #[serde(rename = "50")]
    pub us50: f64,
    #[serde(rename = "100")]
    pub us100: f64,
}

/// What counts as the longest time: an hour.
const LONGEST_NS: i64 = 3_600_000_000_000;

/// A distribution of times. Values beyond an hour count as an hour.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    histogram: Histogram<u64>,
    max: i64,
    sum: i128,
    /// Exactly, not by the histogram: at most 10, 25, 50, 100 µs.
    within: [u64; 4],
}

impl Times {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS as u64, 3).expect("constant, valid bounds");
        Self { histogram, max: 0, sum: 0, within: [0; 4] }
    }

    /// That takes no more memory than what it has seen needs: there may be many of these.
    fn growing() -> Self {
        let histogram = Histogram::new(3).expect("a constant, valid precision");
        Self { histogram, max: 0, sum: 0, within: [0; 4] }
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn add(&mut self, time: Nanos) {
        // Saturating alone would not let a growing histogram grow.
        let value = time.0.clamp(0, LONGEST_NS) as u64;
        self.histogram.record(value).expect("no more than the bound");
        self.max = self.max.max(time.0);
        self.sum += i128::from(time.0);
        for (count, bound_us) in self.within.iter_mut().zip([10, 25, 50, 100]) {
            *count += u64::from(time.0 <= bound_us * 1000);
        }
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let n = self.histogram.len();
        let at = |q: f64| self.histogram.value_at_quantile(q) as f64 / 1e3;
        (n > 0).then(|| Quantiles {
            mean: self.sum as f64 / n as f64 / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p98: at(0.98),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max as f64 / 1e3,
        })
    }

    pub(crate) fn within(&self) -> Option<Within> {
        let n = self.histogram.len();
        let share = |i: usize| 100.0 * self.within[i] as f64 / n as f64;
        (n > 0).then(|| Within { us10: share(0), us25: share(1), us50: share(2), us100: share(3) })
    }
}

/// What the statistics need beside the rows.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    /// Of the load.
    pub fed: &'a Fed,
    /// Of the loop.
    pub tally: &'a Tally,
    /// Where the load's devices went.
    pub map: &'a Map,
    /// The targets, in the order of their indices.
    pub targets: &'a [(PathBuf, Geometry)],
    /// Whether requests had times to keep.
    pub timed: bool,
    /// Whether the run came to its end.
    pub complete: bool,
}

impl Closing<'_> {
    fn target_of(&self, device: u16) -> Option<&(PathBuf, Geometry)> {
        self.targets.get(usize::from(self.map.target_of(DeviceId(device))?))
    }

    /// How many times a device of the load is as large as its target.
    fn wrap_factor(&self, device: u16) -> Option<f64> {
        let (_, geometry) = self.target_of(device)?;
        let reach = self.fed.reaches.get(usize::from(device)).copied().unwrap_or(0);
        Some(reach as f64 / geometry.sectors as f64)
    }
}

/// Counts rows.
#[derive(Clone, Debug)]
pub struct Counter {
    rows: u64,
    completed: u64,
    ops: [u64; 5],
    outcomes: [u64; Outcome::ALL.len()],
    pushed_back: u64,
    widened: u64,
    bytes: u64,
    last: Nanos,
    error: Times,
    error_free: Times,
    latency: Times,
    latency_intended: Times,
    drift: Drift,
    devices: Devices,
    /// What the verdict is made of.
    pub fidelity: Fidelity,
    /// Reads that came back all zero, which the recorder sees.
    pub zero_reads: u64,
    /// Rows that could not be written.
    pub unrecorded: u64,
}

impl Counter {
    /// That has seen nothing.
    pub fn new() -> Self {
        Self {
            rows: 0,
            completed: 0,
            ops: [0; 5],
            outcomes: [0; Outcome::ALL.len()],
            pushed_back: 0,
            widened: 0,
            bytes: 0,
            last: Nanos::ZERO,
            error: Times::new(),
            error_free: Times::new(),
            latency: Times::new(),
            latency_intended: Times::new(),
            drift: Drift::default(),
            devices: Devices::default(),
            fidelity: Fidelity::default(),
            zero_reads: 0,
            unrecorded: 0,
        }
    }

    /// Takes a row into account.
    pub fn add(&mut self, record: &Record) {
        self.devices.add(record);
        self.rows += 1;
        self.ops[record.op as usize] += 1;
        self.outcomes[record.outcome as usize] += 1;
        self.pushed_back += u64::from(record.pushed_back);
        self.widened += u64::from(record.widened);
        self.bytes += record.bytes_done;
        self.fidelity.add(record);
        if let Some(delay) = record.delay() {
            self.error.add(delay);
            if record.was_free() {
                self.error_free.add(delay);
                self.drift.add(record.intended, delay);
            }
        }
        if let (Some(completed), Some(latency)) = (record.completed, record.latency()) {
            self.completed += 1;
            self.last = self.last.max(completed);
            self.latency.add(latency);
            self.latency_intended.add(completed - record.intended);
        }
    }

    /// How many requests are through, and how many bytes they moved.
    pub fn progress(&self) -> (u64, u64) {
        (self.rows, self.bytes)
    }

    /// How many requests the target answered.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Rows of that outcome.
    pub fn with_outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// The statistics, with what the other rooms counted.
    pub fn close(&self, with: &Closing<'_>) -> Statistics {
        let &Closing { fed, tally, timed, complete, .. } = with;
        let elapsed_s = self.last.as_secs();
        let per_second = |x: u64| if elapsed_s > 0.0 { x as f64 / elapsed_s } else { 0.0 };
        let [reads, writes, others @ ..] = self.ops;
        let outcome = |o| self.with_outcome(o);
        Statistics {
            requests: self.rows,
            completed: self.completed,
            reads,
            writes,
            others: others.iter().sum(),
            pushed_back: self.pushed_back,
            dropped: outcome(Outcome::Dropped),
            skipped: Skipped {
                beyond_end: outcome(Outcome::BeyondEnd),
                unaligned: outcome(Outcome::Unaligned),
                too_large: outcome(Outcome::TooLarge),
                unsupported: outcome(Outcome::Unsupported),
                excluded: outcome(Outcome::Excluded),
            },
            widened: self.widened,
            ordered_waits: tally.ordered_waits,
            errors: outcome(Outcome::Error),
            short: outcome(Outcome::Short),
            unfinished: outcome(Outcome::Unfinished),
            verify_errors: outcome(Outcome::Corrupt),
            zero_reads: self.zero_reads,
            bad_lines: fed.bad_lines,
            elapsed_s,
            iops: per_second(self.completed),
            bytes_per_s: per_second(self.bytes),
            wrap_factor: (0..fed.reaches.len()).filter_map(|d| with.wrap_factor(d as u16)).fold(0.0, f64::max),
            max_in_flight: tally.max_in_flight,
            max_pushed_back: tally.max_pushed_back,
            issue_error_us: self.error.quantiles().filter(|_| timed),
            issue_error_free_us: self.error_free.quantiles().filter(|_| timed),
            within_pct: self.error.within().filter(|_| timed),
            within_free_pct: self.error_free.within().filter(|_| timed),
            drift_us_per_min: self.drift.us_per_min().filter(|_| timed),
            latency_us: self.latency.quantiles(),
            latency_intended_us: self.latency_intended.quantiles().filter(|_| timed),
            verdict: self.fidelity.verdict(complete).filter(|_| timed),
            slow_submissions: tally.slow_submissions,
            recorder_stalls: tally.recorder_stalls,
            unrecorded: self.unrecorded,
            verify: None,
            complete,
            fake: None,
            devices: self.devices.close(with, elapsed_s),
        }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}
