//! The loop: it lets each request go at its deadline, never early, and takes back what is through.
//!
//! ```text
//!  input ──▶ due ──▶ [conflicts?] ──▶ staged ──▶ target ──▶ completions ──▶ output
//!                        │              ▲                        │
//!                        └─▶ waiting ───┘◀── conflict has gone ──┘
//! ```
//! With a [`Rereader`] a completed write is staged once more, as a read, before it is put out.
//!
//! With a depth for each target there are as many `due` as targets ([`gate`]), so that one which is full holds no other.
//!
//! In here nothing allocates, locks, formats or makes a system call but submission and cheap reaping. While a deadline is
//! near ([`NEAR`]) not even reaping is done: it could make the request late. Only when nothing can be issued anyway, or
//! the last look is long ago ([`LOOK`]: a completion is stamped when it is seen), is the rule broken.

mod gate;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use iosonar_trace::{Flags, HeldBy, Nanos, Op, Outcome, Record, SECTOR_BYTES};
use rtrb::{Consumer, Producer};

use self::gate::Gate;
use crate::buffers::Arena;
use crate::clock::Clock;
use crate::conflicts::{Policy, Range, Tracker, Verdict};
use crate::planned::{Done, Planned, Reread};
use crate::target::{Completion, Io, Target};
use crate::verify::header;

pub mod closed;
pub mod telltale;

use self::closed::Clients;
pub use self::closed::Think;
pub use self::telltale::{Doing, Stall, Telltale};

/// A deadline closer than this is not risked for anything else.
const NEAR: Nanos = Nanos(3_000);
/// However near deadlines are, completions are looked for at least this often.
const LOOK: Nanos = Nanos(20_000);
/// Completions that are taken back before what they make room for is issued. Where all of them were, the device had little
/// left to do meanwhile: completions come in bunches.
const SOME: usize = 8;
/// How long a sleeping loop trusts an empty input, which can bring an urgent request at any time.
const INPUT_POLL: Nanos = Nanos(200_000);

/// What the loop does while there is nothing to do: how exact it is against what it costs.
pub trait Idle<T> {
    /// Passes time, at most `left`.
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()>;
}

/// Asks the clock again at once: exact, and takes a processor.
#[derive(Debug, Default)]
pub struct Spin;

