//! Takes requests that are through: looks at their data, counts them, writes them into the journal, gives buffers back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use rtrb::{Consumer, Producer};

use crate::issuer::{Stall, Stop};
use crate::pipeline::backoff::Backoff;
use crate::pipeline::buffers::{Arena, Buffer};
use crate::pipeline::io::CompletedIo;
use crate::result::journal::JournalWriter;
use crate::result::statistics::Counter;
use crate::verify::checker::Checker;
use crate::verify::final_pass::FinalPassProgress;

/// How much of the record a killed program may lose.
const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// How far the run is, for those who watch.
#[derive(Debug, Default)]
pub struct Progress {
    /// Requests that are through.
    pub requests: AtomicU64,
    /// Bytes that they moved.
    pub bytes: AtomicU64,
    /// Errors among them.
    pub errors: AtomicU64,
    /// Scheduled time of the last one, in ns since virtual zero.
    pub scheduled_ns: AtomicI64,
    /// Requests that the target answered.
    pub completed: AtomicU64,
    /// Requests in flight, as the loop saw it last.
    pub in_flight: AtomicU32,
    /// Sectors that the last pass has to check; 0 before it.
    pub to_verify: AtomicU64,
    /// Those that it has checked.
    pub verified: AtomicU64,
    /// Those of them that were not what they had to be.
    pub mismatches: AtomicU64,
}

impl Progress {
    /// How far the last pass is.
    pub fn verified(&self, far: &FinalPassProgress) {
        self.verified.store(far.checked + far.errors, Ordering::Relaxed);
        self.mismatches.store(far.mismatches, Ordering::Relaxed);
        self.to_verify.store(far.known, Ordering::Relaxed);
    }
}

/// What the completion log ends with.
pub struct Recorded {
    /// All rows, counted.
    pub counter: Counter,
    /// The journal, flushed as far as the disk let it.
    pub journal: JournalWriter,
    /// What the reads showed, if they were checked.
    pub checker: Option<Checker>,
    /// Why rows are missing from it, if so.
    pub failure: Option<io::Error>,
}

/// The room behind the loop.
pub struct CompletionLog<'a> {
    input: Consumer<CompletedIo>,
    stalls: Consumer<Stall>,
    returned: Producer<Buffer>,
    arena: Arc<Arena>,
    journal: JournalWriter,
    stop: &'a Stop,
    progress: &'a Progress,
    counter: Counter,
    checker: Option<Checker>,
    failure: Option<io::Error>,
    /// When the journal was flushed last.
    flushed: Instant,
}

impl<'a> CompletionLog<'a> {
    /// Reads from `input` and `stalls` until the loop has gone, and gives buffers back by `returned`. Orders a stop if
    /// the journal cannot be written: measuring what cannot be kept helps nobody.
    pub fn new(
        input: Consumer<CompletedIo>,
        stalls: Consumer<Stall>,
        returned: Producer<Buffer>,
        arena: Arc<Arena>,
        journal: JournalWriter,
        stop: &'a Stop,
        progress: &'a Progress,
    ) -> Self {
        let counter = Counter::new();
        Self {
            input,
            stalls,
            returned,
            arena,
            journal,
            stop,
            progress,
            counter,
            checker: None,
            failure: None,
            flushed: Instant::now(),
        }
    }

    /// Has what was read and written checked, where there is a checker.
    pub fn checked_by(self, checker: Option<Checker>) -> Self {
        Self { checker, ..self }
    }

    /// Runs until the loop has gone.
    pub fn run(mut self) -> Recorded {
        // Neither the queue before it may run full, nor may the feeder have to wait for the buffers that it gives back.
        let mut nap = Backoff::for_queue(self.input.buffer().capacity().min(self.returned.buffer().capacity()));
        loop {
            // Asked before the queue is emptied: what the loop put there before it went is seen.
            let last = self.input.is_abandoned();
            let found = self.step(usize::MAX, Nanos::MAX);
            if last {
                return self.finish();
            }
            nap.sleep(found);
        }
    }

    /// Takes what is there, but not more than that many, and none that takes longer than `allowed`. Returns how many.
    pub fn step(&mut self, most: usize, allowed: Nanos) -> usize {
        let mut scheduled = None;
        let mut found = 0;
        while found < most
            && self.input.peek().is_ok_and(|done| takes(done) <= allowed)
            && let Ok(done) = self.input.pop()
        {
            scheduled = Some(done.record.scheduled.0);
            self.take(done);
            found += 1;
        }
        if let Some(scheduled) = scheduled {
            self.show(scheduled);
        }
        if self.flushed.elapsed() > FLUSH_EVERY {
            let outcome = self.journal.flush();
            self.note(outcome);
            self.flushed = Instant::now();
        }
        found
    }

    fn finish(mut self) -> Recorded {
        if let Some(checker) = &mut self.checker {
            checker.finish();
            self.keep_decided();
        }
        let outcome = self.journal.flush();
        self.note(outcome);
        let Self { counter, journal, checker, failure, .. } = self;
        Recorded { counter, journal, checker, failure }
    }

    fn take(&mut self, done: CompletedIo) {
        if let (Op::Read, Outcome::Ok, Some(buffer)) = (done.record.op, done.record.outcome, &done.buffer) {
            self.counter.zero_reads += u64::from(is_zero(self.arena.bytes(buffer, done.record.bytes_done)));
        }
        match &mut self.checker {
            Some(checker) => {
                checker.add(&done, &self.arena);
                self.keep_decided();
            }
            None => self.keep(&done.record),
        }
        if let Some(buffer) = done.buffer {
            // The queue back holds every buffer that there can be; a feeder that has gone needs none.
            let _ = self.returned.push(buffer);
        }
    }

    fn keep_decided(&mut self) {
        while let Some(record) = self.checker.as_mut().and_then(Checker::decided) {
            self.keep(&record);
        }
    }

    fn keep(&mut self, record: &IoResult) {
        // The loop tells of a stall before it puts out what that made late.
        while let Ok(stall) = self.stalls.pop() {
            self.counter.fidelity.stall(stall);
        }
        self.counter.add(record);
        if self.failure.is_some() {
            self.counter.unrecorded += 1;
        } else {
            let outcome = self.journal.write(record);
            if outcome.is_err() {
                self.counter.unrecorded += 1;
            }
            self.note(outcome);
        }
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome
            && self.failure.is_none()
        {
            self.stop.drain();
            self.failure = Some(error);
        }
    }

    fn show(&self, scheduled: i64) {
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

/// How long it takes to look at what was read, if it is nothing but zeros: some 8 GB/s.
fn takes(done: &CompletedIo) -> Nanos {
    if done.record.op == Op::Read { Nanos(done.record.bytes_done as i64 / 8) } else { Nanos::ZERO }
}

/// Stops at the first byte that isn't: nearly always the first.
fn is_zero(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| b == 0)
}
