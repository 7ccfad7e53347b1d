//! What a replay found, from its calls: how faithful it was, and how its results differ from the original's.

use std::collections::{BTreeMap, HashMap};

use iosonar_pacing::fidelity::{Delay, FAITHFUL_PCT, Fidelity, Words};
use iosonar_pacing::histogram::{Ratios, Times};
use iosonar_pacing::options::{Changes, PacingOptions};
use iosonar_pacing::stalls::{Activity, Stall};
use iosonar_trace::run_info::{Cause, MachineUsage, OpenMap, OptionValue, Quantiles, Verdict, Within};
use iosonar_trace::{Nanos, human};
use serde::Serialize;

use super::outcome::is_other_listing;
use crate::state::warning_of_unreplayable;
use crate::{CallKind, CallOutcome, CallResult, DelayReason, Family, verify};

/// The most kinds of mismatches in the statistics; the table has all.
const KINDS: usize = 100;

/// The most instances of a replay.
const MAX_INSTANCES: u32 = 10_000;

/// The closing statistics of a replay of calls.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Rows of the result.
    pub calls: u64,
    /// Calls that were issued.
    pub issued: u64,
    /// Calls that were not, by outcome.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Changes of files that are not replayed, by what they do, of all instances.
    pub changes_not_replayed: BTreeMap<String, u64>,
    /// Issued calls whose result differs from the original's.
    pub mismatches: u64,
    /// The same by kind, the most frequent first.
    pub mismatch_kinds: Vec<Mismatch>,
    /// Listings whose bytes differ, as on another file system. They are no mismatches.
    pub listings_differ: u64,
    /// Bytes that calls read and wrote.
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
    /// From virtual zero to the last completion.
    pub elapsed_s: f64,
    /// From the start of the first call to the last end of the same calls in the trace, multiplied by the factor.
    pub original_s: f64,
    /// Issued calls per second.
    pub calls_per_s: f64,
    /// The most calls that were executed at the same time; null in a recovered run.
    pub max_in_flight: Option<u32>,
    /// How long calls took.
    pub latency_us: Option<Quantiles>,
    /// How long the same calls took in the trace.
    pub original_latency_us: Option<Quantiles>,
    /// Issue − scheduled time of calls that nothing held; null without times to keep.
    pub delay_not_held_back_us: Option<Quantiles>,
    /// Percentage of them within 10, 25, 50 and 100 µs.
    pub within_not_held_back_pct: Option<Within>,
    /// Delay divided by the gap in the trace between the end of the latest predecessor and the start, in percent.
    pub compute_time_error_pct: Option<Quantiles>,
    /// Percentage of calls whose compute time error is below 10 %.
    pub compute_time_error_below_10_pct: Option<f64>,
    /// Calls that were held back, by what held them.
    pub delay_reasons: BTreeMap<&'static str, u64>,
    /// From the completion of the last predecessor to the issue of calls that it held.
    pub release_to_issue_us: Option<Quantiles>,
    /// How long calls were ready and a thread was free, but the replayer issued none, in pieces of more than 50 µs; of several
    /// instances, the most. Null in a recovered run.
    pub lost_s: Option<f64>,
    /// Each instance, if there are several.
    pub instances: Vec<Instance>,
    /// Whether the replayer kept the times; null without times to keep.
    pub verdict: Option<Verdict>,
    /// Whether the order was kept; null if this was not checked.
    pub order: Option<verify::Report>,
    /// The number of calls for which so many calls waited directly; null if the order was not checked.
    pub outdegree: Option<BTreeMap<u32, u64>>,
    /// What all programs of the machine did meanwhile; missing in a recovered run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<MachineUsage>>,
    /// Whether all calls were replayed.
    pub complete: bool,
    /// A sentence if the result says nothing about a file system.
    pub fake: Option<String>,
}

/// What the engines of all instances found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Engine {
    /// The most calls that were executed at the same time, known at the end.
    pub max_in_flight: Option<u32>,
    /// As [`Statistics::lost_s`].
    pub idle: Option<Nanos>,
}

impl Engine {
    /// Whether the replayer lost more than the share of the time that a faithful replay may be late.
    fn is_interrupted(self, elapsed: Nanos) -> bool {
        self.idle.unwrap_or_default().0 as f64 > (1.0 - FAITHFUL_PCT / 100.0) * elapsed.0 as f64
    }
}

