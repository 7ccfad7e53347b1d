//! The rules and limits of the issuing loop.

use iosonar_trace::Nanos;

use super::closed::Think;
use super::conflicts::{Policy, Strong};
use crate::config::issuing::DepthFor;
use crate::config::options::Options;
use crate::engine::uring::BATCH;

/// How the loop issues.
#[derive(Clone, Copy, Debug)]
pub struct IssueRules {
    /// How it keeps the load's times.
    pub pace: Pace,
    /// What it does about overlaps.
    pub policy: Policy,
    /// Which overlaps count.
    pub strong: Strong,
    /// How many requests it holds.
    pub limits: Limits,
}

impl IssueRules {
    /// As the options say, of that many targets.
    pub fn of(options: &Options, targets: usize) -> Self {
        let (policy, strong) = (options.overlaps.conflicts, options.overlaps.strong);
        Self { pace: Pace::of(options), policy, strong, limits: Limits::of(options, targets) }
    }
}

/// How the load's times are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each request at its deadline.
    Timed,
    /// Each as soon as there is room: a request's deadline is the moment at which it goes.
    AsFastAsPossible,
    /// Each when an earlier one is through: a request's deadline is when its client has ended thinking.
    Closed(Think),
}

impl Pace {
    /// As the options say.
    pub fn of(options: &Options) -> Self {
        match (options.modes.closed, options.time.asap) {
            (Some(think), _) => Self::Closed(think),
            (None, true) => Self::AsFastAsPossible,
            (None, false) => Self::Timed,
        }
    }
}

/// How many requests the loop holds, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most requests in flight through each gate, released ones not counted.
    pub depth: usize,
    /// The most requests that wait for an overlap, or fly after they did: each has a place of its own, so that a release
    /// never waits for an ordinary one. For each gate as well.
    pub pushed_back: usize,
    /// The most requests handed over in one call.
    pub batch: usize,
    /// 1 if all targets share the depth, or the number of targets if each has its own.
    pub gates: usize,
    /// From this time on nothing new is issued; what was issued or pushed back before goes on.
    pub until: Nanos,
}

impl Limits {
    /// As the options say, of that many targets. As many places again as the depth are reserved for requests that were pushed
    /// back.
    pub fn of(options: &Options, targets: usize) -> Self {
        let depth = options.issuing.depth.requests;
        let gates = match options.issuing.depth.of {
            DepthFor::All => 1,
            DepthFor::Each => targets,
        };
        let until = options.modes.run_for.filter(|_| !options.keeps_times()).unwrap_or(Nanos::MAX);
        Self { depth, pushed_back: depth.max(64), batch: BATCH, gates, until }
    }

    /// Places for requests, in flight or waiting.
    pub fn slots(&self) -> usize {
        (self.depth + self.pushed_back) * self.gates
    }
}
