//! Calls at other times, in an order that stays possible.
//!
//! A call starts a gap after the call before it in its thread, but never before the end of a call, of any thread, that had
//! ended before it in the trace: what it may depend on has still happened. That is what the order `conservative` of a replay
//! demands as well. Without a change all times stay.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use iosonar_trace::transforms::{Built, Rows};
use iosonar_trace::{Nanos, Reader, Result};

use super::transform::learn;
use crate::{Call, CallKind, Metadata};

/// What changes.
pub trait Plan: Send {
    /// Whether a call is left out. Each call is asked for, in the order of the trace.
    fn drops(&mut self, _call: &Call) -> bool {
        false
    }

    /// The new gap between a call of this kind and the next one of its thread.
    fn gap(&mut self, after: CallKind, gap: i64, call: &Call) -> i64;

    /// Changes the metadata at the end of the trace.
    fn finish(&mut self, _metadata: &mut Metadata) {}
}

/// Makes the plan for a trace.
pub type MakePlan = Box<dyn Fn(&Metadata) -> Box<dyn Plan> + Send + Sync>;

/// The stage of a transform that changes times.
pub fn retimed(make: MakePlan) -> Built<Call> {
    Ok(Box::new(move |calls| {
        let metadata = calls.metadata().clone();
        let plan = make(&metadata);
        Ok(Box::new(Retimed {
            calls,
            plan,
            metadata,
            timeline: Timeline::default(),
            ready: BinaryHeap::new(),
            number: 0,
            floor: i64::MIN,
            has_ended: false,
        }))
    }))
}

/// The end of a call: in the trace, and now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    before: i64,
    now: i64,
}

/// Gives calls their new times.
#[derive(Default)]
struct Timeline {
    /// Calls in progress, by their end in the trace.
    in_progress: BinaryHeap<Reverse<End>>,
    /// The latest ends of those that have ended: in the trace, and now.
    latest: Option<End>,
    /// The last call of each thread.
    threads: HashMap<u32, (End, CallKind)>,
}

impl Timeline {
    /// The new start of a call. Calls come in the order of their starts.
    fn begin(&mut self, call: &Call, plan: &mut dyn Plan) -> i64 {
        while let Some(Reverse(end)) = self.in_progress.peek().copied().filter(|end| end.0.before <= call.begin.0) {
            self.in_progress.pop();
            let latest = self.latest.get_or_insert(end);
            latest.before = latest.before.max(end.before);
            latest.now = latest.now.max(end.now);
        }
        let Some(latest) = self.latest else { return call.begin.0 };
        // A ring's call is not in the sequence of its thread.
        let own = self.threads.get(&call.thread).filter(|_| !call.is_uring);
        match own {
            Some(&(end, after)) => {
                let gap = plan.gap(after, call.begin.0 - end.before, call);
                end.now.saturating_add(gap).max(latest.now)
            }
            // The first one of a thread.
            None => latest.now.saturating_add(call.begin.0 - latest.before),
        }
    }

    /// The call has its new begin, and takes this long.
    fn note(&mut self, call: &Call, now: i64, duration: i64) {
        match call.end() {
            Some(before) => {
                let end = End { before: before.0, now: now.saturating_add(duration) };
                self.in_progress.push(Reverse(end));
                if !call.is_uring {
                    self.threads.insert(call.thread, (end, call.kind));
                }
            }
            None => _ = self.threads.remove(&call.thread),
        }
    }
}

/// A call that may have to wait for others that begin before it now.
struct Waiting {
    begin: i64,
    number: u64,
    call: Box<Call>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.begin, self.number) == (other.begin, other.number)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.begin, self.number).cmp(&(other.begin, other.number))
    }
}

/// Reads calls at their new times, in the order of these.
struct Retimed {
    calls: Rows<Call>,
    plan: Box<dyn Plan>,
    metadata: Metadata,
    timeline: Timeline,
    ready: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    /// No further call begins earlier.
    floor: i64,
    has_ended: bool,
}

impl Retimed {
    fn take(&mut self, mut call: Call) {
        let is_dropped = self.plan.drops(&call);
        let begin = self.timeline.begin(&call, &mut *self.plan);
        let duration = if is_dropped { 0 } else { call.duration.unwrap_or_default().0 };
        self.timeline.note(&call, begin, duration);
        self.floor = self.timeline.latest.map_or(call.begin.0, |latest| latest.now);
        if is_dropped {
            return;
        }
        call.begin = Nanos(begin);
        self.number += 1;
        self.ready.push(Reverse(Waiting { begin, number: self.number, call: Box::new(call) }));
    }

    fn end(&mut self) {
        self.has_ended = true;
        learn(&mut self.metadata, self.calls.metadata());
        self.plan.finish(&mut self.metadata);
    }
}

impl Reader<Call> for Retimed {
    fn next(&mut self) -> Result<Option<Call>> {
        loop {
            let is_first = self.ready.peek().is_some_and(|Reverse(first)| self.has_ended || first.begin <= self.floor);
            if is_first && let Some(Reverse(first)) = self.ready.pop() {
                return Ok(Some(*first.call));
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.calls.next()? {
                Some(call) => self.take(call),
                None => self.end(),
            }
        }
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.calls.progress()
    }
}
