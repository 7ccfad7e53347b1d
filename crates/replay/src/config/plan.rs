//! A replay whose decisions are made: the options as typed, and what was chosen for the load, the program and the machine.
//! Nothing of it changes later.

use iosonar_pacing::depth::{Depth, DepthScope, MAX_DEPTH};
use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::processors;
use iosonar_pacing::wait::Wait;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::OpenMap;

use crate::config::issuers;
use crate::config::options::Options;
use crate::engine::uring::BATCH;
use crate::issuer::conflicts::Policy;
use crate::issuer::{IssueRules, Limits, Think};
use crate::pipeline::sharding::{Shards, SharedRequests};

/// The options, and what they leave open, decided.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As typed.
    pub options: Options,
    /// Requests in flight.
    pub depth: Depth,
    /// Issuing loops.
    pub issuers: usize,
    /// The most requests that the closed streams of each loop have in flight at a time, with a program.
    pub at_once: Vec<u64>,
    /// Whether requests may go to any loop.
    pub is_by_turn: bool,
    /// How the loops wait.
    pub waiting: WaitChoice,
    /// Why they wait so, as a phrase.
    pub wait_reason: String,
    /// Warnings about what was decided otherwise than typed.
    pub warnings: Vec<String>,
}

/// How the loop of a run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitChoice {
    /// For the scheduled time of the next request.
    pub wait: Wait,
    /// How long it polls for completions before it sleeps.
    pub busy_poll: Nanos,
}

/// What is known of a run before it starts, beside its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected<'a> {
    /// The mean requests per second of the load, if known.
    pub rate: Option<f64>,
    /// The contention for the processors, if it matters.
    pub contention: Option<&'a Contention>,
    /// Whether requests wait for completions alone: those of a program without arrivals, think times and other timers.
    pub only_completions: bool,
    /// The most requests that a program has in flight at a time, in each of its parts.
    pub at_once: &'a [u64],
    /// Whether all requests read, and so none conflicts with another.
    pub only_reads: bool,
    /// How the first run of the series waits, which its later runs keep.
    pub first: Option<WaitChoice>,
}

impl Plan {
    /// Decides what the options leave open.
    pub fn new(options: Options, expected: Expected<'_>) -> Self {
        let (most, fewer) = Self::most_issuers(&options, expected.only_completions);
        let at_once = expected.at_once.to_vec();
        let issuers = if at_once.is_empty() { most } else { at_once.len() };
        let unused = (issuers < most).then(|| issuers::unused(most, issuers));
        let is_by_turn = options.is_closed() && (expected.only_reads || options.overlaps.conflicts == Policy::Allow);
        let (waiting, wait_reason) = options.choose_wait(issuers, processors(), expected);
        let depth = depth(&options, at_once.iter().fold(0, |sum, &each| sum.saturating_add(each)));
        let warnings = fewer.into_iter().chain(unused).collect();
        Self { options, depth, issuers, at_once, is_by_turn, waiting, wait_reason, warnings }
    }

    /// The most issuing loops that a run gets, with a warning if they are fewer than --issuers.
    pub fn most_issuers(options: &Options, only_completions: bool) -> (usize, Option<String>) {
        let has_deadlines = options.has_deadlines() && !only_completions && !options.method.virtual_time;
        issuers::limit(options, processors(), has_deadlines)
    }

    /// The options with what was decided, for the footer.
    pub fn resolved_options(&self) -> OpenMap {
        let mut resolved = self.options.clone();
        resolved.pacing.depth.depth = self.depth;
        resolved.pacing.wait.wait = Some(self.waiting.wait);
        resolved.issuing.issuers = self.issuers;
        resolved.issuing.busy_poll = Some(self.waiting.busy_poll);
        OpenMap::of(&resolved)
    }

