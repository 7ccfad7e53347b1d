//! Requests that a program asks for while the loop runs.
//!
//! Which request a filament asks for may depend on a completion, so it is placed on the target in the loop, right before it
//! is issued. Data takes too long for that: another stage keeps buffers with data ready, which the loop takes by size.

use std::fmt;

use iosonar_pacing::buffers::{Buffer, Pool, UNIT_BYTES};
use iosonar_pacing::payload::{DataSpec, Payload, Written, build_time};
use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, human};
use iosonar_workload::filament::{Overrun, Runtime, SubmittedRequest, Ticket};
use iosonar_workload::program::Demand;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::address::router::{Routed, Routes};
use crate::io::{Origin, PreparedIo};
use crate::pipeline::ahead::Ahead;
use crate::verify::block::is_sequence_number;

/// How soon the loop looks again for a buffer.
const BUFFER_POLL: Nanos = Nanos(20_000);
/// The most buffers of a size that are kept ready.
const MAX_READY: u64 = 4096;
/// A filament that asks at each completion would never pause, as a request that is left out completes at once.
const MAX_LEFT_OUT: u64 = 5_000;

/// A program on its way to the loop.
pub struct ProgramInput {
    runtime: Runtime,
    /// What runs ahead of the loop.
    ahead: Option<Ahead>,
    routes: Routes,
    /// `None` if requests have no data.
    supply: Option<ReadyBuffers>,
    /// From this time on it submits no more requests.
    until: Nanos,
    sequence_number: u64,
    /// A request that waits for its buffer.
    held: Option<SubmittedRequest>,
    /// Requests in a row that wake a filament, but cannot be issued.
    left_out: u64,
    outcome_left_out: Outcome,
}

/// Why a program ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// A filament broke a rule.
    Overrun(Overrun),
    /// The target can take none of its requests: so many in a row were left out for this reason.
    LeftOut(Outcome),
}

impl fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overrun(overrun) => overrun.fmt(f),
            Self::LeftOut(outcome) => write!(
                f,
                "the target cannot take its requests: {} in a row were left out ({})",
                human::count(MAX_LEFT_OUT),
                outcome.name()
            ),
        }
    }
}

impl ProgramInput {
    /// Places the requests of this program that it asks for before `until`.
    pub fn new(runtime: Runtime, routes: Routes, supply: Option<ReadyBuffers>, until: Nanos) -> Self {
        let (left_out, outcome_left_out) = (0, Outcome::Ok);
        let (ahead, held, sequence_number) = (None, None, 0);
        Self { runtime, ahead, routes, supply, until, sequence_number, held, left_out, outcome_left_out }
    }

    /// The same with requests of streams that run ahead.
    #[must_use]
    pub fn with_ahead(self, ahead: Option<Ahead>) -> Self {
        Self { ahead, ..self }
    }

    /// Time until a filament is woken, or a request can be issued; `MAX` if this needs a completion first.
    #[inline]
    pub fn time_to_next_event(&self, now: Nanos) -> Nanos {
        if self.held.is_some() {
            return BUFFER_POLL;
        }
        let known = self.next_at().map_or(Nanos::MAX, |at| at - now);
        let poll = self.ahead.as_ref().filter(|ahead| !self.has_ended() && ahead.is_late());
        poll.map_or(known, |_| known.min(BUFFER_POLL))
    }

    /// The next request that is due, after waking filaments whose events are.
    #[inline]
    pub fn next_due(&mut self, now: Nanos) -> Option<PreparedIo> {
        let was_held = self.held.is_some();
        let submitted = match self.held.take() {
            Some(held) => held,
            None => self.next_asked(now)?,
        };
        self.prepare(submitted, if was_held { now } else { submitted.at })
    }

    /// Wakes the filament that waits for a request.
    pub fn completed(&mut self, ticket: Ticket, record: &IoResult, now: Nanos) {
        self.left_out = if record.issued.is_none() { self.left_out + 1 } else { 0 };
        self.outcome_left_out = record.outcome;
        self.runtime.completed(ticket, record.outcome, record.bytes_done, now);
    }

