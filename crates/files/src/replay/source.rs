//! Turns the calls of a trace into planned calls: what each touches, and which must precede it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosonar_trace::{Nanos, Reader};

use super::action::Action;
use super::error::Result;
use super::prepared_call::{Predecessor, Predecessors, PreparedCall, Record};
use super::preparer::Source;
use crate::order::{Order, Policy};
use crate::state::{self, State};
use crate::{Call, CallOutcome, Family, OpenOptions, Resolved, Skip};

/// The part of a trace that is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Calls that begin from here on.
    pub start: Nanos,
    /// Calls that begin before this.
    pub end: Option<Nanos>,
}

impl Window {
    /// Whether calls that begin then are replayed.
    pub fn contains(&self, begin: Nanos) -> bool {
        begin >= self.start && !self.is_over(begin)
    }

    /// Whether all later calls are outside.
    pub fn is_over(&self, begin: Nanos) -> bool {
        self.end.is_some_and(|end| begin >= end)
    }
}

/// A trace and what is assumed about it.
pub struct Trace {
    reader: Box<dyn Reader<Call>>,
    state: State,
}

impl Trace {
    /// Opens a trace.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path, cwd: Option<PathBuf>, options: state::Options) -> Result<Self> {
        let reader = crate::open(path, &OpenOptions { cwd })?;
        let state = State::new(reader.metadata(), options);
        Ok(Self { reader, state })
    }

    /// The next call, which must be resolved before the one after it.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn read(&mut self) -> Result<Option<Call>> {
        Ok(self.reader.next()?)
    }

    /// What a call touches, and whether it is replayed.
    pub fn resolve(&mut self, call: &Call) -> Resolved {
        let mut resolved = self.state.next(call);
        if resolved.skip.is_none() && !Action::exists_for(call, &resolved) {
            resolved.skip = Some(Skip::NotReplayable);
        }
        resolved
    }

    /// What was found out so far.
    pub fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// The reader.
    pub fn reader(&self) -> &dyn Reader<Call> {
        &*self.reader
    }
}

/// Prepared calls of a trace.
pub struct TraceSource {
    /// The trace.
    pub trace: Trace,
    /// The part that is replayed.
    pub window: Window,
    /// The start of the first call of the window.
    pub zero: Nanos,
    /// The number of the next call.
    pub number: u64,
    /// Which calls must precede a call.
    pub order: Order,
    /// The thread of the replay for each thread of the trace; `None` if any thread issues any call.
    pub workers: Option<Arc<HashMap<u32, u32>>>,
    /// Calls that were recorded. Memory that one thread takes and another one frees costs both of them time.
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    spare: Vec<Box<PreparedCall>>,
}

impl TraceSource {
    /// Plans a window of a trace.
    pub fn new(trace: Trace, window: Window, zero: Nanos, policy: Policy) -> Self {
        Self { trace, window, zero, number: 0, order: Order::new(policy), workers: None, spare: Vec::new() }
    }
}

impl Source for TraceSource {
    fn next(&mut self) -> Result<Option<Box<PreparedCall>>> {
        loop {
            let Some(call) = self.trace.read()? else { return Ok(None) };
            let resolved = self.trace.resolve(&call);
            let number = self.number;
            self.number += 1;
            if self.window.is_over(call.begin) {
                return Ok(None);
            }
            if self.window.contains(call.begin) {
                self.order.predecessors(number, &call, &resolved);
                let predecessor = |(number, suffices_issue)| match suffices_issue {
                    true => Predecessor::issued(number),
                    false => Predecessor::completed(number),
                };
                let predecessors = self.order.latest().map(predecessor).collect();
                let worker = self.workers.as_ref().and_then(|workers| workers.get(&call.thread)).copied();
                let spare = self.spare.pop();
                return Ok(Some(plan(number, &call, resolved, predecessors, self.zero, worker, spare)));
            }
        }
    }

    fn recycle(&mut self, call: Box<PreparedCall>) {
        self.spare.push(call);
    }

    fn forget_before(&mut self, number: u64) {
        self.order.forget_before(number);
    }
}

fn plan(
    number: u64,
    call: &Call,
    resolved: Resolved,
    predecessors: Predecessors,
    zero: Nanos,
    worker: Option<u32>,
    spare: Option<Box<PreparedCall>>,
) -> Box<PreparedCall> {
    // Names are dropped here, where they are counted: two processors would fetch their counts in turns.
    let (memory, of_action) = match spare {
        Some(mut call) => {
            let action = call.action.take();
            (Some(call), action)
        }
        None => (None, None),
    };
    let left_out = resolved.skip.map(CallOutcome::from);
    let action = match left_out {
        None => Some(Action::of(call, &resolved)),
        Some(_) if !resolved.ends.is_empty() => Some(Action::end(call.kind, resolved.ends)),
        Some(_) => None,
    };
    let begin = call.begin - zero;
    let planned = PreparedCall {
        number,
        begin,
        end: begin + call.duration.unwrap_or_default(),
        // Any thread can leave a call out.
        worker: worker.filter(|_| action.is_some()),
        action: action.map(|action| in_memory(action, of_action)),
        predecessors,
        record: Record {
            thread: call.thread,
            kind: call.kind,
            path: resolved.path,
            position: resolved.position,
            length: call.length.or_else(|| moved(call)),
            expected_result: call.result,
            expected_errno: call.errno,
            expected_duration: call.duration,
            left_out,
        },
    };
    in_memory(planned, memory)
}

/// What a read or write moved whose buffers the recorder did not see.
fn moved(call: &Call) -> Option<u64> {
    let moves = matches!(call.kind.family(), Family::Read | Family::Write);
    call.result.filter(|&result| moves && result > 0).map(i64::cast_unsigned)
}

/// Puts a value into memory that is free, or into new memory.
fn in_memory<T>(value: T, memory: Option<Box<T>>) -> Box<T> {
    match memory {
        Some(mut memory) => {
            *memory = value;
            memory
        }
        None => Box::new(value),
    }
}
