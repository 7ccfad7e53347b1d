//! What in a trace of events belongs together.
//!
//! A request is taken from one kind of event, by default the most frequent among the first [`LOOK_AHEAD`] events. Its
//! other events are found by device, direction and place: an event covers the requests that tile its range, so that
//! what was merged or split on the way is matched as well. Of several in flight at one place, an issue is that of the
//! oldest that was not issued, and a completion that of the oldest that was. Requests leave in the order of time, as soon
//! as they are complete; those whose completion does not come are let go when too many wait behind them, and counted.

use std::collections::VecDeque;

use crate::error::Result;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Op, Request};
use crate::rows::Source;
use crate::text::human;

use super::asked::Asked;
use super::by_device::ByDevice;
use super::event::{MAX_AGE, MAX_WAITING, is_flush};
use super::flushes::Flushes;
use super::losses::Losses;
use super::now::Now;
use super::open::{Covered, Open, Place};
use super::splits::Splits;
use super::waiting::{State, Waiting};
use super::{Action, Event, EventSource};

/// Events that are read before it is decided which kind a request is taken from.
const LOOK_AHEAD: usize = 1 << 17;

/// Makes requests of events.
pub struct Matcher<S> {
    events: S,
    ahead: VecDeque<Event>,
    taken_from: Option<Action>,
    /// Whether there are completions to wait for.
    completes: bool,
    /// Whether there are issues to wait for.
    is_issued: bool,
    waiting: VecDeque<Waiting>,
    /// The number of the first in `waiting`.
    first: u64,
    open: Open,
    flushes: Flushes,
    asked: Asked,
    splits: Splits,
    now: Now,
    losses: Losses,
    by_device: ByDevice,
    /// Requests that were refused, and are not handed out.
    refused: u64,
    events_ended: bool,
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
        let is_issued = count(Action::Issue) > 0 && taken_from != Some(Action::Issue);
        if let Some(taken) = taken_from {
            let shown: Vec<String> = Action::CHOICES
                .into_iter()
                .chain([Action::Complete])
                .map(|action| format!("{} {}", human::count(count(action) as u64), action.letter()))
                .collect();
            let why = if action.is_some() { "as asked" } else { "the most frequent" };
            about.notice(format!(
                "requests are taken from the events {} ({why}; the first {} events have {})",
                taken.letter(),
                human::count(ahead.len() as u64),
                shown.join(", ")
            ));
            about.request_time = if taken == Action::Issue { RequestTime::Issued } else { RequestTime::Queued };
        } else if completes {
            about.notice(format!(
                "the first {} events are only completions, and no request is taken from those: a trace needs the events \
                 that come before, as block_rq_issue (D) or block_bio_queue (Q)",
                human::count(ahead.len() as u64)
            ));
        }
        // What was lost so far may have been lost anywhere in what was read so far.
        let lost = about.counts.lost_events;
        let losses = Losses::told_within(lost, ahead.len() as u64);
        Ok(Self {
            events,
            ahead,
            taken_from,
            completes,
            is_issued,
            waiting: VecDeque::new(),
            first: 0,
            open: Open::default(),
            flushes: Flushes::default(),
            asked: Asked::default(),
            splits: Splits::default(),
            now: Now::default(),
            losses,
            by_device: ByDevice::default(),
            refused: 0,
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

    fn take(&mut self, event: &Event) {
        if self.splits.may_be_rest(event) && self.is_rest(event) {
            return;
        }
        let is_taken = Some(event.action) == self.taken_from;
        match event.action {
            Action::Issue if is_taken => self.begin_issued(event),
            _ if is_taken => self.begin(event),
            Action::Issue => self.issue(event),
            Action::Queue if self.taken_from == Some(Action::Issue) => self.asked.ask(event),
            Action::Requeue => self.take_back(event),
            Action::Complete => self.complete(event),
            Action::Refuse => self.refuse(event),
            Action::Split => self.splits.split(event),
            _ => {}
        }
    }

    fn is_rest(&self, event: &Event) -> bool {
        let (place, sectors) = (Place::of(event), event.sectors);
        self.open.has_rest(place, sectors) || self.asked.has_rest(place, sectors)
    }

    fn next_number(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// A request of that number, if it has not left.
    fn waiting(&mut self, number: u64) -> Option<&mut Waiting> {
        number.checked_sub(self.first).and_then(|index| self.waiting.get_mut(index as usize))
    }

    /// A request that is taken from what happens before its issue.
    fn begin(&mut self, event: &Event) {
        let number = self.next_number();
        if is_flush(event) {
            self.flushes.ask(event.device, number);
        } else {
            self.open.add(Place::of(event), event.sectors, number);
        }
        let (request, place, sectors) = (event.request(), Place::of(event), event.sectors.0);
        let state = State::InFlight;
        self.waiting.push_back(Waiting {
            request,
            place,
            issued: None,
            to_issue: sectors,
            to_complete: sectors,
            state,
        });
    }

    /// A request that is taken from its issue.
    fn begin_issued(&mut self, event: &Event) {
        let (number, place) = (self.next_number(), Place::of(event));
        let asked = if is_flush(event) {
            self.flushes.issue_one(event.device, number);
            self.asked.flush_issued(event)
        } else {
            self.open.add(place, event.sectors, number);
            self.open.mark(place, number, true);
            self.asked.issued(event)
        };
        let request = Request { queued: asked.map(|asked| event.at - asked), ..event.request() };
        self.waiting.push_back(Waiting {
            request,
            place,
            issued: Some(event.at),
            to_issue: 0,
            to_complete: event.sectors.0,
            state: State::InFlight,
        });
    }

    fn issue(&mut self, event: &Event) {
        if is_flush(event) {
            for number in self.flushes.issue_all(event.device, self.next_number()) {
                if let Some(waiting) = self.waiting(number) {
                    waiting.issue(event.at);
                }
            }
            return;
        }
        let (first, all) = (self.first, &mut self.waiting);
        self.open.cover(Place::of(event), event.sectors, false, |number, sectors| {
            let Some(waiting) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            waiting.issue(event.at);
            waiting.to_issue = waiting.to_issue.saturating_sub(sectors);
            if waiting.to_issue == 0 { Covered::Issued } else { Covered::Kept }
        });
    }

    /// The device could not take it: all is as before its issue.
    fn take_back(&mut self, event: &Event) {
        let drops = self.taken_from == Some(Action::Issue);
        if is_flush(event) {
            self.take_flush_back(event, drops);
            return;
        }
        let (first, all, asked) = (self.first, &mut self.waiting, &mut self.asked);
        self.open.cover(Place::of(event), event.sectors, true, |number, sectors| {
            let Some(waiting) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            if drops {
                waiting.drop_taken_back(event, asked);
                return Covered::Remove;
            }
            waiting.to_issue = (waiting.to_issue + sectors).min(waiting.request.sectors.0);
            if waiting.to_issue == waiting.request.sectors.0 {
                (waiting.issued, waiting.request.queued) = (None, None);
            }
            Covered::TakenBack
        });
    }

    fn take_flush_back(&mut self, event: &Event, drops: bool) {
        let numbers = self.flushes.take_back(event.device, drops);
        for number in numbers {
            let Some(waiting) = number.checked_sub(self.first).and_then(|i| self.waiting.get_mut(i as usize)) else {
                continue;
            };
            if drops {
                waiting.drop_taken_back(event, &mut self.asked);
            } else {
                (waiting.issued, waiting.request.queued) = (None, None);
            }
        }
    }

    fn complete(&mut self, event: &Event) {
        if is_flush(event) {
            for number in self.flushes.complete(event.device, self.losses.before()) {
                if let Some(waiting) = self.waiting(number) {
                    waiting.complete(event.at);
                }
            }
            return;
        }
        if event.is_append {
            let number = self.open.append(Place::of(event), event.sectors);
            if let Some(waiting) = number.and_then(|number| self.waiting(number)) {
                waiting.request.sector = event.sector;
                waiting.complete(event.at);
            }
            return;
        }
        // Where completions were lost, an older one of just this place waits in vain.
        for number in self.open.older_twins(Place::of(event), event.sectors, self.losses.before()) {
            if let Some(waiting) = self.waiting(number) {
                waiting.state = State::Lost;
            }
        }
        let (first, all) = (self.first, &mut self.waiting);
        self.open.cover(Place::of(event), event.sectors, true, |number, sectors| {
            let Some(waiting) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            waiting.to_complete = waiting.to_complete.saturating_sub(sectors);
            if waiting.to_complete > 0 {
                return Covered::Kept;
            }
            waiting.complete(event.at);
            Covered::Remove
        });
    }

    /// It would have had to wait, and whoever asked asks again: that is the request. What the device failed so is one.
    fn refuse(&mut self, event: &Event) {
        let (place, sectors) = (Place::of(event), event.sectors);
        match self.taken_from {
            Some(Action::Queue) => {
                if let Some(number) = self.open.refuse(place, sectors) {
                    if let Some(waiting) = self.waiting(number) {
                        waiting.state = State::Refused;
                    }
                    self.refused += 1;
                    return;
                }
            }
            Some(Action::Issue) if self.asked.refuse(place, sectors) => return,
            _ => {}
        }
        self.complete(event);
    }

    fn tell(&mut self, about: &mut Metadata) {
        if let Some(taken) = self.taken_from {
            self.by_device.tell(taken, about);
        }
        let refused = std::mem::take(&mut self.refused);
        if refused > 0 {
            about.notice(format!(
                "left out, requests that were refused as they would have had to wait, and are asked for again: {}",
                human::count(refused)
            ));
        }
    }

    /// The first request, if nothing more is to be learnt of it.
    fn release(&mut self, about: &mut Metadata) -> Option<Request> {
        loop {
            let front = self.waiting.front()?;
            let given_up = self.events_ended && self.ahead.is_empty()
                || self.waiting.len() > MAX_WAITING
                || self.now.is() - front.request.at > MAX_AGE;
            let is_awaited = self.completes || self.is_issued && front.issued.is_none();
            if is_awaited && front.state == State::InFlight && !given_up {
                return None;
            }
            if front.state == State::InFlight {
                let request = &front.request;
                if request.op == Op::Flush && request.sectors.0 == 0 {
                    self.flushes.forget(request.device, self.first);
                } else {
                    self.open.forget(front.place, self.first);
                }
            }
            about.counts.unmatched += u64::from(self.completes && matches!(front.state, State::InFlight | State::Lost));
            self.first += 1;
            let front = self.waiting.pop_front()?;
            if !matches!(front.state, State::TakenBack | State::Refused) {
                return Some(front.request);
            }
        }
    }
}

impl<S: EventSource> Source for Matcher<S> {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>> {
        loop {
            if let Some(request) = self.release(about) {
                return Ok(Some(request));
            }
            match self.next_event(about)? {
                Some(event) => {
                    self.now.see(event.at);
                    self.losses.look(about, self.next_number());
                    self.by_device.count(&event);
                    self.take(&event);
                }
                None if self.waiting.is_empty() => {
                    self.tell(about);
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    fn progress(&self) -> Option<f64> {
        self.events.progress()
    }
}
