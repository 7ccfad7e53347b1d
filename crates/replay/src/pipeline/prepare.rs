//! Prepares requests ahead of the loop: schedules them, places them on the target, and allocates and fills their buffers.

use std::sync::Arc;
use std::time::Duration;

use iosonar_pacing::Result;
use iosonar_pacing::Stop;
use iosonar_pacing::backoff::Backoff;
use iosonar_pacing::buffers::{Arena, Buffer, Pool, UNIT_BYTES};
use iosonar_pacing::clock::Clock;
use iosonar_pacing::payload::{DataSpec, Payload, Written, build_time};
use iosonar_trace::{Device, DeviceId, Nanos, Op, Outcome, Sector};
use rtrb::Consumer;

use crate::address::router::{Routed, Routes};
use crate::dependencies::Dependencies;
use crate::io::{Origin, PreparedIo};
use crate::pipeline::program::Refill;
use crate::pipeline::sharding::Outputs;
use crate::schedule::iterations::NumberedRequest;
use crate::schedule::time_map::{Schedule, Scheduled};
use crate::verify::block::is_sequence_number;
use crate::verify::header;

/// Sleep while no buffer is free; the completion log can return one at any time.
const BUFFER_POLL: Duration = Duration::from_millis(1);

/// Requests that are overdue when the clock is read, and so late in any case, share a reading with up to so many.
const READING: u32 = 8;

/// Where requests go, and how far ahead they are prepared.
#[derive(Clone, Debug)]
pub struct PrepareConfig {
    /// Where requests go.
    pub routes: Routes,
    /// Whether requests have buffers, which are filled for writes.
    pub has_data: bool,
    /// How far ahead requests are prepared.
    pub ahead: Nanos,
    /// The run's random number, if sectors get headers for verification.
    pub write_header: Option<u64>,
}

/// Inputs of the stage.
pub struct PrepareInputs<'a> {
    /// Requests and their times.
    pub schedule: Schedule<'a>,
    /// How they are prepared.
    pub config: PrepareConfig,
    /// Buffers.
    pub pool: Pool,
    /// Data of writes.
    pub payload: Payload,
    /// Buffers for the requests of a program, if they have data.
    pub refill: Option<Refill>,
    /// What requests wait for, in a closed loop by dependencies.
    pub dependencies: Option<Dependencies>,
}

/// Counts of the stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrepareStats {
    /// Requests in the window.
    pub requests: u64,
    /// For each device of the load, the end of its highest request in the window, in sectors.
    pub device_extents: Vec<u64>,
    /// The load's devices seen so far.
    pub devices: Vec<Device>,
    /// Malformed lines of the load.
    pub bad_lines: u64,
    /// Whether the load was complete, as far as it was read.
    pub load_complete: bool,
    /// Warnings of the load's reader.
    pub warnings: Vec<String>,
    /// Data written by requests of the load.
    pub written: Written,
    /// Data of writes of a program, by kind and size, as far as it is known.
    pub written_by_program: Vec<(DataSpec, Option<Written>)>,
}

/// Raises the extent of a device to the end of a request.
pub fn raise_extent(device_extents: &mut Vec<u64>, device: DeviceId, end: Sector) {
    let device = usize::from(device.0);
    if device >= device_extents.len() {
        device_extents.resize(device + 1, 0);
    }
    device_extents[device] = device_extents[device].max(end.0);
}

/// What the stage leaves when it has ended.
pub struct PrepareOutcome {
    /// What the stage counted.
    pub stats: PrepareStats,
    /// The error of reading the load, if there was one.
    pub outcome: Result<()>,
    /// The buffer pool, which must outlive all I/O.
    pub memory: BufferMemory,
}

/// The buffer pool, and the queue of returned buffers.
pub struct BufferMemory {
    pool: Pool,
    returned: Consumer<Buffer>,
}

impl BufferMemory {
    /// The pool, after the loop and the completion log have ended.
    pub fn into_pool(mut self) -> Pool {
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        self.pool
    }
}

/// The stage between the load and the loop.
pub struct Preparer<'a, C> {
    clock: C,
    config: PrepareConfig,
    stop: &'a Stop,
    schedule: Schedule<'a>,
    arena: Arc<Arena>,
    pool: Pool,
    payload: Payload,
    refill: Option<Refill>,
    dependencies: Option<Dependencies>,
    /// `None` after the end of the load, which closes the loop's input.
    output: Option<Outputs>,
    returned: Consumer<Buffer>,
    /// Scheduled, but not yet passed on.
    next: Option<PreparedIo>,
    /// Whether `next` has its buffer and data.
    is_ready: bool,
    /// The last reading of the clock, and how many requests became ready since then.
    reading: Nanos,
    since_reading: u32,
    stats: PrepareStats,
    outcome: Result<()>,
    /// Sequence number of the last request.
    sequence_number: u64,
}

