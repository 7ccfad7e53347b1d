//! The issuing loop: issues each request at its deadline, never early, and reaps completions.
//!
//! ```text
//!  input ──▶ due ──▶ [conflicts?] ──▶ staged ──▶ target ──▶ completions ──▶ output
//!                        │              ▲                        │
//!                        └─▶ waiting ───┘◀── conflict resolved ──┘
//! ```
//! With a [`Rereader`], a completed write is staged again as a read before its result goes to the output.
//!
//! If each target has its own depth, each has its own [`DispatchQueue`](dispatch_queue::DispatchQueue), so that a full
//! target does not hold up the others.
//!
//! The loop never allocates, locks or formats, and makes no system calls except submission and cheap reaping. Shortly
//! before a deadline ([`Idle::DEADLINE_MARGIN`]) it does not reap either, which could make the request late. Exceptions:
//! nothing can be issued anyway, or the last poll was long ago ([`MAX_POLL_INTERVAL`]), as a completion is timestamped
//! when it is reaped.

use std::collections::VecDeque;
use std::io;

use iosonar_pacing::Stop;
use iosonar_pacing::clock::Clock;
use iosonar_pacing::demand::Demand;
use iosonar_pacing::idle::Idle;
use iosonar_pacing::stalls::{Activity, StallMonitor};
use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer};

use self::input::Input;
use self::output::Output;
use self::sharing::Sharing;
use self::slot::Slots;
use self::takers::Takers;
use crate::engine::Target;
use crate::io::{CompletedIo, PreparedIo};
use crate::issuer::conflicts::{Policy, Tracker};
use crate::issuer::dispatch_queue::DispatchQueues;
use crate::pipeline::program::ProgramInput;

mod admission;
pub mod closed;
mod completion;
pub mod conflicts;
pub mod counters;
mod dependents;
pub(crate) mod dispatch_queue;
mod input;
pub mod limits;
mod output;
mod shared_admission;
mod sharing;
mod slot;
mod takers;

pub use self::closed::Think;
pub use self::limits::{IssueRules, Limits, Pace};
pub use self::sharing::SharedWith;
pub use self::slot::Rereader;
pub use crate::issuer::counters::LoopCounters;

/// The longest time between polls for completions, even before a deadline.
const MAX_POLL_INTERVAL: Nanos = Nanos(20_000);
/// Turns at one instant, after which virtual time is taken to stand still.
const MAX_TURNS: u64 = 20_000;
/// Completions reaped at a time before issuing into the freed slots. Reaping all of them first would leave the device
/// nearly idle meanwhile, because completions come in bursts.
const REAP_BATCH: usize = 8;
/// The most completions, beside the first, that have the time of one reading of the clock. To record so many takes less
/// than a microsecond, so the reading also shows how near the next deadline is.
const READING: usize = 3;
/// The longest sleep while the input is empty: an urgent request can arrive at any time.
const INPUT_POLL: Nanos = Nanos(200_000);

/// The issuing loop and its state.
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
    demand: Demand,
    /// For a closed loop.
    clients: Option<Takers>,
    program: Option<Box<ProgramInput>>,
    /// Requests that concern other loops as well.
    sharing: Sharing,
    tracker: Tracker,
    slots: Slots,
    /// Requests that are due.
    queues: DispatchQueues,
    /// Slots staged since the last submission.
    staged: Vec<u32>,
    rereader: Option<Rereader>,
    /// Slots with completed writes that are to be read back.
    rereads: VecDeque<u32>,
    in_flight: usize,
    /// Slots that wait for an overlapping request.
    waiting: usize,
    /// Whether `limits.until` has passed.
    is_past_end: bool,
    /// The time of the last turn, and the turns at it.
    instant: (Nanos, u64),
    last_poll: Nanos,
    /// When the target was last polled without finding a completion.
    last_empty_poll: Nanos,
    counters: LoopCounters,
}

