//! Makes requests ready ahead of the loop: takes each from the agenda, places it on the target, finds it a buffer and
//! builds its data.

use std::sync::Arc;
use std::time::Duration;

use iosonar_trace::{Device, DeviceId, Nanos, Op, Outcome, Sector};
use rtrb::{Consumer, Producer};

use crate::buffers::{Arena, Buffer, Pool};
use crate::clock::Clock;
use crate::data::{Content, Written};
use crate::error::Result;
use crate::issuer::Stop;
use crate::nap::Nap;
use crate::planned::Planned;
use crate::rounds::Numbered;
use crate::routes::{Routed, Routes};
use crate::schedule::{Agenda, Scheduled};
use crate::verify::block::is_generation;
use crate::verify::header;

/// How long it waits for a buffer: memory is short then, and the recorder may give some back at any time.
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
    pub stamp: Option<u64>,
}

/// What the feeder says of itself when it is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fed {
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
pub struct Feeding {
    /// What it counted.
    pub fed: Fed,
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
    /// Buffers for others, when the loop and the recorder have ended as well.
    pub fn into_pool(mut self) -> Pool {
        while let Ok(buffer) = self.returned.pop() {
            self.pool.give(buffer);
        }
        self.pool
    }
}

/// The room between the load and the loop.
pub struct Feeder<'a, C> {
    clock: C,
    plan: Plan,
    stop: &'a Stop,
    pool: Pool,
    content: Content,
    output: Producer<Planned>,
    returned: Consumer<Buffer>,
    /// While the queue to the loop is full, and how many places in it became free in the last nap.
    nap: Nap,
    freed: usize,
    fed: Fed,
    /// Of the last request.
    generation: u64,
}

impl<'a, C: Clock> Feeder<'a, C> {
    /// Puts requests into `output`, with buffers from `pool` that come back by `returned`.
    pub fn new(
        clock: C,
        plan: Plan,
        stop: &'a Stop,
        pool: Pool,
        content: Content,
        output: Producer<Planned>,
        returned: Consumer<Buffer>,
    ) -> Self {
        let nap = Nap::for_queue(output.buffer().capacity());
        Self { clock, plan, stop, pool, content, output, returned, nap, freed: 0, fed: Fed::default(), generation: 0 }
    }

    /// Runs to the end of the agenda, or until a stop. What it counted is true even if the load could be read only in part.
    pub fn run(mut self, mut agenda: Agenda<'_>) -> Feeding {
        let arena = Arc::clone(self.pool.arena());
        let outcome = loop {
            let scheduled = match agenda.take_next() {
                Ok(Some(scheduled)) => scheduled,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            self.fed.requests += 1;
            raise(&mut self.fed.reaches, scheduled.next.request.device, scheduled.next.request.end());
            let planned = self.plan(&scheduled);
            let Some(planned) = self.equip(planned, &arena) else { break Ok(()) };
            if !self.hand_over(planned) {
                break Ok(());
            }
        };
        let known = agenda.metadata();
        self.fed.bad_lines = known.counts.bad_lines;
        self.fed.load_complete = known.complete && outcome.is_ok();
        self.fed.notices.clone_from(&known.notices);
        self.fed.written = self.content.written();
        self.fed.devices.clone_from(&known.devices);
        Feeding { fed: self.fed, outcome, memory: Memory { pool: self.pool, returned: self.returned } }
    }

    fn plan(&mut self, scheduled: &Scheduled) -> Planned {
        let Scheduled { next: Numbered { request, number, round }, intended, deadline } = *scheduled;
        let Routed { target, sector, sectors, widened, skip } = self.plan.routes.route(&request);
        self.generation += 1;
        while !is_generation(self.generation) {
            self.generation += 1;
        }
        Planned {
            generation: self.generation,
            request: number,
            round,
            device: request.device,
            target,
            source_sector: request.sector,
            sector,
            sectors,
            op: request.op,
            flags: request.flags,
            intended,
            deadline,
            ready: Nanos::ZERO,
            widened,
            skip,
            buffer: None,
        }
    }

    /// Finds a buffer and builds the data, both of which may have to wait. `None` on a stop.
    fn equip(&mut self, mut planned: Planned, arena: &Arena) -> Option<Planned> {
        self.wait_until(planned.deadline - self.plan.ahead)?;
        let bytes = planned.sectors.bytes();
        let moves_data = self.plan.has_data && matches!(planned.op, Op::Read | Op::Write) && bytes > 0;
        if moves_data && planned.skip.is_none() {
            if bytes > self.pool.largest() {
                planned.skip = Some(Outcome::TooLarge);
            } else {
                let mut buffer = self.take_buffer(bytes)?;
                let memory = arena.bytes_mut(&mut buffer, bytes);
                if planned.op == Op::Write {
                    self.content.fill(planned.sector, memory);
                }
                match self.plan.stamp {
                    Some(run) if planned.op == Op::Write => header::stamp(memory, run, &planned),
                    Some(run) => header::spoil(memory, run),
                    None => {}
                }
                planned.buffer = Some(buffer);
            }
        }
        planned.ready = self.clock.now();
        Some(planned)
    }

    fn wait_until(&self, at: Nanos) -> Option<()> {
        loop {
            let left = at - self.clock.now();
            if left <= Nanos::ZERO {
                return Some(());
            }
            if self.is_over() {
                return None;
            }
            // Not for each request anew: being a little less ahead harms nobody.
            let less = Nanos(self.plan.ahead.0 / 8);
            Nap::until(Duration::from_nanos(left.max(less).0 as u64));
        }
    }

    fn take_buffer(&mut self, bytes: u64) -> Option<Buffer> {
        loop {
            while let Ok(buffer) = self.returned.pop() {
                self.pool.give(buffer);
            }
            if let Some(buffer) = self.pool.take(bytes) {
                return Some(buffer);
            }
            if self.is_over() {
                return None;
            }
            std::thread::sleep(BUFFER_NAP);
        }
    }

    /// False if nobody wants it any more.
    fn hand_over(&mut self, mut planned: Planned) -> bool {
        while let Err(rtrb::PushError::Full(back)) = self.output.push(planned) {
            if self.is_over() {
                return false;
            }
            planned = back;
            let before = self.output.slots();
            self.nap.sleep(self.freed);
            self.freed = self.output.slots() - before;
        }
        true
    }

    fn is_over(&self) -> bool {
        self.stop.is_ordered() || self.output.is_abandoned()
    }
}
