//! A recording: from the kernel's events to the file.

use std::time::Duration;

use iosonar_trace::{Clocks, Device, Kind, Metadata, Request, RequestTime, Writer};
use rustix::time::{ClockId, clock_gettime};

use crate::device::{BlockDevice, Layer, refuse_overlaps};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::options::{Level, Options};
use crate::pairing::{Pairing, Recorded};
use crate::saving::{Pace, Saving};

/// How often the ring is emptied when there is no hurry.
const TICK: Duration = Duration::from_millis(20);

/// How long the end of the recording waits for requests that are still out.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Rows that go to the file together, unless it is time to keep those that there are.
const BATCH: usize = 4096;

/// Events that are taken before anything else is looked at.
const DRAIN: usize = 1 << 16;

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Requests that were seen.
    pub requests: u64,
    /// Events that were lost because the ring was full.
    pub lost_events: u64,
}

/// A recording that is going on.
pub struct Recorder {
    kernel: Kernel,
    pairing: Pairing,
    devices: Vec<BlockDevice>,
    level: Level,
    zero_ns: u64,
    strange_events: u64,
    rows: Vec<Request>,
    counted: Metadata,
}

impl Recorder {
    /// Starts to record those devices.
    ///
    /// # Errors
    /// If they overlap, or the kernel does not let it.
    pub fn start(devices: Vec<BlockDevice>, options: &Options) -> Result<Self> {
        refuse_overlaps(&devices)?;
        // Loading takes a while that is no part of the recording.
        let kernel = Kernel::load(&devices, options)?;
        let zero_ns = now(ClockId::Monotonic);
        let unix_ns = now(ClockId::Realtime).cast_signed();
        let clocks = Clocks { unix_ns, monotonic_ns: zero_ns.cast_signed() };
        let recorded = devices.iter().map(|d| Recorded { layer: d.layer, first: d.first() }).collect();
        let pairing = Pairing::new(options.level, recorded, zero_ns);
        let counted = Metadata { epoch_unix_ns: Some(unix_ns), clocks: Some(clocks), ..known(&devices, options) };
        let level = options.level;
        Ok(Self { kernel, pairing, devices, level, zero_ns, strange_events: 0, rows: Vec::new(), counted })
    }

    /// What is known of the recording by now.
    fn metadata(&self) -> Metadata {
        let mut metadata = self.counted.clone();
        metadata.counts.lost_events = self.lost_events();
        metadata.counts.unmatched = self.pairing.order().given_up();
        for notice in self.notices() {
            metadata.notice(notice);
        }
        metadata
    }

    /// Records into `writer` until `go_on` says no; it is asked many times a second. Returns what the footer says, and
    /// what `writer` could not hold, one sentence each.
    ///
    /// # Errors
    /// If the file can't be written: what was written until then may stay under a hidden name, which is told. If the kernel
    /// hands out no more events: the file is ended with those that there were.
    pub fn run(
        mut self,
        writer: Box<dyn Writer<Request>>,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<(Metadata, Vec<String>)> {
        let file = Saving::start(writer);
        let went = self.go(&file, &mut go_on).and_then(|()| self.await_the_last(&file));
        if went.is_err() {
            // What the ring holds can be read even so.
            self.read_out(&file);
        }
        self.pairing.finish(&mut self.rows);
        self.hand_over(&file);
        let metadata = if went.is_ok() { self.metadata() } else { self.so_far() };
        self.kernel.stop();
        // If it could not be written, this tells why.
        let notes = file.finish(metadata.clone())?;
        went.map(|()| (metadata, notes)).map_err(|error| Error::CutShort(error.into()))
    }

    /// Until it is to end, or the file can't be written any more.
    fn go(&mut self, file: &Saving, go_on: &mut impl FnMut(&Progress) -> bool) -> Result<()> {
        let mut pace = Pace::default();
        loop {
            let progress = self.progress();
            if !go_on(&progress) {
                return Ok(());
            }
            self.kernel.wait(TICK)?;
            self.drain();
            self.pairing.release(&mut self.rows);
            let is_due = pace.is_due(progress.elapsed);
            if is_due || self.rows.len() >= BATCH {
                self.hand_over(file);
            }
            if is_due {
                file.keep(self.so_far());
            }
            if file.is_over() {
                return Err(Error::WriterGone);
            }
        }
    }

    fn hand_over(&mut self, file: &Saving) {
        for row in &self.rows {
            self.counted.count_request(row);
        }
        file.take(std::mem::take(&mut self.rows));
    }

    /// The footer of a recording that was not ended in good order.
    fn so_far(&self) -> Metadata {
        let mut metadata = self.metadata();
        metadata.complete = false;
        metadata
    }

    /// Lets the requests end that began in time.
    fn await_the_last(&mut self, file: &Saving) -> Result<()> {
        self.read_out(file);
        let end = now(ClockId::Monotonic) + PATIENCE_NS;
        while self.pairing.order().awaited() > 0 && now(ClockId::Monotonic) < end {
            self.kernel.wait(TICK)?;
            self.drain();
        }
        Ok(())
    }

    /// Ends the recording now, but takes all that the ring holds.
    fn read_out(&mut self, file: &Saving) {
        self.pairing.end_at(now(ClockId::Monotonic));
        // Where events come faster than they are read it is never empty.
        while !self.drain() && !self.pairing.is_past_the_end() {
            self.pairing.release(&mut self.rows);
            self.hand_over(file);
        }
    }

    /// Takes what the ring holds, so much at most; tells whether it was all.
    fn drain(&mut self) -> bool {
        // The time is taken before: an event that is not in the ring by then can be older only by a little.
        let before = now(ClockId::Monotonic);
        let drained = self.kernel.drain(DRAIN, |event| self.pairing.take(event));
        self.strange_events += drained.strange;
        if drained.empty {
            self.pairing.found_empty(before);
        }
        drained.empty
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: Duration::from_nanos(now(ClockId::Monotonic) - self.zero_ns),
            requests: self.pairing.counts().begun,
            lost_events: self.lost_events(),
        }
    }

