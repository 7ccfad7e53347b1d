//! The rules and limits of the issuing loop.

use iosonar_trace::Nanos;

use super::closed::Think;
use super::conflicts::{Policy, Strong};
use crate::config::issuing::{Depth, DepthScope, IssueOptions};
use crate::config::options::Options;
use crate::engine::uring::BATCH;
use crate::pipeline::sharding::{Shards, SharedRequests};

/// Rules of issuing.
#[derive(Clone, Copy, Debug)]
pub struct IssueRules {
    /// How the times of the load are kept.
    pub pace: Pace,
    /// What to do with conflicts.
    pub policy: Policy,
    /// Which overlaps are conflicts.
    pub strong: Strong,
    /// Limits on requests.
    pub limits: Limits,
}

impl IssueRules {
    /// Rules of each loop from the options, for this many targets.
    pub fn of(options: &Options, targets: usize) -> Self {
        let (policy, strong) = (options.overlaps.conflicts, options.overlaps.strong);
        Self { pace: Pace::of(options), policy, strong, limits: Limits::of(options, targets) }
    }
}

/// How the times of the load are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each request at its deadline.
    Timed,
    /// Each as soon as depth and conflicts allow; its scheduled time is its issue time.
    AsFastAsPossible,
    /// Each after an earlier one has completed; its deadline is the end of its client's think time.
    Closed(Think),
}

impl Pace {
    /// The pace from the options.
    pub fn of(options: &Options) -> Self {
        match (options.modes.closed, options.time.asap) {
            (Some(think), _) => Self::Closed(think),
            (None, true) => Self::AsFastAsPossible,
            (None, false) => Self::Timed,
        }
    }
}

/// Limits on requests held by the loop, and on its time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of requests in flight per dispatch queue, without those that were pushed back.
    pub depth: usize,
    /// Maximum number of pushed-back requests, waiting or in flight, per dispatch queue. They have slots of their own, so
    /// that a request whose conflict is resolved never waits for depth.
    pub pushed_back: usize,
    /// Maximum number of requests per submission call.
    pub batch: usize,
    /// Dispatch queues: 1 if all targets share the depth, else one for each target.
    pub queues: usize,
    /// Slots beside those, for requests that concern several loops.
    pub shared: usize,
    /// From this time on nothing more is admitted; admitted requests still complete.
    pub until: Nanos,
}

impl Limits {
    /// Limits of each loop from the options, for this many targets. Loops share a depth evenly, rounded up, unless it is that
    /// of a target with a loop of its own. The number of slots for pushed-back requests equals the depth, at least 64.
    pub fn of(options: &Options, targets: usize) -> Self {
        let IssueOptions { depth: Depth { requests: depth, scope }, issuers, .. } = options.issuing;
        let shards = Shards::new(issuers, targets);
        let depth = match (scope, shards) {
            (DepthScope::Each, Shards::ByTarget { .. }) => depth,
            _ => depth.div_ceil(issuers),
        };
        let shared = if shards.has_shared_requests() { SharedRequests::SLOTS } else { 0 };
        let queues = match scope {
            DepthScope::All => 1,
            DepthScope::Each => targets,
        };
        let until = options.modes.run_for.filter(|_| !options.keeps_times()).unwrap_or(Nanos::MAX);
        Self { depth, pushed_back: depth.max(64), batch: BATCH, queues, shared, until }
    }

    /// Slots for requests in flight or waiting.
    pub fn slots(&self) -> usize {
        (self.depth + self.pushed_back) * self.queues + self.shared
    }
}
