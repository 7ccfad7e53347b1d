//! A call on its way through a replay: as planned, and as done.

use iosonar_trace::Nanos;

use super::action::Action;
use super::timed::Issued;
use crate::{CallKind, CallOutcome, CallResult, DelayReason, Name};

/// A call that is ready to be scheduled.
#[derive(Debug)]
pub struct PreparedCall {
    /// Its number in the trace.
    pub number: u64,
    /// Its begin in the trace, since virtual zero.
    pub begin: Nanos,
    /// Its end in the trace, likewise; its begin if it did not return.
    pub end: Nanos,
    /// The thread of the replay that issues it; `None` for any.
    pub worker: Option<u32>,
    /// What to issue; `None` if the call is left out.
    pub action: Option<Box<Action>>,
    /// The calls that must precede it.
    pub predecessors: Predecessors,
    /// What the result needs.
    pub record: Record,
}

/// What the result of a call needs of the trace.
#[derive(Clone, Debug)]
pub struct Record {
    /// The thread of the trace.
    pub thread: u32,
    /// Which call.
    pub kind: CallKind,
    /// Its path within the root.
    pub path: Option<Name>,
    /// Where in the file it begins.
    pub position: Option<u64>,
    /// Bytes that are asked for.
    pub length: Option<u64>,
    /// What the original returned.
    pub expected_result: Option<i64>,
    /// Why it failed, else 0.
    pub expected_errno: i32,
    /// How long it took.
    pub expected_duration: Option<Nanos>,
    /// The outcome of a call that is left out.
    pub left_out: Option<CallOutcome>,
}

/// A finished call, on its way to the result.
#[derive(Debug)]
pub struct FinishedCall {
    /// The call, with its action. The recorder gives its memory back to the plan: to free it would delay calls.
    pub call: Box<PreparedCall>,
    /// When it should have begun.
    pub scheduled: Nanos,
    /// What came of it; `None` if it was not issued.
    pub issued: Option<Issued>,
    /// When its last predecessor was through.
    pub predecessors_end: Option<Nanos>,
    /// The gap before it in the trace.
    pub gap: Option<Nanos>,
    /// What kept it from its time.
    pub delay_reason: DelayReason,
    /// How its result compares with the original's.
    pub outcome: CallOutcome,
}

impl FinishedCall {
    /// Its row in the result, which gets the path.
    pub fn row(&mut self, instance: u32) -> CallResult {
        let Self { call, issued, .. } = self;
        let record = &mut call.record;
        CallResult {
            call: call.number,
            instance,
            thread: record.thread,
            kind: record.kind,
            path: record.path.take(),
            position: record.position,
            length: record.length,
            scheduled: self.scheduled,
            issued: issued.map(|issued| issued.issued),
            completed: issued.map(|issued| issued.completed),
            predecessors_end: self.predecessors_end,
            gap: self.gap,
            delay_reason: self.delay_reason,
            result: issued.map(|issued| issued.result),
            errno: issued.map_or(0, |issued| issued.errno),
            expected_result: record.expected_result,
            expected_errno: record.expected_errno,
            expected_duration: record.expected_duration,
            outcome: self.outcome,
        }
    }
}

/// A call that must precede another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predecessor(u64);

impl Predecessor {
    /// Above all numbers of calls.
    const ISSUED: u64 = 1 << 63;

    /// A call that must have completed.
    pub fn completed(number: u64) -> Self {
        Self(number)
    }

    /// A call that must have been issued.
    pub fn issued(number: u64) -> Self {
        Self(number | Self::ISSUED)
    }

    pub fn number(self) -> u64 {
        self.0 & !Self::ISSUED
    }

    /// Whether it suffices that the call was issued.
    pub fn suffices_issue(self) -> bool {
        self.0 & Self::ISSUED != 0
    }
}

/// Predecessors; few of them need no memory of their own.
#[derive(Debug)]
pub enum Predecessors {
    /// Up to four.
    Few([Predecessor; 4], u8),
    /// More.
    Many(Box<[Predecessor]>),
}

impl FromIterator<Predecessor> for Predecessors {
    fn from_iter<I: IntoIterator<Item = Predecessor>>(all: I) -> Self {
        let mut all = all.into_iter();
        let mut few = [Predecessor::default(); 4];
        for (count, place) in (0..).zip(&mut few) {
            match all.next() {
                Some(predecessor) => *place = predecessor,
                None => return Self::Few(few, count),
            }
        }
        match all.next() {
            None => Self::Few(few, few.len() as u8),
            Some(fifth) => Self::Many(few.into_iter().chain([fifth]).chain(all).collect()),
        }
    }
}

impl Predecessors {
    /// None.
    pub const NONE: Self = Self::Few([Predecessor(0); 4], 0);

    /// All of them.
    pub fn as_slice(&self) -> &[Predecessor] {
        match self {
            Self::Few(all, count) => &all[..usize::from(*count)],
            Self::Many(all) => all,
        }
    }
}
