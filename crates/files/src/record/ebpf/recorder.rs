//! A recording: from the kernel's events to the table.

use std::time::Duration;

use iosonar_trace::Clocks;
use rustix::time::{ClockId, clock_gettime};

use super::event::Event;
use super::join::Join;
use super::kernel::Kernel;
use crate::model::call::Call;
use crate::model::metadata::{Metadata, Recorder as RecordedBy};
use crate::model::stream::CallWriter;
use crate::record::error::Result;

/// How often the ring is drained when it is not filling up.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Events drained at once, before the recorder does anything else.
const DRAIN_EVENTS: usize = 1 << 16;

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the ring buffer of unread events, in bytes: a power of two, at least a page.
    pub ring_bytes: u32,
}

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

/// A recording in progress.
pub struct Recorder {
    kernel: Kernel,
    join: Join,
    zero_ns: u64,
    unix_ns: i64,
    malformed_events: u64,
    calls: Vec<Call>,
}

impl Recorder {
    /// Starts recording; no process is followed yet.
    ///
    /// # Errors
    /// If the kernel refuses the eBPF program.
    pub fn start(options: &Options) -> Result<Self> {
        let kernel = Kernel::load(options)?;
        let mut recorder =
            Self { kernel, join: Join::new(0), zero_ns: 0, unix_ns: 0, malformed_events: 0, calls: Vec::new() };
        recorder.begin_now();
        Ok(recorder)
    }

    /// Leaves out what began before now.
    fn begin_now(&mut self) {
        self.zero_ns = now(ClockId::Monotonic);
        self.unix_ns = now(ClockId::Realtime).cast_signed();
        self.join = Join::new(self.zero_ns);
    }

    /// Follows the next process that this thread creates, from its first successful execve on, and all that it creates.
    pub fn follow_next_child(&self) -> Result<()> {
        self.kernel.follow_next_child()
    }

    /// Follows a process with all its threads, and all that it creates. `snapshot` reads its descriptors; the recording
    /// begins after that, so that they are not changed by a call before.
    pub fn follow<T>(&mut self, process: u32, snapshot: impl FnOnce() -> Result<T>) -> Result<T> {
        self.kernel.follow(process)?;
        let taken = snapshot()?;
        self.begin_now();
        Ok(taken)
    }

    /// Records into `writer` until `go_on` returns false; it is called many times a second. `metadata` has what the
    /// caller knows; returns all of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn run(
        mut self,
        mut writer: Box<dyn CallWriter>,
        metadata: Metadata,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Metadata> {
        while go_on(&self.progress()) {
            self.kernel.wait(DRAIN_INTERVAL)?;
            self.drain();
        }
        for raw in self.kernel.stop() {
            self.calls.extend(self.join.call(&raw));
        }
        while !self.drain() {}
        self.calls.sort_by_key(|call| call.begin);
        let mut metadata = self.complete(metadata);
        for call in &self.calls {
            writer.write(call)?;
            metadata.counts.calls += 1;
            metadata.counts.unfinished += u64::from(call.duration.is_none());
            metadata.counts.uring += u64::from(call.is_uring);
        }
        writer.finish(&metadata)?;
        Ok(metadata)
    }

    /// Drains the ring of at most [`DRAIN_EVENTS`] events; returns whether it is empty.
    fn drain(&mut self) -> bool {
        let drained = self.kernel.drain(DRAIN_EVENTS, |event| match event {
            Event::Call(raw) => self.calls.extend(self.join.call(raw)),
            Event::Path(path) => self.join.path(path),
        });
        self.malformed_events += drained.malformed;
        drained.is_empty
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: Duration::from_nanos(now(ClockId::Monotonic) - self.zero_ns),
            calls: self.calls.len() as u64,
            lost_events: self.lost_events(),
        }
    }

    fn lost_events(&self) -> u64 {
        self.kernel.losses().lost() + self.malformed_events
    }

    fn complete(&self, mut metadata: Metadata) -> Metadata {
        metadata.recorder = RecordedBy::Ebpf;
        metadata.epoch_unix_ns = Some(self.unix_ns);
        metadata.clocks = Some(Clocks { unix_ns: self.unix_ns, monotonic_ns: self.zero_ns.cast_signed() });
        metadata.counts.lost_events = self.lost_events();
        metadata.complete = true;
        metadata.notices.push(format!(
            "recorded by eBPF; started at {} ns of CLOCK_MONOTONIC; kernel {}",
            self.zero_ns,
            rustix::system::uname().release().to_string_lossy()
        ));
        metadata.notices.extend(self.kernel.losses().notices());
        if let Some(problem) = self.kernel.uring_problem() {
            metadata.notices.push(format!("requests of io_uring are not recorded, this kernel refused: {problem}"));
        }
        metadata
    }
}

fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
