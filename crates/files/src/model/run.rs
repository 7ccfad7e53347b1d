//! The object `run` in the footer of a run of calls. `docs/schema.md` lists its keys.

use iosonar_trace::fields;
use iosonar_trace::run_info::{Field, Machine, OpenMap, RunData, RunMount};

fields! {
    /// The options, environment, warnings and statistics of a run of calls.
    CallsRun {
        /// Path of the replayed trace.
        trace: String,
        /// Every option.
        options: OpenMap,
        /// Those that were defaults from the user's configuration file, by long name.
        configured: Vec<String>,
        /// The directory below which everything happened.
        root: RunRoot,
        /// The machine that the run was made on.
        machine: Machine,
        /// Wall-clock time of virtual zero, in nanoseconds since 1970 UTC.
        started_unix_ns: i64,
        /// The same moment on `CLOCK_MONOTONIC`.
        started_monotonic_ns: i64,
        /// How the threads waited, as in `--wait`.
        wait: String,
        /// The reason, as a phrase.
        wait_reason: String,
        /// The threads that issued calls.
        threads: u64,
        /// What was done about the page cache, as a sentence.
        page_cache: String,
        /// The number of the first call of the window.
        first_call: u64,
        /// The time of the trace that became virtual zero.
        trace_zero_ns: i64,
        /// Null for a real run; else the sentence that is printed on every picture.
        fake: String,
        /// Warnings, one sentence each.
        warnings: Vec<String>,
        /// Percentage of processor time that the host gave to other guests during the run.
        stolen_pct: f64,
        /// The data of its writes.
        data: RunData,
        /// The closing statistics.
        statistics: OpenMap,
    }
}

fields! {
    /// The root of a run.
    RunRoot {
        /// Its path.
        path: String,
        /// How the run was confined to it.
        confinement: String,
        /// Its file system; null if it is unknown.
        mount: RunMount,
    }
}

impl CallsRun {
    /// Calls had no times to keep.
    pub fn is_asap(&self) -> bool {
        self.options.known().is_some_and(|options| options.get("timing").text() == Some("asap"))
    }
}
