//! Makes requests ready ahead of the loop: takes each from the agenda, places it on the target, finds it a buffer and
//! builds its data.

use std::sync::Arc;
use std::time::Duration;

use iosonar_trace::{Device, DeviceId, Nanos, Op, Outcome, Sector};
use rtrb::{Consumer, Producer};

use crate::address::router::{Routed, Routes};
use crate::config::options::Options;
use crate::error::Result;
use crate::issuer::Stop;
use crate::pipeline::backoff::Backoff;
use crate::pipeline::buffers::{Arena, Buffer, Pool};
use crate::pipeline::io::PreparedIo;
use crate::pipeline::payload::{Content, Written};
use crate::schedule::clock::Clock;
use crate::schedule::iterations::Numbered;
use crate::schedule::time_map::{Schedule, Scheduled};
use crate::verify::block::is_sequence_number;
use crate::verify::header;

/// How long it waits for a buffer: memory is short then, and the completion log may give some back at any time.
const BUFFER_NAP: Duration = Duration::from_millis(1);

/// Where requests go, and how early they are made ready.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where they go.
    pub routes: Routes,
    /// Whether requests get memory for their data, which is built for writes.
    pub has_data: bool,
    /// How far ahead requests are made ready.
    pub ahead: Nanos,
    /// The run's number, if what is written is to be recognised when it is read.
    pub write_header: Option<u64>,
}

impl Plan {
    /// As the options say.
    pub fn of(options: &Options, routes: Routes, write_header: Option<u64>) -> Self {
        Self { routes, has_data: options.method.has_device(), ahead: options.issuing.ahead_time, write_header }
    }
}

/// What requests are made from.
pub struct Supplies<'a> {
    /// Which, and when.
    pub schedule: Schedule<'a>,
    /// Where they go.
    pub plan: Plan,
    /// Memory for their data.
    pub pool: Pool,
    /// The data.
    pub content: Content,
}

/// What the feeder says of itself when it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrepareStats {
    /// Requests in the window.
    pub requests: u64,
    /// The first sector behind the highest request of the window, for each device of the load that it is about.
    pub reaches: Vec<u64>,
    /// The load's devices, as far as they have appeared.
    pub devices: Vec<Device>,
    /// Lines of the load that could not be understood.
    pub bad_lines: u64,
    /// Whether the load itself was whole, as far as it was read.
    pub load_complete: bool,
    /// What the load's reader had to say.
    pub notices: Vec<String>,
    /// The data that was made for writes.
    pub written: Written,
}

/// Takes the end of one more request into account in how far each device reaches.
pub fn raise(reaches: &mut Vec<u64>, device: DeviceId, end: Sector) {
    let device = usize::from(device.0);
    if device >= reaches.len() {
        reaches.resize(device + 1, 0);
    }
    reaches[device] = reaches[device].max(end.0);
}

/// What the feeder leaves.
pub struct Prepare {
    /// What it counted.
    pub fed: PrepareStats,
    /// Whether the load could be read.
    pub outcome: Result<()>,
    /// The memory that it gave out.
    pub memory: Memory,
}

/// What there is of buffers, and how those that are out come back.
pub struct Memory {
    pool: Pool,
    returned: Consumer<Buffer>,
}

impl Memory {
    /// Buffers for others, when the loop and the completion log have ended as well.
    pub fn into_pool(mut self) -> Pool {
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        self.pool
    }
}

/// The room between the load and the loop.
pub struct Preparer<'a, C> {
    clock: C,
    plan: Plan,
    stop: &'a Stop,
    schedule: Schedule<'a>,
    arena: Arc<Arena>,
    pool: Pool,
    content: Content,
    output: Producer<PreparedIo>,
    returned: Consumer<Buffer>,
    /// Taken from the agenda, and not yet handed over.
    next: Option<PreparedIo>,
    /// Whether that has its buffer and its data.
    is_equipped: bool,
    fed: PrepareStats,
    outcome: Result<()>,
    /// Of the last request.
    sequence_number: u64,
}

/// What the feeder did, or what it has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It handed a request over.
    PrepareStats,
    /// It is too early for the next one, by that much.
    Early(Nanos),
    /// All memory is out.
    NoBuffer,
    /// The next one's data takes too long to be built now.
    TooLong,
    /// The queue to the loop is full.
    QueueFull,
    /// There is nothing more to do.
    Ended,
}

/// How long it takes to build a request's data, about: some 4 GB/s.
fn takes(planned: &PreparedIo) -> Nanos {
    if planned.op == Op::Write { Nanos(planned.sectors.bytes() as i64 / 4) } else { Nanos::ZERO }
}

