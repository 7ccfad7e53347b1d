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

use std::collections::VecDeque;
use std::io;

use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer};

use self::closed::Clients;
use self::input::Input;
use self::output::Output;
use self::slot::{Slot, Slots};
use crate::engine::Target;
use crate::issuer::conflicts::{Policy, Tracker};
use crate::issuer::dispatch_queue::Gates;
use crate::pipeline::io::{CompletedIo, PreparedIo};
use crate::schedule::clock::Clock;

mod admission;
pub mod closed;
mod completion;
pub mod conflicts;
pub mod counters;
pub(crate) mod dispatch_queue;
pub mod idle;
mod input;
pub mod limits;
mod output;
mod slot;
pub mod stall_monitor;
pub mod stop;

pub use self::closed::Think;
pub use self::idle::{BlockingWait, Hybrid, Idle, Sleep, Spin};
pub use self::limits::{IssueRules, Limits, Pace};
pub use self::slot::Rereader;
pub use self::stop::Stop;
pub use crate::issuer::counters::LoopCounters;
pub use crate::issuer::stall_monitor::{Doing, Stall, StallMonitor};

/// A deadline closer than this is not risked for anything else.
const NEAR: Nanos = Nanos(3_000);
/// However near deadlines are, completions are looked for at least this often.
const LOOK: Nanos = Nanos(20_000);
/// Completions that are taken back before what they make room for is issued. Where all of them were, the device had little
/// left to do meanwhile: completions come in bunches.
const SOME: usize = 8;
/// How long a sleeping loop trusts an empty input, which can bring an urgent request at any time.
const INPUT_POLL: Nanos = Nanos(200_000);

/// The loop and all that it owns.
pub struct Issuer<'a, T, C, I> {
    clock: C,
    target: T,
    idle: I,
    pace: Pace,
    policy: Policy,
    limits: Limits,
    stop: &'a Stop,
    input: Input,
    output: Output,
    stall_monitor: StallMonitor<'a>,
    /// Of a closed loop.
    clients: Option<Clients>,
    tracker: Tracker,
    slots: Slots,
    /// Where requests stand that are due.
    gates: Gates,
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
    /// When the target was last seen to have no completions.
    last_empty: Nanos,
    counters: LoopCounters,
}

/// What the loop is put together from.
pub struct IssuerParts<'a, T, C, I> {
    /// Tells the time.
    pub clock: C,
    /// Does the I/O.
    pub target: T,
    /// Passes the time.
    pub idle: I,
    /// By which it issues.
    pub rules: IssueRules,
    /// Ends it early.
    pub stop: &'a Stop,
    /// Where requests come from, ready to be issued.
    pub input: Consumer<PreparedIo>,
    /// Where they go when they are through, each once.
    pub output: Producer<CompletedIo>,
    /// Tells others how it goes.
    pub stall_monitor: StallMonitor<'a>,
    /// Reads what was written at once, if asked for.
    pub rereader: Option<Rereader>,
}

impl<'a, T: Target, C: Clock, I: Idle<T>> Issuer<'a, T, C, I> {
    /// Ready to run.
    pub fn new(parts: IssuerParts<'a, T, C, I>) -> Self {
        let IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader } = parts;
        let IssueRules { pace, policy, strong, limits } = rules;
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
            gates: Gates::new(limits.gates, input.buffer().capacity()),
            input: Input::new(input),
            output: Output::new(output),
            stall_monitor,
            clients,
            tracker: Tracker::new(policy, strong, slots),
            slots: Slots::new(slots),
            staged: Vec::with_capacity(limits.batch),
            rereads: VecDeque::with_capacity(if rereader.is_some() { slots } else { 0 }),
            rereader,
            in_flight: 0,
            waiting: 0,
            is_over: false,
            last_look: Nanos(i64::MIN),
            last_empty: Nanos(i64::MIN),
            counters: LoopCounters::default(),
        }
    }

    /// Runs until the input has ended and everything is through, or a stop was ordered. An error is one of the target as
    /// a whole: what is in flight then is recorded as unfinished.
    pub fn run(mut self) -> (LoopCounters, T, I, io::Result<()>) {
        let outcome = self.turns();
        self.abandon();
        (self.counters, self.target, self.idle, outcome)
    }

    fn turns(&mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            self.stall_monitor.passed(now, Doing::Waiting);
            self.read_again();
            if !self.stop.is_ordered() {
                self.release();
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
                    self.stall_monitor.rests_until(now, left);
                    self.prefetch();
                    self.idle.idle(left, &mut self.target)?;
                } else {
                    self.idle.busy(left);
                }
            }
        }
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let issued = self.clock.now();
        self.stall_monitor.passed(issued, Doing::Choosing);
        for i in 0..self.staged.len() {
            let pace = self.pace;
            self.slots.get_mut(self.staged[i]).issue(issued, pace);
        }
        let outcome = self.target.submit();
        let submitted = self.clock.now();
        self.stall_monitor.passed(submitted, Doing::Submitting);
        for i in 0..self.staged.len() {
            let slot = self.slots.get_mut(self.staged[i]);
            if slot.reread.is_none() {
                slot.record.submitted = Some(submitted);
            }
        }
        self.staged.clear();
        self.counters.submissions += 1;
        let took = submitted - issued;
        if took > Nanos(50_000) {
            self.counters.slow_submissions += 1;
            self.counters.slow_submission_time = self.counters.slow_submission_time + took;
        }
        outcome
    }

    /// How long until something can be issued; `MAX` if only a completion can change that.
    #[inline]
    fn time_left(&mut self, now: Nanos) -> Nanos {
        if self.stop.is_ordered() || self.is_over || (self.gates.due() > 0 && self.gates.count() == 1) {
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
        match self.input.next() {
            Some((_, target)) if self.gates.due() > 0 && self.gates.get(self.gates.of(target)).is_full() => Nanos::MAX,
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
        let is_drained = !thinks && self.input.is_abandoned() && self.input.is_empty();
        self.stop.is_ordered() || self.is_over || (self.gates.due() == 0 && is_drained)
    }

    /// Puts out what never came back, and what never went.
    fn abandon(&mut self) {
        for left in self.slots.drain() {
            // The buffer of a request in flight still belongs to the kernel: it is not given back.
            let Slot { sequence_number, target, record, .. } = left;
            let admitted = self.gates.admitted();
            self.output.put(CompletedIo { record, sequence_number, target, admitted, reread: None, buffer: None });
        }
    }
}

#[cfg(test)]
mod tests;