    /// Whether it submits no more requests while no request is outstanding.
    pub fn is_done(&self) -> bool {
        let is_late = self.ahead.as_ref().is_some_and(Ahead::is_late) && !self.has_ended();
        self.held.is_none() && self.next_at().is_none() && !is_late
    }

    /// Why the program ended early.
    pub fn early_end(&self) -> Option<EarlyEnd> {
        let left_out = (self.left_out >= MAX_LEFT_OUT).then_some(EarlyEnd::LeftOut(self.outcome_left_out));
        let failed = self.ahead.as_ref().and_then(Ahead::failure);
        self.runtime.overrun().or(failed).map(EarlyEnd::Overrun).or(left_out)
    }

    /// When the next event or request is due, unless the program has ended.
    #[inline]
    fn next_at(&self) -> Option<Nanos> {
        if self.has_ended() {
            return None;
        }
        let ahead = self.ahead.as_ref().and_then(Ahead::next_at);
        let next = match (self.runtime.next_at(), ahead) {
            (Some(beside), Some(ahead)) => Some(beside.min(ahead)),
            (beside, ahead) => beside.or(ahead),
        };
        next.filter(|&at| at < self.until)
    }

    /// Whether it ended early.
    #[inline]
    fn has_ended(&self) -> bool {
        self.left_out >= MAX_LEFT_OUT || self.ahead.as_ref().is_some_and(|ahead| ahead.has_failed())
    }

    /// The next request that is due, of this runtime or of that ahead.
    #[inline]
    fn next_asked(&mut self, now: Nanos) -> Option<SubmittedRequest> {
        if self.next_at()? > now {
            return None;
        }
        if let Some(ahead) = &mut self.ahead
            && let Some(at) = ahead.next_at()
            && at <= now
            && self.runtime.next_at().is_none_or(|beside| at <= beside)
            && let Some(submitted) = ahead.take()
        {
            return Some(SubmittedRequest { request: self.runtime.number(), ..submitted });
        }
        self.runtime.next_due(now)
    }

    /// Places a request and takes its buffer; holds it if there is none.
    fn prepare(&mut self, submitted: SubmittedRequest, ready: Nanos) -> Option<PreparedIo> {
        let SubmittedRequest { at, request: number, stream, cause, spec, ticket } = submitted;
        let request =
            Request { device: spec.device, flags: spec.flags, ..Request::new(at, spec.op, spec.sector, spec.sectors) };
        let Routed { target, sector, sectors, widened, mut skip } = self.routes.route(&request);
        let moves_data = matches!(spec.op, Op::Read | Op::Write) && sectors.0 > 0 && skip.is_none();
        let mut buffer = None;
        if let Some(supply) = self.supply.as_mut().filter(|_| moves_data) {
            match supply.take(spec.op, stream, sectors.bytes()) {
                TakeResult::Buffer(taken) => buffer = Some(taken),
                TakeResult::NotReady => {
                    self.held = Some(submitted);
                    return None;
                }
                TakeResult::TooLarge => skip = Some(Outcome::TooLarge),
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
            device: spec.device,
            target,
            source_sector: spec.sector,
            sector,
            sectors,
            op: spec.op,
            flags: spec.flags,
            scheduled: at,
            deadline: at,
            ready,
            widened,
            skip,
            buffer,
            origin: Some(Origin { stream: Some(stream), cause, ticket }),
            share: None,
        })
    }
}

/// Buffers that are ready: of reads, and of writes with each kind of data. For each size, 4 KiB times a power of two, there
/// is a queue.
pub struct ReadyBuffers {
    reads: Vec<Consumer<Buffer>>,
    writes: Vec<Vec<Consumer<Buffer>>>,
    /// For each stream, which of the kinds of data its writes have.
    kinds: Vec<usize>,
}

/// An attempt to take a buffer.
enum TakeResult {
    Buffer(Buffer),
    NotReady,
    /// No buffer is ever this large.
    TooLarge,
}

