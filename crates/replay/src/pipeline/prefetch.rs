//! Reads the load ahead in a thread, if the loop runs the other stages inline: decompressing a part of a load takes longer
//! than the time between two deadlines.
//!
//! Neither side wakes the other, which would cost the loop more than a request does. Both poll.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use iosonar_pacing::{Error, Result};
use iosonar_trace::{Metadata, Reader, Request};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// Requests per batch, and batches in the queue: some 50 MB. While this thread works, the kernel serves the device on the
/// loop's processor, so requests read before the start cost nothing during the run.
const BATCH: usize = 1024;
const BATCHES: usize = 512;
/// Sleep while the queue is full. At a million requests per second the queue empties in a hundred times this time.
const FULL_SLEEP: Duration = Duration::from_millis(5);
/// Sleep while the queue is empty.
const EMPTY_SLEEP: Duration = Duration::from_micros(100);

/// A reader whose rows are read by another thread.
pub struct PrefetchReader {
    batches: Consumer<Batch>,
    rows: std::vec::IntoIter<Request>,
    /// The metadata as of the current batch.
    metadata: Metadata,
    has_totals: bool,
    /// The end of the load, if the current batch is the last one.
    end: Option<iosonar_trace::Result<()>>,
    reader: Option<JoinHandle<()>>,
}

struct Batch {
    rows: Vec<Request>,
    metadata: Metadata,
    end: Option<iosonar_trace::Result<()>>,
}

impl PrefetchReader {
    /// Starts reading.
    pub fn start(load: Box<dyn Reader<Request>>) -> Result<Self> {
        let (sender, batches) = RingBuffer::new(BATCHES);
        let (metadata, has_totals) = (load.metadata().clone(), load.has_totals());
        let thread = thread::Builder::new().name("reader".into()).spawn(move || read(load, sender));
        let reader = thread.map_err(|e| Error::system("cannot start the thread that reads the load", e))?;
        Ok(Self { batches, rows: Vec::new().into_iter(), metadata, has_totals, end: None, reader: Some(reader) })
    }

    /// Returns false if the thread ended without a last batch, which means that it panicked.
    fn receive_batch(&mut self) -> bool {
        loop {
            // Read before `pop`, so that batches pushed before the end are found.
            let is_abandoned = self.batches.is_abandoned();
            if let Ok(batch) = self.batches.pop() {
                (self.rows, self.metadata, self.end) = (batch.rows.into_iter(), batch.metadata, batch.end);
                return true;
            }
            if is_abandoned {
                return false;
            }
            thread::sleep(EMPTY_SLEEP);
        }
    }
}

impl Reader<Request> for PrefetchReader {
    fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
        loop {
            if let Some(request) = self.rows.next() {
                return Ok(Some(request));
            }
            match self.end.take() {
                Some(end) => {
                    self.end = Some(Ok(()));
                    return end.map(|()| None);
                }
                None if self.receive_batch() => {}
                None => {
                    if let Some(Err(panic)) = self.reader.take().map(JoinHandle::join) {
                        resume_unwind(panic);
                    }
                    return Ok(None);
                }
            }
        }
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_totals(&self) -> bool {
        self.has_totals
    }
}

/// Reads until the end of the load, or until the receiver is dropped.
fn read(mut load: Box<dyn Reader<Request>>, mut sender: Producer<Batch>) {
    loop {
        let mut rows = Vec::with_capacity(BATCH);
        let mut end = None;
        while rows.len() < BATCH && end.is_none() {
            match load.next() {
                Ok(Some(request)) => rows.push(request),
                Ok(None) => end = Some(Ok(())),
                Err(error) => end = Some(Err(error)),
            }
        }
        let ended = end.is_some();
        let mut batch = Batch { rows, metadata: load.metadata().clone(), end };
        while let Err(PushError::Full(back)) = sender.push(batch) {
            if sender.is_abandoned() {
                return;
            }
            batch = back;
            thread::sleep(FULL_SLEEP);
        }
        if ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Kind, Nanos, Op, Sector, Sectors};

    use super::*;

    /// Requests up to a number, counted in the metadata, then the end or an error.
    struct TestLoad {
        next: i64,
        to: i64,
        fails: bool,
        metadata: Metadata,
    }

    impl TestLoad {
        fn load(to: i64, fails: bool) -> Box<dyn Reader<Request>> {
            Box::new(Self { next: 0, to, fails, metadata: Metadata::new(Kind::Load, "made") })
        }
    }

    impl Reader<Request> for TestLoad {
        fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
            if self.next == self.to {
                self.metadata.complete = false;
                let broken = iosonar_trace::Error::format("made", "broken");
                return if self.fails { Err(broken) } else { Ok(None) };
            }
            self.next += 1;
            self.metadata.counts.bad_lines += 1;
            Ok(Some(Request::new(Nanos(self.next), Op::Read, Sector(8), Sectors(8))))
        }

        fn metadata(&self) -> &Metadata {
            &self.metadata
        }
    }

    fn drain(mut load: impl Reader<Request>) -> (Vec<i64>, Option<String>, u64, bool) {
        let mut times = Vec::new();
        let error = loop {
            match load.next() {
                Ok(Some(request)) => times.push(request.at.0),
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        assert!(error.is_some() || load.next().unwrap().is_none(), "the end stays the end");
        (times, error, load.metadata().counts.bad_lines, load.metadata().complete)
    }

    #[test]
    fn rows_errors_and_metadata_are_those_of_the_load() {
        for (to, fails) in [(0, false), (1, true), (1023, false), (1024, false), (1025, true), (50_000, false)] {
            let (times, error, bad_lines, complete) = drain(PrefetchReader::start(TestLoad::load(to, fails)).unwrap());
            assert!(times.into_iter().eq(1..=to), "{to}");
            assert_eq!((error.is_some(), bad_lines, complete), (fails, to as u64, false), "{to}");
        }
    }

    #[test]
    fn the_thread_ends_when_its_reader_is_dropped() {
        let mut prefetched = PrefetchReader::start(TestLoad::load(i64::MAX, false)).unwrap();
        prefetched.next().unwrap();
        let reader = prefetched.reader.take().unwrap();
        drop(prefetched);
        reader.join().unwrap();
    }
}
