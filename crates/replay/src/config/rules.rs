//! The rules of issuing that the options make.

use iosonar_pacing::depth::{Depth, DepthScope};
use iosonar_trace::Nanos;

use crate::address::router::Routes;
use crate::config::issuing::IssueOptions;
use crate::config::options::Options;
use crate::engine::uring::BATCH;
use crate::issuer::{IssueRules, Limits, Pace};
use crate::pipeline::prepare::PrepareConfig;
use crate::pipeline::sharding::{Shards, SharedRequests};

impl Options {
    /// Rules of each loop, for this many targets.
    pub fn rules(&self, targets: usize) -> IssueRules {
        let (policy, strong) = (self.overlaps.conflicts, self.overlaps.strong);
        IssueRules { pace: self.pace(), policy, strong, limits: self.limits(targets) }
    }

    /// How the times of the load are kept.
    pub fn pace(&self) -> Pace {
        match (self.modes.closed, self.pacing.asap) {
            (Some(think), _) => Pace::Closed(think),
            (None, true) => Pace::AsFastAsPossible,
            (None, false) => Pace::Timed,
        }
    }

    /// How requests are prepared; `write_header` is the run's random number, if sectors get headers for verification.
    pub fn preparation(&self, routes: Routes, write_header: Option<u64>) -> PrepareConfig {
        // In virtual time, preparation takes no time.
        let ahead = if self.method.virtual_time { Nanos::MAX } else { self.issuing.ahead_time };
        PrepareConfig { routes, has_data: self.method.has_device(), ahead, write_header }
    }

    /// Limits of each loop from the options, for this many targets. Loops share a depth evenly, rounded up, unless it is that
    /// of a target with a loop of its own. The number of slots for pushed-back requests equals the depth, at least 64.
    pub fn limits(&self, targets: usize) -> Limits {
        let IssueOptions { issuers, .. } = self.issuing;
        let Depth { requests: depth, scope } = self.pacing.depth;
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
        let until = self.pacing.run_for.filter(|_| !self.keeps_times()).unwrap_or(Nanos::MAX);
        Limits { depth, pushed_back: depth.max(64), batch: BATCH, queues, shared, until }
    }
}
