//! A load that a thread of its own reads ahead of a loop that does everything else itself: what is packed is unpacked in
//! pieces, and a piece takes longer than there is between two deadlines.
//!
//! Neither wakes the other, as that would cost the loop more than a request does: both look now and then.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use iosonar_trace::{Metadata, Reader, Request};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::error::{Error, Result};

/// Requests that change hands at a time, and how many such there may be between the two: some 50 MB. While this thread
/// works, the kernel serves the device on the loop's own processor; what was read before the start costs nothing then.
const BATCH: usize = 1024;
const BATCHES: usize = 512;
/// How long the thread sleeps when it is far enough ahead. Even at a million requests a second that is a third of it.
const FULL: Duration = Duration::from_millis(5);
/// How long the other one does if there is nothing yet.
const EMPTY: Duration = Duration::from_micros(100);

/// A reader whose rows another thread reads.
pub struct Ahead {
    batches: Consumer<Batch>,
    rows: std::vec::IntoIter<Request>,
    /// What is known of the load with the batch at hand.
    known: Metadata,
    has_totals: bool,
    /// Of the batch at hand, if it is the last one.
    end: Option<iosonar_trace::Result<()>>,
    reader: Option<JoinHandle<()>>,
}

struct Batch {
    rows: Vec<Request>,
    known: Metadata,
    end: Option<iosonar_trace::Result<()>>,
}

impl Ahead {
    /// Begins to read.
    pub fn start(load: Box<dyn Reader<Request>>) -> Result<Self> {
        let (to, batches) = RingBuffer::new(BATCHES);
        let (known, has_totals) = (load.metadata().clone(), load.has_totals());
        let thread = thread::Builder::new().name("reader".into()).spawn(move || read(load, to));
        let reader = thread.map_err(|e| Error::system("the load's reader cannot be started", e))?;
        Ok(Self { batches, rows: Vec::new().into_iter(), known, has_totals, end: None, reader: Some(reader) })
    }

    /// False if the thread has gone without a word, which it does in a panic only.
    fn take_batch(&mut self) -> bool {
        loop {
            // Asked before the look: what was put there before it went is seen.
            let gone = self.batches.is_abandoned();
            if let Ok(batch) = self.batches.pop() {
                (self.rows, self.known, self.end) = (batch.rows.into_iter(), batch.known, batch.end);
                return true;
            }
            if gone {
                return false;
            }
            thread::sleep(EMPTY);
        }
    }
}

impl Reader<Request> for Ahead {
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
                None if self.take_batch() => {}
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
        &self.known
    }

    fn has_totals(&self) -> bool {
        self.has_totals
    }
}

/// Reads to the end, or until nobody takes the rows any more.
fn read(mut load: Box<dyn Reader<Request>>, mut to: Producer<Batch>) {
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
        let mut batch = Batch { rows, known: load.metadata().clone(), end };
        while let Err(PushError::Full(back)) = to.push(batch) {
            if to.is_abandoned() {
                return;
            }
            batch = back;
            thread::sleep(FULL);
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

    /// Requests up to a number, counted in the metadata; then the end, or an error.
    struct Made {
        next: i64,
        to: i64,
        fails: bool,
        known: Metadata,
    }

    impl Made {
        fn load(to: i64, fails: bool) -> Box<dyn Reader<Request>> {
            Box::new(Self { next: 0, to, fails, known: Metadata::new(Kind::Load, "made") })
        }
    }

    impl Reader<Request> for Made {
        fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
            if self.next == self.to {
                self.known.complete = false;
                let broken = iosonar_trace::Error::format("made", "broken");
                return if self.fails { Err(broken) } else { Ok(None) };
            }
            self.next += 1;
            self.known.counts.bad_lines += 1;
            Ok(Some(Request::new(Nanos(self.next), Op::Read, Sector(8), Sectors(8))))
        }

        fn metadata(&self) -> &Metadata {
            &self.known
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
    fn it_tells_what_the_load_tells() {
        for (to, fails) in [(0, false), (1, true), (1023, false), (1024, false), (1025, true), (50_000, false)] {
            let (times, error, bad_lines, complete) = drain(Ahead::start(Made::load(to, fails)).unwrap());
            assert!(times.into_iter().eq(1..=to), "{to}");
            assert_eq!((error.is_some(), bad_lines, complete), (fails, to as u64, false), "{to}");
        }
    }

    #[test]
    fn a_thread_whose_rows_nobody_takes_ends() {
        let mut ahead = Ahead::start(Made::load(i64::MAX, false)).unwrap();
        ahead.next().unwrap();
        let reader = ahead.reader.take().unwrap();
        drop(ahead);
        reader.join().unwrap();
    }
}
