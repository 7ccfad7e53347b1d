//! The object `run` in the footer of a run. `docs/schema.md` lists its keys.
//!
//! Runs come from this build, from earlier and later ones, from other programs, and as classic text. Therefore every key
//! is optional, and a value of an unexpected type is kept but not used: see [`Field`].

mod counters;
mod data;
mod dependencies;
mod field;
mod findings;
mod machine;
mod options;
mod program;
mod statistics;
mod targets;
mod times;
mod value;
mod verdict;
mod verification;

#[cfg(test)]
mod tests;

pub use counters::{DeviceCounters, InterfaceUsage, MachineUsage, ProcessorContention, UsageSamples};
pub use data::{RunData, Written};
pub use dependencies::RunDependencies;
pub use field::{Field, object};
pub use findings::{Finding, FindingKind, Pass};
pub use machine::{IdleState, Machine, ProcessLimits};
pub use program::{RunProgram, RunStream};
pub use statistics::{DeviceStatistics, RunStatistics, Skipped, Statistics};
pub use targets::{Queue, RunMount, RunTarget, TargetKind};
pub use times::{MIN_BEYOND, Quantiles, Within, is_enough};
pub use value::{OpenMap, OptionValue};
pub use verdict::{Cause, Late, Moment, Part, Remedy, Verdict};
pub use verification::{FinalPassCounts, Verification, VerifyMode};

use field::fields;

fields! {
    /// The options, environment, warnings and statistics of a run.
    RunInfo {
        /// Path of the replayed load; missing if there was none.
        load: String,
        /// The program that made requests beside the load, or instead of it.
        program: RunProgram,
        /// Every option, for programs: by its long name with `_` for `-`. The replayer defines names and values; this
        /// crate knows none of them.
        options: OpenMap,
        /// The options that differ from their defaults, for people: by long name, values as typed.
        typed: OpenMap,
        /// Those of `typed` that were defaults from the user's configuration file, by long name.
        configured: Vec<String>,
        /// What its requests waited for, with `--closed=dependencies`.
        dependencies: RunDependencies,
        /// The targets of the run, by index.
        targets: Vec<RunTarget>,
        /// The first of them; the only one in runs of earlier versions.
        target: RunTarget,
        /// The machine that the run was made on.
        machine: Machine,
        /// The disks' own counters during the run.
        device_counters: Vec<DeviceCounters>,
        /// Mean requests in flight.
        mean_in_flight: f64,
        /// What its writes wrote.
        data: RunData,
        /// Wall-clock time of virtual zero, in nanoseconds since 1970 UTC.
        started_unix_ns: i64,
        /// The same moment on `CLOCK_MONOTONIC`.
        started_monotonic_ns: i64,
        /// The changes that `--isolate` made to the machine, one sentence each.
        isolation: Vec<String>,
        /// The engine that issued the requests, such as `io_uring`.
        engine: String,
        /// The wait mode of the issuing loop, as in `--wait`.
        wait: String,
        /// The reason for this wait mode, as a phrase.
        wait_reason: String,
        /// Contention right before the run.
        #[serde(alias = "company")]
        contention: ProcessorContention,
        /// Percentage of processor time that the host gave to other guests during the run.
        stolen_pct: f64,
        /// Null for a real run; else the sentence that is printed on every picture.
        fake: String,
        /// The first findings of verification.
        findings: Vec<Finding>,
        /// Warnings, one sentence each.
        warnings: Vec<String>,
        /// The closing statistics.
        statistics: RunStatistics,
    }
}
