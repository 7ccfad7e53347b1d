//! Reads events ahead in a separate thread: reading a trace takes about as long as matching its events.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::events::{Event, EventSource};
use crate::model::metadata::{Counts, Device, Kind, Metadata};

/// Events of a batch.
const BATCH: usize = 8192;
/// Most batches between the threads.
const BATCHES: usize = 8;

/// A source whose events another thread reads.
pub struct ReadAhead {
    batches: Receiver<Result<Batch>>,
    reader: Option<JoinHandle<()>>,
    events: std::vec::IntoIter<Event>,
    progress: Option<f64>,
    /// Whether the source has named a device; before that, the metadata has one without a name.
    devices_seen: bool,
    ended: bool,
}

struct Batch {
    events: Vec<Event>,
    additions: Additions,
    progress: Option<f64>,
    ended: bool,
}

/// Additions to the metadata by the source, with one batch.
struct Additions {
    devices: Vec<Device>,
    warnings: Vec<String>,
    counts: Counts,
    epoch_unix_ns: Option<i64>,
    complete: bool,
}

impl ReadAhead {
    /// Starts the thread.
    pub fn start(source: impl EventSource + 'static) -> Result<Self> {
        let (to, batches) = sync_channel(BATCHES);
        let reader = thread::Builder::new()
            .name("trace-reader".into())
            .spawn(move || read(source, &to))
            .map_err(|e| Error::io("the reader thread", e))?;
        Ok(Self {
            batches,
            reader: Some(reader),
            events: Vec::new().into_iter(),
            progress: None,
            devices_seen: false,
            ended: false,
        })
    }

    fn add(&mut self, additions: Additions, metadata: &mut Metadata) {
        if !additions.devices.is_empty() && !self.devices_seen {
            self.devices_seen = true;
            metadata.devices.clear();
        }
        metadata.devices.extend(additions.devices);
        additions.warnings.into_iter().for_each(|warning| metadata.warning(warning));
        metadata.counts.bad_lines += additions.counts.bad_lines;
        metadata.counts.time_jumps += additions.counts.time_jumps;
        metadata.counts.lost_events = metadata.counts.lost_events.saturating_add(additions.counts.lost_events);
        metadata.epoch_unix_ns = additions.epoch_unix_ns.or(metadata.epoch_unix_ns);
        metadata.complete &= additions.complete;
    }
}

impl EventSource for ReadAhead {
    fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
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
                    self.add(batch.additions, metadata);
                    (self.events, self.progress, self.ended) = (batch.events.into_iter(), batch.progress, batch.ended);
                }
                // The thread ended after an error, or panicked.
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

/// Reads to the end, or until the receiver is dropped.
fn read(mut source: impl EventSource, to: &SyncSender<Result<Batch>>) {
    let mut metadata = Metadata::new(Kind::Load, "");
    metadata.devices.clear();
    // The metadata keeps sent warnings, so that their number is limited over all batches, not in each.
    let (mut devices_sent, mut warnings_sent) = (0, 0);
    loop {
        let mut events = Vec::with_capacity(BATCH);
        let (mut ended, mut error) = (false, None);
        while events.len() < BATCH && !ended {
            match source.next(&mut metadata) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => ended = true,
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
        }
        let additions = Additions {
            devices: metadata.devices[devices_sent..].to_vec(),
            warnings: metadata.warnings[warnings_sent..].to_vec(),
            counts: std::mem::take(&mut metadata.counts),
            epoch_unix_ns: metadata.epoch_unix_ns.take(),
            complete: metadata.complete,
        };
        (devices_sent, warnings_sent) = (metadata.devices.len(), metadata.warnings.len());
        let batch = Batch { events, additions, progress: source.progress(), ended };
        let has_receiver = to.send(Ok(batch)).is_ok();
        if let Some(error) = error {
            let _ = to.send(Err(error));
            return;
        }
        if ended || !has_receiver {
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

    /// Returns `to` events, then the end or an error. Adds to the metadata at every thousandth event.
    struct Counting {
        next: i64,
        to: i64,
        fails: bool,
    }

    impl EventSource for Counting {
        fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
            if self.next == self.to {
                metadata.complete = false;
                return if self.fails { Err(Error::format("x", "broken")) } else { Ok(None) };
            }
            self.next += 1;
            let device = (self.next - 1) / 1000;
            if self.next % 1000 == 1 {
                if device == 0 {
                    metadata.devices.clear();
                }
                metadata.devices.push(Device { name: device.to_string(), sectors: None });
                metadata.warning(format!("device {device}"));
                metadata.counts.bad_lines += 1;
            }
            if self.next == 1500 {
                metadata.epoch_unix_ns = Some(7);
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

    /// All events, the metadata, the error, and the progress.
    fn drain(mut source: impl EventSource) -> (Vec<Event>, Metadata, Option<String>, Option<f64>) {
        let mut metadata = Metadata::new(Kind::Load, "given");
        let mut events = Vec::new();
        let error = loop {
            match source.next(&mut metadata) {
                Ok(Some(event)) => {
                    // The device of an event is known when the event is returned.
                    assert!(usize::from(event.device.0) < metadata.devices.len());
                    events.push(event);
                }
                Ok(None) => break None,
                Err(e) => break Some(e.to_string()),
            }
        };
        (events, metadata, error, source.progress())
    }

    #[test]
    fn events_metadata_and_errors_are_those_of_the_source() {
        for (to, fails) in [(0, false), (1, false), (1023, false), (1024, true), (20_000, false), (5000, true)] {
            let source = || Counting { next: 0, to, fails };
            assert_eq!(drain(ReadAhead::start(source()).unwrap()), drain(source()), "{to}");
        }
    }

    #[test]
    fn the_thread_ends_when_its_receiver_is_dropped() {
        let mut ahead = ReadAhead::start(Counting { next: 0, to: i64::MAX, fails: false }).unwrap();
        let mut metadata = Metadata::new(Kind::Load, "given");
        ahead.next(&mut metadata).unwrap();
        let reader = ahead.reader.take().unwrap();
        drop(ahead);
        reader.join().unwrap();
    }
}
