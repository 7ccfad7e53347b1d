//! What the leader owns: the calls that were read, their schedule, the descriptors, and the queues in and out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use iosonar_pacing::buffers::Buffer;
use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer};

use super::descriptors::DescriptorTable;
use super::job::{Completion, Job};
use super::pace::Pace;
use super::schedule::{NextCall, Schedule, Slot};
use super::stalls::{Explained, IdleTime, Servers};
use crate::replay::action::Action;
use crate::replay::execute::Descriptors;
use crate::replay::options::Timing;
use crate::replay::outcome::compare;
use crate::replay::prepared_call::{FinishedCall, PreparedCall};
use crate::replay::timed::Issued;
use crate::{CallKind, CallOutcome};

/// Calls are read this long before their time.
const AHEAD: Nanos = Nanos(2_000_000);

/// Reading a call may wait this long while all threads that are awake execute calls.
const URGENT: Nanos = Nanos(1_000_000);

/// The most calls that are not issued between two readings of the clock.
const UNISSUED: usize = 64;

/// A single call raises the mean duration of its kind at most by this: it may have been interrupted.
const STEP: Nanos = Nanos(10_000);

/// In a replay without times, the stages beside the engine plan or record some thousand calls in this time.
const PAUSE: Duration = Duration::from_millis(1);

/// How the leader reads, and what it does with calls.
#[derive(Clone, Debug)]
pub struct Rules {
    /// When calls are issued.
    pub pace: Pace,
    /// The most calls that wait after they were read, in a replay without exact times.
    pub ahead: usize,
    /// How many completed calls are remembered.
    pub history: usize,
    /// Whether calls are assumed to return what they returned in the trace.
    pub fake_io: bool,
    pub workers: usize,
    /// Whether threads announce that they issue a call, because others wait for that.
    pub announces: bool,
}

impl Rules {
    /// Waits for a stage beside the engine. Calls without times leave their processor to it until it has done much.
    pub fn pause(&self, sleep: impl FnOnce(Duration)) {
        if self.pace.timing.has_times() { thread::yield_now() } else { sleep(PAUSE) }
    }
}

/// The queues of a core.
pub struct Queues {
    /// Prepared calls.
    pub input: Consumer<Box<PreparedCall>>,
    /// Finished calls.
    pub output: Producer<FinishedCall>,
    /// Buffers of finished calls.
    pub buffers: Producer<Buffer>,
    /// The oldest call that has not completed.
    pub floor: Arc<AtomicU64>,
}

/// What the leader owns.
pub struct Core {
    rules: Rules,
    schedule: Schedule,
    input: Consumer<Box<PreparedCall>>,
    /// `None` after the end.
    output: Option<Producer<FinishedCall>>,
    floor: Arc<AtomicU64>,
    buffers: Producer<Buffer>,
    descriptors: DescriptorTable,
    /// Slots and threads of calls that were taken, and whose issue was not announced.
    unannounced: Vec<(u32, u32)>,
    in_flight: usize,
    max_in_flight: usize,
    /// Calls are read no more.
    stopped: bool,
    /// When the threads would be free.
    servers: Servers,
    /// Since when a thread is free.
    room_since: Nanos,
    idle: IdleTime,
    /// The mean duration of each kind of call in this replay, in ns.
    durations: Vec<i64>,
    /// A call failed because the replay has no more descriptors.
    lacks_descriptors: bool,
}

/// What the leader finds.
#[derive(Debug)]
pub enum Step {
    /// A call to issue now.
    Job(Job),
    /// The next call is one of this thread.
    Other(u32),
    /// Nothing to do before this time.
    WaitUntil(Nanos),
    /// Nothing to do before a call completes.
    WaitForCalls,
    /// The plan has not delivered the next call.
    WaitForInput,
    /// All calls have completed.
    Finished,
}

impl Core {
    /// A core for calls from `first` on.
    pub fn new(
        rules: Rules,
        first: u64,
        descriptors: DescriptorTable,
        Queues { input, output, buffers, floor }: Queues,
    ) -> Self {
        Self {
            schedule: Schedule::new(rules.pace.clone(), first, rules.history),
            input,
            output: Some(output),
            floor,
            buffers,
            descriptors,
            unannounced: Vec::new(),
            in_flight: 0,
            max_in_flight: 0,
            stopped: false,
            servers: Servers::new(rules.workers),
            rules,
            room_since: Nanos(i64::MIN),
            idle: IdleTime::new(),
            durations: vec![0; CallKind::ALL.len()],
            lacks_descriptors: false,
        }
    }

    /// Reads no more calls, and issues no more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// How the leader reads, and what it does with calls.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether a call failed because the replay has no more descriptors.
    pub fn lacks_descriptors(&self) -> bool {
        self.lacks_descriptors
    }

    /// Calls that are being executed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether all threads are executing calls.
    pub fn is_full(&self) -> bool {
        self.in_flight == self.rules.workers
    }

