//! From rows to the file, by a thread of its own: encoding never competes with reading the ring. What was recorded is
//! handed to the system from time to time, so that little is lost if this program is killed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iosonar_trace::{Metadata, Request, Writer};

use crate::error::{Error, Result};

/// How many batches of rows the file may lag behind.
const BATCHES: usize = 256;

/// What a killed recording loses of its end: a share of it, but something in between of these. (And what waits behind a
/// request that hangs, as rows leave in their order.)
///
/// Each time costs a group of rows of its own, and a table of contents that grows with their number: 500 in a day.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);
const SHARE: u32 = 50;

/// When is what was recorded handed over next?
#[derive(Default)]
pub(crate) struct Pace {
    next: Duration,
}

impl Pace {
    /// Whether it is time, so long after the start.
    pub fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.next;
        if is_due {
            self.next = elapsed + (elapsed / SHARE).clamp(SHORTEST, LONGEST);
        }
        is_due
    }
}

/// What the thread is told.
enum Told {
    Rows(Vec<Request>),
    /// Make what was written so far outlive this program.
    Keep(Box<Metadata>),
    End(Box<Metadata>),
}

/// The thread.
pub(crate) struct Saving {
    told: SyncSender<Told>,
    thread: JoinHandle<Result<Vec<String>>>,
}

impl Saving {
    /// Begins to write.
    pub fn start(writer: Box<dyn Writer<Request>>) -> Self {
        let (told, heard) = sync_channel(BATCHES);
        Self { told, thread: std::thread::spawn(move || write(writer, &heard)) }
    }

    /// Waits if the file lags behind: then the ring is the room that is left.
    pub fn take(&self, rows: Vec<Request>) {
        self.tell(Told::Rows(rows));
    }

    /// Makes what was taken so far outlive this program.
    pub fn keep(&self, so_far: Metadata) {
        self.tell(Told::Keep(so_far.into()));
    }

    fn tell(&self, what: Told) {
        // Nobody hears it if the file is over.
        let _ = self.told.send(what);
    }

    /// Whether the file could not be written, and nothing is taken any more; [`Saving::finish`] says why.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the file. Returns what it could not hold, one sentence each.
    pub fn finish(self, metadata: Metadata) -> Result<Vec<String>> {
        self.tell(Told::End(metadata.into()));
        self.thread.join().map_err(|_| Error::WriterGone)?
    }
}

fn write(mut writer: Box<dyn Writer<Request>>, heard: &Receiver<Told>) -> Result<Vec<String>> {
    for told in heard {
        match told {
            Told::Rows(rows) => {
                for row in &rows {
                    writer.write(row)?;
                }
            }
            Told::Keep(so_far) => writer.checkpoint(&so_far)?,
            Told::End(metadata) => return Ok(writer.finish(&metadata)?.warnings),
        }
    }
    Err(Error::WriterGone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_recording_loses_little_of_a_short_one_and_is_not_cut_into_many_pieces_if_long() {
        let mut pace = Pace::default();
        let due: Vec<u64> = (0..24 * 3600).filter(|&second| pace.is_due(Duration::from_secs(second))).collect();
        assert_eq!(due[..4], [0, 5, 10, 15]);
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] <= 5.max(pair[0] / 50 + 1).min(301)));
        assert!((400..600).contains(&due.len()), "{}", due.len());
    }
}