impl<'a, C: Clock> Preparer<'a, C> {
    /// Puts what it has into `output`, with buffers that come back by `returned`.
    pub fn new(
        clock: C,
        supplies: Supplies<'a>,
        stop: &'a Stop,
        output: Producer<PreparedIo>,
        returned: Consumer<Buffer>,
    ) -> Self {
        let Supplies { schedule, plan, pool, content } = supplies;
        let arena = Arc::clone(pool.arena());
        Self {
            clock,
            plan,
            stop,
            schedule,
            arena,
            pool,
            content,
            output,
            returned,
            next: None,
            is_equipped: false,
            fed: PrepareStats::default(),
            outcome: Ok(()),
            sequence_number: 0,
        }
    }

    /// Runs to the end of the agenda, or until a stop. What it counted is true even if the load could be read only in part.
    pub fn run(mut self) -> Prepare {
        let mut nap = Backoff::for_queue(self.output.buffer().capacity());
        // Places that became free in the last nap.
        let mut freed = 0;
        loop {
            match self.step(Nanos::MAX) {
                Step::PrepareStats => {}
                Step::Ended => return self.finish(),
                _ if self.is_over() => return self.finish(),
                // Not for each request anew: being a little less ahead harms nobody.
                Step::Early(left) => Backoff::until(left.max(Nanos(self.plan.ahead.0 / 8))),
                Step::NoBuffer | Step::TooLong => std::thread::sleep(BUFFER_NAP),
                Step::QueueFull => {
                    let before = self.output.slots();
                    nap.sleep(freed);
                    freed = self.output.slots() - before;
                }
            }
        }
    }

    /// Makes one request ready and hands it over, if that can be done now. Never waits, but for the load to be read. What
    /// takes longer than `allowed` is put off, while there is time for that.
    pub fn step(&mut self, allowed: Nanos) -> Step {
        if self.next.is_none() {
            self.next = match self.schedule.take_next() {
                Ok(Some(scheduled)) => Some(self.planned(&scheduled)),
                Ok(None) => return Step::Ended,
                Err(error) => {
                    self.outcome = Err(error);
                    return Step::Ended;
                }
            };
            self.is_equipped = false;
        }
        let mut next = self.next.take().expect("just made");
        if !self.is_equipped {
            let left = next.deadline - self.clock.now();
            let early = left - self.plan.ahead;
            let missing = if early > Nanos::ZERO {
                Err(Step::Early(early))
            } else if takes(&next) > allowed && left > Nanos(self.plan.ahead.0 / 2) {
                Err(Step::TooLong)
            } else {
                self.equip(&mut next)
            };
            if let Err(missing) = missing {
                self.next = Some(next);
                return missing;
            }
            next.ready = self.clock.now();
            self.is_equipped = true;
        }
        match self.output.push(next) {
            Ok(()) => Step::PrepareStats,
            Err(rtrb::PushError::Full(back)) => {
                self.next = Some(back);
                if self.output.is_abandoned() { Step::Ended } else { Step::QueueFull }
            }
        }
    }

    /// Whether less than half of the places before the loop are taken.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.output.slots() * 2 > self.output.buffer().capacity()
    }

    /// What it leaves.
    pub fn finish(self) -> Prepare {
        let mut fed = self.fed;
        let known = self.schedule.metadata();
        fed.bad_lines = known.counts.bad_lines;
        fed.load_complete = known.complete && self.outcome.is_ok();
        fed.notices.clone_from(&known.notices);
        fed.written = self.content.written();
        fed.devices.clone_from(&known.devices);
        Prepare { fed, outcome: self.outcome, memory: Memory { pool: self.pool, returned: self.returned } }
    }

    fn planned(&mut self, scheduled: &Scheduled) -> PreparedIo {
        self.fed.requests += 1;
        raise(&mut self.fed.reaches, scheduled.next.request.device, scheduled.next.request.end());
        let Scheduled { next: Numbered { request, number, iteration }, scheduled, deadline } = *scheduled;
        let Routed { target, sector, sectors, widened, skip } = self.plan.routes.route(&request);
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
            deadline,
            ready: Nanos::ZERO,
            widened,
            skip,
            buffer: None,
        }
    }

    /// Finds a buffer and builds the data; an error if there is no buffer now.
    fn equip(&mut self, planned: &mut PreparedIo) -> std::result::Result<(), Step> {
        let bytes = planned.sectors.bytes();
        let moves_data = self.plan.has_data && matches!(planned.op, Op::Read | Op::Write) && bytes > 0;
        if !moves_data || planned.skip.is_some() {
            return Ok(());
        }
        if bytes > self.pool.largest() {
            planned.skip = Some(Outcome::TooLarge);
            return Ok(());
        }
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        let mut buffer = self.pool.take(bytes).ok_or(Step::NoBuffer)?;
        let memory = self.arena.bytes_mut(&mut buffer, bytes);
        if planned.op == Op::Write {
            self.content.fill(planned.sector, memory);
        }
        match self.plan.write_header {
            Some(run) if planned.op == Op::Write => header::write_header(memory, run, planned),
            Some(run) => header::poison(memory, run),
            None => {}
        }
        planned.buffer = Some(buffer);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stop.is_requested() || self.output.is_abandoned()
    }
}
