//! The stage after the loop: checks the data of completed requests, counts them, writes them to the journal, and returns
//! their buffers.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use rtrb::{Consumer, Producer};

use crate::issuer::{Stall, Stop};
use crate::pipeline::backoff::Backoff;
use crate::pipeline::buffers::{Arena, Buffer};
use crate::pipeline::io::CompletedIo;
use crate::result::fidelity::Issue;
use crate::result::in_flight::InFlight;
use crate::result::journal::JournalWriter;
use crate::result::merge::Completions;
use crate::result::statistics::Counter;
use crate::result::zeroed::Zeroed;
use crate::schedule::clock::Monotonic;
use crate::verify::checker::Checker;
use crate::verify::final_pass::FinalPassProgress;

/// A killed program loses at most the rows of this time.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);

/// Progress of the run, for other threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Virtual zero on the monotonic clock, in ns; 0 while the run is being prepared. With `--start-at`, an estimate until
    /// shortly before it.
    pub zero_ns: AtomicI64,
    /// Whether all is prepared and the start time is not yet known.
    pub is_ready: AtomicBool,
    /// Whether the last request has completed.
    pub is_finishing: AtomicBool,
    /// The longest delay of a completed request since the last reading with [`Progress::take_longest_delay`]; negative if
    /// there is none.
    longest_delay_ns: LongestDelay,
    /// Unparked when the run begins another stage.
    pub observer: OnceLock<Thread>,
    /// Rows so far, skipped requests included.
    pub requests: AtomicU64,
    /// Bytes that they moved.
    pub bytes: AtomicU64,
    /// Requests that failed or read corrupt data.
    pub errors: AtomicU64,
    /// Scheduled time of the last row, in ns since virtual zero.
    pub scheduled_ns: AtomicI64,
    /// Requests that the target completed.
    pub completed: AtomicU64,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// Sectors that the final pass has to check; 0 before it.
    pub to_verify: AtomicU64,
    /// Sectors that it has checked, or could not read.
    pub verified: AtomicU64,
    /// Sectors with wrong data.
    pub mismatches: AtomicU64,
}

/// In ns; negative without a delay.
#[derive(Debug)]
struct LongestDelay(AtomicI64);

impl Default for LongestDelay {
    fn default() -> Self {
        Self(AtomicI64::new(-1))
    }
}

impl Progress {
    /// Sets virtual zero.
    pub fn set_zero(&self, clock: Monotonic) {
        if self.zero_ns.swap(clock.zero_ns(), Ordering::Relaxed) == 0 {
            self.wake_observer();
        }
    }

    /// Begins to wait for the start time.
    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
        self.wake_observer();
    }

    /// Ends the stage in which requests are issued.
    pub fn set_finishing(&self) {
        self.is_finishing.store(true, Ordering::Relaxed);
        self.wake_observer();
    }

    fn wake_observer(&self) {
        if let Some(observer) = self.observer.get() {
            observer.unpark();
        }
    }

    /// The longest delay of the requests that completed since the last call.
    pub fn take_longest_delay(&self) -> Option<Nanos> {
        Some(Nanos(self.longest_delay_ns.0.swap(-1, Ordering::Relaxed))).filter(|delay| *delay >= Nanos::ZERO)
    }

    /// Updates the progress of the final pass.
    pub fn set_final_pass(&self, pass: &FinalPassProgress) {
        self.verified.store(pass.checked + pass.errors, Ordering::Relaxed);
        self.mismatches.store(pass.mismatches, Ordering::Relaxed);
        self.to_verify.store(pass.known, Ordering::Relaxed);
    }
}

/// What the completion log returns.
pub struct CompletionLogOutput {
    /// Counts of all rows.
    pub counter: Counter,
    /// The journal, flushed unless `failure` is set.
    pub journal: JournalWriter,
    /// The state of verification.
    pub checker: Option<Checker>,
    /// What the run discarded or zeroed itself.
    pub zeroed: Zeroed,
    /// The first error of the journal. It has no rows from then on.
    pub failure: Option<io::Error>,
}

/// The stage after the loop.
pub struct CompletionLog<'a> {
    input: Completions,
    /// Of each loop.
    stalls: Vec<Consumer<Stall>>,
    returned: Producer<Buffer>,
    arena: Arc<Arena>,
    journal: JournalWriter,
    stop: &'a Stop,
    progress: &'a Progress,
    counter: Counter,
    checker: Option<Checker>,
    zeroed: Zeroed,
    /// How the rows that the checker holds were issued.
    issues: VecDeque<Issue>,
    failure: Option<io::Error>,
    /// Time of the last flush of the journal.
    flushed: Instant,
}

impl<'a> CompletionLog<'a> {
    /// Reads `input` and the `stalls` of each loop until all loops have ended, and returns buffers through `returned`. Stops the run if the
    /// journal cannot be written.
    pub fn new(
        input: impl Into<Completions>,
        stalls: Vec<Consumer<Stall>>,
        returned: Producer<Buffer>,
        arena: Arc<Arena>,
        journal: JournalWriter,
        stop: &'a Stop,
        progress: &'a Progress,
    ) -> Self {
        let counter = Counter::new();
        Self {
            input: input.into(),
            stalls,
            returned,
            arena,
            journal,
            stop,
            progress,
            counter,
            checker: None,
            zeroed: Zeroed::default(),
            issues: VecDeque::new(),
            failure: None,
            flushed: Instant::now(),
        }
    }