/// The result of a step, or what it has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request was passed on.
    Prepared,
    /// The next request is due for preparation only after this time.
    Early(Nanos),
    /// No buffer is free.
    NoBuffer,
    /// Building the next request's data would take too long now.
    TooLong,
    /// The queue to the loop is full.
    QueueFull,
    /// All requests were passed on.
    Ended,
}

impl<'a, C: Clock> Preparer<'a, C> {
    /// Passes requests to `output`; buffers come back through `returned`.
    pub fn new(
        clock: C,
        inputs: PrepareInputs<'a>,
        stop: &'a Stop,
        output: impl Into<Outputs>,
        returned: Consumer<Buffer>,
    ) -> Self {
        let PrepareInputs { schedule, config, pool, payload, refill, dependencies } = inputs;
        let arena = Arc::clone(pool.arena());
        Self {
            clock,
            config,
            stop,
            schedule,
            arena,
            pool,
            payload,
            refill,
            dependencies,
            output: Some(output.into()),
            returned,
            next: None,
            is_ready: false,
            reading: Nanos(i64::MIN / 2),
            since_reading: READING,
            stats: PrepareStats::default(),
            outcome: Ok(()),
            sequence_number: 0,
        }
    }

    /// Runs until the end of the load or a stop. The counts are valid even if reading the load failed.
    pub fn run(mut self) -> PrepareOutcome {
        let mut backoff = Backoff::for_queue(self.output.as_ref().map_or(1, Outputs::capacity));
        // Entries freed during the last sleep.
        let mut freed = 0;
        loop {
            match self.step(Nanos::MAX) {
                Step::Prepared => {}
                Step::Ended => return self.finish(),
                _ if self.is_over() => return self.finish(),
                // Waits for several requests at a time, which shortens the lead only slightly.
                Step::Early(left) => Backoff::sleep_up_to(left.max(Nanos(self.config.ahead.0 / 8))),
                Step::NoBuffer | Step::TooLong => std::thread::sleep(BUFFER_POLL),
                Step::QueueFull => {
                    let before = self.free_entries();
                    backoff.sleep(freed);
                    freed = self.free_entries() - before;
                    self.resume();
                }
            }
        }
    }

    /// Prepares one request and passes it on, if possible now, and a buffer for a program. Blocks only while reading the load.
    /// Work that takes longer than `allowed` is put off while its deadline permits.
    #[inline]
    pub fn step(&mut self, allowed: Nanos) -> Step {
        if self.refill.is_none() {
            return self.step_load(allowed);
        }
        let refilled = self.refill_one(allowed);
        match if self.output.is_some() { self.step_load(allowed) } else { Step::NoBuffer } {
            // The program may go on when the load has ended.
            Step::Ended if self.refill.is_some() => {
                self.output = None;
                Step::Prepared
            }
            Step::Early(_) | Step::NoBuffer | Step::TooLong | Step::QueueFull if refilled => Step::Prepared,
            step => step,
        }
    }

    /// Makes a buffer ready for the program. Returns whether one was missing.
    fn refill_one(&mut self, allowed: Nanos) -> bool {
        let Some(refill) = &mut self.refill else { return false };
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        refill.refill(&mut self.pool, allowed)
    }

    /// Free entries of the loops' queues.
    fn free_entries(&self) -> usize {
        self.output.as_ref().map_or(0, Outputs::slots)
    }

    fn step_load(&mut self, allowed: Nanos) -> Step {
        if self.next.is_none() {
            self.next = match self.schedule.take_next() {
                Ok(Some(scheduled)) => Some(self.prepare(&scheduled)),
                Ok(None) => return Step::Ended,
                Err(error) => {
                    self.outcome = Err(error);
                    return Step::Ended;
                }
            };
            self.is_ready = false;
        }
        let mut next = self.next.take().expect("just made");
        if !self.is_ready {
            // An older reading says the same of a request that is due soon.
            if next.deadline - self.reading > Nanos(self.config.ahead.0 / 2) {
                self.read_clock();
            }
            let left = next.deadline - self.reading;
            let early = left - self.config.ahead;
            let not_ready = if early > Nanos::ZERO {
                Err(Step::Early(early))
            } else if next.op == Op::Write
                && build_time(next.sectors.bytes()) > allowed
                && left > Nanos(self.config.ahead.0 / 2)
            {
                Err(Step::TooLong)
            } else {
                self.attach_data(&mut next)
            };
            if let Err(not_ready) = not_ready {
                self.next = Some(next);
                return not_ready;
            }
            self.since_reading += 1;
            if self.reading <= next.deadline || self.since_reading >= READING {
                self.read_clock();
            }
            next.ready = self.reading;
            self.is_ready = true;
        }
        let Some(output) = &mut self.output else { return Step::Ended };
        match output.push(next) {
            None => Step::Prepared,
            Some(back) => {
                self.next = Some(back);
                if output.is_abandoned() { Step::Ended } else { Step::QueueFull }
            }
        }
    }