impl<T> Idle<T> for Spin {
    #[inline]
    fn idle(&mut self, _: Nanos, _: &mut T) -> io::Result<()> {
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until shortly before the deadline, and spins for the rest.
#[derive(Debug)]
pub struct Hybrid {
    /// How long before the deadline it wakes up: a little more than waking takes.
    pub margin: Nanos,
}

impl<T: Target> Idle<T> for Hybrid {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        if left > self.margin {
            // Bounded, so that an order to stop is seen.
            return target.wait(Nanos((left - self.margin).0.min(100_000_000)));
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Sleeps until the deadline: late by the time that waking takes, and costs the least.
#[derive(Debug, Default)]
pub struct Sleep;

impl<T: Target> Idle<T> for Sleep {
    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<()> {
        // Bounded, so that an order to stop is seen.
        target.wait(Nanos(left.0.min(100_000_000)))
    }
}

/// How the load's times are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each request at its deadline.
    Timed,
    /// Each as soon as there is room: a request's deadline is the moment at which it goes.
    AsFastAsPossible,
    /// Each when an earlier one is through: a request's deadline is when its client has ended thinking.
    Closed(Think),
}

/// What the loop is to keep to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most requests in flight through each gate, revived ones not counted.
    pub depth: usize,
    /// The most requests that wait for an overlap, or fly after they did: each has a place of its own, so that a revival
    /// never waits for an ordinary one. For each gate as well.
    pub pushed_back: usize,
    /// The most requests handed over in one call.
    pub batch: usize,
    /// 1 if all targets share the depth, or the number of targets if each has its own.
    pub gates: usize,
    /// From this time on nothing new is issued; what was issued or pushed back before goes on.
    pub until: Nanos,
}

impl Limits {
    /// Places for requests, in flight or waiting.
    pub fn slots(&self) -> usize {
        (self.depth + self.pushed_back) * self.gates
    }
}

/// An order to the loop, from other threads: it only ever grows.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// Issues nothing more, and waits for what is in flight.
    pub fn gently(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Waits for nothing more: what is in flight is recorded as unfinished.
    pub fn at_once(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether any stop was ordered.
    pub fn is_ordered(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether not even what is in flight is to be waited for.
    pub fn is_at_once(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

/// What the loop says of itself when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests left out for an overlap.
    pub dropped: u64,
    /// Requests for which everything behind them waited.
    pub ordered_waits: u64,
    /// Most requests in flight.
    pub max_in_flight: u32,
    /// Most requests waiting for an overlap.
    pub max_pushed_back: u32,
    /// Turns in which the recorder's queue was full.
    pub recorder_stalls: u64,
    /// Submission calls.
    pub submissions: u64,
    /// Submission calls that took more than 50 µs: the kernel or the device held the loop.
    pub slow_submissions: u64,
    /// Time spent in those.
    pub slow_submission_time: Nanos,
}

/// A request that has a place, from its admission to its end.
struct Slot {
    buffer: Option<crate::buffers::Buffer>,
    generation: u64,
    target: u16,
    record: Record,
    /// Set while what the write wrote is being read again.
    reread: Option<Reread>,
}

impl Slot {
    /// Notes that it is issued now.
    #[inline]
    fn issue(&mut self, now: Nanos, pace: Pace) {
        if let Some(reread) = &mut self.reread {
            reread.issued = now;
            return;
        }
        self.record.issued = Some(now);
        if pace == Pace::AsFastAsPossible {
            self.record.intended = now;
        }
    }

    /// Notes what the target said.
    #[inline]
    fn end(&mut self, result: i64, now: Nanos) {
        let record = &mut self.record;
        record.completed = Some(now);
        match u64::try_from(result) {
            Err(_) => {
                record.outcome = Outcome::Error;
                record.errno = -result as i32;
            }
            Ok(bytes) => {
                let asked = record.sectors.0 * SECTOR_BYTES;
                // Operations without data return 0.
                record.bytes_done = if self.buffer.is_some() { bytes } else { asked };
                record.outcome = if record.bytes_done < asked { Outcome::Short } else { Outcome::Ok };
            }
        }
    }
}

/// Has every write read again at once after it, into the same memory.
pub struct Rereader {
    /// Where the memory is.
    pub arena: Arc<Arena>,
    /// The run's number.
    pub run: u64,
}

impl Rereader {
    /// Gets what was done ready to be read again, if there is anything. What was written is spoilt in memory, so that a
    /// target that reads nothing is seen.
    fn wants(&self, slot: &mut Slot) -> bool {
        let (Op::Write, Some(buffer)) = (slot.record.op, &mut slot.buffer) else { return false };
        let is_something = slot.record.bytes_done >= SECTOR_BYTES;
        if is_something {
            header::spoil(self.arena.bytes_mut(buffer, slot.record.sectors.bytes()), self.run);
            slot.reread = Some(Reread { issued: Nanos::ZERO, completed: Nanos::ZERO, result: 0 });
        }
        is_something
    }
}

/// The loop and all that it owns.
pub struct Issuer<'a, T, C, I> {
    clock: C,
    target: T,
    idle: I,
    pace: Pace,
    policy: Policy,
    limits: Limits,
    stop: &'a Stop,
    input: Consumer<Planned>,
    output: Producer<Done>,
    telltale: Telltale<'a>,
    /// Of a closed loop.
    clients: Option<Clients>,
    tracker: Tracker,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Room in the output when it was last asked for, less what was put there since.
    room: usize,
    /// The next of the input, fetched before its time: the memory that it lies in was written by another processor.
    upcoming: Option<Planned>,
    /// Whether what that is going to need was looked at.
    rehearsed: bool,
    /// Where requests stand that are due; one for all targets, or one for each.
    gates: Vec<Gate>,
    /// Requests before all gates.
    due: usize,
    /// The gate that is asked first: another one in each turn.
    first_gate: usize,
    /// The highest generation that has passed a gate.
    admitted: u64,
    /// Staged since the last submission.
    staged: Vec<u32>,
    rereader: Option<Rereader>,
    /// Written, and to be read again.
    rereads: VecDeque<u32>,
    in_flight: usize,
    /// Slots that wait for an overlap.
    waiting: usize,
    /// Whether the time is over at which the input ends.
    is_over: bool,
    last_look: Nanos,
    tally: Tally,
}

/// What the loop is put together from.
pub struct Plugs<'a, T, C, I> {
    /// Tells the time.
    pub clock: C,
    /// Does the I/O.
    pub target: T,
    /// Passes the time.
    pub idle: I,
    /// How the load's times are kept.
    pub pace: Pace,
    /// What to do about overlaps.
    pub policy: Policy,
    /// What to keep to.
    pub limits: Limits,
    /// Ends it early.
    pub stop: &'a Stop,
    /// Where requests come from, ready to be issued.
    pub input: Consumer<Planned>,
    /// Where they go when they are through, each once.
    pub output: Producer<Done>,
    /// Tells others how it goes.
    pub telltale: Telltale<'a>,
    /// Knows which of them overlap; made for the same policy and limits.
    pub tracker: Tracker,
    /// Reads what was written at once, if asked for.
    pub rereader: Option<Rereader>,
}

impl<'a, T: Target, C: Clock, I: Idle<T>> Issuer<'a, T, C, I> {
    /// Ready to run.
    pub fn new(plugs: Plugs<'a, T, C, I>) -> Self {
        let Plugs { clock, target, idle, pace, policy, limits, stop, input, output, telltale, tracker, rereader } =
            plugs;
        let slots = limits.slots();
        let clients = match pace {
            Pace::Closed(think) => Some(Clients::new(think, limits.depth * limits.gates, slots)),
            Pace::Timed | Pace::AsFastAsPossible => None,
        };
        Self {
            clock,
            target,
            idle,
            pace,
            policy,
            limits,
            stop,
            upcoming: None,
            rehearsed: false,
            gates: (0..limits.gates).map(|_| Gate::new(input.buffer().capacity())).collect(),
            due: 0,
            first_gate: 0,
            admitted: 0,
            input,
            output,
            telltale,
            clients,
            tracker,
            slots: std::iter::repeat_with(|| None).take(slots).collect(),
            free: (0..slots as u32).rev().collect(),
            room: 0,
            staged: Vec::with_capacity(limits.batch),
            rereads: VecDeque::with_capacity(if rereader.is_some() { slots } else { 0 }),
            rereader,
            in_flight: 0,
            waiting: 0,
            is_over: false,
            last_look: Nanos(i64::MIN),
            tally: Tally::default(),
        }
    }

    /// Runs until the input has ended and everything is through, or a stop was ordered. An error is one of the target as
    /// a whole: what is in flight then is recorded as unfinished.
    pub fn run(mut self) -> (Tally, T, I, io::Result<()>) {
        let outcome = self.turns();
        self.abandon();
        (self.tally, self.target, self.idle, outcome)
    }

    fn turns(&mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            self.telltale.passed(now, Doing::Waiting);
            self.read_again();
            if !self.stop.is_ordered() {
                self.revive();
                self.take_due(now);
                self.admit(now);
            }
            let busy = !self.staged.is_empty();
            if busy {
                self.submit()?;
            } else if self.is_done() {
                return Ok(());
            }
            let now = if busy { self.clock.now() } else { now };
            let left = self.time_left(now);
            if left > NEAR || now - self.last_look > LOOK {
                let found = self.look(left == Nanos::MAX);
                if !found && !busy && left > NEAR {
                    self.telltale.rests_until(now, left);
                    self.rehearse();
                    self.idle.idle(left, &mut self.target)?;
                }
            }
        }
    }

    /// The gate of a target.
    #[inline]
    fn gate_of(&self, target: u16) -> usize {
        if self.gates.len() == 1 { 0 } else { usize::from(target) }
    }

    /// Moves what is due from the input, so that it can be counted as waiting.
    #[inline]
    fn take_due(&mut self, now: Nanos) {
        if now >= self.limits.until {
            self.gates.iter_mut().for_each(|gate| gate.due.clear());
            self.due = 0;
            self.is_over = true;
            return;
        }
        if self.clients.is_some() {
            return self.take_clients(now);
        }
        while let Some((deadline, target)) = self.next()
            && deadline <= now
        {
            let gate = self.gate_of(target);
            if self.gates[gate].is_full() {
                return;
            }
            self.gates[gate].due.extend(self.upcoming.take());
            self.due += 1;
        }
    }

    /// The same in a closed loop.
    fn take_clients(&mut self, now: Nanos) {
        while !self.gates.iter().any(Gate::is_full) {
            let Some(next) = self.clients.as_mut().and_then(|clients| clients.due(&mut self.input, now)) else {
                return;
            };
            let gate = self.gate_of(next.target);
            self.gates[gate].due.push_back(next);
            self.due += 1;
        }
    }

    /// When the next request of the input is due, and on which target, if there is one.
    #[inline]
    fn next(&mut self) -> Option<(Nanos, u16)> {
        if self.upcoming.is_none() {
            self.upcoming = self.input.pop().ok();
            self.rehearsed = false;
            if self.due == 0 {
                // They start from their first places again, which are in the cache as well.
                self.gates.iter_mut().for_each(|gate| gate.due.clear());
            }
        }
        self.upcoming.as_ref().map(|next| (next.deadline, next.target))
    }

    /// Looks at what the next request is going to need, so that it is in the processor's cache at its deadline.
    #[inline]
    fn rehearse(&mut self) {
        if let Some(next) = &self.upcoming
            && !std::mem::replace(&mut self.rehearsed, true)
        {
            self.tracker.rehearse(range_of(next));
        }
    }

    /// Lets go what is due, as far as depth and conflicts allow. No gate is always the first: where one could fill every
    /// batch, the others would never get a turn.
    #[inline]
    fn admit(&mut self, now: Nanos) {
        let gates = self.gates.len();
        if gates == 1 {
            return self.admit_through(0, now);
        }
        for turn in 0..gates {
            self.admit_through((self.first_gate + turn) % gates, now);
        }
        self.first_gate = (self.first_gate + 1) % gates;
    }

    #[inline]
    fn admit_through(&mut self, gate: usize, now: Nanos) {
        while self.staged.len() < self.limits.batch {
            let Some(next) = self.gates[gate].due.front() else { return };
            let skipped = next.skip.is_some();
            let range = range_of(next);
            if !self.has_room() {
                self.tally.recorder_stalls += 1;
                return self.hold(gate, HeldBy::Recorder, now);
            }
            if skipped {
                self.leave_out(gate, now, |_| {});
                continue;
            }
            let Gate { ordinary, pushed_back, .. } = self.gates[gate];
            if ordinary >= self.limits.depth || pushed_back >= self.limits.pushed_back {
                return self.hold(gate, HeldBy::Depth, now);
            }
            let slot = *self.free.last().expect("fewer in use than the limits allow");
            match (self.tracker.admit(slot, range), self.policy) {
                (Verdict::Go, _) => {
                    self.occupy(gate, slot);
                    self.gates[gate].ordinary += 1;
                    self.stage(slot);
                }
                (Verdict::Conflict, Policy::Partial) => {
                    self.occupy(gate, slot);
                    self.slot_mut(slot).record.pushed_back = true;
                    self.gates[gate].pushed_back += 1;
                    self.waiting += 1;
                    self.tally.max_pushed_back = self.tally.max_pushed_back.max(self.waiting as u32);
                }
                (Verdict::Conflict, Policy::Drop) => {
                    self.tally.dropped += 1;
                    self.leave_out(gate, now, |record| record.outcome = Outcome::Dropped);
                }
                (Verdict::Conflict, _) => {
                    let is_new = !std::mem::replace(&mut self.gates[gate].head_waits, true);
                    self.tally.ordered_waits += u64::from(is_new);
                    return self.hold(gate, HeldBy::Order, now);
                }
            }
        }
    }

    #[inline]
    fn hold(&mut self, gate: usize, by: HeldBy, now: Nanos) {
        self.gates[gate].held = Some((by, now));
    }

    /// Takes the oldest request from before a gate.
    #[inline]
    fn take_head(&mut self, gate: usize) -> Planned {
        self.due -= 1;
        let next = self.gates[gate].due.pop_front().expect("the caller saw it");
        self.admitted = self.admitted.max(next.generation);
        next
    }

    /// Puts the oldest request before a gate out without giving it to the target. In a closed loop, its client takes the
    /// next one.
    fn leave_out(&mut self, gate: usize, now: Nanos, why: impl FnOnce(&mut Record)) {
        let next = self.take_head(gate);
        if let Some(clients) = &mut self.clients {
            clients.left_out(next.intended, now);
        }
        let mut record = next.record();
        why(&mut record);
        let (generation, target, buffer) = (next.generation, next.target, next.buffer);
        self.put_out(Slot { buffer, generation, target, record, reread: None });
    }

    /// Gives the oldest request before a gate its slot.
    #[inline]
    fn occupy(&mut self, gate: usize, slot: u32) {
        let next = self.take_head(gate);
        let gate = &mut self.gates[gate];
        gate.head_waits = false;
        self.free.pop();
        let mut record = next.record();
        if let Some(clients) = &mut self.clients {
            clients.occupy(slot, next.intended);
            record.intended = next.deadline;
        }
        if self.pace != Pace::AsFastAsPossible {
            record.held_by = match gate.held {
                Some((by, at)) if at >= next.deadline => by,
                _ if next.ready > next.deadline => HeldBy::Input,
                _ if self.clients.is_none() && next.deadline > next.intended => HeldBy::Perturbed,
                _ => HeldBy::Nothing,
            };
        }
        let (generation, target, buffer) = (next.generation, next.target, next.buffer);
        self.slots[slot as usize] = Some(Slot { buffer, generation, target, record, reread: None });
    }

    /// Lets go what waited for an overlap that has gone, whatever else is due.
    #[inline]
    fn revive(&mut self) {
        while self.staged.len() < self.limits.batch {
            let Some(slot) = self.tracker.revive() else { return };
            self.waiting -= 1;
            self.stage(slot);
        }
    }

    #[inline]
    fn stage(&mut self, slot: u32) {
        let Some(Slot { buffer, target, record, .. }) = &mut self.slots[slot as usize] else {
            unreachable!("only occupied slots are staged")
        };
        self.in_flight += 1;
        self.tally.max_in_flight = self.tally.max_in_flight.max(self.in_flight as u32);
        record.in_flight = self.in_flight as u32;
        record.waiting = (self.due + self.waiting) as u32;
        self.target.stage(Io {
            slot,
            // Rounds of a load are far fewer than 2^16, requests of one far fewer than 2^48.
            key: record.request ^ (u64::from(record.round) << 48),
            target: *target,
            op: record.op,
            flags: record.flags,
            offset: record.sector.bytes(),
            length: record.sectors.bytes(),
            buffer: buffer.as_ref(),
        });
        self.staged.push(slot);
    }

    /// Stages the reads of what was just written.
    #[inline]
    fn read_again(&mut self) {
        while self.staged.len() < self.limits.batch {
            let Some(slot) = self.rereads.pop_front() else { return };
            let Slot { buffer, target, record, .. } = self.slots[slot as usize].as_ref().expect("it kept its place");
            self.target.stage(Io {
                slot,
                key: record.request,
                target: *target,
                op: Op::Read,
                flags: Flags::default(),
                offset: record.sector.bytes(),
                length: record.sectors.bytes(),
                buffer: buffer.as_ref(),
            });
            self.staged.push(slot);
        }
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let issued = self.clock.now();
        self.telltale.passed(issued, Doing::Choosing);
        for i in 0..self.staged.len() {
            let pace = self.pace;
            self.slot_mut(self.staged[i]).issue(issued, pace);
        }
        let outcome = self.target.submit();
        let submitted = self.clock.now();
        self.telltale.passed(submitted, Doing::Submitting);
        for i in 0..self.staged.len() {
            let slot = self.slot_mut(self.staged[i]);
            if slot.reread.is_none() {
                slot.record.submitted = Some(submitted);
            }
        }
        self.staged.clear();
        self.tally.submissions += 1;
        let took = submitted - issued;
        if took > Nanos(50_000) {
            self.tally.slow_submissions += 1;
            self.tally.slow_submission_time = self.tally.slow_submission_time + took;
        }
        outcome
    }

    /// Takes completions back while no deadline is near, or [`SOME`], where they make room for what is due. Returns whether
    /// there were any.
    #[inline]
    fn look(&mut self, makes_room: bool) -> bool {
        let mut found = 0;
        while let Some(completion) = self.target.reap() {
            let now = self.clock.now();
            self.last_look = now;
            self.complete(completion, now);
            found += 1;
            let is_enough = if makes_room { found == SOME } else { self.time_left(now) <= NEAR };
            if is_enough {
                break;
            }
        }
        self.last_look = self.clock.now();
        self.telltale.passed(self.last_look, Doing::Reaping);
        self.telltale.shows(self.in_flight);
        found > 0
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        let Some(mut slot) = self.slots.get_mut(completion.slot as usize).and_then(Option::take) else {
            // A completion for nothing in flight: a target's fault that must not end the run.
            debug_assert!(false, "unexpected {completion:?}");
            return;
        };
        match &mut slot.reread {
            None => {
                slot.end(completion.result, now);
                if let Some(rereader) = &self.rereader
                    && rereader.wants(&mut slot)
                {
                    // It keeps its place, and what overlaps it waits on.
                    self.rereads.push_back(completion.slot);
                    self.slots[completion.slot as usize] = Some(slot);
                    return;
                }
            }
            Some(reread) => (reread.completed, reread.result) = (now, completion.result),
        }
        self.in_flight -= 1;
        let gate = self.gate_of(slot.target);
        let gate = &mut self.gates[gate];
        if slot.record.pushed_back {
            gate.pushed_back -= 1;
        } else {
            gate.ordinary -= 1;
        }
        self.free.push(completion.slot);
        self.tracker.finish(completion.slot);
        if let Some(clients) = &mut self.clients {
            clients.completed(completion.slot, now);
        }
        self.put_out(slot);
    }

    /// Whether the recorder's queue has room for one more request when all that are on their way come back.
    #[inline]
    fn has_room(&mut self) -> bool {
        let needed = self.in_flight + self.waiting + 1;
        if self.room < needed {
            // Asked only when the last answer is used up: it is the other thread's cache line.
            self.room = self.output.slots();
        }
        self.room >= needed
    }

    /// Hands a request to the recorder.
    #[inline]
    fn put_out(&mut self, through: Slot) {
        let Slot { buffer, generation, target, record, reread } = through;
        let mut done = Done { record, generation, target, admitted: self.admitted, reread, buffer };
        self.room = self.room.saturating_sub(1);
        // There was room for it before it was taken; and the recorder never waits for the loop.
        while let Err(rtrb::PushError::Full(back)) = self.output.push(done) {
            self.tally.recorder_stalls += 1;
            done = back;
            std::thread::yield_now();
        }
    }

    /// How long until something can be issued; `MAX` if only a completion can change that.
    #[inline]
    fn time_left(&mut self, now: Nanos) -> Nanos {
        if self.stop.is_ordered() || self.is_over || (self.due > 0 && self.gates.len() == 1) {
            // Never to be taken; or due, but held, and so is everything behind it.
            return Nanos::MAX;
        }
        if let Some(clients) = &self.clients {
            let thinking = clients.next().map_or(Nanos::MAX, |at| at - now);
            return match (clients.want(), self.input.is_empty(), self.input.is_abandoned()) {
                (true, false, _) => Nanos::ZERO,
                (true, true, false) => thinking.min(INPUT_POLL),
                _ => thinking,
            };
        }
        match self.next() {
            Some((_, target)) if self.due > 0 && self.gates[self.gate_of(target)].is_full() => Nanos::MAX,
            Some((deadline, _)) => deadline - now,
            None if self.input.is_abandoned() => Nanos::MAX,
            None => INPUT_POLL,
        }
    }

    fn is_done(&self) -> bool {
        if self.in_flight + self.waiting > 0 {
            // A stop leaves those that wait where they are.
            return self.stop.is_at_once() || (self.stop.is_ordered() && self.in_flight == 0);
        }
        let thinks = self.clients.as_ref().is_some_and(|clients| clients.next().is_some());
        let is_drained = !thinks && self.upcoming.is_none() && self.input.is_abandoned() && self.input.is_empty();
        self.stop.is_ordered() || self.is_over || (self.due == 0 && is_drained)
    }

    /// Puts out what never came back, and what never went.
    fn abandon(&mut self) {
        for slot in 0..self.slots.len() {
            if let Some(left) = self.slots[slot].take() {
                // The buffer of a request in flight still belongs to the kernel: it is not given back.
                self.put_out(Slot { buffer: None, reread: None, ..left });
            }
        }
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        self.slots[slot as usize].as_mut().expect("an occupied slot")
    }
}

fn range_of(planned: &Planned) -> Range {
    Range {
        target: planned.target,
        sector: planned.sector.0,
        sectors: planned.sectors.0,
        modifies: planned.op.modifies(),
    }
}

#[cfg(test)]
mod tests;
