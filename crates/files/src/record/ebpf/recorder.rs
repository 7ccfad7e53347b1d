//! A recording: from the kernel's events to the table.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use iosonar_trace::output::CheckpointSchedule;
use iosonar_trace::{Clocks, Nanos, Writer, WriterThread};
use rustix::time::{ClockId, clock_gettime};

use super::event::Event;
use super::join::Join;
use super::kernel::Kernel;
use super::losses::Losses;
use super::options::Options;
use super::sequence::Sequence;
use crate::model::call::Call;
use crate::model::kind::CallKind;
use crate::model::metadata::{CallCounts, Metadata, Recorder as RecordedBy};
use crate::record::containers::Containers;
use crate::record::error::{Error, Result};
use crate::record::parts::{PartWriter, Parts};
use crate::table::LocatedWriter;

/// How often the ring is drained when it is not filling up.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Events drained at once, before the recorder does anything else.
const DRAIN_EVENTS: usize = 1 << 16;

/// How often calls get their places in the order, and for how many waiting calls earlier.
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);
const UNSETTLED_CALLS: usize = 1 << 16;

/// Noting the calls in flight takes at most this part of the time.
const NOTING_PARTS: u32 = 20;

/// Calls get their places this long after their start: a processor may stop between reading the clock and saying that a call
/// is in flight, as a virtual machine's does.
const SETTLE_BEHIND_NS: i64 = 50_000_000;

/// If every process is recorded, calls that take longer hold nothing back: some always wait, for a child or a connection.
const LONGEST_CALL_S: u64 = 10;

/// The least room that an event takes in the ring.
const SMALLEST_EVENT_BYTES: usize = 24;

/// Calls handed to the writer thread at once.
const BATCH_CALLS: usize = 4096;

/// Batches that the file may lag behind; the ring then buffers events.
const BATCHES: usize = 64;

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Calls seen so far.
    pub calls: u64,
    /// Events that were lost.
    pub lost_events: u64,
}

/// Where a recording goes.
pub enum Destination {
    /// One file.
    File(Box<LocatedWriter>),
    /// Several files, one after the other.
    Parts(Box<Parts>, Box<PartWriter>),
}

/// A recording in progress.
pub struct Recorder {
    kernel: Kernel,
    join: Join,
    containers: Containers,
    parts: Option<Box<Parts>>,
    /// Losses before the present part.
    before_part: Losses,
    part_began: Duration,
    zero_ns: u64,
    unix_ns: i64,
    malformed_events: u64,
    ring_events: usize,
    calls: u64,
    sequence: Sequence,
    counts: CallCounts,
    /// The process of the first call.
    first_process: Option<u32>,
}

impl Recorder {
    /// Starts recording; no process is followed yet.
    ///
    /// # Errors
    /// If the kernel refuses the eBPF program.
    pub fn start(options: &Options) -> Result<Self> {
        let kernel = Kernel::load(options)?;
        let join = Join::new(0).with_waiting(kernel.knows_waiting());
        let mut recorder = Self {
            kernel,
            join,
            containers: Containers::new(),
            parts: None,
            before_part: Losses::default(),
            part_began: Duration::ZERO,
            zero_ns: 0,
            unix_ns: 0,
            malformed_events: 0,
            ring_events: options.ring_bytes as usize / SMALLEST_EVENT_BYTES,
            calls: 0,
            sequence: Sequence::default(),
            counts: CallCounts::default(),
            first_process: None,
        };
        if options.all {
            recorder.kernel.announce()?;
            recorder.sequence.limit(Nanos(LONGEST_CALL_S as i64 * 1_000_000_000));
        }
        recorder.begin_now();
        Ok(recorder)
    }

    /// Leaves out what began before now.
    fn begin_now(&mut self) {
        self.zero_ns = now(ClockId::Monotonic);
        self.unix_ns = now(ClockId::Realtime).cast_signed();
        self.join.begin_at(self.zero_ns);
    }

    /// Follows the next process that this thread creates, from its first successful execve on, and all that it creates.
    pub fn follow_next_child(&self) -> Result<()> {
        self.kernel.announce()
    }

    /// Follows a process with all its threads, and all that it creates. `snapshot` reads its descriptors; the recording
    /// begins after that, so that they are not changed by a call before.
    pub fn follow<T>(&mut self, process: u32, snapshot: impl FnOnce() -> Result<T>) -> Result<T> {
        self.kernel.follow(process)?;
        let taken = snapshot()?;
        self.begin_now();
        Ok(taken)
    }

