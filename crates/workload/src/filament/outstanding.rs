//! Requests that filaments asked for, until they have completed.

use iosonar_trace::Nanos;

use super::{FilamentId, RequestSpec};

/// Identifies a request whose completion wakes a filament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u32);

/// A request that a filament asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedRequest {
    /// The time of the event at which it was asked for.
    pub at: Nanos,
    /// Its number in the run.
    pub request: u64,
    /// The stream of its filament.
    pub stream: u16,
    /// The request whose completion made the filament ask for this one.
    pub cause: Option<u64>,
    /// What the filament asked for.
    pub spec: RequestSpec,
    /// To be returned with its completion; `None` if that wakes no filament.
    pub ticket: Option<Ticket>,
}

/// Requests that have not completed.
#[derive(Debug)]
pub(super) struct Outstanding {
    all: Vec<Option<Origin>>,
    free: Vec<u32>,
    /// How many there may be at a time.
    most: usize,
    /// The number of the next request, and from it to the one after it.
    next: u64,
    step: u64,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new(), most: 0, next: 0, step: 1 }
    }
}

/// Who asked for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub filament: FilamentId,
    pub tag: u32,
    pub request: u64,
}

impl Outstanding {
    /// Takes every so many numbers, from this one on: runtimes that share a run have different ones.
    pub fn set_part(&mut self, part: u64, parts: u64) {
        (self.next, self.step) = (part, parts);
    }

    /// Adds this to the numbers to come.
    pub fn number_from(&mut self, first: u64) {
        self.next += first;
    }

    /// Allocates for what will be reserved later.
    pub fn make_room(&mut self, more: usize) {
        self.all.reserve_exact(more);
        self.free.reserve_exact(more);
    }

    pub fn reserve(&mut self, more: usize) {
        self.most += more;
        self.all.reserve(self.most - self.all.len());
        self.free.reserve(self.most - self.free.len());
    }

    /// The number of the next request.
    pub fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += self.step;
        number
    }

    pub fn add(&mut self, filament: FilamentId, tag: u32) -> (u64, Ticket) {
        let request = self.number();
        let origin = Some(Origin { filament, tag, request });
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() as u32 - 1
        });
        self.all[at as usize] = origin;
        (request, Ticket(at))
    }

    pub fn remove(&mut self, ticket: Ticket) -> Option<Origin> {
        let origin = self.all.get_mut(ticket.0 as usize)?.take()?;
        self.free.push(ticket.0);
        Some(origin)
    }

    pub fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
