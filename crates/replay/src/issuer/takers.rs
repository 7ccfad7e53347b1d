//! Who takes the requests of the load in a closed loop: clients, or requests that wait for others.

use iosonar_trace::Nanos;
use rtrb::Consumer;

use super::closed::{Clients, Think};
use super::dependents::Dependents;
use crate::io::PreparedIo;

/// Who takes requests of the load.
pub enum Takers {
    /// Clients, each the next one.
    Clients(Clients),
    /// Requests wait for others.
    Dependents(Box<Dependents>),
}

impl Takers {
    /// For a loop with this many slots.
    pub fn new(think: Think, clients: usize, slots: usize) -> Self {
        match think {
            Think::Inferred => Self::Dependents(Box::new(Dependents::new(clients))),
            _ => Self::Clients(Clients::new(think, clients, slots)),
        }
    }

    /// Returns the next request that is due, after taking requests of the load.
    #[inline]
    pub fn next_due(&mut self, input: &mut Consumer<PreparedIo>, now: Nanos) -> Option<PreparedIo> {
        match self {
            Self::Clients(clients) => clients.next_due(input, now),
            Self::Dependents(dependents) => dependents.next_due(input, now),
        }
    }

    /// Records the time in the load of the request in a slot.
    #[inline]
    pub fn assign(&mut self, slot: u32, scheduled: Nanos) {
        if let Self::Clients(clients) = self {
            clients.assign(slot, scheduled);
        }
    }

    /// The request of this number in a slot has completed.
    #[inline]
    pub fn completed(&mut self, slot: u32, number: u64, now: Nanos) {
        match self {
            Self::Clients(clients) => clients.completed(slot, now),
            Self::Dependents(dependents) => dependents.ended(number, now),
        }
    }

    /// The request of this number was left out.
    #[inline]
    pub fn skipped(&mut self, scheduled: Nanos, number: u64, now: Nanos) {
        match self {
            Self::Clients(clients) => clients.skipped(scheduled, now),
            Self::Dependents(dependents) => dependents.ended(number, now),
        }
    }

    /// When the next think time ends.
    pub fn next_deadline(&self) -> Option<Nanos> {
        match self {
            Self::Clients(clients) => clients.next_deadline(),
            Self::Dependents(dependents) => dependents.next_deadline(),
        }
    }

    /// Whether a request of the load can be taken.
    pub fn has_free(&self) -> bool {
        match self {
            Self::Clients(clients) => clients.has_free(),
            Self::Dependents(dependents) => dependents.has_free(),
        }
    }
}
