//! A recording: from the kernel's events to the file.

use std::time::Duration;

use iosonar_trace::output::CheckpointSchedule;
use iosonar_trace::{Clocks, Device, Kind, Metadata, Request, RequestTime, Writer, WriterThread, human};
use rustix::time::{ClockId, clock_gettime};

use crate::device::{BlockDevice, Layer, refuse_overlaps};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::options::{Level, Options};
use crate::pairing::{Pairing, RecordedDevice};

/// How often the ring is drained when it is not filling up.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// How long the end of the recording waits for requests in flight.
const IN_FLIGHT_TIMEOUT_NS: u64 = 2_000_000_000;

/// Rows handed to the writer thread at once, except when a checkpoint is due.
const BATCH_ROWS: usize = 4096;

/// Batches that the file may lag behind; the ring then buffers events.
const BATCHES: usize = 256;

/// Events drained at once, before the recorder does anything else.
const DRAIN_EVENTS: usize = 1 << 16;

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Requests seen so far.
    pub requests: u64,
    /// Events that were lost because the ring was full.
    pub lost_events: u64,
}

/// A recording in progress.
pub struct Recorder {
    kernel: Kernel,
    pairing: Pairing,
    devices: Vec<BlockDevice>,
    level: Level,
    zero_ns: u64,
    malformed_events: u64,
    rows: Vec<Request>,
    /// The footer without the counters of the kernel and of the pairing.
    metadata: Metadata,
}

impl Recorder {
    /// Starts recording the devices.
    ///
    /// # Errors
    /// If devices overlap, or the kernel refuses the eBPF program.
    pub fn start(devices: Vec<BlockDevice>, options: &Options) -> Result<Self> {
        refuse_overlaps(&devices)?;
        // Loading takes a while; the recording's zero comes after it.
        let kernel = Kernel::load(&devices, options)?;
        let zero_ns = now(ClockId::Monotonic);
        let unix_ns = now(ClockId::Realtime).cast_signed();
        let clocks = Clocks { unix_ns, monotonic_ns: zero_ns.cast_signed() };
        let recorded = devices.iter().map(|d| RecordedDevice { layer: d.layer, first: d.first() }).collect();
        let pairing = Pairing::new(options.level, recorded, zero_ns);
        let metadata =
            Metadata { epoch_unix_ns: Some(unix_ns), clocks: Some(clocks), ..initial_metadata(&devices, options) };
        let level = options.level;
        Ok(Self { kernel, pairing, devices, level, zero_ns, malformed_events: 0, rows: Vec::new(), metadata })
    }

    fn footer(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        metadata.counts.lost_events = self.lost_events();
        metadata.counts.unmatched = self.pairing.rows().abandoned();
        for warning in self.warnings() {
            metadata.warning(warning);
        }
        metadata
    }

    /// Records into `writer` until `go_on` returns false; it is called many times a second. Returns the footer, and
    /// what `writer` could not represent, one sentence each.
    ///
    /// # Errors
    /// If the file cannot be written: the part written so far may remain in a hidden file, which the error names. If
    /// the kernel delivers no more events: the file then ends with the events that arrived.
    pub fn run(
        mut self,
        writer: Box<dyn Writer<Request>>,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<(Metadata, Vec<String>)> {
        let file = WriterThread::start(writer, BATCHES);
        let outcome = self.record_until(&file, &mut go_on).and_then(|()| self.await_in_flight(&file));
        if outcome.is_err() {
            // Events already in the ring can still be read.
            self.drain_ring(&file);
        }
        self.pairing.release_all(&mut self.rows);
        self.send_rows(&file);
        let metadata = if outcome.is_ok() { self.footer() } else { self.incomplete_footer() };
        self.kernel.stop();
        // A write error takes precedence over the error of the recording.
        let notes = file.finish(metadata.clone())?.warnings;
        outcome.map(|()| (metadata, notes)).map_err(|error| Error::StoppedEarly(error.into()))
    }

    /// Records until `go_on` returns false or the file can no longer be written.
    fn record_until(&mut self, file: &WriterThread<Request>, go_on: &mut impl FnMut(&Progress) -> bool) -> Result<()> {
        let mut schedule = CheckpointSchedule::default();
        loop {
            let progress = self.progress();
            if !go_on(&progress) {
                return Ok(());
            }
            self.kernel.wait(DRAIN_INTERVAL)?;
            self.drain();
            self.pairing.release(&mut self.rows);
            let is_due = schedule.is_due(progress.elapsed);
            if is_due || self.rows.len() >= BATCH_ROWS {
                self.send_rows(file);
            }
            if is_due {
                file.checkpoint(self.incomplete_footer());
            }
            if file.has_ended() {
                return Err(iosonar_trace::Error::WriterGone.into());
            }
        }
    }

    fn send_rows(&mut self, file: &WriterThread<Request>) {
        for row in &self.rows {
            self.metadata.count_request(row);
        }
        file.write(std::mem::take(&mut self.rows));
    }

    /// The footer of a recording that was cut short.
    fn incomplete_footer(&self) -> Metadata {
        let mut metadata = self.footer();
        metadata.complete = false;
        metadata
    }

    /// Waits for requests that began before the end of the recording.
    fn await_in_flight(&mut self, file: &WriterThread<Request>) -> Result<()> {
        self.drain_ring(file);
        let end = now(ClockId::Monotonic) + IN_FLIGHT_TIMEOUT_NS;
        while self.pairing.rows().in_flight() > 0 && now(ClockId::Monotonic) < end {
            self.kernel.wait(DRAIN_INTERVAL)?;
            self.drain();
        }
        Ok(())
    }

    /// Ends the recording now, and drains the ring.
    fn drain_ring(&mut self, file: &WriterThread<Request>) {
        self.pairing.end_at(now(ClockId::Monotonic));
        // If events arrive faster than they are read, the ring is never empty.
        while !self.drain() && !self.pairing.is_past_end() {
            self.pairing.release(&mut self.rows);
            self.send_rows(file);
        }
    }

    /// Drains the ring of at most [`DRAIN_EVENTS`] events; returns whether it is empty.
    fn drain(&mut self) -> bool {
        // Read before draining: an event that arrives later can be older than this only by a little.
        let before = now(ClockId::Monotonic);
        let drained = self.kernel.drain(DRAIN_EVENTS, |event| self.pairing.push(event));
        self.malformed_events += drained.malformed;
        if drained.is_empty {
            self.pairing.ring_empty_at(before);
        }
        drained.is_empty
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: Duration::from_nanos(now(ClockId::Monotonic) - self.zero_ns),
            requests: self.pairing.counts().started,
            lost_events: self.lost_events(),
        }
    }

