//! The rules and limits of the issuing loop.

use iosonar_trace::Nanos;

use super::closed::Think;
use super::conflicts::{Policy, Strong};

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

/// Limits on the loop's requests, and on its time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of requests in flight per dispatch queue, without those that were pushed back.
    pub depth: usize,
    /// Clients of a closed loop.
    pub clients: usize,
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
    /// Slots for requests in flight or waiting.
    pub fn slots(&self) -> usize {
        (self.depth + self.pushed_back) * self.queues + self.shared
    }
}
