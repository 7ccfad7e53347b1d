//! The calls that have been read but have not ended: which wait for which, and when each is due.
//!
//! A call waits for those of its predecessors that have not completed, or are not issued if that suffices. When the last of
//! them has, its time is known, and it joins the queue of calls that are ready, by time. Numbers of calls are consecutive, so that a table by number finds a call
//! without a search; the table begins at the oldest call that has not completed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use iosonar_trace::Nanos;

use super::history::{History, Times};
use super::pace::Pace;
use super::stalls::Explained;
use crate::DelayReason;
use crate::replay::options::Timing;
use crate::replay::prepared_call::{Predecessor, Predecessors, PreparedCall};

/// The most calls that have been read and are not issued.
const WINDOW: usize = 1 << 16;
/// The most calls from the oldest that has not completed to the newest that was read.
const RANGE: usize = 1 << 22;

const NONE: u32 = u32::MAX;

/// A call and what it waits for.
#[derive(Debug)]
pub struct Slot {
    pub call: Box<PreparedCall>,
    /// Predecessors for which it waits.
    waits: u32,
    /// The first of the calls that wait for its end, in `edges`.
    dependents: u32,
    /// The first of the calls that wait for its issue, in `edges`.
    followers: u32,
    /// When it was issued, as far as the schedule knows.
    issued: Option<Nanos>,
    /// The predecessor that was through last.
    last: Option<LastPredecessor>,
    /// When all predecessors would have been through, had the replayer lost no time.
    explained: Explained,
    /// The latest moment in the trace at which a predecessor was through.
    last_in_trace: Option<Nanos>,
    /// From when on it could be issued.
    pub ready: Nanos,
    /// When it should begin.
    pub scheduled: Nanos,
    /// What kept it from its time.
    pub delay_reason: DelayReason,
    /// Whether a call that is left out has begun, and its end is awaited.
    pub is_begun: bool,
}

/// The predecessor that was through last: it had completed, or was issued if that suffices.
#[derive(Clone, Copy, Debug)]
struct LastPredecessor {
    thread: u32,
    /// When it was through.
    at: Nanos,
    /// The same event in the trace.
    at_in_trace: Nanos,
    begin: Nanos,
    begin_in_trace: Nanos,
    /// What the replayer itself had lost by then.
    lost: Nanos,
}

impl LastPredecessor {
    fn of(times: &Times, suffices_issue: bool) -> Self {
        let Times { begin, end, begin_in_trace, end_in_trace, thread, lost, .. } = *times;
        let (at, at_in_trace) = if suffices_issue { (begin, begin_in_trace) } else { (end, end_in_trace) };
        Self { thread, at, at_in_trace, begin, begin_in_trace, lost: lost[usize::from(!suffices_issue)] }
    }
}

impl Slot {
    /// When its last predecessor was through.
    pub fn predecessors_end(&self) -> Option<Nanos> {
        self.last.map(|last| last.at)
    }

    /// From the same event of its latest predecessor in the trace to its begin there.
    pub fn gap(&self) -> Option<Nanos> {
        self.last_in_trace.map(|at| self.call.begin - at)
    }

    /// What the replayer itself has lost if the call is issued at this time. Only with exact timing is it ever caught up:
    /// otherwise each call is scheduled by the one before it, as that was.
    fn lost_at(&self, issued: Nanos, pace: &Pace) -> Nanos {
        if pace.timing != Timing::Exact {
            return Nanos::ZERO;
        }
        let due = self.scheduled.max(self.explained.0) + pace.delay(self.call.number, self.scheduled);
        (issued - due).max(Nanos::ZERO)
    }

    /// It waits for a thread that would be free then.
    pub fn wait_for_thread(&mut self, free: Explained) {
        if free.0 > self.scheduled.max(self.explained.0) && self.delay_reason.is_replayer() {
            self.delay_reason = DelayReason::Pool;
        }
        self.explained = self.explained.and(free);
    }

    /// What holds it beyond its scheduled time, if its last predecessor does.
    fn holder(&self, last: LastPredecessor) -> DelayReason {
        match last.thread == self.call.record.thread {
            _ if self.explained.0 <= self.scheduled => DelayReason::Replayer,
            true => DelayReason::Thread,
            false => DelayReason::Predecessor,
        }
    }

    fn is_through(&mut self, predecessor: LastPredecessor) {
        self.explained = self.explained.and(Explained(predecessor.at - predecessor.lost));
        if self.last.is_none_or(|last| last.at < predecessor.at) {
            self.last = Some(predecessor);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    dependent: u32,
    next: u32,
}

/// A step of a call in the queue of ready calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    due: i64,
    number: u64,
    slot: u32,
}

/// A call whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// Its place; it is due now.
    Due(u32),
    /// Nothing is due before this time.
    At(Nanos),
    /// Nothing is ready.
    Nothing,
}

/// The calls that have been read but have not ended.
#[derive(Debug)]
pub struct Schedule {
    pace: Pace,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    edges: Vec<Edge>,
    free_edges: Vec<u32>,
    /// The slot of each call from number `base` on; `NONE` once it has completed.
    by_number: VecDeque<u32>,
    base: u64,
    history: History,
    ready: BinaryHeap<Reverse<Ready>>,
    /// Read, not yet taken.
    held: usize,
}