    /// How long calls were ready and a thread was free, but the replayer issued none.
    pub fn idle(&self) -> Nanos {
        self.idle.until_completion()
    }

    /// The most calls that were executed at the same time.
    pub fn max_in_flight(&self) -> usize {
        self.max_in_flight
    }

    /// The next thing to do for this thread.
    pub fn find(&mut self, me: u32, now: Nanos) -> Step {
        if now < Nanos::ZERO && self.rules.pace.timing == Timing::Asap {
            self.read(now);
            return if self.stopped { Step::Finished } else { Step::WaitUntil(Nanos::ZERO) };
        }
        // The time is read anew, and a stop looked for, after some calls that are not issued.
        for _ in 0..UNISSUED {
            let read = if self.stopped { Read::Ended } else { self.read(now) };
            if self.stopped {
                return if self.in_flight == 0 { Step::Finished } else { Step::WaitForCalls };
            }
            if let Some(other) = self.next_worker().filter(|&other| other != me) {
                return Step::Other(other);
            }
            match self.schedule.next(now) {
                NextCall::Due(_) => {
                    let slot = self.schedule.take();
                    if let Some(job) = self.job(slot, me, now) {
                        return Step::Job(job);
                    }
                }
                NextCall::At(due) => {
                    return match read {
                        Read::Later(at) => Step::WaitUntil(due.min(at)),
                        Read::Starving if self.in_flight == 0 => Step::WaitForInput,
                        Read::Starving | Read::Full | Read::Ended => Step::WaitUntil(due),
                    };
                }
                NextCall::Nothing => {
                    return match read {
                        Read::Later(at) => Step::WaitUntil(at),
                        Read::Starving => Step::WaitForInput,
                        Read::Ended if self.in_flight == 0 && self.schedule.is_empty() => Step::Finished,
                        Read::Full | Read::Ended => Step::WaitForCalls,
                    };
                }
            }
        }
        Step::WaitUntil(now)
    }

    /// Reads calls as far as it makes sense.
    fn read(&mut self, now: Nanos) -> Read {
        loop {
            if !self.schedule.has_room() {
                return Read::Full;
            }
            let ended = self.input.is_abandoned();
            let Ok(next) = self.input.peek() else {
                return if ended { Read::Ended } else { Read::Starving };
            };
            if self.rules.pace.timing == Timing::Exact {
                let at = self.rules.pace.scheduled(next.begin) - AHEAD;
                if at > now {
                    return Read::Later(at);
                }
            } else if self.schedule.waiting() >= self.rules.ahead {
                return Read::Full;
            }
            let next = self.input.pop().expect("it was seen");
            self.schedule.add(next, now);
        }
    }

    /// The job of a call that is due; `None` if it is already done.
    fn job(&mut self, slot: u32, me: u32, now: Nanos) -> Option<Job> {
        let entry = self.schedule.slot(slot);
        let is_left_out = entry.call.record.left_out.is_some();
        let Some(action) = entry.call.action.take() else {
            self.leave_out(slot, now);
            return None;
        };
        let to = Descriptors {
            fd: self.descriptors.get(action.description),
            fd2: self.descriptors.get(action.description2),
        };
        let is_close = action.kind == CallKind::Close && !is_left_out;
        let ended = action.ends.iter().filter_map(|&id| self.descriptors.remove(id));
        let mut closes = Vec::new();
        if is_close {
            ended.for_each(drop)
        } else {
            closes.extend(ended)
        }
        if self.rules.fake_io {
            let entry = self.schedule.slot(slot);
            let (result, errno) = (entry.call.record.expected_result.unwrap_or(0), entry.call.record.expected_errno);
            let issued = Issued { issued: now, completed: now, result, errno };
            self.finish(Completion { slot, action, issued, is_left_out, stalled: None }, now);
            return None;
        }
        let ready = entry.ready.max(self.room_since);
        self.idle.issue(ready, now);
        let free = self.servers.take();
        if self.rules.pace.timing == Timing::Exact {
            self.schedule.slot(slot).wait_for_thread(free);
        }
        if self.rules.announces {
            self.unannounced.push((slot, me));
        }
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        Some(Job { slot, action, to, closes, is_left_out })
    }

    /// A call without an action: it completes at once, or after as long as in the trace if the timing counts from its end.
    fn leave_out(&mut self, slot: u32, now: Nanos) {
        let pace = &self.rules.pace;
        let entry = self.schedule.slot(slot);
        let duration = pace.scheduled(entry.call.end - entry.call.begin);
        let from_ends = matches!(pace.timing, Timing::Diff | Timing::Begin);
        if from_ends && !entry.is_begun && duration > Nanos::ZERO {
            entry.is_begun = true;
            let end = entry.scheduled + duration;
            self.schedule.postpone(slot, end);
            return;
        }
        let (begin, end) = match pace.timing {
            Timing::Diff | Timing::Begin => (entry.scheduled, entry.scheduled + duration),
            Timing::Exact | Timing::Asap => {
                let at = entry.predecessors_end().unwrap_or(entry.scheduled);
                (at, at)
            }
        };
        let (done, _) = self.schedule.complete(slot, [begin, end], Nanos::ZERO, now);
        let outcome = done.call.record.left_out.unwrap_or(CallOutcome::NotReplayable);
        self.record(done, None, None, outcome);
    }