impl ReadyBuffers {
    #[inline]
    fn take(&mut self, op: Op, stream: u16, bytes: u64) -> TakeResult {
        let queues = match op {
            Op::Write => &mut self.writes[self.kinds[usize::from(stream)]],
            _ => &mut self.reads,
        };
        match queues.get_mut(order_of(bytes)) {
            Some(queue) => queue.pop().map_or(TakeResult::NotReady, TakeResult::Buffer),
            None => TakeResult::TooLarge,
        }
    }
}

/// Keeps the [`ReadyBuffers`] of all loops full.
#[derive(Default)]
pub struct Refill(Vec<Shelf>);

/// Buffers of a kind and size for a loop.
struct Shelf {
    /// The data of writes: for each size and loop its own, so that the shares of copies hold in the buffers that are used.
    data: Option<(DataSpec, Payload)>,
    bytes: u64,
    queue: Producer<Buffer>,
}

/// Supplies of buffers for the requests of a program in so many loops, from a pool of `bytes`; the writes of each stream have
/// its `data`. At most half of the pool is kept ready, so that small buffers never take the place of large ones.
pub fn supplies(
    demand: &Demand,
    bytes: u64,
    loops: usize,
    data: &[DataSpec],
    seed: u64,
) -> (Refill, Vec<ReadyBuffers>) {
    let mut all = Vec::<&DataSpec>::new();
    let kind = |spec| {
        all.iter().position(|known| *known == spec).unwrap_or_else(|| {
            all.push(spec);
            all.len() - 1
        })
    };
    let kinds: Vec<usize> = data.iter().map(kind).collect();
    // Widening adds at most a block at each end.
    let orders = order_of(demand.largest.bytes() + 2 * UNIT_BYTES) + 1;
    let sets = u64::from(demand.reads) + if demand.writes { all.len() as u64 } else { 0 };
    let share = bytes / 2 / (orders as u64 * sets * loops as u64);
    let mut refill = Refill::default();
    let mut queues = |is_used: bool, data: &dyn Fn(usize) -> Option<(DataSpec, Payload)>| -> Vec<_> {
        let add = |order: usize| {
            let bytes = UNIT_BYTES << order;
            let (queue, taken) = RingBuffer::new((share / bytes).clamp(1, MAX_READY) as usize);
            refill.0.push(Shelf { data: data(order), bytes, queue });
            taken
        };
        (0..if is_used { orders } else { 0 }).map(add).collect()
    };
    let supply = |number: u64| {
        let reads = queues(demand.reads, &|_| None);
        let of_kind = |(kind, spec): (u64, &&DataSpec)| {
            // Other data than that of a load beside the program.
            let set = number * all.len() as u64 + kind;
            let seed_of = |order| seed.wrapping_add(((set << 8) | order as u64) << 32);
            queues(demand.writes, &|order| Some(((*spec).clone(), Payload::new(spec, seed_of(order)))))
        };
        let writes = (1..).zip(&all).map(of_kind).collect();
        ReadyBuffers { reads, writes, kinds: kinds.clone() }
    };
    let supplies = (0..loops as u64).map(supply).collect();
    (refill, supplies)
}

impl Refill {
    /// Adds a buffer to the emptiest queue. Returns false if all are full, or the pool has none. Data that takes longer than
    /// `allowed` is built only for an empty queue.
    pub fn refill(&mut self, pool: &mut Pool, allowed: Nanos) -> bool {
        let free = |shelf: &Shelf| shelf.queue.slots() as f64 / shelf.queue.buffer().capacity() as f64;
        let fillable = self.0.iter_mut().filter(|shelf| {
            let is_quick = shelf.data.is_none() || build_time(shelf.bytes) <= allowed;
            // A loop may end before others.
            !shelf.queue.is_full() && !shelf.queue.is_abandoned() && (is_quick || free(shelf) == 1.0)
        });
        let emptiest = fillable.max_by(|first, second| free(first).total_cmp(&free(second)));
        let Some(Shelf { data, bytes, queue }) = emptiest else { return false };
        let Some(mut buffer) = pool.take(*bytes) else { return false };
        if let Some((_, payload)) = data {
            payload.fill_at(0, pool.arena().bytes_mut(&mut buffer, *bytes));
        }
        queue.push(buffer).expect("it is not full");
        true
    }

