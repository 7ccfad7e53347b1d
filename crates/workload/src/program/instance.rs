//! The filament of a stream: it carries out transactions, each of which is a sequence of steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iosonar_trace::{DeviceId, Flags, Nanos, Op, Sector, Sectors};

use super::messages::{Message, Tag};
use super::plan::{Place, Plan, RegionPosition};
use crate::Rng;
use crate::arrivals::Arrivals;
use crate::filament::{Event, Filament, FilamentContext, FilamentId, MAX_EVENTS, RequestSpec};
use crate::positions::Positions;

/// The most requests in one wake; the others follow at the same time. A message and an arrival need room as well.
const MAX_AT_ONCE: u32 = MAX_EVENTS as u32 - 2;

/// Where a request behind the last one starts.
fn append(next: &AtomicU64, size: u64, align: u64, sectors: Sectors) -> u64 {
    let start = |next: u64| if next + sectors.0 <= size { next } else { 0 };
    let advance = |next: u64| Some(start(next) + sectors.0.next_multiple_of(align));
    let before = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
    before.map_or(0, start)
}

/// A transaction in progress.
#[derive(Clone, Copy, Default)]
struct Transaction {
    /// The last request.
    device: DeviceId,
    sector: Sector,
    sectors: Sectors,
    step: u32,
    /// The step before which it ends; 0 if it has not begun.
    end: u32,
    /// Requests of the step that were asked for.
    done: u32,
    outstanding: u32,
    /// Whether a message continues it.
    is_continued: bool,
}

/// The arrivals of an open stream.
struct Open {
    arrivals: Box<dyn Arrivals>,
    /// Arrivals that wait for a free transaction.
    backlog: u64,
    free: Vec<u32>,
    /// Whether no further one comes.
    has_ended: bool,
}

/// What only open streams, and those with a limit of bytes or with flushes, need: a million instances of others are smaller
/// without it.
#[derive(Default)]
struct Extra {
    open: Option<Open>,
    /// Sectors of all requests, and writes.
    submitted: u64,
    writes: u64,
    /// The device whose flush is due.
    flush: Option<DeviceId>,
}

/// An instance of a stream.
pub(super) struct Instance {
    plan: Arc<Plan>,
    time_rng: Rng,
    position_rng: Rng,
    kind_rng: Rng,
    positions: Box<[Box<dyn Positions>]>,
    transactions: Box<[Transaction]>,
    /// What few streams need.
    extra: Option<Box<Extra>>,
    /// Transactions that began.
    begun: u64,
    /// Before this time no transaction begins, in nanoseconds.
    not_before: f64,
    /// The time from which the times of the stream count.
    zero: Nanos,
    /// Transactions of a closed stream that will not begin again.
    ended: u32,
    number: u32,
}

/// Writes of an instance before a flush that have not completed, at most; beyond them, the flush is asked for together with the
/// write.
const MAX_BEFORE_FLUSH: u32 = 32;

impl Plan {
    /// About what an instance needs in memory, with so many kinds of positions of its own.
    pub fn bytes_of_instance(&self, positions: usize, is_open: bool) -> u64 {
        /// An event that it has asked for: a timer, a message or a request.
        const EVENT: u64 = 92;
        /// Positions of its own.
        const POSITIONS: usize = 64;
        let depth = u64::from(self.depth) * size_of::<Transaction>() as u64;
        let events = u64::from(self.max_pending(is_open)) * EVENT;
        (size_of::<Instance>() + positions * POSITIONS) as u64 + depth + events
    }

    /// The most events of an instance that are pending.
    pub fn max_pending(&self, is_open: bool) -> u32 {
        let requests = if self.is_waiting { self.max_outstanding() } else { 0 };
        let needs_message = self.max_outstanding() > MAX_AT_ONCE || requests == 0;
        let of_transaction = requests.saturating_add(u32::from(needs_message));
        // And its next arrival, or the start of the next transaction.
        let more = u32::from(is_open || self.depth > 1);
        // A message to another instance, and one to itself.
        let order = 2 * u32::from(self.order.is_after) + 2 * u32::from(self.order.is_followed.load(Ordering::Relaxed));
        let flushes = if self.flush_every > 0 && !self.is_waiting { MAX_BEFORE_FLUSH } else { 0 };
        self.depth.saturating_mul(of_transaction).saturating_add(more + order + flushes)
    }
}