    /// Capacity of the queue of prepared requests. A loop that prepares them inline and has no deadlines needs no more than
    /// can be in flight, and fewer buffers stay in the processor's cache.
    pub fn queue_capacity(&self) -> usize {
        let ahead = self.options.issuing.ahead;
        match self.waiting.wait {
            Wait::Inline if !self.options.keeps_times() => ahead.min(self.depth.requests.max(BATCH)),
            _ => ahead,
        }
    }

    /// The division of this many targets among the loops.
    pub fn shards(&self, targets: usize) -> Shards {
        let issuers = self.issuers;
        if self.is_by_turn { Shards::ByTurn { issuers } } else { Shards::new(issuers, targets) }
    }

    /// Rules of a loop, for this many targets.
    pub fn rules(&self, issuer: usize, targets: usize) -> IssueRules {
        let (policy, strong) = (self.options.overlaps.conflicts, self.options.overlaps.strong);
        IssueRules { pace: self.options.pace(), policy, strong, limits: self.limits(issuer, targets) }
    }

    /// Limits of a loop, for this many targets. Loops share a depth, unless it is that of a target with a loop of its own. The
    /// number of slots for pushed-back requests equals the depth, at least 64.
    pub fn limits(&self, issuer: usize, targets: usize) -> Limits {
        let Depth { requests: depth, scope } = self.depth;
        let shards = self.shards(targets);
        let (depth, of_loop) = match (scope, shards) {
            (DepthScope::Each, Shards::ByTarget { issuers }) => (depth, (targets + issuers - 1 - issuer) / issuers),
            (DepthScope::Each, _) => (issuers::share_of(depth, issuer, self.issuers, &self.at_once), targets),
            (DepthScope::All, _) => (issuers::share_of(depth, issuer, self.issuers, &self.at_once), 1),
        };
        let shared = if shards.has_shared_requests() { SharedRequests::SLOTS } else { 0 };
        let queues = match scope {
            DepthScope::All => 1,
            DepthScope::Each => targets,
        };
        let until = self.options.pacing.until().filter(|_| !self.options.keeps_times()).unwrap_or(Nanos::MAX);
        let clients = match self.options.modes.closed {
            // Requests that wait for others, not for a client.
            Some(Think::Inferred) => self.options.issuing.ahead,
            _ => depth * of_loop,
        };
        Limits { depth, clients, pushed_back: depth.max(64), batch: BATCH, queues, shared, until }
    }
}

/// The depth: at most --bottleneck, and without both options at least what a program has in flight at a time.
fn depth(options: &Options, at_once: u64) -> Depth {
    let Depth { requests, scope } = *options.pacing.depth;
    let requests = match options.issuing.bottleneck {
        0 if options.typed.is_given("depth") => requests,
        0 => requests.max(at_once.min(MAX_DEPTH as u64) as usize),
        bottleneck => requests.min(bottleneck),
    };
    Depth { requests, scope }
}

#[cfg(test)]
impl Plan {
    /// The plan of a valid command line whose words have no spaces, with nothing else known.
    pub fn of(line: &str) -> Self {
        Self::new(Options::of(line), Expected::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_depth_fits_a_program_unless_it_is_given() {
        let depth = |words: &str, at_once| depth(&Options::of(&format!("a -t b -o c {words}")), at_once).requests;
        assert_eq!([("", 3), ("", 700), ("", u64::MAX)].map(|(words, most)| depth(words, most)), [512, 700, MAX_DEPTH]);
        assert_eq!(
            ["--depth 8", "--bottleneck 9", "--depth 8 --bottleneck 9"].map(|words| depth(words, 700)),
            [8, 9, 8]
        );
    }

    #[test]
    fn the_footer_has_what_was_decided() {
        let plan = Plan::of("a -t b -o c --bottleneck 9 --wait sleep");
        let options = json!(plan.resolved_options());
        assert_eq!(
            (&options["depth"], &options["wait"], &options["busy_poll"]),
            (&json!(9), &json!("sleep"), &json!(0))
        );
    }
}