    fn lost_events(&self) -> u64 {
        self.kernel.lost_events() + self.strange_events
    }

    fn notices(&self) -> Vec<String> {
        let level = match self.level {
            Level::Queue => "at level Q: requests as submitted, before splitting and merging",
            Level::Driver => "at level D: requests as issued to the driver",
        };
        let mut notices = vec![format!(
            // Of the recording itself: rows may be moved in time later, and this stays.
            "recorded {level}; started at {} ns of CLOCK_MONOTONIC; kernel {}",
            self.zero_ns,
            rustix::system::uname().release().to_string_lossy()
        )];
        for (index, device) in self.devices.iter().enumerate() {
            if device.layer == Layer::Bios && self.level == Level::Driver {
                notices.push(format!("{} is bio-based: levels Q and D are the same", device.name));
            }
            if let Some(partition) = device.partition {
                // The kernel's half finds the first one that lies on the disk.
                let first = self.devices[..index].iter().find(|other| other.disk_name == device.disk_name);
                notices.push(format!(
                    "{} is a partition: sectors count from its start, sector {} of {}{}",
                    device.name,
                    partition.first.0,
                    device.disk_name,
                    match (self.level, first) {
                        (Level::Queue, _) => String::new(),
                        (Level::Driver, None) => "; flushes are of the whole disk".to_owned(),
                        (Level::Driver, Some(first)) =>
                            format!("; flushes of the whole disk are listed for {}", first.name),
                    }
                ));
            }
        }
        notices.extend(self.devices.iter().filter_map(BlockDevice::absence));
        let counts = self.pairing.counts();
        let mut count = |number: u64, what: &str| {
            if number > 0 {
                notices.push(format!("{number} {what}"));
            }
        };
        count(self.lost_events(), "events lost because the ring buffer was full: requests or completions are missing");
        count(
            self.kernel.skipped_events(),
            "events at most skipped by the kernel, because the recorder was busy with another on that CPU",
        );
        count(self.pairing.order().late(), "requests arrived too late for sorting, and have a later time");
        count(counts.failed, "requests failed; they are in the load");
        count(counts.requeued, "requeues by the driver (busy or retry); each request is one row");
        count(
            self.kernel.other_commands(),
            "commands left out, as a load cannot hold them (zone management, passthrough)",
        );
        count(counts.refused, "requests with REQ_NOWAIT failed with EAGAIN and are left out: they are submitted again");
        if counts.begun == 0 {
            count(
                counts.unasked,
                "requests issued without being queued on this device, as on a path of a multipath device: record the \
                 multipath device, or the path at --level D",
            );
        }
        notices
    }
}

/// What is known of a recording of these devices before it starts.
pub fn known(devices: &[BlockDevice], options: &Options) -> Metadata {
    let mut metadata = Metadata::new(Kind::Load, "record");
    // Text keeps nothing else that tells where it comes from.
    metadata.source.preamble = match options.note.as_str() {
        "" => format!("Recorded by iosonar: {}", names(devices)),
        note => note.to_owned(),
    };
    metadata.request_time = match options.level {
        Level::Queue => RequestTime::Queued,
        Level::Driver => RequestTime::Issued,
    };
    metadata.devices = devices.iter().map(|d| Device { name: d.name.clone(), sectors: Some(d.sectors.0) }).collect();
    metadata
}

fn names(devices: &[BlockDevice]) -> String {
    devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
