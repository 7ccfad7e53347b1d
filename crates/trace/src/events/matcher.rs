//! Matches the events of a trace to requests.
//!
//! Requests are taken from the events of one action, by default the most frequent one among the first [`LOOK_AHEAD`] events.
//! Their other events are found by device, operation and position. An event covers the requests that tile its range, so that
//! merged and split requests are matched as well. Of several requests at one position, an issue belongs to the oldest that
//! was not issued, and a completion to the oldest that was. Requests are released in order of time, as soon as they are
//! complete. A request without a completion is released and counted when too many wait behind it.

use std::collections::VecDeque;

use crate::error::Result;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Op, Request};
use crate::rows::Source;
use crate::text::human;

use super::action_counts::ActionCounts;
use super::clock::Clock;
use super::event::{MAX_AGE, MAX_PENDING, is_flush};
use super::extents::{Covered, ExtentIndex, Position};
use super::flushes::Flushes;
use super::losses::Losses;
use super::orphans::Orphans;
use super::pending::{PendingRequest, State};
use super::queue_times::QueueTimes;
use super::splits::Splits;
use super::{Action, Event, EventSource};

/// Events that are read before the action is chosen from which requests are taken.
const LOOK_AHEAD: usize = 1 << 17;

/// Makes requests of events.
pub struct Matcher<S> {
    events: S,
    ahead: VecDeque<Event>,
    /// The action from whose events requests are taken; `None` if the trace has none of [`Action::CHOICES`].
    request_action: Option<Action>,
    /// Whether the trace has completions to wait for.
    has_completions: bool,
    /// Whether the trace has issues to wait for.
    has_issues: bool,
    pending: VecDeque<PendingRequest>,
    /// The number of the first request in `pending`.
    first: u64,
    extents: ExtentIndex,
    flushes: Flushes,
    queue_times: QueueTimes,
    splits: Splits,
    clock: Clock,
    losses: Losses,
    orphans: Orphans,
    action_counts: ActionCounts,
    /// Number of refused requests, which are left out.
    refused: u64,
    events_ended: bool,
}

impl<S: EventSource> Matcher<S> {
    /// Matches the events of a source, and reads the first of them. Requests are taken from `action`, if it is given.
    pub fn new(mut events: S, action: Option<Action>, metadata: &mut Metadata) -> Result<Self> {
        let mut ahead = VecDeque::new();
        let mut events_ended = false;
        while ahead.len() < LOOK_AHEAD {
            match events.next(metadata)? {
                Some(event) => ahead.push_back(event),
                None => {
                    events_ended = true;
                    break;
                }
            }
        }
        let count = |action: Action| ahead.iter().filter(|event| event.action == action).count();
        // Of equal counts the earliest action in a request's life.
        let most = Action::CHOICES.into_iter().rev().max_by_key(|&a| count(a)).filter(|&a| count(a) > 0);
        let request_action = action.or(most);
        let has_completions = count(Action::Complete) > 0;
        let has_issues = count(Action::Issue) > 0 && request_action != Some(Action::Issue);
        if let Some(chosen) = request_action {
            let shown: Vec<String> = Action::CHOICES
                .into_iter()
                .chain([Action::Complete])
                .map(|action| format!("{} {}", human::count(count(action) as u64), action.letter()))
                .collect();
            let why = if action.is_some() { "by --action" } else { "the most frequent" };
            metadata.warning(format!(
                "requests are taken from the events {} ({why}; the first {} events have {})",
                chosen.letter(),
                human::count(ahead.len() as u64),
                shown.join(", ")
            ));
            metadata.request_time = if chosen == Action::Issue { RequestTime::Issued } else { RequestTime::Queued };
        } else if has_completions {
            metadata.warning(format!(
                "the trace begins with {} only, from which no requests are taken: a trace needs earlier events, such as \
                 block_rq_issue (D) or block_bio_queue (Q)",
                human::counted(ahead.len() as u64, "completion")
            ));
        }
        // Events reported as lost so far may be missing anywhere in the events read so far.
        let lost = metadata.counts.lost_events;
        let losses = Losses::within(lost, ahead.len() as u64);
        Ok(Self {
            events,
            ahead,
            request_action,
            has_completions,
            has_issues,
            pending: VecDeque::new(),
            first: 0,
            extents: ExtentIndex::default(),
            flushes: Flushes::default(),
            queue_times: QueueTimes::default(),
            splits: Splits::default(),
            clock: Clock::default(),
            losses,
            orphans: Orphans::default(),
            action_counts: ActionCounts::default(),
            refused: 0,
            events_ended,
        })
    }

