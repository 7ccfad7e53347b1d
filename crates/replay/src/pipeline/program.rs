//! Requests that a program asks for while the loop runs.
//!
//! Which request a filament asks for may depend on a completion, so it is placed on the target in the loop, right before it
//! is issued. Data takes too long for that: another stage keeps buffers with data ready, which the loop takes by size.

use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request};
use iosonar_workload::filament::{Asked, Overrun, Runtime, Ticket};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::address::router::{Routed, Routes};
use crate::pipeline::buffers::{Buffer, Pool, UNIT_BYTES};
use crate::pipeline::io::{Origin, PreparedIo};
use crate::pipeline::payload::Payload;
use crate::verify::block::is_sequence_number;

/// How soon the loop looks again for a buffer.
const BUFFER_POLL: Nanos = Nanos(20_000);
/// The fewest and the most buffers of a size that are kept ready.
const READY: (u64, u64) = (16, 4096);

/// A program on its way to the loop.
pub struct ProgramInput {
    runtime: Runtime,
    routes: Routes,
    /// `None` if requests have no data.
    supply: Option<Supply>,
    sequence_number: u64,
    /// A request that waits for its buffer.
    held: Option<Asked>,
}

impl ProgramInput {
    /// Places the requests of this program.
    pub fn new(runtime: Runtime, routes: Routes, supply: Option<Supply>) -> Self {
        Self { runtime, routes, supply, sequence_number: 0, held: None }
    }

    /// Time until a filament is woken, or a request can be issued; `MAX` if this needs a completion first.
    #[inline]
    pub fn time_to_next_event(&self, now: Nanos) -> Nanos {
        match (&self.held, self.runtime.next_at()) {
            (Some(_), _) => BUFFER_POLL,
            (None, Some(at)) => at - now,
            (None, None) => Nanos::MAX,
        }
    }

    /// The next request that is due, after waking filaments whose events are.
    #[inline]
    pub fn next_due(&mut self, now: Nanos) -> Option<PreparedIo> {
        let was_held = self.held.is_some();
        let asked = match self.held.take() {
            Some(held) => held,
            None if self.runtime.next_at()? > now => return None,
            None => self.runtime.next_due(now)?,
        };
        self.prepare(asked, if was_held { now } else { asked.at })
    }

    /// Wakes the filament that waits for a request.
    pub fn completed(&mut self, ticket: Ticket, record: &IoResult, now: Nanos) {
        self.runtime.completed(ticket, record.outcome, record.bytes_done, now);
    }

    /// Whether it asks for nothing more.
    pub fn is_done(&self) -> bool {
        self.held.is_none() && self.runtime.is_done()
    }

    /// Why the program ended early.
    pub fn overrun(&self) -> Option<Overrun> {
        self.runtime.overrun()
    }

    /// Places a request and takes its buffer; holds it if there is none.
    fn prepare(&mut self, asked: Asked, ready: Nanos) -> Option<PreparedIo> {
        let Asked { at, request: number, stream, cause, ask, ticket } = asked;
        let request =
            Request { device: ask.device, flags: ask.flags, ..Request::new(at, ask.op, ask.sector, ask.sectors) };
        let Routed { target, sector, sectors, widened, mut skip } = self.routes.route(&request);
        let moves_data = matches!(ask.op, Op::Read | Op::Write) && sectors.0 > 0 && skip.is_none();
        let mut buffer = None;
        if let Some(supply) = self.supply.as_mut().filter(|_| moves_data) {
            match supply.take(sectors.bytes()) {
                Taken::Buffer(taken) => buffer = Some(taken),
                Taken::NotReady => {
                    self.held = Some(asked);
                    return None;
                }
                Taken::TooLarge => skip = Some(Outcome::TooLarge),
            }
        }
        self.sequence_number += 1;
        while !is_sequence_number(self.sequence_number) {
            self.sequence_number += 1;
        }
        Some(PreparedIo {
            sequence_number: self.sequence_number,
            request: number,
            iteration: 0,
            device: ask.device,
            target,
            source_sector: ask.sector,
            sector,
            sectors,
            op: ask.op,
            flags: ask.flags,
            scheduled: at,
            deadline: at,
            ready,
            widened,
            skip,
            buffer,
            origin: Some(Origin { stream, cause, ticket }),
        })
    }
}

/// Buffers with data: for each size, 4 KiB times a power of two, a queue.
pub struct Supply(Vec<Consumer<Buffer>>);

/// An attempt to take a buffer.
enum Taken {
    Buffer(Buffer),
    NotReady,
    /// No buffer is ever this large.
    TooLarge,
}

impl Supply {
    #[inline]
    fn take(&mut self, bytes: u64) -> Taken {
        let order = order_of(bytes);
        match self.0.get_mut(order) {
            Some(queue) => queue.pop().map_or(Taken::NotReady, Taken::Buffer),
            None => Taken::TooLarge,
        }
    }
}

/// Fills buffers for a [`Supply`].
pub struct Refill(Vec<Producer<Buffer>>);

/// A supply of buffers for requests of up to `largest` bytes, from a pool of `bytes`.
pub fn supply(largest: u64, bytes: u64) -> (Refill, Supply) {
    let orders = order_of(largest) + 1;
    let share = bytes / orders as u64;
    let queue = |order: usize| RingBuffer::new((share / (UNIT_BYTES << order)).clamp(READY.0, READY.1) as usize);
    let (to, from) = (0..orders).map(queue).unzip();
    (Refill(to), Supply(from))
}

impl Refill {
    /// Fills all queues, as far as there are buffers. Returns whether it found something to do.
    pub fn refill(&mut self, pool: &mut Pool, payload: &mut Payload) -> bool {
        let mut found = false;
        for (order, queue) in self.0.iter_mut().enumerate() {
            let bytes = UNIT_BYTES << order;
            while !queue.is_full()
                && let Some(mut buffer) = pool.take(bytes)
            {
                payload.fill_at(0, pool.arena().bytes_mut(&mut buffer, bytes));
                found = true;
                queue.push(buffer).expect("it is not full");
            }
        }
        found
    }

    /// Whether the loop has ended.
    pub fn is_abandoned(&self) -> bool {
        self.0.iter().all(Producer::is_abandoned)
    }
}

fn order_of(bytes: u64) -> usize {
    bytes.div_ceil(UNIT_BYTES).max(1).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::payload::DataSpec;

    #[test]
    fn buffers_are_supplied_by_size() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut payload = Payload::new(&DataSpec::Zero, 1);
        let (mut refill, mut supply) = supply(12_288, 1 << 20);
        assert!(matches!(supply.take(512), Taken::NotReady));
        assert!(refill.refill(&mut pool, &mut payload) && !refill.refill(&mut pool, &mut payload));
        for (bytes, size) in [(512, 4096), (4096, 4096), (4608, 8192), (12_288, 16_384)] {
            let Taken::Buffer(buffer) = supply.take(bytes) else { panic!("{bytes}") };
            assert_eq!(buffer.bytes(), size);
        }
        assert!(matches!(supply.take(16_896), Taken::TooLarge));
        drop(supply);
        assert!(refill.is_abandoned());
    }
}
