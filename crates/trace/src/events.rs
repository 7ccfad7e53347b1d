//! Traces of events: several for each request (asked for, queued, given to the device, completed), from which requests
//! are made, with the times between them.
//!
//! A request is taken from one kind of event, by default the most frequent among the first [`LOOK_AHEAD`] events. Its
//! other events are found by device, direction and place: an event covers the requests that tile its range, so that
//! what was merged or split on the way is matched as well. Requests leave in the order of time, as soon as they are
//! complete; those whose completion does not come are let go when too many wait behind them, and counted.

use std::collections::VecDeque;

use crate::error::Result;
use crate::metadata::Metadata;
use crate::request::{Comm, DeviceId, Flags, Op, Request};
use crate::rows::Source;
use crate::units::{Nanos, Sector, Sectors};

mod ahead;
mod open;

pub use ahead::Ahead;
use open::{Covered, Open, Place};

/// Events that are read before it is decided which kind a request is taken from.
const LOOK_AHEAD: usize = 1 << 17;

/// Requests that may wait for the completion of the one in front of them.
const MAX_WAITING: usize = 1 << 18;

/// How long after a request its completion is waited for. No device takes that long: the kernel gives up before.
const MAX_AGE: Nanos = Nanos(300_000_000_000);

/// What happens to a request on its way, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// `Q`: asked for.
    Queue,
    /// `G`: a place in the queue was got for it.
    GetRequest,
    /// `I`: put into the scheduler's queue.
    Insert,
    /// `D`: given to the device's driver.
    Issue,
    /// `C`: completed.
    Complete,
}

impl Action {
    /// The actions that a request can be taken from.
    pub const CHOICES: [Self; 4] = [Self::Queue, Self::GetRequest, Self::Insert, Self::Issue];

    /// Its letter, as blktrace and blkparse have it.
    pub fn letter(self) -> char {
        ['Q', 'G', 'I', 'D', 'C'][self as usize]
    }

    /// The choice of that letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::CHOICES.into_iter().find(|action| action.letter() == letter.to_ascii_uppercase())
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What happened.
    pub action: Action,
    /// On which device.
    pub device: DeviceId,
    /// Where.
    pub sector: Sector,
    /// How long.
    pub sectors: Sectors,
    /// What the request does.
    pub op: Op,
    /// How it does that.
    pub flags: Flags,
    /// The process that caused the event.
    pub pid: Option<u32>,
    /// Its name.
    pub comm: Comm,
}

impl Event {
    fn place(&self) -> Place {
        Place::of(self.device, self.op, self.sector, self.sectors)
    }

    fn request(&self) -> Request {
        Request {
            at: self.at,
            device: self.device,
            sector: self.sector,
            sectors: self.sectors,
            op: self.op,
            flags: self.flags,
            latency: None,
            queued: None,
            pid: self.pid,
            comm: self.comm,
        }
    }
}

/// Hands out the events of a trace.
pub trait EventSource: Send {
    /// The next event.
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>>;

    /// How far it is through its files, from 0 to 1, where that can be said.
    fn progress(&self) -> Option<f64>;
}

/// Makes requests of events.
pub struct Matcher<S> {
    events: S,
    ahead: VecDeque<Event>,
    taken_from: Option<Action>,
    /// Whether there are completions to wait for.
    completes: bool,
    waiting: VecDeque<Waiting>,
    /// The number of the first in `waiting`.
    first: u64,
    open: Open,
    /// Where requests are taken from their issue: when they had been asked for.
    asked: Open,
    asked_at: VecDeque<(u64, Nanos, Place)>,
    asked_next: u64,
    newest: Nanos,
    events_ended: bool,
}

/// A request that was seen, and what has been found of it.
struct Waiting {
    request: Request,
    issued: Option<Nanos>,
    /// Sectors whose completion has not been seen.
    left: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Completed,
}

impl<S: EventSource> Matcher<S> {
    /// Of those events; reads the first of them.
    pub fn new(mut events: S, action: Option<Action>, about: &mut Metadata) -> Result<Self> {
        let mut ahead = VecDeque::new();
        let mut events_ended = false;
        while ahead.len() < LOOK_AHEAD {
            match events.next(about)? {
                Some(event) => ahead.push_back(event),
                None => {
                    events_ended = true;
                    break;
                }
            }
        }
        let count = |action: Action| ahead.iter().filter(|event| event.action == action).count();
        // The first of equals: the earliest in a request's life.
        let most = Action::CHOICES.into_iter().rev().max_by_key(|&a| count(a)).filter(|&a| count(a) > 0);
        let taken_from = action.or(most);
        let completes = count(Action::Complete) > 0;
        if let Some(taken) = taken_from {
            let shown: Vec<String> = Action::CHOICES
                .into_iter()
                .chain([Action::Complete])
                .map(|action| format!("{} {}", count(action), action.letter()))
                .collect();
            let why = if action.is_some() { "as asked" } else { "the most frequent" };
            about.notice(format!(
                "requests are taken from the events {} ({why}; the first {} events have {})",
                taken.letter(),
                ahead.len(),
                shown.join(", ")
            ));
        }
        Ok(Self {
            events,
            ahead,
            taken_from,
            completes,
            waiting: VecDeque::new(),
            first: 0,
            open: Open::default(),
            asked: Open::default(),
            asked_at: VecDeque::new(),
            asked_next: 0,
            newest: Nanos(i64::MIN),
            events_ended,
        })
    }

