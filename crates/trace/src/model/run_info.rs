//! What a run says about itself: the object `run` of a footer. `docs/schema.md` lists its keys.
//!
//! Runs come from this build, from earlier and later ones, from other programs, and in the classic text. So nothing in
//! it has to be there, and what is not of its type is kept but not used: see [`Stated`].

mod counters;
mod data;
mod findings;
mod machine;
mod stated;
mod statistics;
mod targets;
mod times;
mod value;
mod verdict;
mod verification;

#[cfg(test)]
mod tests;

pub use counters::{Company, DeviceCounters};
pub use data::{RunData, Written};
pub use findings::{Finding, FindingKind, Pass};
pub use machine::{IdleState, Machine, ProcessLimits};
pub use stated::Stated;
pub use statistics::{DeviceStatistics, RunStatistics, Skipped, Statistics};
pub use targets::{Queue, RunMount, RunTarget, TargetKind};
pub use times::{Quantiles, Within};
pub use value::{OpenMap, OptionValue};
pub use verdict::{Cause, Late, Moment, Part, Remedy, Verdict};
pub use verification::{FinalPassCounts, Verification, VerifyMode};

use stated::stated;

stated! {
    /// What a run says about itself.
    RunInfo {
        /// Path of the replayed load.
        load: String,
        /// Every option, for programs: by its long name with `_` for `-`. Its names and values are the replayer's; none
        /// of them is known here.
        options: OpenMap,
        /// The options that differ from their defaults, for people: by long name, values as typed.
        typed: OpenMap,
        /// The targets.
        targets: Vec<RunTarget>,
        /// The first of them; the only one in runs of earlier versions.
        target: RunTarget,
        /// The machine that it was made on.
        machine: Machine,
        /// The disks' own counters during the run.
        device_counters: Vec<DeviceCounters>,
        /// Mean requests in flight.
        mean_in_flight: f64,
        /// The data of its writes.
        data: RunData,
        /// Wall-clock time of virtual zero, in nanoseconds since 1970 UTC.
        started_unix_ns: i64,
        /// The same moment on `CLOCK_MONOTONIC`.
        started_monotonic_ns: i64,
        /// What was changed on the machine for the run, a sentence each.
        isolation: Vec<String>,
        /// The engine, by its name.
        engine: String,
        /// How the loop waited, by the name of `--wait`.
        wait: String,
        /// Why it waited so, as a phrase.
        wait_reason: String,
        /// Contention right before the run.
        company: Company,
        /// Percentage of processor time that the host gave to others during the run.
        stolen_pct: f64,
        /// Null for a real run; else the sentence that is printed on every picture.
        fake: String,
        /// What verification found: the first ones.
        findings: Vec<Finding>,
        /// Warnings, one sentence each.
        warnings: Vec<String>,
        /// The closing statistics.
        statistics: RunStatistics,
    }
}

impl RunInfo {
    /// An option by its name in JSON; null if it is not there.
    pub fn option(&self, name: &str) -> &OptionValue {
        self.options.known().map_or(&OptionValue::Null, |options| options.get(name))
    }

    /// Whether an option is true.
    pub fn has(&self, name: &str) -> bool {
        *self.option(name) == OptionValue::Flag(true)
    }
}