    /// Records into a file, or several, until `go_on` returns false; it is called many times a second. `metadata` has what
    /// the caller knows; returns all of it. Of several files, it is that of the last one with the losses of all.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn run(
        mut self,
        destination: Destination,
        metadata: Metadata,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<(Metadata, Option<PathBuf>)> {
        let (mut writer, held): (Box<dyn Writer<Call>>, _) = match destination {
            Destination::File(mut writer) => {
                let held = writer.create_held()?;
                (writer, held)
            }
            Destination::Parts(parts, mut writer) => {
                self.parts = Some(parts);
                let held = writer.create_held()?;
                (writer, held)
            }
        };
        writer.learn(&metadata);
        if let Some(held) = held {
            self.sequence.save_in(held);
        }
        let file = WriterThread::start(writer, BATCHES);
        let recorded = self.record_until(&file, &metadata, &mut go_on);
        self.kernel.stop();
        let ended = recorded.and_then(|()| self.end(&file, &metadata));
        // The reason why the file cannot be written comes first.
        file.finish(self.complete(metadata.clone(), &self.before_part))?;
        let last = self.parts.as_ref().map(|parts| parts.path().to_owned());
        ended.map(|()| (self.complete(metadata, &Losses::default()), last))
    }

    fn record_until(
        &mut self,
        file: &WriterThread<Call>,
        known: &Metadata,
        go_on: &mut impl FnMut(&Progress) -> bool,
    ) -> Result<()> {
        let mut schedule = CheckpointSchedule::default();
        let mut kept = 0;
        let mut next_settling = Instant::now() + SETTLE_INTERVAL;
        while go_on(&self.progress()) {
            self.kernel.wait(DRAIN_INTERVAL)?;
            self.drain();
            if self.sequence.unsettled() >= UNSETTLED_CALLS || Instant::now() >= next_settling {
                let noting = self.settle()?;
                next_settling = Instant::now() + SETTLE_INTERVAL.max(noting * NOTING_PARTS);
                let part = self.part_began;
                self.send(file, known)?;
                if self.part_began != part {
                    schedule = CheckpointSchedule::default();
                }
                let elapsed = self.progress().elapsed.saturating_sub(self.part_began);
                if self.sequence.is_full() || self.calls > kept && schedule.is_due(elapsed) {
                    kept = self.calls;
                    // First, so that no call is missing in both files.
                    match self.sequence.save() {
                        Ok(()) => {
                            let so_far = self.complete(known.clone(), &self.before_part);
                            file.checkpoint(Metadata { complete: false, ..so_far });
                        }
                        Err(error) => file.fail(error),
                    }
                }
            }
            if file.has_ended() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives their places to the calls so far. Returns how long it took to note those in flight.
    fn settle(&mut self) -> Result<Duration> {
        let before = self.since_zero() - SETTLE_BEHIND_NS;
        let start = Instant::now();
        let in_flight = self.kernel.in_flight();
        let noting = start.elapsed();
        let in_flight: Vec<Call> = in_flight.iter().filter_map(|raw| self.join.without_paths(raw)).collect();
        // What the ring holds now has been drained when it was empty once, or after more events than it has room for.
        for _ in 0..=self.ring_events / DRAIN_EVENTS {
            if self.drain() {
                break;
            }
        }
        self.sequence.settle(Nanos(before), &in_flight).map_err(temporary_file)?;
        Ok(noting)
    }

    /// Takes the events that are left. Calls in flight do not return.
    fn end(&mut self, file: &WriterThread<Call>, known: &Metadata) -> Result<()> {
        while !self.drain() {}
        for raw in self.kernel.in_flight() {
            // Most page faults are in memory that is no file.
            if let Some(mut call) = self.join.call(&raw).filter(|call| call.kind != CallKind::PageFault) {
                call.container = self.containers.name(raw.cgroup, raw.process);
                self.sequence.push(call);
            }
        }
        self.sequence.settle(Nanos(i64::MAX), &[]).map_err(temporary_file)?;
        self.send(file, known)
    }

    /// Sends the calls that are in order to the file.
    fn send(&mut self, file: &WriterThread<Call>, known: &Metadata) -> Result<()> {
        let mut batch = Vec::new();
        while let Some(call) = self.sequence.next().map_err(temporary_file)? {
            if self.parts.as_mut().is_some_and(|parts| parts.ends_before(call.begin)) {
                self.next_part(call.begin, known)?;
            }
            self.first_process.get_or_insert(call.process);
            self.counts.calls += 1;
            self.counts.unfinished += u64::from(call.duration.is_none());
            self.counts.uring += u64::from(call.is_uring);
            self.counts.faults += u64::from(call.kind == CallKind::PageFault);
            batch.push(call);
            if batch.len() == BATCH_CALLS {
                file.write(std::mem::take(&mut batch));
            }
        }
        file.write(batch);
        Ok(())
    }

    /// Lets the next part begin at this time.
    fn next_part(&mut self, from: Nanos, known: &Metadata) -> Result<()> {
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        self.kernel.note_skipped();
        // Before the part changes, so that the footer has the number of its own.
        let ended = Metadata { part: Some(parts.part().clone()), ..self.complete(known.clone(), &self.before_part) };
        self.before_part = self.losses();
        self.part_began = self.progress().elapsed;
        let next = parts.next(from, self.unix_ns.saturating_add(from.0), ended, known);
        self.parts = Some(parts);
        if let Some(held) = next? {
            self.sequence.move_to(held).map_err(temporary_file)?;
        }
        Ok(())
    }

    /// Drains the ring of at most [`DRAIN_EVENTS`] events; returns whether it is empty.
    fn drain(&mut self) -> bool {
        let drained = self.kernel.drain(DRAIN_EVENTS, |event| match event {
            Event::Call(raw) => {
                self.calls += 1;
                if let Some(mut call) = self.join.call(raw) {
                    call.container = self.containers.name(raw.cgroup, raw.process);
                    if matches!(call.kind, CallKind::Execve | CallKind::Execveat | CallKind::ExitGroup) {
                        self.containers.forget(raw.process);
                    }
                    self.sequence.push(call);
                }
            }
            Event::Path(path) => self.join.path(path),
            Event::File(file) => self.join.file(file),
        });
        self.malformed_events += drained.malformed;
        drained.is_empty
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: Duration::from_nanos(self.since_zero().unsigned_abs()),
            calls: self.calls,
            lost_events: self.losses().lost(),
        }
    }

    fn since_zero(&self) -> i64 {
        now(ClockId::Monotonic).cast_signed() - self.zero_ns.cast_signed()
    }

    fn losses(&self) -> Losses {
        Losses {
            malformed: self.malformed_events,
            without_end: self.sequence.lost(),
            late: self.sequence.late(),
            long: self.sequence.long(),
            ..self.kernel.losses()
        }
    }

    /// The metadata with what this recording adds, and with the losses since `before`.
    fn complete(&self, mut metadata: Metadata, before: &Losses) -> Metadata {
        let losses = self.losses().since(before);
        metadata.recorder = RecordedBy::Ebpf;
        if let (false, Some(number), [process]) =
            (metadata.command.is_empty(), self.first_process, &mut metadata.processes[..])
        {
            // In a PID namespace, the command has another number for the kernel than for this program.
            (process.process, process.threads) = (number, vec![number]);
        }
        metadata.epoch_unix_ns = Some(self.unix_ns);
        metadata.clocks = Some(Clocks { unix_ns: self.unix_ns, monotonic_ns: self.zero_ns.cast_signed() });
        metadata.containers = self.containers.found().to_vec();
        metadata.part = self.parts.as_ref().map(|parts| parts.part().clone());
        metadata.counts = CallCounts { lost_events: losses.lost(), ..self.counts.clone() };
        metadata.complete = true;
        if metadata.source.preamble.is_empty() {
            let release = rustix::system::uname().release().to_string_lossy().into_owned();
            metadata.source.preamble = format!("recorded by eBPF on Linux {release}");
        }
        metadata.warnings.extend(losses.warnings(LONGEST_CALL_S));
        if let Some(problem) = self.kernel.uring_problem() {
            metadata.warnings.push(format!("requests of io_uring are not recorded, this kernel refused: {problem}"));
        }
        metadata
    }
}

fn temporary_file(source: io::Error) -> Error {
    Error::system("cannot use a temporary file (TMPDIR names its directory)", source)
}

fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
