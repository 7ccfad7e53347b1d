//! Admission of requests that concern several loops: see [`sharding`](crate::pipeline::sharding).
//!
//! ```text
//!                     [agreed by all guards?]
//!  owner:   due ──▶ tracked ──▶ awaiting ──▶ staged ──▶ ... completed ──▶ output, then finished
//!  guard:   due ──▶ tracked ──▶ agrees .............................▶ finished ──▶ untracked
//! ```
//! The owner's row is in the output before guards learn that it has completed, so that the completion log sees it before the
//! rows of requests that waited for it.

use iosonar_pacing::clock::Clock;
use iosonar_pacing::ideal::Hold;
use iosonar_pacing::idle::Idle;
use iosonar_trace::{DelayReason, IoResult};

use super::Issuer;
use super::dispatch_queue::DispatchQueue;
use super::sharing::{Guard, Sharing};
use super::slot::{QueueDelay, Slot};
use crate::engine::Target;
use crate::io::{Role, Share};
use crate::issuer::conflicts::{Admission, Policy, Range};
use crate::pipeline::sharding::shared::{GuardDelays, Stage};

/// Whether the owner of a shared request may be issued, with `--conflicts drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Wait,
    Issue,
    Drop,
}

impl<T: Target, C: Clock, I: Idle<T>> Issuer<'_, T, C, I> {
    /// Admits the guard at the head of a queue. Returns whether it did.
    pub(super) fn admit_guard(&mut self, queue: usize, share: Share, range: Range) -> bool {
        match self.policy {
            Policy::Drop => self.admit_guard_or_drop(queue, share, range),
            _ => {
                let met = self.met_by_head(queue);
                let slot = self.slots.next_free();
                let has_agreed = self.tracker.admit(slot, range) == Admission::Issue;
                self.occupy_with_guard(queue, Guard { share, has_agreed });
                if has_agreed {
                    self.sharing.shared().agree(share.state, met);
                } else {
                    self.sharing.shared().meet(share.state, GuardDelays::CONFLICT);
                    self.sharing.disagreeing += 1;
                }
                true
            }
        }
    }

    /// With `--conflicts drop`, the guard holds the head of the queue until it is decided whether the request is issued.
    fn admit_guard_or_drop(&mut self, queue: usize, share: Share, range: Range) -> bool {
        let stage = self.sharing.shared().stage(share.state);
        match (stage, share.role) {
            (Stage::Finished, _) => {
                self.queues.take_head(queue);
                self.sharing.shared().release(share.state);
                return true;
            }
            (Stage::Issued, _) => {
                let admission = self.tracker.admit(self.slots.next_free(), range);
                self.occupy_with_guard(queue, Guard { share, has_agreed: true });
                debug_assert_eq!(admission, Admission::Issue, "nothing passed it since it agreed");
                return true;
            }
            (Stage::Ready, Role::Guard) => {
                let is_conflict = self.tracker.has_conflict(range);
                let met = if is_conflict { GuardDelays::CONFLICT } else { self.met_by_head(queue) };
                self.sharing.shared().agree(share.state, met);
                let head = self.queues.get_mut(queue).due.front_mut();
                head.expect("it was looked at").share = Some(Share { role: Role::AgreedGuard, ..share });
            }
            _ => {}
        }
        self.sharing.is_head_waiting = true;
        false
    }

    /// With `--conflicts drop`: whether the owner at the head of its queue is issued.
    pub(super) fn decide(&mut self, share: Share, range: Range) -> Decision {
        let has_conflict = self.tracker.has_conflict(range);
        let Sharing { with, is_head_waiting, .. } = &mut self.sharing;
        let shared = with.shared.as_deref().expect("no request is shared without it");
        if shared.stage(share.state) == Stage::Open {
            if has_conflict {
                return Decision::Drop;
            }
            shared.set_stage(share.state, Stage::Ready);
        }
        if !shared.is_agreed(share.state) {
            *is_head_waiting = true;
            return Decision::Wait;
        }
        if shared.met(share.state).has(GuardDelays::CONFLICT) {
            return Decision::Drop;
        }
        shared.set_stage(share.state, Stage::Issued);
        Decision::Issue
    }

    /// Stages a request that has no conflict in this loop, or lets it wait for its guards.
    #[inline]
    pub(super) fn stage_or_await(&mut self, slot: u32) {
        match self.slots.get_mut(slot).share {
            Some(share) if !self.sharing.shared().is_agreed(share.state) => self.sharing.awaiting.push(slot),
            Some(share) => self.stage_agreed(slot, share),
            None => self.stage(slot),
        }
    }

    /// Untracks guards whose requests are finished, and stages owners whose guards have agreed.
    pub(super) fn poll_shared(&mut self) {
        let mut at = 0;
        while let Some(&slot) = self.sharing.guards.get(at) {
            let Sharing { with, guards, guarded, .. } = &mut self.sharing;
            let shared = with.shared.as_deref().expect("no request is shared without it");
            let guard = guarded[slot as usize].expect("it is in the list of guards");
            // A request that is not issued can finish before its guard agrees. The guard waits all the same.
            if guard.has_agreed && shared.is_over(guard.share.state, guard.share.owner) {
                shared.release(guard.share.state);
                guarded[slot as usize] = None;
                guards.swap_remove(at);
                self.tracker.finish(slot);
                self.slots.free(slot);
            } else {
                at += 1;
            }
        }
        let mut at = 0;
        while let Some(&slot) = self.sharing.awaiting.get(at) {
            let share = self.slots.get_mut(slot).share.expect("only shared requests wait for guards");
            if self.sharing.shared().met(share.state).has(GuardDelays::CONFLICT) {
                self.push_back(slot);
            }
            if self.sharing.shared().is_agreed(share.state) {
                if self.staged.len() == self.limits.batch || self.stop.is_requested() {
                    return;
                }
                self.sharing.awaiting.remove(at);
                self.stage_agreed(slot, share);
            } else if self.is_past_end {
                self.sharing.awaiting.remove(at);
                self.cancel(slot, share);
            } else {
                at += 1;
            }
        }
    }

    fn stage_agreed(&mut self, slot: u32, share: Share) {
        let met = self.sharing.shared().met(share.state);
        if met.has(GuardDelays::CONFLICT) {
            self.push_back(slot);
        }
        // What held a guard in another loop is not known in more detail.
        let now = self.clock.now();
        let by_others = Hold { until: now, ideal: now };
        let Slot { held, overlap, record, .. } = self.slots.get_mut(slot);
        if met.has(GuardDelays::DEPTH) {
            *held = QueueDelay { by: DelayReason::Depth, hold: held.hold.and(by_others), ..*held };
        }
        if met.has(GuardDelays::COMPLETION_LOG) {
            held.by_log_until = now;
        }
        if record.pushed_back {
            *overlap = overlap.and(by_others);
        }
        self.stage(slot);
    }

    /// Counts a request as pushed back whose conflict is in another loop.
    fn push_back(&mut self, slot: u32) {
        let now = self.clock.now();
        let Slot { target, record, held, .. } = self.slots.get_mut(slot);
        if !std::mem::replace(&mut record.pushed_back, true) {
            let queue = self.queues.index_of(*target);
            let DispatchQueue { places, pushed_back, .. } = self.queues.get_mut(queue);
            places.free(Hold { until: now, ideal: held.hold.ideal });
            *pushed_back += 1;
        }
    }

    /// Leaves out a request that waits for guards when nothing more is admitted, as if it had not been admitted.
    fn cancel(&mut self, slot: u32, share: Share) {
        let Some(Slot { target, held, record: IoResult { pushed_back, .. }, .. }) = self.slots.take(slot) else {
            return;
        };
        let queue = self.queues.index_of(target);
        let end = Hold { until: self.clock.now(), ideal: held.hold.ideal };
        self.queues.get_mut(queue).release(pushed_back, end);
        self.slots.free(slot);
        self.tracker.finish(slot);
        self.sharing.finish(share);
    }

    /// Discards all requests that were not admitted. Other loops may wait for those that are shared.
    pub(super) fn discard_due(&mut self) {
        if self.sharing.with.shared.is_some() {
            self.queues.shares().for_each(|share| self.sharing.discard(share));
            while self.input.peek().is_some()
                && let Some(next) = self.input.take()
            {
                self.sharing.discard(next.share);
            }
        }
        self.queues.clear();
    }

    /// Moves the guard at the head of a queue into the next free slot.
    fn occupy_with_guard(&mut self, queue: usize, guard: Guard) {
        self.queues.take_head(queue);
        let slot = self.slots.reserve();
        self.sharing.guarded[slot as usize] = Some(guard);
        self.sharing.guards.push(slot);
    }

    /// What held back the head of a queue after its deadline: what held the request before it.
    fn met_by_head(&self, queue: usize) -> GuardDelays {
        let DispatchQueue { due, last_admitted, .. } = self.queues.get(queue);
        match due.front() {
            Some(head) if last_admitted.is_by_log(head.deadline) => GuardDelays::COMPLETION_LOG,
            Some(head) if last_admitted.hold.ideal > head.deadline => GuardDelays::DEPTH,
            _ => GuardDelays::NOTHING,
        }
    }
}
