//! Totals over the calls of a trace or of a run, for `iosonar info`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;
use iosonar_files::{Call, CallKind, CallOutcome, CallResult, DelayReason, Family, Name};
use iosonar_pacing::histogram::Times;
use iosonar_trace::Nanos;
use serde_json::{Map, Value, json};

use super::windows::Windows;

/// The most files that are listed.
const MAX_FILES: usize = 10;

/// Totals of a system call.
struct CallCounts {
    calls: u64,
    failed: u64,
    bytes: u64,
    durations: Times,
}

impl Default for CallCounts {
    fn default() -> Self {
        Self { calls: 0, failed: 0, bytes: 0, durations: Times::growing() }
    }
}

/// Totals of a file.
#[derive(Default)]
struct FileCounts {
    calls: u64,
    read: u64,
    written: u64,
}

impl FileCounts {
    fn add(&mut self, bytes: u64, is_write: bool) {
        self.calls += 1;
        let total = if is_write { &mut self.written } else { &mut self.read };
        *total = total.saturating_add(bytes);
    }
}

/// Totals of the calls of a trace.
#[derive(Default)]
pub struct Summary {
    /// By the number of the call.
    calls: Vec<Option<CallCounts>>,
    threads: HashMap<u32, u64, RandomState>,
    processes: BTreeSet<u32>,
    /// The process of the latest call.
    process: u32,
    files: HashMap<Name, FileCounts, RandomState>,
    windows: Windows,
    /// The last end.
    end: Option<Nanos>,
    errors: BTreeMap<i32, u64>,
    uring: u64,
    read: u64,
    written: u64,
}

/// Bytes that a call moved, and whether it wrote them.
fn moved(kind: CallKind, result: Option<i64>) -> (u64, bool) {
    let bytes = result.and_then(|result| u64::try_from(result).ok()).unwrap_or(0);
    match kind.family() {
        Family::Read => (bytes, false),
        Family::Write | Family::Copy => (bytes, true),
        _ => (0, false),
    }
}

impl Summary {
    /// Of the calls from a time on; without one, from the first call on.
    pub fn from(from: Option<Nanos>) -> Self {
        Self { windows: Windows::from(from), ..Self::default() }
    }

    /// Adds a call; `file` is the file that it uses, if known.
    pub fn call(&mut self, call: &Call, file: Option<&Name>) {
        let (bytes, is_write) = moved(call.kind, call.result);
        self.add(call.kind, call.thread, call.errno, call.duration, bytes, is_write, file);
        if call.process != 0 && call.process != self.process {
            self.process = call.process;
            self.processes.insert(call.process);
        }
        self.uring += u64::from(call.is_uring);
        self.windows.add(call.begin);
        self.end = self.end.max(Some(call.begin + call.duration.unwrap_or_default()));
    }

    #[expect(clippy::too_many_arguments, reason = "what calls and results have in common")]
    fn add(
        &mut self,
        kind: CallKind,
        thread: u32,
        errno: i32,
        duration: Option<Nanos>,
        bytes: u64,
        is_write: bool,
        file: Option<&Name>,
    ) {
        let number = kind as usize;
        if number >= self.calls.len() {
            self.calls.resize_with(number + 1, || None);
        }
        let of_call = self.calls[number].get_or_insert_default();
        of_call.calls += 1;
        of_call.failed += u64::from(errno != 0);
        of_call.bytes = of_call.bytes.saturating_add(bytes);
        duration.into_iter().for_each(|duration| of_call.durations.add(duration));
        *self.threads.entry(thread).or_default() += 1;
        if errno != 0 {
            *self.errors.entry(errno).or_default() += 1;
        }
        let total = if is_write { &mut self.written } else { &mut self.read };
        *total = total.saturating_add(bytes);
        let Some(file) = file else { return };
        match self.files.get_mut(file) {
            Some(of_file) => of_file.add(bytes, is_write),
            None => self.files.entry(file.clone()).or_default().add(bytes, is_write),
        }
    }

    /// The keys of the JSON object for traces and runs.
    pub fn json(&self) -> Map<String, Value> {
        let calls = CallKind::ALL.iter().zip(&self.calls).filter_map(|(kind, totals)| Some((kind, totals.as_ref()?)));
        let mut by_call: Vec<_> = calls.collect();
        by_call.sort_by_key(|(kind, totals)| (std::cmp::Reverse(totals.calls), kind.name()));
        let by_call = by_call.into_iter().map(|(kind, totals)| {
            json!({"call": kind.name(), "family": kind.family().name(), "calls": totals.calls, "failed": totals.failed,
                   "bytes": totals.bytes, "duration_us": totals.durations.quantiles()})
        });
        let mut files: Vec<_> = self.files.iter().collect();
        let bytes_and_calls = |file: &FileCounts| (file.read.saturating_add(file.written), file.calls);
        files.sort_unstable_by(|a, b| bytes_and_calls(b.1).cmp(&bytes_and_calls(a.1)).then_with(|| a.0.cmp(b.0)));
        let most = files.iter().take(MAX_FILES).map(|(name, file)| {
            json!({"file": name.to_string(), "calls": file.calls, "read": file.read, "written": file.written})
        });
        let busiest = self.threads.values().max().copied().unwrap_or(0);
        let mut map = Map::new();
        map.insert("bytes".into(), json!({"read": self.read, "written": self.written}));
        map.insert("by_call".into(), by_call.collect());
        map.insert(
            "threads".into(),
            json!({"number": self.threads.len(), "processes": self.processes.len(), "most_calls": busiest}),
        );
        map.insert("files".into(), json!({"number": self.files.len(), "most_bytes": most.collect::<Vec<_>>()}));
        map.insert("failed".into(), json!(self.calls.iter().flatten().map(|totals| totals.failed).sum::<u64>()));
        let errors: Map<String, Value> =
            self.errors.iter().map(|(errno, &calls)| (errno.to_string(), calls.into())).collect();
        map.insert("errors".into(), errors.into());
        map.insert("duration_s".into(), self.windows.whole_s(self.end).into());
        map.insert("load_per_s".into(), self.windows.json(self.end));
        map
    }
}