/// The parts of an [`Issuer`].
pub struct IssuerParts<'a, T, C, I> {
    /// What tells the time of the run: real or virtual.
    pub clock: C,
    /// The engine that requests are submitted to.
    pub target: T,
    /// How to wait.
    pub idle: I,
    /// Pace, conflict policy and limits.
    pub rules: IssueRules,
    /// Stops the loop early.
    pub stop: &'a Stop,
    /// Prepared requests.
    pub input: Consumer<PreparedIo>,
    /// Completed, skipped and unfinished requests, each exactly once.
    pub output: Producer<CompletedIo>,
    /// Reports stalls and the number of requests in flight.
    pub stall_monitor: StallMonitor<'a>,
    /// Reads each write back immediately.
    pub rereader: Option<Rereader>,
    /// A program, which asks for requests beside those of `input`.
    pub program: Option<Box<ProgramInput>>,
}

impl<'a, T: Target, C: Clock, I: Idle<T>> Issuer<'a, T, C, I> {
    /// A loop that is ready to run.
    pub fn new(parts: IssuerParts<'a, T, C, I>) -> Self {
        let IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader, program } = parts;
        let IssueRules { pace, policy, strong, limits } = rules;
        let slots = limits.slots();
        let clients = match pace {
            Pace::Closed(think) => Some(Takers::new(think, limits.clients, slots)),
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
            queues: DispatchQueues::new(limits.queues, input.buffer().capacity(), limits.depth),
            input: Input::new(input),
            output: Output::new(output),
            stall_monitor,
            demand: Demand::default(),
            clients,
            program,
            sharing: Sharing::default(),
            tracker: Tracker::new(policy, strong, slots),
            slots: Slots::new(slots),
            staged: Vec::with_capacity(limits.batch),
            rereads: VecDeque::with_capacity(if rereader.is_some() { slots } else { 0 }),
            rereader,
            in_flight: 0,
            waiting: 0,
            is_past_end: false,
            instant: (Nanos(i64::MIN), 0),
            last_poll: Nanos(i64::MIN),
            last_empty_poll: Nanos(i64::MIN),
            counters: LoopCounters::default(),
        }
    }

    /// Shares a run with other loops.
    #[must_use]
    pub fn sharing(mut self, with: SharedWith) -> Self {
        self.sharing = Sharing::new(with, self.limits.slots());
        self
    }

    /// Runs until the input has ended and all requests have completed, or until a stop. An error affects the target as a
    /// whole; requests still in flight are then recorded as unfinished.
    pub fn run(mut self) -> (LoopCounters, T, I, io::Result<()>) {
        let outcome = self.run_loop();
        self.output_unfinished();
        self.sharing.end();
        self.counters.blind_time = self.stall_monitor.blind_in_flight();
        self.counters.burst = self.demand.largest();
        self.counters.early_end = self.program.as_ref().and_then(|program| program.early_end());
        (self.counters, self.target, self.idle, outcome)
    }

    fn run_loop(&mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            if now == Nanos::MAX {
                return Err(io::Error::other("the simulated time has reached 292 years, the longest time of a run"));
            }
            if self.stands_still(now) {
                self.counters.stands_still = true;
                return Ok(());
            }
            self.stall_monitor.record(now, Activity::Waiting);
            if I::COMPLETIONS_FIRST {
                self.reap_completions(now, false);
            }
            self.stage_rereads();
            if self.sharing.is_active() {
                self.poll_shared();
            }
            if !self.stop.is_requested() {
                self.stage_released();
                self.take_due(now);
                self.admit_due(now);
            }
            let busy = !self.staged.is_empty();
            let now = if busy {
                self.submit()?
            } else if self.is_done() {
                return Ok(());
            } else {
                now
            };
            let left = self.time_to_next_issue(now);
            if left > I::DEADLINE_MARGIN || now - self.last_poll > MAX_POLL_INTERVAL {
                let found = self.reap_completions(now, left == Nanos::MAX);
                if !found && !busy && left > I::DEADLINE_MARGIN {
                    self.stall_monitor.idle_for(now, left);
                    self.demand.idles();
                    self.prefetch();
                    let turn = self.idle.idle(left, &mut self.target)?;
                    self.stall_monitor.waited(turn);
                } else {
                    self.idle.busy(left);
                }
            }
        }
    }

    /// Whether virtual time does not go on, in a run that would end at a time.
    #[inline]
    fn stands_still(&mut self, now: Nanos) -> bool {
        let (at, turns) = &mut self.instant;
        *turns = if *at == now { *turns + 1 } else { 0 };
        *at = now;
        *turns > MAX_TURNS && (self.limits.until != Nanos::MAX || self.program.is_some())
    }

    /// Submits what is staged. Returns when that was done.
    #[inline]
    fn submit(&mut self) -> io::Result<Nanos> {
        let issued = self.clock.now();
        self.stall_monitor.record(issued, Activity::Choosing);
        self.demand.issues(issued, self.staged.len());
        for i in 0..self.staged.len() {
            let (pace, blind) = (self.pace, self.stall_monitor.blind());
            let slot = self.slots.get_mut(self.staged[i]);
            slot.mark_issued(issued, pace, blind);
            if pace == Pace::Timed && slot.reread.is_none() {
                slot.is_late_by_load = self.demand.delays(slot.deadline(), issued);
            }
        }
        let outcome = self.target.submit();
        let submitted = self.clock.now();
        self.stall_monitor.record(submitted, Activity::Submitting);
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
        outcome.map(|()| submitted)
    }

    /// Time until a request can be issued, or a filament is woken; `MAX` if this needs a completion first.
    #[inline]
    fn time_to_next_issue(&mut self, now: Nanos) -> Nanos {
        let left = self.time_to_own_issue(now);
        self.sharing.limit(left, self.waiting)
    }

    /// Like [`time_to_next_issue`](Self::time_to_next_issue), without regard to other loops.
    #[inline]
    fn time_to_own_issue(&mut self, now: Nanos) -> Nanos {
        let next_event = self.program.as_ref().map_or(Nanos::MAX, |program| program.time_to_next_event(now));
        if next_event == Nanos::MAX {
            self.time_to_next_input(now)
        } else if self.stop.is_requested() || self.is_past_end || self.queues.is_any_full() {
            Nanos::MAX
        } else {
            self.time_to_next_input(now).min(next_event)
        }
    }

    /// Time until a request of the input can be issued; `MAX` if this needs a completion first.
    #[inline]
    fn time_to_next_input(&mut self, now: Nanos) -> Nanos {
        if self.stop.is_requested() || self.is_past_end || (self.queues.due() > 0 && self.queues.count() == 1) {
            // Nothing will be issued, or the due request is held and everything behind it too.
            return Nanos::MAX;
        }
        if let Some(clients) = &self.clients {
            let thinking = clients.next_deadline().map_or(Nanos::MAX, |at| at - now);
            return match (clients.has_free(), self.input.is_empty(), self.input.is_abandoned()) {
                (true, false, _) => Nanos::ZERO,
                (true, true, false) => thinking.min(INPUT_POLL),
                _ => thinking,
            };
        }
        match self.input.peek() {
            Some((_, target)) if self.queues.due() > 0 && self.queues.get(self.queues.index_of(target)).is_full() => {
                Nanos::MAX
            }
            Some((deadline, _)) => deadline - now,
            None if self.input.is_abandoned() => Nanos::MAX,
            None => INPUT_POLL,
        }
    }

    fn is_done(&self) -> bool {
        if self.in_flight + self.waiting + self.sharing.pending() > 0 {
            // A stop leaves waiting requests unfinished.
            return self.stop.is_abort() || (self.stop.is_requested() && self.in_flight == 0);
        }
        let thinks = self.clients.as_ref().is_some_and(|clients| clients.next_deadline().is_some());
        let asks = self.program.as_ref().is_some_and(|program| !program.is_done());
        let is_drained = !thinks && !asks && self.input.is_abandoned() && self.input.is_empty();
        self.stop.is_requested() || self.is_past_end || (self.queues.due() == 0 && is_drained)
    }

    /// Records requests that were not issued or did not complete as unfinished.
    fn output_unfinished(&mut self) {
        for mut left in self.slots.drain() {
            // The kernel still owns the buffer of a request in flight, so it is not returned.
            (left.reread, left.buffer) = (None, None);
            let admitted = self.sharing.admitted(self.queues.admitted());
            self.output.push(left.completed(self.sharing.issuer(), admitted));
        }
    }
}

#[cfg(test)]
mod tests;