    fn next_event(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
        if let Some(event) = self.ahead.pop_front() {
            return Ok(Some(event));
        }
        if self.events_ended {
            return Ok(None);
        }
        let event = self.events.next(metadata)?;
        self.events_ended = event.is_none();
        Ok(event)
    }

    fn process(&mut self, event: &Event) {
        if self.splits.may_be_rest(event) && self.is_rest(event) {
            return;
        }
        let makes_request = Some(event.action) == self.request_action;
        match event.action {
            Action::Issue if makes_request => self.begin_issued(event),
            _ if makes_request => self.begin(event),
            Action::Issue => self.issue(event),
            Action::Queue if self.request_action == Some(Action::Issue) => self.queue_times.queue(event),
            Action::Requeue => self.requeue(event),
            Action::Complete => self.complete(event),
            Action::Refuse => self.refuse(event),
            Action::Split => self.splits.split(event),
            _ => {}
        }
    }

    fn is_rest(&self, event: &Event) -> bool {
        let (position, sectors) = (Position::of(event), event.sectors);
        self.extents.has_rest(position, sectors) || self.queue_times.has_rest(position, sectors)
    }

    fn next_number(&self) -> u64 {
        self.first + self.pending.len() as u64
    }

    /// The request with this number, if it was not released.
    fn pending(&mut self, number: u64) -> Option<&mut PendingRequest> {
        number.checked_sub(self.first).and_then(|index| self.pending.get_mut(index as usize))
    }

    /// Adds a request that is taken from an event before its issue.
    fn begin(&mut self, event: &Event) {
        let number = self.next_number();
        if is_flush(event) {
            self.flushes.queue(event.device, number);
        } else {
            self.extents.add(Position::of(event), event.sectors, number);
        }
        let (request, position, sectors) = (event.request(), Position::of(event), event.sectors.0);
        let state = State::InFlight;
        self.pending.push_back(PendingRequest {
            request,
            position,
            issued: None,
            to_issue: sectors,
            to_complete: sectors,
            state,
        });
    }

    /// Adds a request that is taken from its issue.
    fn begin_issued(&mut self, event: &Event) {
        let (number, position) = (self.next_number(), Position::of(event));
        let queued_at = if is_flush(event) {
            self.flushes.issue_one(event.device, number);
            self.queue_times.issue_flush(event)
        } else {
            self.extents.add(position, event.sectors, number);
            self.extents.set_issued(position, number, true);
            self.queue_times.issue(event)
        };
        let request = Request { queued: queued_at.map(|queued_at| event.at - queued_at), ..event.request() };
        self.pending.push_back(PendingRequest {
            request,
            position,
            issued: Some(event.at),
            to_issue: 0,
            to_complete: event.sectors.0,
            state: State::InFlight,
        });
    }

    fn issue(&mut self, event: &Event) {
        if is_flush(event) {
            for number in self.flushes.issue_all(event.device, self.next_number()) {
                if let Some(pending) = self.pending(number) {
                    pending.issue(event.at);
                }
            }
            return;
        }
        let (first, all) = (self.first, &mut self.pending);
        let mut is_known = false;
        self.extents.cover(Position::of(event), event.sectors, false, |number, sectors| {
            is_known = true;
            let Some(pending) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            pending.issue(event.at);
            pending.to_issue = pending.to_issue.saturating_sub(sectors);
            if pending.to_issue == 0 { Covered::Issued } else { Covered::Unchanged }
        });
        if !is_known {
            self.orphans.issue(event);
        }
    }

    /// Undoes the issue of a request.
    fn requeue(&mut self, event: &Event) {
        let drops = self.request_action == Some(Action::Issue);
        if is_flush(event) {
            self.requeue_flush(event, drops);
            return;
        }
        let (first, all, queue_times) = (self.first, &mut self.pending, &mut self.queue_times);
        self.extents.cover(Position::of(event), event.sectors, true, |number, sectors| {
            let Some(pending) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            if drops {
                pending.requeue(event, queue_times);
                return Covered::Remove;
            }
            pending.to_issue = (pending.to_issue + sectors).min(pending.request.sectors.0);
            if pending.to_issue == pending.request.sectors.0 {
                (pending.issued, pending.request.queued) = (None, None);
            }
            Covered::Requeued
        });
    }