/// Totals of a run.
pub struct RunSummary {
    calls: Summary,
    outcomes: BTreeMap<&'static str, u64>,
    held: BTreeMap<&'static str, u64>,
    instances: HashSet<u32>,
    issued: u64,
    /// Delays of calls that were not held back.
    error: Times,
}

impl RunSummary {
    /// Of a run, or of a window of it, that begins at `zero`.
    pub fn new(zero: Nanos) -> Self {
        Self {
            calls: Summary::from(Some(zero)),
            outcomes: BTreeMap::new(),
            held: BTreeMap::new(),
            instances: HashSet::new(),
            issued: 0,
            error: Times::growing(),
        }
    }

    /// Adds a row.
    pub fn result(&mut self, result: &CallResult) {
        *self.outcomes.entry(result.outcome.name()).or_default() += 1;
        self.instances.insert(result.instance);
        let (Some(issued), Some(completed)) = (result.issued, result.completed) else { return };
        self.issued += 1;
        self.calls.end = self.calls.end.max(Some(completed));
        let (bytes, is_write) = moved(result.kind, result.result);
        let duration = Some(completed - issued);
        self.calls.add(result.kind, result.thread, result.errno, duration, bytes, is_write, result.path.as_ref());
        self.calls.windows.add(issued);
        if result.delay_reason.is_replayer() {
            self.error.add(issued - result.scheduled);
        }
        if result.delay_reason != DelayReason::None {
            *self.held.entry(result.delay_reason.name()).or_default() += 1;
        }
    }

    /// The keys of the JSON object.
    pub fn json(&self) -> Map<String, Value> {
        let mut map = self.calls.json();
        let named = |counts: &BTreeMap<&'static str, u64>| -> Value {
            let counts = counts.iter().map(|(name, &count)| ((*name).to_owned(), count.into()));
            Value::Object(counts.collect())
        };
        map.insert("issued".into(), self.issued.into());
        map.insert("outcomes".into(), named(&self.outcomes));
        map.insert("delay_reasons".into(), named(&self.held));
        map.insert("delay_not_held_back_us".into(), json!(self.error.quantiles()));
        map.insert("instances".into(), self.instances.len().into());
        let mismatches: u64 = [
            CallOutcome::Failed,
            CallOutcome::Succeeded,
            CallOutcome::OtherErrno,
            CallOutcome::Fewer,
            CallOutcome::More,
            CallOutcome::OtherResult,
        ]
        .iter()
        .filter_map(|outcome| self.outcomes.get(outcome.name()))
        .sum();
        map.insert("mismatches".into(), mismatches.into());
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(json: &Map<String, Value>) -> (f64, f64) {
        let number = |value: &Value| value.as_f64().unwrap();
        (number(&json["duration_s"]), number(&json["load_per_s"]["mean"]))
    }

    /// Ten calls, the first of which is issued late.
    #[test]
    fn the_rate_of_a_run_is_its_calls_by_its_duration() {
        let mut run = RunSummary::new(Nanos::ZERO);
        for call in 0..10 {
            let scheduled = Nanos::from_secs(call as f64 * 0.1);
            let issued = scheduled.max(Nanos::from_secs(0.35));
            run.result(&CallResult {
                call,
                instance: 0,
                thread: 1,
                kind: CallKind::Fsync,
                path: None,
                position: None,
                length: None,
                scheduled,
                issued: Some(issued),
                completed: Some(issued + Nanos::from_secs(0.1)),
                predecessors_end: None,
                gap: None,
                delay_reason: DelayReason::None,
                result: Some(0),
                errno: 0,
                expected_result: Some(0),
                expected_errno: 0,
                expected_duration: None,
                outcome: CallOutcome::Same,
            });
        }
        assert_eq!(whole(&run.json()), (1.0, 10.0));
    }

    #[test]
    fn the_rate_of_a_trace_is_its_calls_by_its_duration() {
        let mut trace = Summary::default();
        for begin in [3.0, 3.5, 4.0] {
            let duration = Some(Nanos::from_secs(1.0));
            trace.call(&Call { duration, ..Call::new(Nanos::from_secs(begin), 1, CallKind::Fsync) }, None);
        }
        assert_eq!(whole(&trace.json()), (2.0, 1.5));
    }
}
