//! Events that a thread of its own reads ahead: reading a trace takes about as long as telling what in it belongs
//! together.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::events::{Event, EventSource};
use crate::model::metadata::{Counts, Device, Kind, Metadata};

/// Events that go from one thread to the other at a time, and how many such may lie between them.
const BATCH: usize = 8192;
const BATCHES: usize = 8;

/// A source whose events another thread reads.
pub struct Ahead {
    batches: Receiver<Result<Batch>>,
    reader: Option<JoinHandle<()>>,
    events: std::vec::IntoIter<Event>,
    progress: Option<f64>,
    /// Whether a device has been seen; before that the metadata has one without a name.
    devices_seen: bool,
    ended: bool,
}

struct Batch {
    events: Vec<Event>,
    learnt: Learnt,
    progress: Option<f64>,
    ended: bool,
}

/// What a source has added to the metadata.
struct Learnt {
    devices: Vec<Device>,
    notices: Vec<String>,
    counts: Counts,
    epoch_unix_ns: Option<i64>,
    complete: bool,
}

impl Ahead {
    /// Begins to read.
    pub fn start(source: impl EventSource + 'static) -> Result<Self> {
        let (to, batches) = sync_channel(BATCHES);
        let reader = thread::Builder::new()
            .name("trace-reader".into())
            .spawn(move || read(source, &to))
            .map_err(|e| Error::io("the thread that reads", e))?;
        Ok(Self {
            batches,
            reader: Some(reader),
            events: Vec::new().into_iter(),
            progress: None,
            devices_seen: false,
            ended: false,
        })
    }

    fn learn(&mut self, learnt: Learnt, about: &mut Metadata) {
        if !learnt.devices.is_empty() && !self.devices_seen {
            self.devices_seen = true;
            about.devices.clear();
        }
        about.devices.extend(learnt.devices);
        learnt.notices.into_iter().for_each(|notice| about.notice(notice));
        about.counts.bad_lines += learnt.counts.bad_lines;
        about.counts.time_jumps += learnt.counts.time_jumps;
        about.counts.lost_events = about.counts.lost_events.saturating_add(learnt.counts.lost_events);
        about.epoch_unix_ns = learnt.epoch_unix_ns.or(about.epoch_unix_ns);
        about.complete &= learnt.complete;
    }
}

impl EventSource for Ahead {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            match self.batches.recv() {
                Ok(batch) => {
                    let batch = batch?;
                    self.learn(batch.learnt, about);
                    (self.events, self.progress, self.ended) = (batch.events.into_iter(), batch.progress, batch.ended);
                }
                // It went without a word: after an error, or in a panic.
                Err(_) => {
                    self.ended = true;
                    if let Some(Err(panic)) = self.reader.take().map(JoinHandle::join) {
                        resume_unwind(panic);
                    }
                }
            }
        }
    }

    fn progress(&self) -> Option<f64> {
        self.progress
    }
}

/// Reads to the end, or until nobody takes the events any more.
fn read(mut source: impl EventSource, to: &SyncSender<Result<Batch>>) {
    let mut about = Metadata::new(Kind::Load, "");
    about.devices.clear();
    // Notices stay here, too: the first hundred lines are named, not the first hundred of each batch.
    let (mut devices_told, mut notices_told) = (0, 0);
    loop {
        let mut events = Vec::with_capacity(BATCH);
        let (mut ended, mut error) = (false, None);
        while events.len() < BATCH && !ended {
            match source.next(&mut about) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => ended = true,
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
        }
        let learnt = Learnt {
            devices: about.devices[devices_told..].to_vec(),
            notices: about.notices[notices_told..].to_vec(),
            counts: std::mem::take(&mut about.counts),
            epoch_unix_ns: about.epoch_unix_ns.take(),
            complete: about.complete,
        };
        (devices_told, notices_told) = (about.devices.len(), about.notices.len());
        let batch = Batch { events, learnt, progress: source.progress(), ended };
        let taken = to.send(Ok(batch)).is_ok();
        if let Some(error) = error {
            let _ = to.send(Err(error));
            return;
        }
        if ended || !taken {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Action;
    use crate::model::request::{Comm, DeviceId, Flags, Op};
    use crate::model::units::{Nanos, Sector, Sectors};

    /// Events up to a number, with something to say at every thousandth; then the end, or an error.
    struct Counting {
        next: i64,
        to: i64,
        fails: bool,
    }

    impl EventSource for Counting {
        fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
            if self.next == self.to {
                about.complete = false;
                return if self.fails { Err(Error::format("x", "broken")) } else { Ok(None) };
            }
            self.next += 1;
            let device = (self.next - 1) / 1000;
            if self.next % 1000 == 1 {
                if device == 0 {
                    about.devices.clear();
                }
                about.devices.push(Device { name: device.to_string(), sectors: None });
                about.notice(format!("device {device}"));
                about.counts.bad_lines += 1;
            }
            if self.next == 1500 {
                about.epoch_unix_ns = Some(7);
            }
            Ok(Some(Event {
                at: Nanos(self.next),
                action: Action::Queue,
                device: DeviceId(device as u16),
                sector: Sector(8),
                sectors: Sectors(8),
                op: Op::Read,
                flags: Flags::NONE,
                is_append: false,
                pid: None,
                comm: Comm::default(),
            }))
        }

        fn progress(&self) -> Option<f64> {
            Some(self.next as f64 / self.to.max(1) as f64)
        }
    }

    /// All events, what was learnt, and how it ended.
    fn drain(mut source: impl EventSource) -> (Vec<Event>, Metadata, Option<String>, Option<f64>) {
        let mut about = Metadata::new(Kind::Load, "given");
        let mut events = Vec::new();
        let error = loop {
            match source.next(&mut about) {
                Ok(Some(event)) => {
                    // Whatever an event points to is known when it comes.
                    assert!(usize::from(event.device.0) < about.devices.len());
                    events.push(event);
                }
                Ok(None) => break None,
                Err(e) => break Some(e.to_string()),
            }
        };
        (events, about, error, source.progress())
    }

    #[test]
    fn it_tells_what_its_source_tells() {
        for (to, fails) in [(0, false), (1, false), (1023, false), (1024, true), (20_000, false), (5000, true)] {
            let source = || Counting { next: 0, to, fails };
            assert_eq!(drain(Ahead::start(source()).unwrap()), drain(source()), "{to}");
        }
    }

    #[test]
    fn a_reader_that_nobody_waits_for_ends() {
        let mut ahead = Ahead::start(Counting { next: 0, to: i64::MAX, fails: false }).unwrap();
        let mut about = Metadata::new(Kind::Load, "given");
        ahead.next(&mut about).unwrap();
        let reader = ahead.reader.take().unwrap();
        drop(ahead);
        reader.join().unwrap();
    }
}
