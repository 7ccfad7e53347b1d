//! Random programs are executed and recorded, then their calls are executed in other sequences that an order allows: each
//! call must return what it returned in the program.

pub mod executor;
pub mod issue;
pub mod program;
pub mod random;

use std::fmt::Write as _;

use iosonar_files::order::Policy;
use iosonar_files::state::{self, State};
use iosonar_files::{Call, InitialProcess, Metadata, Resolved};
use random::Random;

/// Where the programs run: in memory.
const BASE: &str = "/dev/shm";

/// A program that was executed in a folder of its own, in memory.
pub struct Recorded {
    seed: u64,
    pub calls: Vec<Call>,
    pub resolved: Vec<Resolved>,
}

impl Recorded {
    /// Runs the random program of a seed.
    pub fn new(seed: u64, calls: usize) -> Self {
        let calls = program::run(seed, calls, folder().path());
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

    fn execute(&self, sequence: &[usize], predecessors: &[Vec<u64>]) -> Result<(), String> {
        executor::execute(&self.calls, &self.resolved, sequence, folder().path()).map_err(|(call, returned)| {
            let before = predecessors.get(call).map_or(&[][..], |before| before);
            let story = story(&self.calls, &self.resolved, sequence, call, &returned, before);
            format!("seed {}: {story}", self.seed)
        })
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("iosonar-order-").tempdir_in(BASE).unwrap()
}

/// What each call touches.
pub fn resolve(calls: &[Call]) -> Vec<Resolved> {
    let first =
        InitialProcess { process: 100, threads: vec![100, 101, 102], cwd: "/".to_owned(), descriptors: Vec::new() };
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
