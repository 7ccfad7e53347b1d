//! The closing statistics of a run: counted row by row, in constant memory.

mod closing;
mod devices;
mod drift;

use iosonar_trace::run_info::{Skipped, Statistics};
use iosonar_trace::{IoResult, Nanos, Outcome};

use self::devices::Devices;
use self::drift::Drift;
use crate::result::fidelity::Fidelity;
use crate::result::histogram::Times;

pub use self::closing::Closing;

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
    delay: Times,
    delay_not_held_back: Times,
    latency: Times,
    latency_from_scheduled: Times,
    drift: Drift,
    devices: Devices,
    /// What the verdict is made of.
    pub fidelity: Fidelity,
    /// Reads that came back all zero, which the completion log sees.
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
            delay: Times::new(),
            delay_not_held_back: Times::new(),
            latency: Times::new(),
            latency_from_scheduled: Times::new(),
            drift: Drift::default(),
            devices: Devices::default(),
            fidelity: Fidelity::default(),
            zero_reads: 0,
            unrecorded: 0,
        }
    }

    /// Takes a row into account.
    pub fn add(&mut self, record: &IoResult) {
        self.devices.add(record);
        self.rows += 1;
        self.ops[record.op as usize] += 1;
        self.outcomes[record.outcome as usize] += 1;
        self.pushed_back += u64::from(record.pushed_back);
        self.widened += u64::from(record.widened);
        self.bytes += record.bytes_done;
        self.fidelity.add(record);
        if let Some(delay) = record.delay() {
            self.delay.add(delay);
            if record.is_not_held_back() {
                self.delay_not_held_back.add(delay);
                self.drift.add(record.scheduled, delay);
            }
        }
        if let (Some(completed), Some(latency)) = (record.completed, record.latency()) {
            self.completed += 1;
            self.last = self.last.max(completed);
            self.latency.add(latency);
            self.latency_from_scheduled.add(completed - record.scheduled);
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
        let &Closing { fed, counters, timed, complete, .. } = with;
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
            ordered_waits: counters.ordered_waits,
            errors: outcome(Outcome::Error),
            short: outcome(Outcome::Short),
            unfinished: outcome(Outcome::Unfinished),
            verify_errors: outcome(Outcome::Corrupt),
            zero_reads: self.zero_reads,
            bad_lines: fed.bad_lines,
            elapsed_s,
            iops: per_second(self.completed),
            bytes_per_s: per_second(self.bytes),
            wrap_factor: (0..fed.device_extents.len()).filter_map(|d| with.wrap_factor(d as u16)).fold(0.0, f64::max),
            max_in_flight: counters.max_in_flight,
            max_pushed_back: counters.max_pushed_back,
            delay_us: self.delay.quantiles().filter(|_| timed),
            delay_not_held_back_us: self.delay_not_held_back.quantiles().filter(|_| timed),
            within_pct: self.delay.within().filter(|_| timed),
            within_not_held_back_pct: self.delay_not_held_back.within().filter(|_| timed),
            drift_us_per_min: self.drift.us_per_min().filter(|_| timed),
            latency_us: self.latency.quantiles(),
            latency_from_scheduled_us: self.latency_from_scheduled.quantiles().filter(|_| timed),
            verdict: self.fidelity.verdict(complete).filter(|_| timed),
            slow_submissions: counters.slow_submissions,
            completion_log_stalls: counters.completion_log_stalls,
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

#[cfg(test)]
mod tests {
    use iosonar_trace::run_info::Quantiles;
    use iosonar_trace::{DelayReason, Op, Request, Sector, Sectors};
    use proptest::prelude::*;

    use super::*;

    /// The terminal's lines, the verdict and `docs/schema.md` count the same requests.
    #[test]
    fn not_held_back_is_the_same_everywhere() {
        let mut counter = Counter::new();
        let request = Request::new(Nanos(1000), Op::Read, Sector(0), Sectors(8));
        for (number, &delay_reason) in DelayReason::ALL.iter().enumerate() {
            for pushed_back in [false, true] {
                let issued = Some(Nanos(1000 + 60_000 * number as i64));
                counter.add(&IoResult { issued, delay_reason, pushed_back, ..IoResult::of(&request, 0) });
            }
        }
        counter.add(&IoResult { outcome: Outcome::Dropped, ..IoResult::of(&request, 0) });
        let verdict = counter.fidelity.verdict(true).unwrap();
        // Delayed by nothing, the input or the completion log, and not pushed back.
        assert_eq!((verdict.own.requests, counter.delay_not_held_back.count()), (3, 3));
        assert_eq!(verdict.own.within_pct, counter.delay_not_held_back.within());
        assert_eq!(verdict.own.delay_us, counter.delay_not_held_back.quantiles());
    }

    proptest! {
        /// Buckets of the histogram must not show: a 99.9th percentile of 448.79 ms stood beside a maximum of 448.57 ms.
        #[test]
        fn no_quantile_is_beyond_the_extremes(times in prop::collection::vec(-5_i64..8_000_000_000_000, 1..50)) {
            for mut all in [Times::new(), Times::growing()] {
                times.iter().for_each(|&time| all.add(Nanos(time)));
                let Quantiles { mean, p50, p90, p98, p99, p999, max } = all.quantiles().unwrap();
                let (least, most) = (*times.iter().min().unwrap() as f64 / 1e3, *times.iter().max().unwrap() as f64 / 1e3);
                prop_assert_eq!(max, most);
                let rising = [least, p50, p90, p98, p99, p999, most];
                prop_assert!(rising.is_sorted(), "{:?}", rising);
                prop_assert!((least - 1e-6..=most + 1e-6).contains(&mean));
            }
        }
    }
}