    /// Releases the calls that wait for the issue of others. `announced` is when a thread issued its call, if it has.
    pub fn hear(&mut self, now: Nanos, announced: impl Fn(u32) -> Option<Nanos>) {
        let schedule = &mut self.schedule;
        self.unannounced.retain(|&(slot, thread)| match announced(thread) {
            Some(at) => {
                schedule.issued(slot, at, now);
                false
            }
            None => true,
        });
    }

    /// Whether a call that was taken has not been announced.
    pub fn awaits_issue(&self) -> bool {
        !self.unannounced.is_empty()
    }

    /// A call has completed: releases those that wait for it, and records it.
    pub fn complete(&mut self, completion: Completion, now: Nanos) {
        if self.is_full() {
            self.room_since = now;
        }
        if let Some((from, to)) = completion.stalled {
            self.idle.add(from, to);
        }
        self.in_flight -= 1;
        self.unannounced.retain(|&(slot, _)| slot != completion.slot);
        let free = self.finish(completion, now);
        self.servers.give(free);
    }

    /// Returns when its thread would be free, had the replayer lost no time.
    fn finish(&mut self, completion: Completion, now: Nanos) -> Explained {
        let Completion { slot, mut action, issued, is_left_out, stalled } = completion;
        let Issued { issued: begin, completed: end, result, errno } = issued;
        if let Some(buffer) = action.buffer.take() {
            // The queue has room for all buffers.
            let _ = self.buffers.push(buffer);
        }
        if let Some(id) = action.makes.filter(|_| result >= 0 && !self.rules.fake_io) {
            self.descriptors.insert(id, result as i32);
        }
        self.floor.store(self.schedule.floor(), Ordering::Relaxed);
        let mean = &mut self.durations[action.kind as usize];
        *mean += ((end - begin).0 - *mean).min(8 * STEP.0) / 8;
        let stalled = stalled.map_or(Nanos::ZERO, |(from, to)| to - from);
        let (done, free) = self.schedule.complete(slot, [begin, end], stalled, now);
        let record = &done.call.record;
        let is_own_limit = matches!(errno, libc::EMFILE | libc::ENFILE) && record.expected_errno != errno;
        self.lacks_descriptors |= is_own_limit;
        if is_left_out {
            let outcome = record.left_out.unwrap_or(CallOutcome::NotReplayable);
            self.record(done, Some(action), None, outcome);
            return free;
        }
        self.idle.complete();
        let expected = (record.expected_result, record.expected_errno);
        let outcome = compare(record.kind, expected, (result, errno));
        self.record(done, Some(action), Some(issued), outcome);
        free
    }

    fn record(&mut self, slot: Slot, action: Option<Box<Action>>, issued: Option<Issued>, outcome: CallOutcome) {
        let (predecessors_end, gap) = (slot.predecessors_end(), slot.gap());
        let Slot { mut call, scheduled, delay_reason, .. } = slot;
        call.action = action;
        let Some(output) = self.output.as_mut() else { return };
        let mut done = FinishedCall { call, scheduled, issued, predecessors_end, gap, delay_reason, outcome };
        // The result is written too slowly: nothing is lost, but calls become late.
        while let Err(rtrb::PushError::Full(back)) = output.push(done) {
            if output.is_abandoned() {
                return;
            }
            done = back;
            self.rules.pause(thread::sleep);
        }
    }

    /// How long a call of this kind takes, as far as is known.
    pub fn expected_duration(&self, kind: CallKind) -> Nanos {
        Nanos(self.durations[kind as usize])
    }

    /// When the next call that was read is due, or reading the next one becomes urgent.
    pub fn next_at(&mut self, now: Nanos) -> Nanos {
        if self.stopped {
            return Nanos::MAX;
        }
        let read = self.read(now);
        if self.awaits_issue() {
            return now;
        }
        let due = self.schedule.first_due().unwrap_or(Nanos::MAX);
        match read {
            Read::Later(at) => due.min(at + URGENT),
            Read::Starving => due.min(now + URGENT),
            Read::Full | Read::Ended => due,
        }
    }

    /// The thread that must issue the next ready call, if that is one of its own.
    pub fn next_worker(&mut self) -> Option<u32> {
        let first = self.schedule.first()?;
        self.schedule.slot(first).call.worker
    }

    /// Records the calls that were read and not issued.
    pub fn abandon(&mut self) {
        for slot in self.schedule.drain() {
            self.record(slot, None, None, CallOutcome::NotReached);
        }
        self.output = None;
    }
}

/// How far the trace was read.
enum Read {
    /// All there is.
    Ended,
    /// All that makes sense now.
    Full,
    /// The next call is to be read at this time.
    Later(Nanos),
    /// The plan has not delivered the next call.
    Starving,
}
