//! Random programs are executed and recorded, then their calls are executed in other sequences that an order allows: each
//! call must return what it returned in the program.

pub mod executor;
pub mod issue;
pub mod program;
pub mod random;

use std::fmt::Write as _;

use iosonar_files::order::{Degrees, Policy};
use iosonar_files::state::{self, State};
use iosonar_files::{Call, InitialProcess, Metadata, Resolved};
use iosonar_trace::Nanos;
use random::Random;

/// Where the programs run: in memory.
const BASE: &str = "/dev/shm";

/// A program that was executed in a directory of its own, in memory.
pub struct Recorded {
    seed: u64,
    pub calls: Vec<Call>,
    pub resolved: Vec<Resolved>,
}

impl Recorded {
    /// Runs the random program of a seed.
    pub fn new(seed: u64, calls: usize) -> Self {
        let calls = program::run(seed, calls, directory().path());
        let resolved = resolve(&calls);
        Self { seed, calls, resolved }
    }

    /// Executes the calls in the order of the trace.
    pub fn check_in_order(&self) -> Result<(), String> {
        let sequence: Vec<usize> = (0..self.calls.len()).collect();
        self.execute(&sequence, &[]).map_err(|difference| format!("order of the trace: {difference}"))
    }

    /// Executes the calls in random sequences that the order allows.
    pub fn check(&self, policy: Policy, sequences: u64) -> Result<(), String> {
        let predecessors = executor::predecessors(policy, &self.calls, &self.resolved);
        for number in 0..sequences {
            let sequence = executor::sequence(&predecessors, &mut Random(self.seed ^ number << 32));
            self.execute(&sequence, &predecessors)
                .map_err(|difference| format!("order {policy}, sequence {number}: {difference}"))?;
        }
        Ok(())
    }

    /// The same program with calls that overlap. Each lasts into following calls of other threads as far as all results stay
    /// the same when it is executed after them.
    pub fn with_overlaps(&self) -> Self {
        let count = self.calls.len();
        let mut calls = self.calls.clone();
        let mut first = 0;
        while first < count {
            let mut last = first;
            for next in first + 1..count.min(first + 5) {
                let is_bookkeeping = self.resolved[first].skip.or(self.resolved[next].skip).is_some();
                if is_bookkeeping || self.calls[first..next].iter().any(|call| call.thread == self.calls[next].thread) {
                    break;
                }
                let mut sequence: Vec<usize> = (0..count).collect();
                sequence[first..=next].rotate_left(1);
                if self.execute(&sequence, &[]).is_err() {
                    break;
                }
                last = next;
            }
            if last > first {
                let end = calls[last].begin + Nanos(1);
                calls[first].duration = Some(end - calls[first].begin);
            }
            first = last + 1;
        }
        let resolved = resolve(&calls);
        Self { seed: self.seed, calls, resolved }
    }

    /// Calls that need not follow the call before them.
    pub fn reorderable(&self, policy: Policy) -> u64 {
        let mut degrees = Degrees::default();
        for (number, before) in (0..).zip(executor::predecessors(policy, &self.calls, &self.resolved)) {
            let takes_part = policy.orders_skipped_calls() || self.resolved[number as usize].skip.is_none();
            degrees.add(number, &before, takes_part);
        }
        degrees.summary().reorderable
    }

    fn execute(&self, sequence: &[usize], predecessors: &[Vec<u64>]) -> Result<(), String> {
        executor::execute(&self.calls, &self.resolved, sequence, directory().path()).map_err(|(call, returned)| {
            let before = predecessors.get(call).map_or(&[][..], |before| before);
            let story = story(&self.calls, &self.resolved, sequence, call, &returned, before);
            format!("seed {}: {story}", self.seed)
        })
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("iosonar-order-").tempdir_in(BASE).unwrap()
}

/// What each call touches.
pub fn resolve(calls: &[Call]) -> Vec<Resolved> {
    let first =
        InitialProcess { process: 100, threads: vec![100, 101, 102], cwd: "/".to_owned(), ..InitialProcess::default() };
    let metadata = Metadata { processes: vec![first], ..Metadata::default() };
    let mut state = State::new(&metadata, state::Options::default());
    calls.iter().map(|call| state.next(call)).collect()
}

/// The sequence up to the call that returned something else.
fn story(
    calls: &[Call],
    resolved: &[Resolved],
    sequence: &[usize],
    failed: usize,
    returned: &str,
    before: &[u64],
) -> String {
    let mut story = String::new();
    for &number in sequence {
        let (call, resolved) = (&calls[number], &resolved[number]);
        let name = |path: &Option<iosonar_files::Name>| path.as_ref().map(ToString::to_string).unwrap_or_default();
        let skip = resolved.skip.map(|skip| format!("{skip:?}")).unwrap_or_default();
        let _ = write!(
            story,
            "\n{number:>4} t{} {} fd {:?} {:?} {} {} flags {:#o} offset {:?} length {:?} = {:?} {} {skip}\n        {} {} \
             d {:?} makes {:?} ends {:?} {:?}",
            call.thread,
            call.kind.name(),
            call.fd,
            call.fd2,
            name(&call.path),
            name(&call.path2),
            call.flags,
            call.offset,
            call.length,
            call.result,
            call.errno,
            name(&resolved.path),
            name(&resolved.path2),
            resolved.description,
            resolved.makes,
            resolved.ends,
            resolved.touches.iter().map(|touch| (touch.access, touch.resource)).collect::<Vec<_>>(),
        );
        if number == failed {
            break;
        }
    }
    format!("call {failed} returned {returned}; it follows {before:?}{story}")
}
