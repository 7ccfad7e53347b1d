//! Infers which requests of a load waited for the completion of an earlier one, so that a replay can let them wait as well.
//!
//! Requests of one process are compared with each other; those without a process with all others without one. A first pass
//! decides for each such [`Group`] whether its requests wait at all, a second one names a request for each.
//!
//! Idea: A. Haghdoost et al., "On the Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017, which infers
//! dependencies from times and overlaps.

mod group;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use iosonar_pacing::{Error, Result};
use iosonar_trace::run_info::RunDependencies;
use iosonar_trace::{Nanos, Request, RequestTime};

pub use self::group::After;
use self::group::{Count, Group};
use crate::schedule::iterations::{Iterations, NumberedRequest};

/// The farthest request that another one waits for, as a number of requests before it.
pub const MAX_DISTANCE: u64 = 1 << 16;

/// What was learned of a load, and where a second pass through it is.
#[derive(Debug, Default)]
pub struct Dependencies {
    groups: HashMap<Option<u32>, Group>,
    /// Whether the requests of a process wait, where the process has too few to tell.
    few_wait: bool,
    is_queued: bool,
}

impl Dependencies {
    /// Reads a load once.
    ///
    /// # Errors
    /// If it cannot be read, or no request has a latency.
    pub fn learn(iterations: &mut Iterations<'_>) -> Result<Self> {
        let is_queued = iterations.metadata().request_time == RequestTime::Queued;
        let mut learned = Self { is_queued, ..Self::default() };
        let mut with_latency = 0_u64;
        while let Some(next) = iterations.take_next()? {
            with_latency += u64::from(next.request.latency.is_some());
            learned.arrive(&next);
        }
        if with_latency == 0 {
            return Err(Error::Options(
                "--closed=dependencies: the load has no latencies, so it is not known when its requests completed: use a recording \
                 with completions, or another --closed"
                    .into(),
            ));
        }
        learned.decide();
        Ok(learned)
    }

    /// What the next request of the load waits for, in a second pass.
    pub fn after(&mut self, next: &NumberedRequest) -> Option<After> {
        let waits = self.waits(next.request.pid);
        self.arrive(next).filter(|after| waits && next.number - after.request < MAX_DISTANCE)
    }

    /// How many requests wait, and how likely that is.
    pub fn summary(&self) -> RunDependencies {
        let (mut all, mut by_process, mut by_time, mut sum) = (0, 0, 0, 0.0);
        for (pid, group) in &self.groups {
            let Count { requests, waiting, share, .. } = group.learned;
            all += requests;
            if self.waits(*pid) {
                let waiting_of = if pid.is_some() { &mut by_process } else { &mut by_time };
                *waiting_of += waiting;
                sum += share;
            }
        }
        let waiting: u64 = by_process + by_time;
        RunDependencies {
            requests: all.into(),
            by_process: by_process.into(),
            by_time: by_time.into(),
            confidence: (if waiting > 0 { sum / waiting as f64 } else { 0.0 }).into(),
            ..RunDependencies::default()
        }
    }

    fn arrive(&mut self, next: &NumberedRequest) -> Option<After> {
        let Request { at, pid, latency, queued, .. } = next.request;
        let queued = queued.filter(|_| self.is_queued).unwrap_or(Nanos::ZERO);
        let end = latency.map(|latency| at + queued + latency);
        self.groups.entry(pid).or_insert_with(|| Group::new(pid.is_some())).arrive(next.number, at, end)
    }

    /// Ends the first pass.
    fn decide(&mut self) {
        let mut few = Count::default();
        for group in self.groups.values_mut() {
            group.begin_again();
            if group.learned.is_few() {
                few.add(&group.learned);
            }
        }
        self.few_wait = few.waits();
    }

    fn waits(&self, pid: Option<u32>) -> bool {
        let few = |group: &Group| pid.is_some() && group.learned.is_few();
        self.groups.get(&pid).is_some_and(|group| if few(group) { self.few_wait } else { group.learned.waits() })
    }
}