    fn next_event(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
        if let Some(event) = self.ahead.pop_front() {
            return Ok(Some(event));
        }
        if self.events_ended {
            return Ok(None);
        }
        let event = self.events.next(about)?;
        self.events_ended = event.is_none();
        Ok(event)
    }

    fn take(&mut self, event: Event) {
        self.newest = self.newest.max(event.at);
        if Some(event.action) == self.taken_from {
            self.begin(&event);
        }
        match event.action {
            Action::Issue => self.issue(&event),
            Action::Queue if self.taken_from == Some(Action::Issue) => self.ask(&event),
            Action::Complete => self.complete(&event),
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event) {
        let number = self.first + self.waiting.len() as u64;
        self.open.add(event.place(), event.sectors, number);
        self.waiting.push_back(Waiting {
            request: event.request(),
            issued: None,
            left: event.sectors.0,
            state: State::InFlight,
        });
    }

    /// Remembers when a request was asked for that will be taken from its issue.
    fn ask(&mut self, event: &Event) {
        self.asked.add(event.place(), event.sectors, self.asked_next);
        self.asked_at.push_back((self.asked_next, event.at, event.place()));
        self.asked_next += 1;
        if self.asked_at.len() > MAX_WAITING
            && let Some((number, _, place)) = self.asked_at.pop_front()
        {
            self.asked.forget(place, number);
        }
    }

    fn issue(&mut self, event: &Event) {
        if self.taken_from == Some(Action::Issue) {
            let first_asked = self.asked_at.front().map_or(0, |(number, ..)| *number);
            let mut asked: Option<Nanos> = None;
            self.asked.cover(event.place(), event.sectors, |number, _| {
                let at = number.checked_sub(first_asked).and_then(|i| self.asked_at.get(i as usize));
                if let Some(&(_, at, _)) = at {
                    asked = Some(asked.map_or(at, |earlier| earlier.min(at)));
                }
                Covered::Remove
            });
            if let (Some(asked), Some(last)) = (asked, self.waiting.back_mut()) {
                last.request.queued = Some(event.at - asked);
                last.issued = Some(event.at);
            }
            return;
        }
        let (first, waiting) = (self.first, &mut self.waiting);
        self.open.cover(event.place(), event.sectors, |number, _| {
            if let Some(waiting) = number.checked_sub(first).and_then(|i| waiting.get_mut(i as usize)) {
                waiting.issued.get_or_insert(event.at);
            }
            Covered::Keep
        });
    }

    fn complete(&mut self, event: &Event) {
        let (first, all) = (self.first, &mut self.waiting);
        self.open.cover(event.place(), event.sectors, |number, sectors| {
            let Some(waiting) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            waiting.left = waiting.left.saturating_sub(sectors);
            if waiting.left > 0 {
                return Covered::Keep;
            }
            let since = waiting.issued.unwrap_or(waiting.request.at);
            waiting.request.latency = Some(event.at - since);
            if let Some(issued) = waiting.issued.filter(|&issued| issued > waiting.request.at) {
                waiting.request.queued.get_or_insert(issued - waiting.request.at);
            }
            waiting.state = State::Completed;
            Covered::Remove
        });
    }

    /// The first request, if nothing more is to be learnt of it.
    fn release(&mut self, about: &mut Metadata) -> Option<Request> {
        let front = self.waiting.front()?;
        let given_up = self.events_ended && self.ahead.is_empty()
            || self.waiting.len() > MAX_WAITING
            || self.newest - front.request.at > MAX_AGE;
        if self.completes && front.state == State::InFlight && !given_up {
            return None;
        }
        if front.state == State::InFlight {
            let request = &front.request;
            let place = Place::of(request.device, request.op, request.sector, request.sectors);
            self.open.forget(place, self.first);
            about.counts.unmatched += u64::from(self.completes);
        }
        self.first += 1;
        self.waiting.pop_front().map(|waiting| waiting.request)
    }
}

impl<S: EventSource> Source for Matcher<S> {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>> {
        loop {
            if let Some(request) = self.release(about) {
                return Ok(Some(request));
            }
            match self.next_event(about)? {
                Some(event) => self.take(event),
                None if self.waiting.is_empty() => return Ok(None),
                None => {}
            }
        }
    }

    fn progress(&self) -> Option<f64> {
        self.events.progress()
    }
}

#[cfg(test)]
mod tests;