    fn lost_events(&self) -> u64 {
        self.kernel.lost_events() + self.malformed_events
    }

    fn warnings(&self) -> Vec<String> {
        let level = match self.level {
            Level::Queue => "at level Q: requests as submitted, before splitting and merging",
            Level::Driver => "at level D: requests as issued to the driver",
        };
        let mut warnings = vec![format!(
            // The time of the recording's own zero. It stays true when rows are shifted in time later.
            "recorded {level}; started at {} ns of CLOCK_MONOTONIC; kernel {}",
            self.zero_ns,
            rustix::system::uname().release().to_string_lossy()
        )];
        for (index, device) in self.devices.iter().enumerate() {
            if device.layer == Layer::Bios && self.level == Level::Driver {
                warnings.push(format!("{} is bio-based: levels Q and D are the same", device.name));
            }
            if let Some(partition) = device.partition {
                // The eBPF program attributes such flushes to the first recorded device on the disk.
                let first = self.devices[..index].iter().find(|other| other.disk_name == device.disk_name);
                warnings.push(format!(
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
        warnings.extend(self.devices.iter().filter_map(BlockDevice::missing_medium));
        let counts = self.pairing.counts();
        let mut count = |number: u64, what: &str| {
            if number > 0 {
                warnings.push(human::agreed(number, what));
            }
        };
        count(self.lost_events(), "events lost because the ring buffer was full: requests or completions are missing");
        count(
            self.kernel.skipped_events(),
            "events at most skipped by the kernel, because the recorder was busy with another on that CPU",
        );
        let without = self.pairing.rows().abandoned();
        let in_flight = if self.lost_events() > 0 { 0 } else { self.pairing.rows().in_flight_at_end() };
        count(
            without - in_flight,
            "requests without a latency: the completion was not seen (docs/recording.md#losses)",
        );
        count(in_flight, "requests of the last second without a latency: probably still in flight at the end");
        count(self.pairing.rows().late(), "requests arrived too late for sorting, and have a later time");
        count(counts.failed, "requests failed; they are in the load");
        count(counts.requeued, "requeues by the driver (busy or retry); each request is one row");
        count(
            self.kernel.other_commands(),
            "commands left out, as a load cannot hold them (zone management, passthrough)",
        );
        count(
            counts.would_block,
            "requests with REQ_NOWAIT failed with EAGAIN and are left out: they are submitted again",
        );
        if counts.started == 0 {
            count(
                counts.unqueued,
                "requests issued without being queued on this device, as on a path of a multipath device: record the \
                 multipath device, or the path at --level D",
            );
        }
        warnings
    }
}

/// The metadata of a recording before it starts.
pub fn initial_metadata(devices: &[BlockDevice], options: &Options) -> Metadata {
    let mut metadata = Metadata::new(Kind::Load, "record");
    // In text formats the preamble is the only record of the origin.
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