    fn requeue_flush(&mut self, event: &Event, drops: bool) {
        let numbers = self.flushes.requeue(event.device, drops);
        for number in numbers {
            let Some(pending) = number.checked_sub(self.first).and_then(|i| self.pending.get_mut(i as usize)) else {
                continue;
            };
            if drops {
                pending.requeue(event, &mut self.queue_times);
            } else {
                (pending.issued, pending.request.queued) = (None, None);
            }
        }
    }

    fn complete(&mut self, event: &Event) {
        if is_flush(event) {
            for number in self.flushes.complete(event.device, self.losses.before()) {
                if let Some(pending) = self.pending(number) {
                    pending.complete(event.at);
                }
            }
            return;
        }
        if event.is_append {
            let number = self.extents.remove_append(Position::of(event), event.sectors);
            match number.and_then(|number| self.pending(number)) {
                Some(pending) => {
                    pending.request.sector = event.sector;
                    pending.complete(event.at);
                }
                None => self.orphans.complete(event),
            }
            return;
        }
        // Near lost events, the completions of older requests with the same extent are assumed to be lost.
        for number in self.extents.remove_older(Position::of(event), event.sectors, self.losses.before()) {
            if let Some(pending) = self.pending(number) {
                pending.state = State::Lost;
            }
        }
        let (first, all) = (self.first, &mut self.pending);
        let mut is_known = false;
        self.extents.cover(Position::of(event), event.sectors, true, |number, sectors| {
            is_known = true;
            let Some(pending) = number.checked_sub(first).and_then(|i| all.get_mut(i as usize)) else {
                return Covered::Remove;
            };
            pending.to_complete = pending.to_complete.saturating_sub(sectors);
            if pending.to_complete > 0 {
                return Covered::Unchanged;
            }
            pending.complete(event.at);
            Covered::Remove
        });
        if !is_known {
            self.orphans.complete(event);
        }
    }

    /// Removes a request that was refused because it would block: the next try is the request. An issued request that the
    /// device failed with the same error completes.
    fn refuse(&mut self, event: &Event) {
        let (position, sectors) = (Position::of(event), event.sectors);
        match self.request_action {
            Some(Action::Queue) => {
                if let Some(number) = self.extents.refuse(position, sectors) {
                    if let Some(pending) = self.pending(number) {
                        pending.state = State::Refused;
                    }
                    self.refused += 1;
                    return;
                }
            }
            Some(Action::Issue) if self.queue_times.refuse(position, sectors) => return,
            _ => {}
        }
        self.complete(event);
    }

    fn add_warnings(&mut self, metadata: &mut Metadata) {
        if let Some(taken) = self.request_action {
            self.orphans.conclude(|device| self.action_counts.lacks(device, taken), metadata);
            self.action_counts.warning_missing(taken, metadata);
        }
        let refused = std::mem::take(&mut self.refused);
        if refused > 0 {
            metadata.warning(format!(
                "left out, requests that were refused because they would block, and were queued again: {}",
                human::count(refused)
            ));
        }
    }

    /// Removes and returns the first request, if it has no further events.
    fn release(&mut self, metadata: &mut Metadata) -> Option<Request> {
        loop {
            let front = self.pending.front()?;
            let is_overdue = self.events_ended && self.ahead.is_empty()
                || self.pending.len() > MAX_PENDING
                || self.clock.now() - front.request.at > MAX_AGE;
            let is_awaited = self.has_completions || self.has_issues && front.issued.is_none();
            if is_awaited && front.state == State::InFlight && !is_overdue {
                return None;
            }
            if front.state == State::InFlight {
                let request = &front.request;
                if request.op == Op::Flush && request.sectors.0 == 0 {
                    self.flushes.remove(request.device, self.first);
                } else {
                    self.extents.remove(front.position, self.first);
                }
            }
            metadata.counts.unmatched +=
                u64::from(self.has_completions && matches!(front.state, State::InFlight | State::Lost));
            self.first += 1;
            let front = self.pending.pop_front()?;
            if !matches!(front.state, State::Requeued | State::Refused) {
                self.orphans.latency(front.request.latency.unwrap_or_default());
                return Some(front.request);
            }
        }
    }
}

impl<S: EventSource> Source for Matcher<S> {
    fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Request>> {
        loop {
            if let Some(request) = self.release(metadata) {
                return Ok(Some(request));
            }
            match self.next_event(metadata)? {
                Some(event) => {
                    self.clock.advance(event.at);
                    self.orphans.begin(event.at);
                    self.losses.check(metadata, self.next_number());
                    self.action_counts.count(&event);
                    self.process(&event);
                }
                None if self.pending.is_empty() => {
                    self.add_warnings(metadata);
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
