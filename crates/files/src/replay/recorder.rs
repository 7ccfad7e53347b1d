//! The stage after the engine: counts finished calls and writes them to the result.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iosonar_pacing::Stop;
use iosonar_pacing::progress::Progress;
use iosonar_trace::Result;

use super::instance::Results;
use super::pause::Pause;
use super::statistics::Counter;
use crate::checkpoints::Checkpoints;
use crate::{Metadata, ResultWriter};

/// Takes finished calls of all instances.
pub struct Recorder {
    /// For each instance, its finished calls.
    pub from: Vec<Results>,
    /// The result.
    pub writer: Box<dyn ResultWriter>,
    /// The footer of the result if the replay is killed.
    pub so_far: Box<dyn Fn(&Counter) -> Metadata + Send>,
    /// The statistics.
    pub counter: Counter,
    /// Whether calls have times, so that frequent wake-ups could make them late.
    pub keeps_times: bool,
    /// Where progress is shown.
    pub progress: Arc<Progress>,
    /// Ends the replay if the result cannot be written.
    pub stop: Arc<Stop>,
}

/// What the recorder returns.
pub struct Recorded {
    /// The result, not yet finished.
    pub writer: Box<dyn ResultWriter>,
    /// The statistics.
    pub counter: Counter,
    /// Whether all rows were written.
    pub outcome: Result<()>,
}

impl Recorder {
    /// Records until the engines of all instances have ended.
    pub fn run(mut self) -> Recorded {
        let capacity = self.from.first().map_or(1, |from| from.done.buffer().capacity());
        let mut pause = Pause::new(capacity, self.keeps_times);
        let mut outcome = Ok(());
        let mut checkpoints = Checkpoints::start();
        loop {
            let (mut found, mut ended) = (0, true);
            for instance in 0..self.from.len() {
                let is_abandoned = self.from[instance].done.is_abandoned();
                ended &= is_abandoned;
                while let Ok(mut done) = self.from[instance].done.pop() {
                    found += 1;
                    let mut row = done.row(instance as u32);
                    self.counter.add(&row, done.call.begin, done.call.end);
                    if outcome.is_ok() {
                        outcome = self.writer.write(&row);
                        if outcome.is_ok() && checkpoints.add_row() {
                            outcome = self.writer.checkpoint(&(self.so_far)(&self.counter));
                        }
                        if outcome.is_err() {
                            self.stop.drain();
                        }
                    }
                    if let Some(issued) = row.issued.filter(|_| self.keeps_times) {
                        self.progress.add_delay(issued - row.scheduled);
                    }
                    self.progress.scheduled_ns.store(row.scheduled.0, Ordering::Relaxed);
                    done.call.record.path = row.path.take();
                    // If there is no room, the memory is freed.
                    let _ = self.from[instance].recorded.push(done.call);
                }
            }
            self.progress.requests.store(self.counter.calls(), Ordering::Relaxed);
            if found > 0 {
                self.progress.completed.store(self.counter.issued(), Ordering::Relaxed);
                self.progress.bytes.store(self.counter.bytes(), Ordering::Relaxed);
                self.progress.errors.store(self.counter.mismatches(), Ordering::Relaxed);
            } else if ended {
                return Recorded { writer: self.writer, counter: self.counter, outcome };
            }
            if outcome.is_ok() && checkpoints.is_due() {
                outcome = self.writer.checkpoint(&(self.so_far)(&self.counter));
                if outcome.is_err() {
                    self.stop.drain();
                }
            }
            pause.sleep(found);
        }
    }
}
