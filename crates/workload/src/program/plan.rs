//! What all instances of a stream have in common.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use iosonar_trace::{DeviceId, Nanos};
use rand::RngExt;

use crate::distributions::Distribution;
use crate::filament::FilamentId;
use crate::{Mix, Rng, Sizes};

/// The plan of a stream.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// The cumulative weight of each step, if a transaction is one of them; empty if it is all of them in order.
    pub weights: Vec<f64>,
    /// The most transactions of an instance at a time.
    pub depth: u32,
    pub think: Option<Box<dyn Distribution>>,
    /// The least time between the beginnings of two transactions, in nanoseconds.
    pub interval: Option<f64>,
    /// When the first instance starts, and the time between two of them.
    pub start: Nanos,
    pub stagger: f64,
    pub end: Nanos,
    /// The most transactions of an instance.
    pub transactions: u64,
    /// The requests of the last transaction of an instance, if it is a single step.
    pub last_repeat: Option<u32>,
    /// The sectors of an instance's requests after which no further transaction begins.
    pub max_sectors: u64,
    /// The writes of an instance after which a flush follows; 0 for none.
    pub flush_every: u64,
    /// Whether requests wait for completions.
    pub is_waiting: bool,
    pub order: Order,
}

/// Which streams must have ended before a stream begins.
#[derive(Default)]
pub(super) struct Order {
    pub instances: u32,
    /// Instances that have not ended.
    pub unfinished: AtomicU32,
    /// Whether the stream begins after others, and how many of them have not ended.
    pub is_after: bool,
    pub waits_for: AtomicU32,
    /// Whether others begin after the stream, and which.
    pub is_followed: AtomicBool,
    pub followers: OnceLock<Vec<Follower>>,
}

/// A stream that begins after another one.
pub(super) struct Follower {
    pub plan: Arc<Plan>,
    /// Its first instance, which wakes the others.
    pub first: FilamentId,
}

impl Plan {
    /// Of a stream whose transactions are not known: it has times alone.
    pub fn of_times(instances: u32, start: Nanos, stagger: f64, end: Nanos) -> Self {
        Self {
            steps: Vec::new(),
            weights: Vec::new(),
            depth: 1,
            think: None,
            interval: None,
            start,
            stagger,
            end,
            transactions: u64::MAX,
            last_repeat: None,
            max_sectors: u64::MAX,
            flush_every: 0,
            is_waiting: false,
            order: Order { instances, unfinished: AtomicU32::new(instances), ..Order::default() },
        }
    }

    pub fn start_of(&self, number: u32) -> Nanos {
        self.start + Nanos((self.stagger * f64::from(number)) as i64)
    }

    /// Whether each instance ends by itself.
    pub fn has_end(&self) -> bool {
        self.transactions < u64::MAX || self.max_sectors < u64::MAX || self.end < Nanos::MAX
    }

    /// The most requests of a transaction that have not completed.
    pub fn max_outstanding(&self) -> u32 {
        let (mut most, mut now) = (1, 0_u32);
        for step in &self.steps {
            let flushes = u64::from(step.repeat).checked_div(self.flush_every).map_or(0, |flushes| flushes as u32 + 1);
            now = if step.is_waiting { 1 } else { now.saturating_add(step.repeat).saturating_add(flushes) };
            most = most.max(now);
        }
        most
    }

    /// The requests of a transaction, and their mean length in sectors.
    pub fn of_transaction(&self) -> (f64, f64) {
        let requests: f64 = self.steps.iter().map(|step| f64::from(step.repeat)).sum();
        let sectors: f64 = self.steps.iter().map(|step| f64::from(step.repeat) * step.sizes.mean()).sum();
        (if self.weights.is_empty() { requests } else { 1.0 }, sectors / requests)
    }

    /// The steps of a transaction that begins: from the first, up to the second.
    pub fn steps_of_next(&self, rng: &mut Rng) -> (u32, u32) {
        let Some(total) = self.weights.last() else { return (0, self.steps.len() as u32) };
        let point = rng.random::<f64>() * total;
        let step = self.weights.partition_point(|upto| *upto <= point).min(self.steps.len() - 1) as u32;
        (step, step + 1)
    }
}

/// A step of a transaction.
pub(super) struct Step {
    pub mix: Mix,
    pub sizes: Sizes,
    /// Whether a size that does not fit before the end of the region is drawn again.
    pub redraws: bool,
    pub place: Place,
    pub repeat: u32,
    pub is_waiting: bool,
}

/// Where the requests of a step go.
pub(super) enum Place {
    /// Where the request before it went.
    Same,
    Region {
        device: DeviceId,
        /// First sector of the region of the first instance.
        first: u64,
        /// From the region of an instance to that of the next; 0 if they share one.
        stride: u64,
        /// Of an instance.
        size: u64,
        which: RegionPosition,
    },
}

/// Where in its region a request goes.
pub(super) enum RegionPosition {
    /// The filament's own positions with this index.
    Own(usize),
    /// Behind the last request of any instance.
    Append { next: AtomicU64, size: u64, align: u64 },
}
