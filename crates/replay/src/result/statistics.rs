//! The closing statistics of a run: counted row by row, in constant memory.

mod devices;
mod drift;
mod inputs;

use iosonar_pacing::fidelity::{Fidelity, UncountedCauses, of_closed_loop};
use iosonar_pacing::histogram::Times;
use iosonar_trace::run_info::{Skipped, Statistics, Verdict};
use iosonar_trace::{IoResult, Nanos, Op, Outcome};

use self::devices::Devices;
use self::drift::Drift;
use crate::advice::remedies::OtherIo;
use crate::result::delays::{Issue, delay_of};

pub use self::inputs::StatisticsInputs;

/// Counts rows.
#[derive(Clone, Debug)]
pub struct Counter {
    rows: u64,
    completed: u64,
    ops: [u64; 5],
    outcomes: [u64; Outcome::ALL.len()],
    pushed_back: u64,
    widened: u64,
    /// The most requests in flight at an issue, that one included.
    max_in_flight: u32,
    bytes: u64,
    /// The earliest scheduled time.
    first: Option<Nanos>,
    last: Nanos,
    /// Delays of requests that were held back. [`Fidelity::own`] has the others: each time is counted once.
    delay_held_back: Times,
    latency_by_op: [Times; Op::ALL.len()],
    latency_from_scheduled: Times,
    drift: Drift,
    devices: Devices,
    /// Collects the verdict.
    pub fidelity: Fidelity,
    /// Reads that returned only zeros; set by the completion log.
    pub zero_reads: u64,
    /// Rows that could not be written to the journal; set by the completion log.
    pub unrecorded: u64,
}

impl Counter {
    /// An empty counter.
    pub fn new() -> Self {
        Self {
            rows: 0,
            completed: 0,
            ops: [0; 5],
            outcomes: [0; Outcome::ALL.len()],
            pushed_back: 0,
            widened: 0,
            max_in_flight: 0,
            bytes: 0,
            first: None,
            last: Nanos::ZERO,
            delay_held_back: Times::new(),
            latency_by_op: std::array::from_fn(|_| Times::new()),
            latency_from_scheduled: Times::new(),
            drift: Drift::default(),
            devices: Devices::default(),
            fidelity: Fidelity::default(),
            zero_reads: 0,
            unrecorded: 0,
        }
    }

    /// Adds a row of a loop.
    pub fn add(&mut self, record: &IoResult, issue: impl Into<Issue>) {
        self.devices.add(record);
        self.rows += 1;
        self.first = Some(self.first.unwrap_or(record.scheduled).min(record.scheduled));
        self.ops[record.op as usize] += 1;
        self.outcomes[record.outcome as usize] += 1;
        self.pushed_back += u64::from(record.pushed_back);
        self.widened += u64::from(record.widened);
        self.max_in_flight = self.max_in_flight.max(record.in_flight);
        self.bytes = self.bytes.saturating_add(record.bytes_moved());
        let Issue { issuer, is_late_by_load } = issue.into();
        if let Some(delay) = delay_of(record, is_late_by_load) {
            self.fidelity.add(&delay, issuer);
        }
        if let Some(delay) = record.delay() {
            if record.is_not_held_back() {
                self.drift.add(record.scheduled, delay);
            } else {
                self.delay_held_back.add(delay);
            }
        }
        if let (Some(completed), Some(latency)) = (record.completed, record.latency()) {
            self.completed += 1;
            self.last = self.last.max(completed);
            self.latency_by_op[record.op as usize].add(latency);
            self.latency_from_scheduled.add(completed - record.scheduled);
        }
    }

    /// Rows, and bytes that they moved.
    pub fn progress(&self) -> (u64, u64) {
        (self.rows, self.bytes)
    }

    /// Requests that the target completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Rows with this outcome.
    pub fn with_outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    fn verdict(&self, inputs: &StatisticsInputs<'_>) -> Option<Verdict> {
        let verdict = self.fidelity.verdict_of(
            inputs.is_complete,
            &UncountedCauses {
                burst: inputs.loop_counters.and_then(|counters| counters.burst),
                other_io: inputs.other_io.map(OtherIo::clause),
            },
        )?;
        Some(match inputs.loop_counters {
            Some(counters) if inputs.waits_for_completions => of_closed_loop(verdict, counters.blind_time, self.last),
            _ => verdict,
        })
    }

