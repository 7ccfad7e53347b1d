//! The queues between the stages of a run, and the memory of the data that passes through them.
//!
//! ```text
//!            ┌─ prepared ─▶ loop 0 ─ completed, stalls ─┐
//!  prepare ──┤                                          ├──▶ completion log
//!     ▲      └─ prepared ─▶ loop 1 ─ completed, stalls ─┘          │
//!     └────────────────────── returned buffers ◀───────────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use iosonar_pacing::buffers::{Buffer, Pool, UNIT_BYTES};
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::stalls::Stall;
use iosonar_workload::program::Demand;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::config::plan::Plan;
use crate::io::{CompletedIo, PreparedIo};
use crate::issuer::conflicts::Policy;
use crate::issuer::{IssueRules, SharedWith};
use crate::pipeline::sharding::{Outputs, SharedRequests};
use crate::result::merge::{Completions, Merge};
use crate::run::prescan::Prescan;
use crate::verify::Verify;

/// Capacity of the queue of stalls from a loop to the completion log.
pub const STALLS: usize = 4096;
/// Completed requests that have room while the completion log sleeps, of all loops.
const COMPLETED: usize = 65_536;

/// The most memory that a program gets for its requests at a time without --buffers: it is locked.
const MAX_FOR_PROGRAM: u64 = 1 << 30;

/// A loop's ends.
pub struct LoopEnds {
    pub rules: IssueRules,
    pub sharing: SharedWith,
    pub prepared: Consumer<PreparedIo>,
    pub completed: Producer<CompletedIo>,
    pub stalls: Producer<Stall>,
}

/// The ends of preparation and completion log.
pub struct StageEnds {
    pub outputs: Outputs,
    completed: Vec<Consumer<CompletedIo>>,
    pub stalls: Vec<Consumer<Stall>>,
    pub to_return: Producer<Buffer>,
    pub returned: Consumer<Buffer>,
}

/// Connects the stages for this many targets.
pub fn connect(plan: &Plan, targets: usize, pool: &Pool) -> (StageEnds, Vec<LoopEnds>) {
    let (options, issuers) = (&plan.options, plan.issuers);
    let shards = plan.shards(targets);
    let has_conflicts = options.overlaps.conflicts != Policy::Allow;
    let shared = (shards.has_shared_requests() && has_conflicts).then(|| Arc::new(SharedRequests::default()));
    let counts_prepared = issuers > 1 && options.overlaps.may_overlap() && options.verification.verify != Verify::Off;
    let prepared = Arc::new(AtomicU64::new(0));
    let (mut to_loops, mut from_loops, mut stalls, mut loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for issuer in 0..issuers {
        let rules = plan.rules(issuer, targets);
        // Room for all requests in flight or waiting, and for others while the completion log sleeps.
        let completed = (rules.limits.slots() * 2).max(COMPLETED / issuers);
        let (prepared_sender, prepared_receiver) = RingBuffer::new(plan.queue_capacity());
        let (completed_sender, completed_receiver) = RingBuffer::new(completed);
        let (stall_sender, stall_receiver) = RingBuffer::new(STALLS);
        to_loops.push(prepared_sender);
        from_loops.push(completed_receiver);
        stalls.push(stall_receiver);
        loops.push(LoopEnds {
            rules,
            sharing: SharedWith {
                issuer: issuer as u16,
                shared: shared.clone(),
                prepared: counts_prepared.then(|| Arc::clone(&prepared)),
            },
            prepared: prepared_receiver,
            completed: completed_sender,
            stalls: stall_sender,
        });
    }
    let (to_return, returned) = RingBuffer::new((pool.largest() / UNIT_BYTES) as usize);
    let outputs = Outputs::new(to_loops, shards, shared, prepared);
    (StageEnds { outputs, completed: from_loops, stalls, to_return, returned }, loops)
}

impl StageEnds {
    /// Where the completion log reads; `clock` is that of the run.
    pub fn take_completed(&mut self, clock: Monotonic) -> Completions {
        let mut queues = std::mem::take(&mut self.completed);
        match queues.len() {
            1 => Completions::One(queues.remove(0)),
            _ => Completions::Merged(Merge::new(queues, clock)),
        }
    }
}

/// Memory for the requests of closed streams that may be in flight, beside the half of it that is kept ready.
pub fn bytes_at_once(plan: &Plan, demand: &Demand) -> u64 {
    let at_once = demand.closed_at_once.min(plan.depth.requests as u64);
    let largest = (demand.largest.bytes() + 2 * UNIT_BYTES).next_power_of_two();
    largest.saturating_mul(at_once).saturating_mul(2)
}

/// Memory for buffers: at most --buffers, and no more than the requests prepared, waiting or in flight can use. A program
/// gets more for the requests that it has at a time, unless --buffers is given.
pub fn buffer_bytes(plan: &Plan, prescan: Option<&Prescan>, demand: Option<Demand>, targets: usize) -> u64 {
    let options = &plan.options;
    if !options.method.has_device() {
        return UNIT_BYTES;
    }
    if let Some(demand) = demand {
        // Some of the largest for each loop, beside those that are ready.
        let largest = demand.largest.bytes().next_power_of_two().saturating_mul(4 * plan.issuers as u64);
        let least = options.issuing.buffers.max(largest);
        let needed = bytes_at_once(plan, &demand).min(MAX_FOR_PROGRAM);
        return if options.typed.is_given("buffers") { least } else { least.max(needed) };
    }
    let Some(prescan) = prescan else { return options.issuing.buffers };
    // Widening adds at most a block at each end.
    let largest = (prescan.longest_transfer * iosonar_trace::SECTOR_BYTES + 2 * UNIT_BYTES).next_power_of_two();
    let slots: usize = (0..plan.issuers).map(|issuer| plan.limits(issuer, targets).slots()).sum();
    let at_once = (slots + options.issuing.ahead * plan.issuers) as u64;
    options.issuing.buffers.min(largest.saturating_mul(at_once)).max(UNIT_BYTES)
}
