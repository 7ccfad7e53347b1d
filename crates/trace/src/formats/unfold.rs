//! Requests become events again, for the formats that are made of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::events::Action;
use crate::request::Request;

/// The events of the requests that were taken, in the order of time: asked for, given to the device, completed.
#[derive(Default)]
pub struct Unfolded {
    events: BinaryHeap<Reverse<Pending>>,
    taken: u64,
}

struct Pending {
    at: u64,
    number: u64,
    action: Action,
    request: Request,
}

impl Pending {
    fn key(&self) -> (u64, u64, Action) {
        (self.at, self.number, self.action)
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Events that may wait for their time: completions of a device that takes forever must not fill the memory.
const MAX_PENDING: usize = 1 << 20;

impl Unfolded {
    /// Takes a request that begins at that time, in nanoseconds.
    pub fn push(&mut self, at: u64, request: &Request) {
        let mut add = |at, action| {
            self.events.push(Reverse(Pending { at, number: self.taken, action, request: *request }));
        };
        add(at, Action::Queue);
        let span = |time: Option<crate::Nanos>| time.and_then(|t| u64::try_from(t.0).ok());
        let issued = span(request.queued).map(|queued| at.saturating_add(queued));
        if let Some(issued) = issued {
            add(issued, Action::Issue);
        }
        if let Some(latency) = span(request.latency) {
            add(issued.unwrap_or(at).saturating_add(latency), Action::Complete);
        }
        self.taken += 1;
    }

    /// The next event that is not after that time.
    pub fn before(&mut self, at: u64) -> Option<(u64, Action, Request)> {
        let due = self.events.peek().is_some_and(|Reverse(event)| event.at <= at || self.events.len() > MAX_PENDING);
        if !due {
            return None;
        }
        self.events.pop().map(|Reverse(event)| (event.at, event.action, event.request))
    }
}
