//! The stage after the engine: counts finished calls and writes them to the journal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iosonar_pacing::Stop;
use iosonar_pacing::progress::Progress;
use iosonar_trace::journal::JournalWriter;

use super::instance::Results;
use super::journal::Recorded;
use super::live::row_of;
use super::pause::Pause;
use super::statistics::Counter;

/// Takes finished calls of all instances.
pub struct Recorder {
    /// For each instance, its finished calls.
    pub from: Vec<Results>,
    /// The journal.
    pub journal: JournalWriter<Recorded>,
    /// The statistics.
    pub counter: Counter,
    /// Whether calls have times, so that frequent wake-ups could make them late.
    pub keeps_times: bool,
    /// Where progress is shown.
    pub progress: Arc<Progress>,
    /// Ends the replay if the journal cannot be written.
    pub stop: Arc<Stop>,
}

impl Recorder {
    /// Records until the engines of all instances have ended.
    pub fn run(mut self) -> (JournalWriter<Recorded>, Counter) {
        let capacity = self.from.first().map_or(1, |from| from.done.buffer().capacity());
        let mut pause = Pause::new(capacity, self.keeps_times);
        loop {
            let (mut found, mut ended) = (0, true);
            for instance in 0..self.from.len() {
                let is_abandoned = self.from[instance].done.is_abandoned();
                ended &= is_abandoned;
                while let Ok(mut done) = self.from[instance].done.pop() {
                    found += 1;
                    let entry = Recorded { row: done.row(instance as u32), begin_in_trace: done.call.begin };
                    self.counter.add(&entry.row, entry.begin_in_trace);
                    if let Some(live) = &self.progress.live {
                        live.add(&row_of(&entry.row));
                    }
                    if !self.journal.write(&entry) {
                        self.stop.drain();
                    }
                    let row = entry.row;
                    if let Some(issued) = row.issued.filter(|_| self.keeps_times) {
                        self.progress.add_delay(issued - row.scheduled);
                    }
                    self.progress.scheduled_ns.store(row.scheduled.0, Ordering::Relaxed);
                    done.call.record.path = row.path;
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
                return (self.journal, self.counter);
            }
            if !self.journal.flush_if_due() {
                self.stop.drain();
            }
            pause.sleep(found);
        }
    }
}
