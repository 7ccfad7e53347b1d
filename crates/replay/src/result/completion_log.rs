//! The stage after the loop: checks the data of completed requests, counts them, writes them to the journal, and returns
//! their buffers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iosonar_pacing::Stop;
use iosonar_pacing::backoff::Backoff;
use iosonar_pacing::buffers::{Arena, Buffer};
use iosonar_pacing::progress::Progress;
use iosonar_pacing::stalls::Stall;
use iosonar_trace::journal::JournalWriter;
use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use rtrb::{Consumer, Producer};

use crate::io::CompletedIo;
use crate::result::delays::Issue;
use crate::result::live::row_of;
use crate::result::merge::Completions;
use crate::result::statistics::Counter;
use crate::result::zeroed::Zeroed;
use crate::verify::checker::Checker;

/// Of so many steps that record nothing, one looks whether the journal is due.
const IDLE_STEPS: u32 = 32;

/// What the completion log returns.
pub struct CompletionLogOutput {
    /// Counts of all rows.
    pub counter: Counter,
    /// The journal.
    pub journal: JournalWriter<IoResult>,
    /// The state of verification.
    pub checker: Option<Checker>,
    /// What the run discarded or zeroed itself.
    pub zeroed: Zeroed,
}

/// The stage after the loop.
pub struct CompletionLog<'a> {
    input: Completions,
    /// Of each loop.
    stalls: Vec<Consumer<Stall>>,
    returned: Producer<Buffer>,
    arena: Arc<Arena>,
    journal: JournalWriter<IoResult>,
    stop: &'a Stop,
    progress: &'a Progress,
    counter: Counter,
    checker: Option<Checker>,
    zeroed: Zeroed,
    /// How the rows that the checker holds were issued.
    issues: VecDeque<Issue>,
    /// Steps in a row that recorded nothing.
    idle_steps: u32,
}

impl<'a> CompletionLog<'a> {
    /// Reads `input` and the `stalls` of each loop until all loops have ended, and returns buffers through `returned`. Stops the run if the
    /// journal cannot be written.
    pub fn new(
        input: impl Into<Completions>,
        stalls: Vec<Consumer<Stall>>,
        returned: Producer<Buffer>,
        arena: Arc<Arena>,
        journal: JournalWriter<IoResult>,
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
            idle_steps: 0,
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
            self.progress.add_delay(delay);
        }
        // A turn of a waiting loop that records nothing does not read the clock for this.
        self.idle_steps = if recorded > 0 { 0 } else { self.idle_steps.wrapping_add(1) };
        if self.idle_steps.is_multiple_of(IDLE_STEPS) && !self.journal.flush_if_due() {
            self.stop.drain();
        }
        recorded
    }

    fn finish(mut self) -> CompletionLogOutput {
        if let Some(checker) = &mut self.checker {
            checker.finish();
            self.write_decided_rows();
        }
        if !self.journal.flush() {
            self.stop.drain();
        }
        let Self { counter, journal, checker, zeroed, .. } = self;
        CompletionLogOutput { counter, journal, checker, zeroed }
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
        if let Some(live) = &self.progress.live {
            live.add(&row_of(record));
        }
        if !self.journal.write(record) {
            self.stop.drain();
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
