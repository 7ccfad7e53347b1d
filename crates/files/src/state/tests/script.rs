//! Calls for tests.

use iosonar_trace::Nanos;

use super::super::{Options, State};
use crate::{Call, CallKind, Metadata, Resolved};

/// A trace under construction: each call begins when the one before has ended.
pub struct Script {
    pub calls: Vec<Call>,
    now: i64,
}

impl Script {
    pub fn new() -> Self {
        Self { calls: Vec::new(), now: 0 }
    }

    /// Adds a call of thread 1.
    pub fn call(&mut self, name: &str, change: impl FnOnce(&mut Call)) -> &mut Self {
        self.call_of(1, name, change)
    }

    pub fn call_of(&mut self, thread: u32, name: &str, change: impl FnOnce(&mut Call)) -> &mut Self {
        let mut call = Call::new(Nanos(self.now), thread, CallKind::from_name(name).unwrap());
        call.duration = Some(Nanos(5));
        change(&mut call);
        self.now += 10;
        self.calls.push(call);
        self
    }

    pub fn resolve(&self, state: &mut State) -> Vec<Resolved> {
        self.calls.iter().map(|call| state.next(call)).collect()
    }

    pub fn run(&self, options: Options) -> (State, Vec<Resolved>) {
        let mut state = State::new(&Metadata::default(), options);
        let resolved = self.resolve(&mut state);
        (state, resolved)
    }
}
