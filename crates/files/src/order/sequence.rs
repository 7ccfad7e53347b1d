//! The sequence of calls in each thread of the trace.

use iosonar_trace::Nanos;

use super::edges::{Edges, Lane};
use super::frontier::{Frontier, Interval};
use super::tables::Map;
use crate::Call;

/// The threads of a trace. A call follows the one before it in its thread. Calls of io_uring overlap with their thread's
/// other calls: among them the recorded times decide, within the thread.
#[derive(Default)]
pub(super) struct Threads {
    threads: Map<u32, Thread>,
    lanes: u32,
}

struct Thread {
    last: Interval,
    /// The call before `last`.
    before: Option<Interval>,
    uring: Option<Box<Uring>>,
}

/// A thread with calls of io_uring.
struct Uring {
    frontier: Frontier,
    /// Lanes of calls of io_uring, with the end of the last call of each.
    lanes: Vec<(Nanos, Lane)>,
}

impl Threads {
    /// Adds the calls of its thread that precede a call; returns the call's lane.
    pub(super) fn follow(&mut self, number: u64, call: &Call, edges: &mut Edges) -> Lane {
        let now = call.begin;
        let mut this = Interval { number, begin: now, end: call.end().unwrap_or(Nanos::MAX), lane: Lane::NONE };
        let lanes = &mut self.lanes;
        let mut new_lane = || {
            *lanes += 1;
            Lane(*lanes - 1)
        };
        let Some(thread) = self.threads.get_mut(&call.thread) else {
            this.lane = new_lane();
            // A thread that begins with io_uring needs a call before it: one that has ended, and is never listed.
            let mut thread = Thread { last: this, before: None, uring: None };
            if call.is_uring {
                let mut uring = Uring { frontier: Frontier::default(), lanes: vec![(this.end, this.lane)] };
                uring.frontier.begin(this);
                thread.uring = Some(Box::new(uring));
                thread.last.lane = new_lane();
                thread.last.end = Nanos(i64::MIN);
            }
            self.threads.insert(call.thread, thread);
            return this.lane;
        };
        if !call.is_uring && thread.uring.is_none() {
            edges.push(thread.last.number, thread.last.lane);
            this.lane = thread.last.lane;
            thread.before = Some(std::mem::replace(&mut thread.last, this));
            return this.lane;
        }
        let (last, before) = (thread.last, thread.before);
        let uring = thread.uring.get_or_insert_with(|| {
            let mut frontier = Frontier::default();
            if let Some(before) = before {
                frontier.begin(Interval { end: before.end.min(last.begin), ..before });
            }
            frontier.begin(last);
            Box::new(Uring { frontier, lanes: Vec::new() })
        });
        uring.frontier.advance(now);
        if call.is_uring {
            match uring.lanes.iter_mut().find(|(end, _)| *end <= now) {
                Some((end, lane)) => {
                    *end = this.end;
                    this.lane = *lane;
                }
                None => {
                    this.lane = new_lane();
                    uring.lanes.push((this.end, this.lane));
                }
            }
        } else {
            uring.frontier.end_early(last, &this);
            this.lane = last.lane;
            thread.last = this;
        }
        for member in uring.frontier.maximal() {
            edges.push(member.call.number, member.call.lane);
        }
        uring.frontier.begin(this);
        this.lane
    }
}
