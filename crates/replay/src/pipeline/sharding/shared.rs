//! What the loops of a shared request tell each other.
//!
//! | stage | meaning | set by |
//! |---|---|---|
//! | open | on its way to the loops | preparation |
//! | ready | nothing but guards holds the owner back; only with `--conflicts drop` | owner |
//! | issued | guards may let later requests pass; only with `--conflicts drop` | owner |
//! | finished | completed or left out: guards end | owner |
//!
//! A guard *agrees* when no earlier request of its loop conflicts with it. With `--conflicts partial` the owner waits for all
//! guards to agree, and later requests that overlap are pushed back meanwhile. With `--conflicts drop` owner and guards hold
//! the heads of their queues until it is decided whether the request is issued, since a request that is left out is in no
//! one's way.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Shared requests that can be on their way or in flight at a time. Preparation waits for more.
const STATES: usize = 1024;

/// What held a guard back, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardDelays(u32);

impl GuardDelays {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// An earlier request that conflicts.
    pub const CONFLICT: Self = Self(1);
    /// Requests before it waited for the depth.
    pub const DEPTH: Self = Self(2);
    /// Requests before it waited for the completion log.
    pub const COMPLETION_LOG: Self = Self(4);

    /// Whether it includes this.
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Stage of a shared request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Stage {
    /// On its way to the loops.
    Open,
    /// Only guards hold the owner back.
    Ready,
    /// Issued.
    Issued,
    /// Completed or left out.
    Finished,
}

/// One shared request, in cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct State {
    /// Guards that have not agreed.
    missing: AtomicU32,
    /// What guards met.
    met: AtomicU32,
    stage: AtomicU8,
    /// Loops that still use this state.
    users: AtomicU32,
}

/// All shared requests, in constant memory.
#[derive(Debug)]
pub struct SharedRequests {
    states: Box<[State]>,
    /// Loops that have ended, as bits.
    ended: AtomicU64,
}

impl Default for SharedRequests {
    fn default() -> Self {
        let new = || State {
            missing: AtomicU32::new(0),
            met: AtomicU32::new(0),
            stage: AtomicU8::new(Stage::Finished as u8),
            users: AtomicU32::new(0),
        };
        Self { states: std::iter::repeat_with(new).take(STATES).collect(), ended: AtomicU64::new(0) }
    }
}

impl SharedRequests {
    /// Slots that a loop needs for guards and owners.
    pub const SLOTS: usize = STATES;

    /// Takes a free state, from `first` on, for a request with this many guards. Only preparation calls it.
    pub fn open(&self, first: u32, guards: u32) -> Option<u16> {
        let after = |offset: usize| (first as usize + offset) % STATES;
        let free = (0..STATES).map(after).find(|&index| self.states[index].users.load(Ordering::Acquire) == 0)?;
        let state = &self.states[free];
        // The queues to the loops publish this.
        state.missing.store(guards, Ordering::Relaxed);
        state.met.store(0, Ordering::Relaxed);
        state.stage.store(Stage::Open as u8, Ordering::Relaxed);
        state.users.store(guards + 1, Ordering::Relaxed);
        Some(free as u16)
    }

    /// A guard lets the request pass, after it met this.
    #[inline]
    pub fn agree(&self, state: u16, met: GuardDelays) {
        self.meet(state, met);
        self.at(state).missing.fetch_sub(1, Ordering::Release);
    }

    /// A guard met this and does not agree yet.
    pub fn meet(&self, state: u16, met: GuardDelays) {
        if met != GuardDelays::NOTHING {
            self.at(state).met.fetch_or(met.0, Ordering::Relaxed);
        }
    }

    /// What guards met so far.
    #[inline]
    pub fn met(&self, state: u16) -> GuardDelays {
        GuardDelays(self.at(state).met.load(Ordering::Relaxed))
    }

    /// Whether all guards have agreed.
    #[inline]
    pub fn is_agreed(&self, state: u16) -> bool {
        self.at(state).missing.load(Ordering::Acquire) == 0
    }

    /// The owner reached a stage.
    pub fn set_stage(&self, state: u16, stage: Stage) {
        self.at(state).stage.store(stage as u8, Ordering::Release);
    }

    /// How far a shared request is.
    #[inline]
    pub fn stage(&self, state: u16) -> Stage {
        match self.at(state).stage.load(Ordering::Acquire) {
            0 => Stage::Open,
            1 => Stage::Ready,
            2 => Stage::Issued,
            _ => Stage::Finished,
        }
    }

    /// A loop uses this state no more. Free once the last has.
    #[inline]
    pub fn release(&self, state: u16) {
        self.at(state).users.fetch_sub(1, Ordering::Release);
    }

    /// A loop has ended: none of its requests is in flight any more, and those that it did not issue never will be.
    pub fn set_ended(&self, issuer: u16) {
        self.ended.fetch_or(1 << issuer, Ordering::Release);
    }

    /// Whether the owner of a request does nothing more with it.
    #[inline]
    pub fn is_over(&self, state: u16, owner: u8) -> bool {
        self.stage(state) == Stage::Finished || self.ended.load(Ordering::Acquire) & (1 << owner) != 0
    }

    #[inline]
    fn at(&self, state: u16) -> &State {
        &self.states[usize::from(state)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_used_again_once_every_loop_has_released_it() {
        let shared = SharedRequests::default();
        let taken: Vec<_> = (0..STATES as u32).map(|first| shared.open(first, 2).unwrap()).collect();
        assert!(taken.iter().copied().eq(0..STATES as u16));
        assert_eq!(shared.open(0, 1), None);
        shared.agree(7, GuardDelays::NOTHING);
        assert!(!shared.is_agreed(7) && !shared.met(7).has(GuardDelays::CONFLICT));
        shared.agree(7, GuardDelays::CONFLICT);
        assert!(
            shared.is_agreed(7) && shared.met(7).has(GuardDelays::CONFLICT) && !shared.met(7).has(GuardDelays::DEPTH)
        );
        shared.set_stage(7, Stage::Finished);
        (0..2).for_each(|_| shared.release(7));
        assert_eq!(shared.open(0, 1), None, "the owner still uses it");
        shared.release(7);
        assert_eq!(shared.open(100, 1), Some(7));
        assert_eq!((shared.stage(7), shared.is_agreed(7), shared.met(7)), (Stage::Open, false, GuardDelays::NOTHING));
    }
}