/// A kind of mismatches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The name of the system call.
    pub call: &'static str,
    /// How it differs.
    pub outcome: &'static str,
    /// Why the original failed, else 0.
    pub expected_errno: i32,
    /// Why the call failed, else 0.
    pub errno: i32,
    /// How many.
    pub calls: u64,
    /// The number in the trace of the first of these calls.
    pub first_call: u64,
    /// The file of the first of these calls, if it has one.
    pub first_path: Option<String>,
}

/// One of several concurrent instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Instance {
    /// Its number, from 0.
    pub instance: u32,
    /// From virtual zero to its last completion.
    pub job_s: f64,
    /// Calls that it issued.
    pub issued: u64,
    /// Of these, calls whose result differs from the original's.
    pub mismatches: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    call: CallKind,
    outcome: CallOutcome,
    expected_errno: i32,
    errno: i32,
}

/// Counts calls in constant memory.
pub struct Counter {
    keeps_times: bool,
    is_perturbed: bool,
    unreplayable: BTreeMap<String, u64>,
    calls: u64,
    issued: u64,
    left_out: BTreeMap<&'static str, u64>,
    kinds: HashMap<Kind, (u64, u64, Option<String>)>,
    listings_differ: u64,
    bytes: [u64; 2],
    last: Nanos,
    first_in_trace: Option<Nanos>,
    last_in_trace: Nanos,
    response: Times,
    original_response: Times,
    delay: Times,
    compute_time_error: Ratios,
    below_10_pct: u64,
    held: BTreeMap<&'static str, u64>,
    release_to_issue: Times,
    instances: Vec<(Nanos, u64, u64)>,
    fidelity: Fidelity,
}

impl Counter {
    /// Counts calls of this many instances.
    pub fn new(keeps_times: bool, is_perturbed: bool, instances: u32) -> Self {
        Self {
            keeps_times,
            is_perturbed,
            unreplayable: BTreeMap::new(),
            calls: 0,
            issued: 0,
            left_out: BTreeMap::new(),
            kinds: HashMap::new(),
            listings_differ: 0,
            bytes: [0; 2],
            last: Nanos::ZERO,
            first_in_trace: None,
            last_in_trace: Nanos::ZERO,
            response: Times::new(),
            original_response: Times::new(),
            delay: Times::new(),
            compute_time_error: Ratios::default(),
            below_10_pct: 0,
            held: BTreeMap::new(),
            release_to_issue: Times::new(),
            instances: vec![(Nanos::ZERO, 0, 0); instances as usize],
            fidelity: Fidelity::with(Words { plural: "calls", other: "Calls that had to end first" }),
        }
    }

    /// Counts the calls of a run again, by the options and statistics of its footer.
    pub fn again(options: &OpenMap, statistics: Option<&OpenMap>) -> Self {
        let keeps_times = options.get("timing").text() != Some("asap");
        let has = |option: &str| !matches!(options.get(option), OptionValue::Null | OptionValue::Integer(0));
        let is_perturbed = PacingOptions::that_change(Changes::IssueTimes).any(|option| has(&option.key));
        let instances = options.get("instances").integer().unwrap_or(1).min(MAX_INSTANCES);
        let mut counter = Self::new(keeps_times, has("extra_delay") || is_perturbed, instances);
        if let Some(OptionValue::Map(lost)) = statistics.map(|statistics| statistics.get("changes_not_replayed")) {
            let count = |(name, count): (&String, &OptionValue)| Some((name.clone(), count.integer()?));
            counter.unreplayable = lost.iter().filter_map(count).collect();
        }
        counter
    }

    /// These changes of files are not replayed by an instance.
    pub fn without(mut self, unreplayable: &BTreeMap<String, u64>) -> Self {
        let instances = self.instances.len() as u64;
        self.unreplayable = unreplayable.iter().map(|(name, count)| (name.clone(), count * instances)).collect();
        self
    }

    /// Issued calls whose result differs from the original's.
    pub fn mismatches(&self) -> u64 {
        self.kinds.values().map(|(calls, ..)| calls).sum()
    }