impl Instance {
    pub fn new(
        plan: Arc<Plan>,
        number: u32,
        rngs: [Rng; 3],
        positions: Box<[Box<dyn Positions>]>,
        arrivals: Option<Box<dyn Arrivals>>,
    ) -> Self {
        let [time_rng, position_rng, kind_rng] = rngs;
        let transactions = vec![Transaction::default(); plan.depth as usize].into_boxed_slice();
        let free = || (0..plan.depth).rev().collect();
        let open = arrivals.map(|arrivals| Open { arrivals, backlog: 0, free: free(), has_ended: false });
        let needs_extra = open.is_some() || plan.flush_every > 0 || plan.max_sectors < u64::MAX;
        let extra = needs_extra.then(|| Box::new(Extra { open, ..Extra::default() }));
        let (not_before, zero, ended) = (0.0, Nanos::ZERO, 0);
        Self {
            plan,
            time_rng,
            position_rng,
            kind_rng,
            positions,
            transactions,
            extra,
            begun: 0,
            not_before,
            zero,
            ended,
            number,
        }
    }

    fn open(&self) -> Option<&Open> {
        self.extra.as_ref()?.open.as_ref()
    }

    /// The streams before this one have ended: wakes the next instance, and starts.
    fn release(&mut self, context: &mut FilamentContext<'_>) {
        self.zero = context.now();
        if self.number + 1 < self.plan.order.instances {
            context.send(FilamentId(context.me().0 + 1), context.now(), Message::Release.with(0));
        }
        context.send(context.me(), self.zero + self.plan.start_of(self.number), Message::Start.with(0));
    }