    /// The statistics, from these counts and those of other stages.
    pub fn statistics(&self, inputs: &StatisticsInputs<'_>) -> Statistics {
        let &StatisticsInputs { prepare_stats, loop_counters, is_timed, is_complete, .. } = inputs;
        let elapsed_s = (self.last - self.first.unwrap_or_default().max(Nanos::ZERO)).as_secs().max(0.0);
        let per_second = |x: u64| if elapsed_s > 0.0 { x as f64 / elapsed_s } else { 0.0 };
        let [reads, writes, others @ ..] = self.ops;
        let outcome = |o| self.with_outcome(o);
        let (delay, delay_not_held_back) = (sum([&self.delay_held_back, self.fidelity.own()]), self.fidelity.own());
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
            ordered_waits: loop_counters.map(|counters| counters.ordered_waits),
            errors: outcome(Outcome::Error),
            short: outcome(Outcome::Short),
            unfinished: outcome(Outcome::Unfinished),
            verify_errors: outcome(Outcome::Corrupt),
            zero_reads: loop_counters.map(|_| self.zero_reads),
            bad_lines: loop_counters.map(|_| prepare_stats.bad_lines),
            elapsed_s,
            iops: per_second(self.completed),
            bytes_per_s: per_second(self.bytes),
            wrap_factor: (0..prepare_stats.device_extents.len())
                .filter_map(|device| inputs.wrap_factor(device as u16))
                .fold(0.0, f64::max),
            max_in_flight: loop_counters.map_or(self.max_in_flight, |counters| counters.max_in_flight),
            max_pushed_back: loop_counters.map(|counters| counters.max_pushed_back),
            delay_us: delay.quantiles().filter(|_| is_timed),
            delay_not_held_back_us: delay_not_held_back.quantiles().filter(|_| is_timed),
            within_pct: delay.within().filter(|_| is_timed),
            within_not_held_back_pct: delay_not_held_back.within().filter(|_| is_timed),
            drift_us_per_min: self.drift.us_per_min().filter(|_| is_timed),
            latency_us: sum(&self.latency_by_op).quantiles(),
            latency_by_op_us: Op::ALL
                .into_iter()
                .filter_map(|op| Some((op.name().to_owned(), self.latency_by_op[op as usize].quantiles()?)))
                .collect(),
            latency_from_scheduled_us: self.latency_from_scheduled.quantiles().filter(|_| is_timed),
            verdict: self.verdict(inputs).filter(|_| is_timed),
            slow_submissions: loop_counters.map(|counters| counters.slow_submissions),
            completion_log_stalls: loop_counters.map(|counters| counters.completion_log_stalls),
            unrecorded: loop_counters.map(|_| self.unrecorded),
            verify: None,
            usage: None,
            complete: is_complete,
            fake: None,
            devices: self.devices.statistics(inputs, elapsed_s),
        }
    }
}

/// All times of several distributions.
fn sum<'a>(parts: impl IntoIterator<Item = &'a Times>) -> Times {
    parts.into_iter().fold(Times::growing(), |mut all, part| {
        all.merge(part);
        all
    })
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

    #[test]
    fn verdict_and_statistics_agree_on_requests_not_held_back() {
        let mut counter = Counter::new();
        let request = Request::new(Nanos(1000), Op::Read, Sector(0), Sectors(8));
        for (number, &delay_reason) in DelayReason::ALL.iter().enumerate() {
            for pushed_back in [false, true] {
                let issued = Some(Nanos(1000 + 60_000 * number as i64));
                counter.add(&IoResult { issued, delay_reason, pushed_back, ..IoResult::of(&request, 0) }, 0);
            }
        }
        counter.add(&IoResult { outcome: Outcome::Dropped, ..IoResult::of(&request, 0) }, 0);
        let verdict = counter.fidelity.verdict(true).unwrap();
        // Not pushed back, and with the delay reason none, input or completion log; or with backlog.
        let not_held_back = counter.fidelity.own();
        assert_eq!((verdict.own.requests, not_held_back.count(), counter.delay_held_back.count()), (5, 5, 11));
        assert_eq!(verdict.own.within_pct, not_held_back.within());
        assert_eq!(verdict.own.delay_us, not_held_back.quantiles());
    }

    proptest! {
        /// The bucket size of the histogram once gave a 99.9th percentile of 448.79 ms with a maximum of 448.57 ms.
        #[test]
        fn quantiles_are_between_minimum_and_maximum(times in prop::collection::vec(-5_i64..8_000_000_000_000, 1..50)) {
            for mut all in [Times::new(), Times::growing()] {
                times.iter().for_each(|&time| all.add(Nanos(time)));
                let Quantiles { mean, p50, p90, p98, p99, p999, max } = all.quantiles().unwrap();
                let (least, most) = (*times.iter().min().unwrap() as f64 / 1e3, *times.iter().max().unwrap() as f64 / 1e3);
                prop_assert_eq!(max, most);
                let known = [p50, p90, p98, p99, p999].into_iter().flatten();
                let rising: Vec<f64> = [least].into_iter().chain(known).chain([most]).collect();
                prop_assert!(rising.is_sorted(), "{:?}", rising);
                prop_assert!((least - 1e-6..=most + 1e-6).contains(&mean));
            }
        }
    }
}