    /// The next request does not share the last reading of the clock, as the caller did something else meanwhile.
    #[inline]
    pub fn resume(&mut self) {
        self.since_reading = READING;
    }

    #[inline]
    fn read_clock(&mut self) {
        (self.reading, self.since_reading) = (self.clock.now(), 0);
    }

    /// Whether the loop's queue, or the program's supply of buffers, is less than half full.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.slots() * 2 > output.capacity())
            || self.refill.as_ref().is_some_and(Refill::is_low)
    }

    /// Whether the loop's queue is empty, and can be filled.
    pub fn is_empty(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.slots() == output.capacity())
    }

    /// Ends the stage.
    pub fn finish(self) -> PrepareOutcome {
        let mut stats = self.stats;
        let metadata = self.schedule.metadata();
        stats.bad_lines = metadata.counts.bad_lines;
        stats.load_complete = metadata.complete && self.outcome.is_ok();
        stats.warnings.clone_from(&metadata.warnings);
        stats.written = self.payload.written();
        stats.written_by_program = self.refill.iter().flat_map(Refill::written).collect();
        stats.devices.clone_from(&metadata.devices);
        PrepareOutcome {
            stats,
            outcome: self.outcome,
            memory: BufferMemory { pool: self.pool, returned: self.returned },
        }
    }

    fn prepare(&mut self, scheduled: &Scheduled) -> PreparedIo {
        self.stats.requests += 1;
        raise_extent(&mut self.stats.device_extents, scheduled.next.request.device, scheduled.next.request.end());
        let NumberedRequest { request, number, iteration } = scheduled.next;
        let after = self.dependencies.as_mut().and_then(|known| known.after(&scheduled.next));
        let Scheduled { scheduled, deadline, .. } = *scheduled;
        let Routed { target, sector, sectors, widened, skip } = self.config.routes.route(&request);
        self.sequence_number += 1;
        while !is_sequence_number(self.sequence_number) {
            self.sequence_number += 1;
        }
        PreparedIo {
            sequence_number: self.sequence_number,
            request: number,
            iteration,
            device: request.device,
            target,
            source_sector: request.sector,
            sector,
            sectors,
            op: request.op,
            flags: request.flags,
            scheduled,
            // A request that waits for another one is due so long after that.
            deadline: after.map_or(deadline, |after| after.think),
            ready: Nanos::ZERO,
            widened,
            skip,
            buffer: None,
            origin: after.map(|after| Origin { stream: None, cause: Some(after.request), ticket: None }),
            share: None,
        }
    }

    /// Allocates the buffer and builds the data; an error if this is not possible now.
    fn attach_data(&mut self, io: &mut PreparedIo) -> std::result::Result<(), Step> {
        let bytes = io.sectors.bytes();
        let moves_data = self.config.has_data && matches!(io.op, Op::Read | Op::Write) && bytes > 0;
        if !moves_data || io.skip.is_some() {
            return Ok(());
        }
        if bytes > self.pool.largest() {
            io.skip = Some(Outcome::TooLarge);
            return Ok(());
        }
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        let mut buffer = self.pool.take(bytes).ok_or(Step::NoBuffer)?;
        let memory = self.arena.bytes_mut(&mut buffer, bytes);
        if io.op == Op::Write {
            self.payload.fill(io.sector, memory);
            // A block takes longer than a request without data.
            self.since_reading = self.since_reading.saturating_add((bytes / UNIT_BYTES) as u32);
        }
        match self.config.write_header {
            Some(run) if io.op == Op::Write => header::write_header(memory, run, io),
            Some(run) => header::poison(memory, run),
            None => {}
        }
        io.buffer = Some(buffer);
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_abandoned = match (&self.output, &self.refill) {
            (Some(output), _) => output.is_abandoned(),
            (None, Some(refill)) => refill.is_abandoned(),
            (None, None) => true,
        };
        self.stop.is_requested() || is_abandoned
    }
}