    /// This instance has ended. The last one of its stream releases the streams that wait for it.
    fn end(&mut self, context: &mut FilamentContext<'_>) {
        let order = &self.plan.order;
        if order.is_followed.load(Ordering::Relaxed) && order.unfinished.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.release_followers(0, context);
        }
    }

    fn release_followers(&mut self, from: usize, context: &mut FilamentContext<'_>) {
        let followers = self.plan.order.followers.get().map_or(&[][..], Vec::as_slice);
        for (index, follower) in followers.iter().enumerate().skip(from) {
            if follower.plan.order.waits_for.fetch_sub(1, Ordering::Relaxed) == 1 {
                context.send(follower.first, context.now(), Message::Release.with(0));
                // One wake can ask for a few messages only.
                if index + 1 < followers.len() {
                    context.send(context.me(), context.now(), Message::Follower.with(index as u32 + 1));
                }
                return;
            }
        }
    }

    fn start(&mut self, context: &mut FilamentContext<'_>) {
        match self.open() {
            Some(_) => self.await_arrival(context),
            None => self.begin_first(0, context),
        }
    }

    /// Begins a transaction of a closed stream for the first time; a message begins the next one.
    fn begin_first(&mut self, number: u32, context: &mut FilamentContext<'_>) {
        if number + 1 < self.plan.depth {
            context.send(context.me(), context.now(), Message::First.with(number + 1));
        }
        self.begin_next(number as usize, context);
    }

    /// Sends the message of the next arrival.
    fn await_arrival(&mut self, context: &mut FilamentContext<'_>) {
        let Some(Extra { open: Some(open), submitted, .. }) = self.extra.as_deref_mut() else { return };
        if self.begun + open.backlog < self.plan.transactions && *submitted < self.plan.max_sectors {
            let at = self.plan.start_of(self.number) + open.arrivals.next(&mut self.time_rng);
            if at < self.plan.end {
                context.send(context.me(), self.zero + at, Message::Arrival.with(0));
                return;
            }
        }
        open.has_ended = true;
        self.end_if_idle(context);
    }

    /// An open stream ends when no arrival is to come and all transactions are finished.
    fn end_if_idle(&mut self, context: &mut FilamentContext<'_>) {
        let Some(open) = self.open() else { return };
        if open.has_ended && open.backlog == 0 && open.free.len() == self.plan.depth as usize {
            self.end(context);
        }
    }

    fn arrive(&mut self, context: &mut FilamentContext<'_>) {
        let Some(Extra { open: Some(open), submitted, .. }) = self.extra.as_deref_mut() else { return };
        // The requests before it have used up the bytes since it was awaited.
        if *submitted >= self.plan.max_sectors {
            open.has_ended = true;
            return self.end_if_idle(context);
        }
        match open.free.pop() {
            Some(number) => {
                self.begun += 1;
                self.await_arrival(context);
                self.advance(number as usize, context);
            }
            None => {
                open.backlog += 1;
                self.await_arrival(context);
            }
        }
    }

    /// Begins the next transaction, or waits until it may begin.
    fn begin_next(&mut self, number: usize, context: &mut FilamentContext<'_>) {
        let submitted = self.extra.as_ref().map_or(0, |extra| extra.submitted);
        if self.begun >= self.plan.transactions || submitted >= self.plan.max_sectors {
            return self.end_transaction(context);
        }
        let mut at = context.now();
        if let Some(device) = take_flush(&mut self.extra).filter(|_| at - self.zero < self.plan.end) {
            return self.flush(number, device, context);
        }
        if let Some(think) = &self.plan.think {
            at = at + Nanos::from_secs(think.draw(&mut self.time_rng).max(0.0));
        }
        if let Some(interval) = self.plan.interval {
            let begins = self.not_before.max(at.0 as f64);
            self.not_before = begins + interval;
            at = at.max(Nanos(begins.round() as i64));
        }
        if at - self.zero >= self.plan.end {
            return self.end_transaction(context);
        }
        self.begun += 1;
        if at > context.now() {
            context.send(context.me(), at, Message::Continue.with(number as u32));
        } else {
            self.advance(number, context);
        }
    }

    /// A flush as a transaction that waits for it alone.
    fn flush(&mut self, number: usize, device: DeviceId, context: &mut FilamentContext<'_>) {
        self.transactions[number] = Transaction { step: 1, end: 1, outstanding: 1, ..Transaction::default() };
        context.issue_and_wait(RequestSpec { tag: number as u32, ..flush_of(device) });
    }

    /// A transaction of a closed stream does not begin again.
    fn end_transaction(&mut self, context: &mut FilamentContext<'_>) {
        self.ended += 1;
        if self.ended == self.plan.depth {
            self.end(context);
        }
    }

    /// Asks for the requests that wait for nothing.
    fn advance(&mut self, number: usize, context: &mut FilamentContext<'_>) {
        let plan = &*self.plan;
        let transaction = &mut self.transactions[number];
        let mut left = MAX_AT_ONCE;
        if transaction.end == 0 {
            (transaction.step, transaction.end) = plan.steps_of_next(&mut self.kind_rng);
        }
        while transaction.step < transaction.end {
            let step = &plan.steps[transaction.step as usize];
            if step.is_waiting && transaction.outstanding > 0 {
                return;
            }
            if left < 1 + u32::from(plan.flush_every > 0) {
                transaction.is_continued = true;
                context.send(context.me(), context.now(), Message::Continue.with(number as u32));
                return;
            }
            left -= 1;
            // Within a transaction, a flush is as any other request of it.
            if let Some(device) = take_flush(&mut self.extra) {
                transaction.outstanding += 1;
                context.issue_and_wait(RequestSpec { tag: number as u32, ..flush_of(device) });
                continue;
            }
            // A size that must fit is drawn after the position.
            let sectors = if step.redraws { Sectors(0) } else { step.sizes.pick(&mut self.kind_rng) };
            let (op, flags) = step.mix.pick(&mut self.kind_rng);
            let mut spec =
                RequestSpec { op, flags, device: DeviceId(0), sector: Sector(0), sectors, tag: number as u32 };
            match &step.place {
                Place::Same => {
                    let Transaction { device, sector, sectors, .. } = *transaction;
                    spec = RequestSpec { device, sector, sectors, ..spec };
                }
                Place::Region { device, .. } if op == Op::Flush => spec.device = *device,
                Place::Region { device, first, stride, size, which } => {
                    let first = first + stride * u64::from(self.number);
                    let inside = match which {
                        RegionPosition::Own(index) if step.redraws => {
                            let (rng, most) = (&mut self.kind_rng, Sectors(*size));
                            let mut draw = |room: Sectors| step.sizes.pick_within(room.min(most), rng);
                            let next = self.positions[*index].next_fitting(&mut draw, &mut self.position_rng);
                            spec.sectors = next.1;
                            next.0.0
                        }
                        RegionPosition::Own(index) => {
                            let next = self.positions[*index].next_request(sectors, &mut self.position_rng);
                            spec.sectors = next.1;
                            next.0.0
                        }
                        RegionPosition::Append { next, size, align } => append(next, *size, *align, sectors),
                    };
                    spec = RequestSpec { device: *device, sector: Sector(first + inside), ..spec };
                    (transaction.device, transaction.sector, transaction.sectors) =
                        (spec.device, spec.sector, spec.sectors);
                }
            }
            // A flush is for the whole device.
            if op == Op::Flush {
                spec = RequestSpec { sector: Sector(0), sectors: Sectors(0), flags: Flags::NONE, ..spec };
            }
            let mut is_flushed = false;
            if let Some(extra) = &mut self.extra {
                extra.submitted += spec.sectors.0;
                extra.writes += u64::from(op == Op::Write);
                is_flushed = op == Op::Write && plan.flush_every > 0 && extra.writes.is_multiple_of(plan.flush_every);
                if is_flushed && plan.is_waiting {
                    extra.flush = Some(spec.device);
                }
            }
            if plan.is_waiting {
                transaction.outstanding += 1;
                context.issue_and_wait(spec);
            } else if is_flushed && context.can_wait() {
                context.issue_and_wait(RequestSpec { tag: Tag::BeforeFlush(spec.device).number(), ..spec });
            } else {
                context.issue(spec);
                if is_flushed {
                    left -= 1;
                    context.issue(flush_of(spec.device));
                }
            }
            transaction.done += 1;
            let is_last = self.begun == plan.transactions;
            let is_over =
                plan.steps.len() == 1 && self.extra.as_ref().is_some_and(|extra| extra.submitted >= plan.max_sectors);
            if is_over || transaction.done == plan.last_repeat.filter(|_| is_last).unwrap_or(step.repeat) {
                (transaction.step, transaction.done) = (transaction.step + 1, 0);
            }
        }
        if transaction.outstanding == 0 {
            *transaction = Transaction::default();
            self.finish(number, context);
        }
    }

    fn finish(&mut self, number: usize, context: &mut FilamentContext<'_>) {
        if self.open().is_some()
            && let Some(device) = take_flush(&mut self.extra)
        {
            return self.flush(number, device, context);
        }
        match self.extra.as_mut().and_then(|extra| extra.open.as_mut()) {
            None => self.begin_next(number, context),
            Some(open) if open.backlog == 0 => {
                open.free.push(number as u32);
                self.end_if_idle(context);
            }
            Some(open) => {
                open.backlog -= 1;
                self.begun += 1;
                self.resume(number, context);
            }
        }
    }

    /// Continues a transaction by a message, as this wake may have asked for as much as it can.
    fn resume(&mut self, number: usize, context: &mut FilamentContext<'_>) {
        self.transactions[number].is_continued = true;
        context.send(context.me(), context.now(), Message::Continue.with(number as u32));
    }
}