impl Schedule {
    /// An empty schedule for calls from this number on, which remembers the times of so many that have completed.
    pub fn new(pace: Pace, first: u64, history: usize) -> Self {
        Self {
            pace,
            slots: Vec::new(),
            free: Vec::new(),
            edges: Vec::new(),
            free_edges: Vec::new(),
            by_number: VecDeque::new(),
            base: first,
            history: History::new(history),
            ready: BinaryHeap::new(),
            held: 0,
        }
    }

    /// The oldest call that has not completed.
    pub fn floor(&self) -> u64 {
        self.base
    }

    /// Whether more calls can be read.
    pub fn has_room(&self) -> bool {
        self.held < WINDOW && self.by_number.len() < RANGE
    }

    /// Calls that were read and not taken.
    pub fn waiting(&self) -> usize {
        self.held
    }

    /// Whether all calls that were read have been taken.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Adds the next call, at this time.
    pub fn add(&mut self, call: Box<PreparedCall>, now: Nanos) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        // Calls before the first one of a window, and gaps, count as completed.
        while self.base + (self.by_number.len() as u64) < call.number {
            self.by_number.push_back(NONE);
        }
        self.by_number.push_back(slot);
        let scheduled = self.pace.scheduled(call.begin);
        let mut added = Slot {
            call,
            waits: 0,
            dependents: NONE,
            followers: NONE,
            issued: None,
            last: None,
            explained: Explained::ALWAYS,
            last_in_trace: None,
            ready: now,
            scheduled,
            delay_reason: DelayReason::None,
            is_begun: false,
        };
        for predecessor in 0..added.call.predecessors.as_slice().len() {
            let predecessor = added.call.predecessors.as_slice()[predecessor];
            self.follow(&mut added, slot, predecessor);
        }
        // Thousands of threads have as many predecessors.
        added.call.predecessors = Predecessors::NONE;
        let waits = added.waits;
        self.slots[slot as usize] = Some(added);
        self.held += 1;
        if waits == 0 {
            self.release(slot, now);
            let added = self.slots[slot as usize].as_mut().expect("just added");
            if self.pace.timing.has_times()
                && added.scheduled + self.pace.delay(added.call.number, added.scheduled) < now
                && added.delay_reason == DelayReason::None
            {
                added.delay_reason = DelayReason::Input;
            }
        }
    }

    /// Lets a call wait for a predecessor, if that is not through.
    fn follow(&mut self, added: &mut Slot, slot: u32, predecessor: Predecessor) {
        let (number, suffices_issue) = (predecessor.number(), predecessor.suffices_issue());
        let other = number.checked_sub(self.base).and_then(|at| self.by_number.get(at as usize)).copied();
        let Some(other) = other.filter(|&other| other != NONE && other != slot) else {
            if let Some(times) = self.history.get(number) {
                let last = LastPredecessor::of(&times, suffices_issue);
                added.last_in_trace = added.last_in_trace.max(Some(last.at_in_trace));
                added.is_through(last);
            }
            return;
        };
        let before = self.slots[other as usize].as_mut().expect("it has not completed");
        let (begin, end) = (before.call.begin, before.call.end);
        added.last_in_trace = added.last_in_trace.max(Some(if suffices_issue { begin } else { end }));
        if let Some(issued) = before.issued.filter(|_| suffices_issue) {
            let (thread, lost) = (before.call.record.thread, before.lost_at(issued, &self.pace));
            let last =
                LastPredecessor { thread, at: issued, at_in_trace: begin, begin: issued, begin_in_trace: begin, lost };
            added.is_through(last);
            return;
        }
        added.waits += 1;
        let first = if suffices_issue { &mut before.followers } else { &mut before.dependents };
        let edge = Edge { dependent: slot, next: *first };
        *first = match self.free_edges.pop() {
            Some(free) => {
                self.edges[free as usize] = edge;
                free
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
    }

    /// A call was issued: releases those that wait only for that.
    pub fn issued(&mut self, slot: u32, at: Nanos, now: Nanos) {
        let entry = self.slots[slot as usize].as_mut().expect("it has not completed");
        entry.issued = Some(at);
        let followers = std::mem::replace(&mut entry.followers, NONE);
        let (thread, at_in_trace) = (entry.call.record.thread, entry.call.begin);
        let lost = entry.lost_at(at, &self.pace);
        let last = LastPredecessor { thread, at, at_in_trace, begin: at, begin_in_trace: at_in_trace, lost };
        self.through(followers, last, now);
    }

    /// A predecessor is through for the calls of a list.
    fn through(&mut self, mut edge: u32, predecessor: LastPredecessor, now: Nanos) {
        while edge != NONE {
            let Edge { dependent, next } = self.edges[edge as usize];
            self.free_edges.push(edge);
            edge = next;
            let waiting = self.slots[dependent as usize].as_mut().expect("it waits");
            waiting.waits -= 1;
            waiting.is_through(predecessor);
            if waiting.waits == 0 {
                self.release(dependent, now);
            }
        }
    }

    /// All predecessors are through: the time of the call is known.
    fn release(&mut self, slot: u32, now: Nanos) {
        let Pace { timing, extra_delay, .. } = self.pace;
        let entry = self.slots[slot as usize].as_mut().expect("it waits");
        let released = entry.last.map(|last| last.at);
        match (timing, entry.last) {
            (Timing::Exact, Some(last)) if last.at > entry.scheduled => entry.delay_reason = entry.holder(last),
            (Timing::Asap, last) => {
                entry.scheduled = last.map_or(now.max(Nanos::ZERO), |last| last.at);
            }
            (Timing::Diff, Some(LastPredecessor { at, at_in_trace, .. })) => {
                let gap = entry.call.begin - at_in_trace;
                entry.scheduled = at + self.pace.scheduled(gap).max(Nanos::ZERO);
            }
            (Timing::Begin, Some(LastPredecessor { begin, begin_in_trace, .. })) => {
                let gap = entry.call.begin - begin_in_trace;
                entry.scheduled = begin + self.pace.scheduled(gap).max(Nanos::ZERO);
                if let Some(last) = entry.last.filter(|last| last.at > entry.scheduled) {
                    entry.delay_reason = entry.holder(last);
                }
            }
            _ => {}
        }
        let is_left_out = entry.call.action.is_none();
        let due = match timing {
            // It takes part as if it completed at once.
            Timing::Exact | Timing::Asap if is_left_out => Nanos(i64::MIN),
            Timing::Asap if extra_delay == Nanos::ZERO => Nanos(i64::MIN),
            _ if is_left_out => entry.scheduled,
            _ => {
                let delay = self.pace.delay(entry.call.number, entry.scheduled);
                entry.scheduled.max(released.unwrap_or(Nanos(i64::MIN))) + delay
            }
        };
        entry.ready = if due.0 == i64::MIN { now } else { due };
        self.ready.push(Reverse(Ready { due: due.0, number: entry.call.number, slot }));
    }

    /// The next call that is due.
    pub fn next(&self, now: Nanos) -> NextCall {
        match self.ready.peek() {
            None => NextCall::Nothing,
            Some(Reverse(ready)) if ready.due <= now.0 => NextCall::Due(ready.slot),
            Some(Reverse(ready)) => NextCall::At(Nanos(ready.due)),
        }
    }

    /// The slot of the next ready call.
    pub fn first(&self) -> Option<u32> {
        self.ready.peek().map(|Reverse(ready)| ready.slot)
    }

    /// When the next ready call is due.
    pub fn first_due(&self) -> Option<Nanos> {
        self.ready.peek().map(|Reverse(ready)| Nanos(ready.due))
    }

    /// Takes the next ready call, to issue it.
    pub fn take(&mut self) -> u32 {
        let Reverse(ready) = self.ready.pop().expect("one is ready");
        self.held -= 1;
        ready.slot
    }

    /// Puts a call that is left out back until this time, at which it completes.
    pub fn postpone(&mut self, slot: u32, until: Nanos) {
        let number = self.slots[slot as usize].as_ref().expect("it was taken").call.number;
        self.held += 1;
        self.ready.push(Reverse(Ready { due: until.0, number, slot }));
    }

    /// A call that has not completed.
    pub fn slot(&mut self, slot: u32) -> &mut Slot {
        self.slots[slot as usize].as_mut().expect("it has not completed")
    }

    /// Removes a call that has completed, which releases those that waited for it. For so long as `stalled` of it, the replayer
    /// stood still. Also returns when it would have ended, had the replayer lost no time.
    pub fn complete(&mut self, slot: u32, times: [Nanos; 2], stalled: Nanos, now: Nanos) -> (Slot, Explained) {
        let [begin, end] = times;
        let done = self.slots[slot as usize].take().expect("it has not completed");
        let lost = done.lost_at(begin, &self.pace);
        let lost_at_end = if self.pace.timing == Timing::Exact { lost + stalled } else { Nanos::ZERO };
        self.free.push(slot);
        let times = Times {
            number: done.call.number,
            begin,
            end,
            lost: [lost, lost_at_end],
            begin_in_trace: done.call.begin,
            end_in_trace: done.call.end,
            thread: done.call.record.thread,
        };
        self.history.put(times);
        self.by_number[(done.call.number - self.base) as usize] = NONE;
        while self.by_number.front() == Some(&NONE) {
            self.by_number.pop_front();
            self.base += 1;
        }
        self.through(done.followers, LastPredecessor::of(&times, true), now);
        self.through(done.dependents, LastPredecessor::of(&times, false), now);
        (done, Explained(end - lost_at_end))
    }

    /// Removes all calls that were not taken, in the order of the trace.
    pub fn drain(&mut self) -> Vec<Slot> {
        let taken: Vec<u32> = self.by_number.drain(..).filter(|&slot| slot != NONE).collect();
        self.ready.clear();
        self.held = 0;
        taken.into_iter().filter_map(|slot| self.slots[slot as usize].take()).collect()
    }
}