    /// Adds verification.
    pub fn with_checker(self, checker: Option<Checker>) -> Self {
        Self { checker, ..self }
    }

    /// Does not count reads of zeros that the run's own discards explain, on targets of so many sectors.
    pub fn with_targets(self, sectors: impl IntoIterator<Item = u64>) -> Self {
        Self { zeroed: Zeroed::new(sectors), ..self }
    }

    /// Runs until all loops have ended.
    pub fn run(mut self) -> CompletionLogOutput {
        // Sleep briefly enough that the input queue does not fill up and the preparer does not run out of buffers.
        let mut backoff = Backoff::for_queue(self.input.capacity().min(self.returned.buffer().capacity()));
        loop {
            // Check before emptying the queue: otherwise requests pushed in between would be lost.
            let is_last = self.input.is_abandoned();
            let recorded = self.step(usize::MAX, Nanos::MAX);
            if is_last {
                return self.finish();
            }
            backoff.sleep(recorded);
        }
    }

    /// Records completed requests: at most `limit`, and none that takes longer than `allowed`. Returns how many.
    pub fn step(&mut self, limit: usize, allowed: Nanos) -> usize {
        let mut scheduled = None;
        let mut longest_delay = None;
        let mut recorded = 0;
        while recorded < limit
            && let Some(completed) = self.input.next_if(|completed| check_duration(completed) <= allowed)
        {
            scheduled = Some(completed.record.scheduled.0);
            longest_delay = longest_delay.max(completed.record.delay());
            self.record(completed);
            recorded += 1;
        }
        if let Some(scheduled) = scheduled {
            self.update_progress(scheduled);
        }
        if let Some(delay) = longest_delay {
            self.progress.longest_delay_ns.0.fetch_max(delay.0, Ordering::Relaxed);
        }
        if self.flushed.elapsed() > FLUSH_INTERVAL {
            let outcome = self.journal.flush();
            self.stop_on_error(outcome);
            self.flushed = Instant::now();
        }
        recorded
    }

    fn finish(mut self) -> CompletionLogOutput {
        if let Some(checker) = &mut self.checker {
            checker.finish();
            self.write_decided_rows();
        }
        let outcome = self.journal.flush();
        self.stop_on_error(outcome);
        let Self { counter, journal, checker, zeroed, failure, .. } = self;
        CompletionLogOutput { counter, journal, checker, zeroed, failure }
    }

    fn record(&mut self, completed: CompletedIo) {
        let record = &completed.record;
        if let (Op::Read, Outcome::Ok, Some(buffer)) = (record.op, record.outcome, &completed.buffer) {
            let is_unexplained =
                is_zero(self.arena.bytes(buffer, record.bytes_done)) && !self.zeroed.touches(completed.target, record);
            self.counter.zero_reads += u64::from(is_unexplained);
        }
        self.zeroed.add(completed.target, record);
        let issue = Issue { issuer: completed.issuer, is_late_by_load: completed.is_late_by_load };
        match &mut self.checker {
            Some(checker) => {
                checker.add(&completed, &self.arena);
                self.issues.push_back(issue);
                self.write_decided_rows();
            }
            None => self.write_row(&completed.record, issue),
        }
        if let Some(buffer) = completed.buffer {
            // Cannot be full, as it has room for all buffers. Fails only if the preparer has ended.
            let _ = self.returned.push(buffer);
        }
    }

    /// Writes the rows whose verification is decided.
    fn write_decided_rows(&mut self) {
        while let Some(record) = self.checker.as_mut().and_then(Checker::decided) {
            let issue = self.issues.pop_front().unwrap_or_default();
            self.write_row(&record, issue);
        }
    }

    fn write_row(&mut self, record: &IoResult, issue: Issue) {
        let issuer = issue.issuer;
        // A loop reports a stall before the requests that it delayed.
        while let Ok(stall) = self.stalls[usize::from(issuer)].pop() {
            self.counter.fidelity.add_stall(issuer, stall);
        }
        self.counter.add(record, issue);
        if self.failure.is_some() {
            self.counter.unrecorded += 1;
        } else {
            let outcome = self.journal.write(record);
            if outcome.is_err() {
                self.counter.unrecorded += 1;
            }
            self.stop_on_error(outcome);
        }
    }

    fn stop_on_error(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome
            && self.failure.is_none()
        {
            self.stop.drain();
            self.failure = Some(error);
        }
    }

    fn update_progress(&self, scheduled: i64) {
        let (requests, bytes) = self.counter.progress();
        self.progress.requests.store(requests, Ordering::Relaxed);
        self.progress.bytes.store(bytes, Ordering::Relaxed);
        self.progress.errors.store(
            self.counter.with_outcome(Outcome::Error) + self.counter.with_outcome(Outcome::Corrupt),
            Ordering::Relaxed,
        );
        self.progress.completed.store(self.counter.completed(), Ordering::Relaxed);
        self.progress.scheduled_ns.store(scheduled, Ordering::Relaxed);
    }
}

/// Estimates how long `is_zero` takes for a read, if it is all zeros: about 8 GB/s.
fn check_duration(completed: &CompletedIo) -> Nanos {
    if completed.record.op == Op::Read { Nanos(completed.record.bytes_done as i64 / 8) } else { Nanos::ZERO }
}

/// Ends at the first nonzero byte, which is nearly always the very first.
fn is_zero(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| b == 0)
}