fn take_flush(extra: &mut Option<Box<Extra>>) -> Option<DeviceId> {
    extra.as_mut()?.flush.take()
}

fn flush_of(device: DeviceId) -> RequestSpec {
    RequestSpec { op: Op::Flush, flags: Flags::NONE, device, sector: Sector(0), sectors: Sectors(0), tag: 0 }
}

impl Filament for Instance {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        match event {
            Event::Start => self.start(context),
            Event::Message { value, .. } => match Message::of(value) {
                (Message::Start, _) => self.start(context),
                (Message::Arrival, _) => self.arrive(context),
                (Message::Release, _) => self.release(context),
                (Message::Follower, index) => self.release_followers(index as usize, context),
                (Message::First, number) => self.begin_first(number, context),
                (Message::Continue, number) => {
                    self.transactions[number as usize].is_continued = false;
                    self.advance(number as usize, context);
                }
            },
            Event::Completed(completed) => match Tag::of(completed.tag) {
                Tag::BeforeFlush(device) => context.issue(flush_of(device)),
                Tag::Of(number) => {
                    let transaction = &mut self.transactions[number as usize];
                    transaction.outstanding -= 1;
                    if !transaction.is_continued {
                        self.advance(number as usize, context);
                    }
                }
            },
            Event::Timer(_) => {}
        }
    }

    fn max_pending(&self) -> u32 {
        self.plan.max_pending(self.open().is_some())
    }
}