    /// Calls that were issued so far.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Bytes that they read and wrote.
    pub fn bytes(&self) -> u64 {
        self.bytes[0].saturating_add(self.bytes[1])
    }

    /// Rows so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Adds a call, which began in the trace at this time.
    pub fn add(&mut self, row: &CallResult, begin_in_trace: Nanos) {
        self.calls += 1;
        self.first_in_trace = Some(self.first_in_trace.unwrap_or(begin_in_trace).min(begin_in_trace));
        if !row.outcome.is_issued() {
            *self.left_out.entry(row.outcome.name()).or_default() += 1;
            return;
        }
        self.issued += 1;
        self.last_in_trace = self.last_in_trace.max(begin_in_trace + row.expected_duration.unwrap_or_default());
        let (Some(issued), Some(completed)) = (row.issued, row.completed) else { return };
        self.last = self.last.max(completed);
        self.response.add(completed - issued);
        if let Some(duration) = row.expected_duration {
            self.original_response.add(duration);
        }
        let result = row.result.unwrap_or(-1);
        let add = |bytes: &mut u64| *bytes = bytes.saturating_add(result.max(0) as u64);
        match row.kind.family() {
            Family::Read => add(&mut self.bytes[0]),
            Family::Write => add(&mut self.bytes[1]),
            Family::Copy => self.bytes.iter_mut().for_each(add),
            _ => {}
        }
        let differs = row.outcome.is_mismatch();
        // A recovered row may have any number.
        if let Some((last, issued, mismatches)) = self.instances.get_mut(row.instance as usize) {
            *last = completed.max(*last);
            *issued += 1;
            *mismatches += u64::from(differs);
        }
        self.listings_differ += u64::from(is_other_listing(row.kind, row.expected_result, result));
        if differs {
            self.add_mismatch(row);
        }
        if self.keeps_times {
            self.add_times(row, issued);
        }
    }

    fn add_mismatch(&mut self, row: &CallResult) {
        let kind = Kind { call: row.kind, outcome: row.outcome, expected_errno: row.expected_errno, errno: row.errno };
        let first = || (0, row.call, row.path.as_ref().map(ToString::to_string));
        self.kinds.entry(kind).or_insert_with(first).0 += 1;
    }

    fn add_times(&mut self, row: &CallResult, issued: Nanos) {
        let error = issued - row.scheduled;
        let cause = match row.delay_reason {
            _ if self.is_perturbed => Some(Cause::Perturbed),
            DelayReason::None | DelayReason::Replayer => None,
            DelayReason::Input => Some(Cause::Input),
            DelayReason::Predecessor | DelayReason::Thread => Some(Cause::Order),
            DelayReason::Pool => Some(Cause::Depth),
        };
        if row.delay_reason.is_replayer() {
            self.delay.add(error);
            if let Some(gap) = row.gap.filter(|gap| *gap > Nanos::ZERO) {
                let ratio = error.0 as f64 / gap.0 as f64;
                self.compute_time_error.add(ratio);
                self.below_10_pct += u64::from(ratio < 0.1);
            }
        }
        if row.delay_reason != DelayReason::None {
            *self.held.entry(row.delay_reason.name()).or_default() += 1;
        }
        if let (DelayReason::Predecessor | DelayReason::Thread, Some(end)) = (row.delay_reason, row.predecessors_end) {
            self.release_to_issue.add(issued - end);
        }
        if row.delay_reason == DelayReason::Replayer {
            let stall = Stall { from: row.scheduled, to: issued, activity: Activity::Waiting };
            self.fidelity.add_stall(0, stall);
        }
        let is_own = matches!(cause, None | Some(Cause::Input));
        let (number, scheduled) = (row.call, row.scheduled);
        self.fidelity.add(&Delay { number, scheduled, issued, is_own, cause, has_company: false }, 0);
    }

