//! What a filament sees and asks for while it is awake.

use std::collections::VecDeque;

use iosonar_trace::Nanos;

use super::outstanding::{Outstanding, SubmittedRequest, Ticket};
use super::timers::{Due, TimerId, Timers};
use super::{FilamentId, MAX_EVENTS, Overrun, RequestSpec};

/// Takes what a filament asks for.
pub struct FilamentContext<'a> {
    pub(super) now: Nanos,
    pub(super) me: FilamentId,
    pub(super) stream: u16,
    /// The request whose completion woke it.
    pub(super) cause: Option<u64>,
    pub(super) filaments: u32,
    /// Events it asked for since it was woken.
    pub(super) count: usize,
    /// Pending events of the filament, and their limit.
    pub(super) pending: &'a mut u32,
    pub(super) max_pending: u32,
    pub(super) timers: &'a mut Timers,
    pub(super) ready: &'a mut VecDeque<SubmittedRequest>,
    pub(super) outstanding: &'a mut Outstanding,
    pub(super) overrun: &'a mut Option<Overrun>,
    pub(super) has_ended: &'a mut bool,
    pub(super) is_without_device: bool,
}

impl FilamentContext<'_> {
    /// The time of the event, since virtual zero.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// This filament.
    pub fn me(&self) -> FilamentId {
        self.me
    }

    /// Issues a request whose completion wakes no filament.
    pub fn issue(&mut self, spec: RequestSpec) {
        if self.count() {
            let request = self.outstanding.number();
            self.push(spec, request, None);
        }
    }

    /// Issues a request. Its completion wakes this filament.
    pub fn issue_and_wait(&mut self, spec: RequestSpec) {
        if self.admit() {
            let (request, ticket) = self.outstanding.add(self.me, spec.tag);
            self.push(spec, request, Some(ticket));
        }
    }

    /// Sets a timer, which wakes this filament at `at`.
    pub fn timer(&mut self, at: Nanos) -> Option<TimerId> {
        let is_ahead = self.check_time(at);
        (is_ahead && self.admit()).then(|| self.timers.push(at, self.me, Due::Timer))
    }

    /// Cancels a timer. Returns false if it has passed.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        let was_pending = self.timers.cancel(timer, self.me);
        *self.pending -= u32::from(was_pending);
        was_pending
    }

    /// Sends a message, which wakes another filament, or this one, at `at`.
    pub fn send(&mut self, to: FilamentId, at: Nanos, value: u64) {
        if to.0 >= self.filaments {
            self.overrun.get_or_insert(Overrun::Unknown(self.me, to));
        } else if self.check_time(at) && self.admit() {
            self.timers.push(at, to, Due::Message { from: self.me, value });
        }
    }

    /// Ends this filament: no event wakes it any more.
    pub fn end(&mut self) {
        *self.has_ended = true;
    }

    /// Whether a completion can wake this filament: there is a device, and room for the event.
    pub fn can_wait(&self) -> bool {
        !self.is_without_device && self.room() > 0
    }

    /// Events that this filament may still ask for, beside those that are pending.
    pub fn room(&self) -> u32 {
        self.max_pending - *self.pending
    }

    /// Ends the program, for this reason.
    pub fn fail(&mut self, why: String) {
        self.overrun.get_or_insert(Overrun::Failed(why));
    }

    fn check_time(&mut self, at: Nanos) -> bool {
        if at < self.now {
            self.overrun.get_or_insert(Overrun::Past(self.me, at));
        }
        at >= self.now
    }

    fn push(&mut self, spec: RequestSpec, request: u64, ticket: Option<Ticket>) {
        let (at, stream, cause) = (self.now, self.stream, self.cause);
        self.ready.push_back(SubmittedRequest { at, request, stream, cause, spec, ticket });
    }

    /// Counts an event. Returns false if it is one too many, which ends the program.
    fn count(&mut self) -> bool {
        self.count += 1;
        if self.count > MAX_EVENTS {
            self.overrun.get_or_insert(Overrun::Events(self.me));
        }
        self.overrun.is_none()
    }

    /// Counts a pending event. Returns false if it is one too many, which ends the program.
    fn admit(&mut self) -> bool {
        *self.pending += 1;
        if *self.pending > self.max_pending {
            self.overrun.get_or_insert(Overrun::Pending(self.me));
        }
        self.count()
    }
}
