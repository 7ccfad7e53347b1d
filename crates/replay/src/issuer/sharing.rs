//! Requests that concern several loops, as one of these loops sees them: see [`sharding`](crate::pipeline::sharding).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iosonar_trace::Nanos;

use crate::io::Share;
use crate::pipeline::sharding::SharedRequests;
use crate::pipeline::sharding::shared::{GuardDelays, Stage};

/// How long a loop waits at most for another one before it looks again. Longer than [`Hybrid`](iosonar_pacing::idle::Hybrid) spins, so that
/// a processor is free for the other loop.
const SHARED_POLL: Nanos = Nanos(150_000);

/// What a loop shares with the others.
#[derive(Clone, Debug, Default)]
pub struct SharedWith {
    /// The number of this loop, from 0.
    pub issuer: u16,
    /// Requests that concern several loops.
    pub shared: Option<Arc<SharedRequests>>,
    /// The highest sequence number prepared, if requests that overlap may be in flight at the same time in different loops.
    pub prepared: Option<Arc<AtomicU64>>,
}

/// Shared requests in this loop.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    pub with: SharedWith,
    /// Slots of owners that wait only for guards, oldest first.
    pub awaiting: Vec<u32>,
    /// Slots of guards.
    pub guards: Vec<u32>,
    /// For each slot, its guard.
    pub guarded: Vec<Option<Guard>>,
    /// Guards that wait for an overlap.
    pub disagreeing: usize,
    /// Whether the head of a dispatch queue waits for another loop.
    pub is_head_waiting: bool,
}

/// A guard in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub share: Share,
    pub has_agreed: bool,
}

impl Sharing {
    pub fn new(with: SharedWith, slots: usize) -> Self {
        let used = if with.shared.is_some() { SharedRequests::SLOTS } else { 0 };
        Self {
            awaiting: Vec::with_capacity(used),
            guards: Vec::with_capacity(used),
            guarded: vec![None; if used > 0 { slots } else { 0 }],
            with,
            ..Self::default()
        }
    }

    pub fn issuer(&self) -> u16 {
        self.with.issuer
    }

    /// See [`CompletedIo::admitted`](crate::CompletedIo::admitted); `admitted` is that of this loop.
    #[inline]
    pub fn admitted(&self, admitted: u64) -> u64 {
        self.with.prepared.as_ref().map_or(admitted, |prepared| prepared.load(Ordering::SeqCst))
    }

    /// Whether this loop has to look what others do.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.awaiting.is_empty() || !self.guards.is_empty()
    }

    /// Requests of the run that need this loop to go on, beside those in flight or waiting.
    #[inline]
    pub fn pending(&self) -> usize {
        self.awaiting.len() + self.disagreeing
    }

    /// Limits the time until the loop looks again, if another loop can let a request pass before then.
    #[inline]
    pub fn limit(&self, left: Nanos, waiting: usize) -> Nanos {
        let is_needed = waiting + self.disagreeing > 0;
        match self.is_head_waiting || !self.awaiting.is_empty() || (is_needed && !self.guards.is_empty()) {
            true => left.min(SHARED_POLL),
            false => left,
        }
    }

    /// Before a round of admission.
    #[inline]
    pub fn begin_round(&mut self) {
        self.is_head_waiting = false;
    }

    /// A shared request was completed, or is not issued. Follows its row.
    pub fn finish(&self, share: Share) {
        let shared = self.shared();
        shared.set_stage(share.state, Stage::Finished);
        shared.release(share.state);
    }

    /// If the slot belongs to a guard whose conflicts are resolved, it agrees.
    #[inline]
    pub fn agree_if_guard(&mut self, slot: u32) -> bool {
        let Some(Some(guard)) = self.guarded.get_mut(slot as usize) else { return false };
        guard.has_agreed = true;
        let state = guard.share.state;
        self.disagreeing -= 1;
        self.shared().agree(state, GuardDelays::NOTHING);
        true
    }

    /// A request that was in the queues is neither tracked nor issued, as nothing is admitted any more.
    pub fn discard(&self, share: Option<Share>) {
        match share {
            Some(share) if share.is_guard() => self.shared().release(share.state),
            Some(share) => self.finish(share),
            None => {}
        }
    }

    /// The loop has ended.
    pub fn end(&self) {
        if let Some(shared) = &self.with.shared {
            shared.set_ended(self.with.issuer);
        }
    }

    /// Shared requests. Only called for those.
    #[inline]
    pub fn shared(&self) -> &SharedRequests {
        self.with.shared.as_ref().expect("no request is shared without it")
    }
}