    /// For each kind, size and loop the data of writes, and how much was made ready, if most of that was used.
    pub fn written(&self) -> impl Iterator<Item = (DataSpec, Option<Written>)> {
        self.0.iter().filter_map(|Shelf { data, bytes, queue }| {
            let (spec, payload) = data.as_ref()?;
            let ready = queue.buffer().capacity() as u64 * bytes;
            Some((spec.clone(), Some(payload.written()).filter(|written| written.bytes > 2 * ready)))
        })
    }

    /// Whether a queue is less than half full.
    pub fn is_low(&self) -> bool {
        self.0.iter().any(|shelf| shelf.queue.slots() * 2 > shelf.queue.buffer().capacity())
    }

    /// Whether all loops have ended.
    pub fn is_abandoned(&self) -> bool {
        self.0.iter().all(|shelf| shelf.queue.is_abandoned())
    }
}

fn order_of(bytes: u64) -> usize {
    bytes.div_ceil(UNIT_BYTES).max(1).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Sectors;

    use super::*;

    #[test]
    fn buffers_have_the_data_of_the_stream_that_writes_them() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let data = ["pattern=a5", "pattern=3c", "pattern=a5"].map(|text| text.parse().unwrap());
        let demand = Demand { largest: Sectors(24), reads: true, writes: true, ..Demand::default() };
        let (mut refill, mut supplies) = supplies(&demand, 1 << 20, 1, &data, 1);
        let mut supply = supplies.remove(0);
        assert!(matches!(supply.take(Op::Read, 0, 512), TakeResult::NotReady) && refill.is_low());
        while refill.refill(&mut pool, Nanos::MAX) {}
        let written: Vec<_> = refill.written().collect();
        assert!(!refill.is_low() && written.iter().all(|(_, written)| written.is_none()));
        assert!(written.iter().all(|(spec, _)| data.contains(spec)) && written.len() == refill.0.len() / 3 * 2);
        for (bytes, size) in [(512, 4096), (4096, 4096), (4608, 8192), (12_288, 16_384), (16_896, 32_768)] {
            for (op, stream, byte) in [(Op::Read, 0, 0), (Op::Write, 0, 0xa5), (Op::Write, 1, 0x3c)] {
                let TakeResult::Buffer(buffer) = supply.take(op, stream, bytes) else { panic!("{bytes}") };
                assert_eq!(buffer.bytes(), size);
                assert_eq!(pool.arena().bytes(&buffer, size)[0], byte);
            }
        }
        assert!(matches!(supply.take(Op::Write, 2, 4096), TakeResult::Buffer(_)));
        assert!(matches!(supply.take(Op::Read, 0, 1 << 20), TakeResult::TooLarge));
        assert!(pool.take(1 << 18).is_some(), "half of the pool is left");
        drop(supply);
        assert!(refill.is_abandoned());
    }

    #[test]
    fn each_loop_has_a_supply_and_one_that_ended_gets_no_more() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let demand = Demand { largest: Sectors(8), reads: true, ..Demand::default() };
        let (mut refill, mut loops) = supplies(&demand, 1 << 20, 2, &["pattern=a5".parse().unwrap()], 1);
        while refill.refill(&mut pool, Nanos::MAX) {}
        for supply in &mut loops {
            assert!(matches!(supply.take(Op::Read, 0, 4096), TakeResult::Buffer(_)));
        }
        loops.remove(0);
        assert!(!refill.is_abandoned() && refill.refill(&mut pool, Nanos::MAX));
        assert!(!refill.refill(&mut pool, Nanos::MAX), "the other one is full again");
        drop(loops);
        assert!(refill.is_abandoned());
    }
}