    /// Whether the times were kept, with a sentence about results that differ: they limit what the times say.
    fn verdict(&self, complete: bool, engine: Engine) -> Option<Verdict> {
        let mut verdict = self.fidelity.verdict(complete)?;
        if engine.is_interrupted(self.last) {
            let lost = self.lost(engine);
            verdict.sentence = if verdict.faithful.replace(false) == Some(true) {
                format!("This replay was not faithful: {lost}, more than {:.0} %.", 100.0 - FAITHFUL_PCT)
            } else {
                format!("{} In all, {lost}.", verdict.sentence)
            };
        }
        let differ = self.mismatches();
        if differ > 0 {
            let share = human::percent(differ as f64 / self.issued as f64);
            let issued = human::counted(self.issued, "call");
            let sentence = format!(
                " But {} of {issued} ({share}) returned other results than the original.",
                human::count(differ)
            );
            verdict.sentence.push_str(&sentence);
        }
        if let Some(warning) = warning_of_unreplayable(&self.unreplayable) {
            verdict.sentence.push_str(&format!(" But {warning}."));
        }
        Some(verdict)
    }

    /// A clause about the time that the replayer itself lost.
    fn lost(&self, engine: Engine) -> String {
        let idle = engine.idle.unwrap_or_default();
        let (lost, elapsed) = (human::span(idle.as_secs()), human::span(self.last.as_secs()));
        let share = human::percent(idle.0 as f64 / self.last.0.max(1) as f64);
        format!(
            "for {lost} of {elapsed} ({share}), calls were due and the replayer issued none, because it was stopped or preempted"
        )
    }

    /// A sentence about a replay without a verdict that the replayer itself slowed down.
    pub fn interruption(&self, engine: Engine) -> Option<String> {
        let is_slowed = !self.keeps_times && engine.is_interrupted(self.last);
        is_slowed.then(|| format!("the times of this replay are not those of the file system: {}", self.lost(engine)))
    }

    /// The statistics at the end.
    pub fn statistics(&self, factor: f64, complete: bool, engine: Engine, fake: Option<String>) -> Statistics {
        let mut mismatch_kinds: Vec<Mismatch> = self
            .kinds
            .iter()
            .map(|(kind, (calls, first_call, first_path))| Mismatch {
                call: kind.call.name(),
                outcome: kind.outcome.name(),
                expected_errno: kind.expected_errno,
                errno: kind.errno,
                calls: *calls,
                first_call: *first_call,
                first_path: first_path.clone(),
            })
            .collect();
        mismatch_kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.calls), kind.first_call));
        mismatch_kinds.truncate(KINDS);
        let verdict = if self.keeps_times { self.verdict(complete, engine) } else { None };
        let elapsed_s = self.last.as_secs();
        let span = self.last_in_trace - self.first_in_trace.unwrap_or_default();
        let gaps = self.compute_time_error.count();
        let instances = self.instances.iter().zip(0..).map(|(&(last, issued, mismatches), instance)| Instance {
            instance,
            job_s: last.as_secs(),
            issued,
            mismatches,
        });
        Statistics {
            calls: self.calls,
            issued: self.issued,
            left_out: self.left_out.clone(),
            changes_not_replayed: self.unreplayable.clone(),
            mismatches: self.mismatches(),
            mismatch_kinds,
            listings_differ: self.listings_differ,
            bytes_read: self.bytes[0],
            bytes_written: self.bytes[1],
            elapsed_s,
            original_s: span.as_secs() * factor,
            calls_per_s: if elapsed_s > 0.0 { self.issued as f64 / elapsed_s } else { 0.0 },
            max_in_flight: engine.max_in_flight,
            latency_us: self.response.quantiles(),
            original_latency_us: self.original_response.quantiles(),
            delay_not_held_back_us: self.delay.quantiles(),
            within_not_held_back_pct: self.delay.within(),
            compute_time_error_pct: self.compute_time_error.percents(),
            compute_time_error_below_10_pct: (gaps > 0).then(|| 100.0 * self.below_10_pct as f64 / gaps as f64),
            delay_reasons: self.held.clone(),
            release_to_issue_us: self.release_to_issue.quantiles(),
            lost_s: engine.idle.map(Nanos::as_secs),
            instances: if self.instances.len() > 1 { instances.collect() } else { Vec::new() },
            verdict: verdict.map(|verdict| if fake.is_some() { verdict.of_fake() } else { verdict }),
            order: None,
            outdegree: None,
            usage: None,
            complete,
            fake,
        }
    }
}

#[cfg(test)]
mod tests;
