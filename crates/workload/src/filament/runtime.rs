//! Holds filaments, and wakes each at its events.

use std::collections::VecDeque;

use iosonar_trace::{Nanos, Outcome};

use super::outstanding::{Origin, Outstanding, SubmittedRequest, Ticket};
use super::timers::{Due, Timers};
use super::{Completed, Event, Filament, FilamentContext, FilamentId, MAX_EVENTS, Overrun};

/// The most filaments that one call wakes: requests that are ready, and completions, must not wait for all others.
const MAX_WAKES: usize = 32;

/// Room for requests that are ready, as far as it is not known how many filaments ask at the same time.
const MAX_READY: usize = 1 << 16;

/// A filament and what it may ask for.
struct Entry {
    filament: Box<dyn Filament>,
    pending: u32,
    max_pending: u32,
    stream: u16,
    has_ended: bool,
}

/// Filaments and their pending events. It does not allocate once all filaments were added.
#[derive(Default)]
pub struct Runtime {
    filaments: Vec<Entry>,
    timers: Timers,
    ready: VecDeque<SubmittedRequest>,
    max_ready: usize,
    outstanding: Outstanding,
    overrun: Option<Overrun>,
    is_without_device: bool,
    is_endless: bool,
}

impl Runtime {
    /// Makes room for so many more filaments with so many pending events in all. Lists that grow by themselves have up to
    /// twice the size, and as much again while they move.
    pub fn make_room(&mut self, filaments: u64, events: u64) {
        self.filaments.reserve_exact(filaments as usize);
        self.timers.make_room(filaments.saturating_add(events) as usize);
        self.outstanding.make_room(events as usize);
    }

    /// This runtime is one of `parts` that share a run, from 0: their requests have different numbers.
    pub fn set_part(&mut self, part: usize, parts: usize) {
        self.outstanding.set_part(part as u64, parts as u64);
    }

    /// Adds a filament of a stream, which is woken at `start`.
    pub fn add(&mut self, filament: Box<dyn Filament>, stream: u16, start: Nanos) -> FilamentId {
        let id = self.add_asleep(filament, stream);
        self.timers.push(start, id, Due::Start);
        id
    }

    /// Adds a filament of a stream, which a message of another one wakes first.
    pub fn add_asleep(&mut self, filament: Box<dyn Filament>, stream: u16) -> FilamentId {
        let max_pending = filament.max_pending();
        let id = FilamentId(self.filaments.len() as u32);
        let room = max_pending as usize;
        // Its start is an event as well.
        self.timers.reserve(room + 1);
        self.outstanding.reserve(room);
        self.max_ready = (self.max_ready + room + MAX_EVENTS).min(MAX_READY);
        self.ready.reserve(self.max_ready - self.ready.len());
        self.filaments.push(Entry { filament, pending: 0, max_pending, stream, has_ended: false });
        id
    }

    /// Some of the filaments do not end by themselves.
    pub(crate) fn set_endless(&mut self) {
        self.is_endless = true;
    }

    pub(super) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// From now on no request completes.
    pub(super) fn leave_device(&mut self) {
        self.is_without_device = true;
    }

    /// How many filaments take part.
    pub fn filaments(&self) -> usize {
        self.filaments.len()
    }

    /// When the next event or request is due; `None` if nothing happens before a completion.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        match self.ready.front() {
            Some(first) => Some(first.at),
            None if self.overrun.is_some() => None,
            None => self.timers.first(),
        }
    }

    /// Wakes filaments whose events are due, some at a time, and returns a request that one of them asked for.
    pub fn next_due(&mut self, now: Nanos) -> Option<SubmittedRequest> {
        for _ in 0..MAX_WAKES {
            if let Some(submitted) = self.ready.pop_front() {
                return Some(submitted);
            }
            if self.overrun.is_some() {
                return None;
            }
            let (at, to, due, timer) = self.timers.pop_due(now)?;
            let event = match due {
                Due::Start => Event::Start,
                Due::Timer => {
                    self.forget(to);
                    Event::Timer(timer)
                }
                Due::Message { from, value } => {
                    self.forget(from);
                    Event::Message { from, value }
                }
            };
            self.wake(to, event, at, None);
        }
        None
    }

    /// Wakes the filament that asked for a request, which has completed or was left out.
    pub fn completed(&mut self, ticket: Ticket, outcome: Outcome, bytes: u64, now: Nanos) {
        let Some(Origin { filament, tag, request }) = self.outstanding.remove(ticket) else {
            debug_assert!(false, "{ticket:?} has completed before");
            return;
        };
        self.forget(filament);
        self.wake(filament, Event::Completed(Completed { tag, request, outcome, bytes }), now, Some(request));
    }

    /// Numbers the requests from here on, before the first of them.
    pub fn number_from(&mut self, first: u64) {
        self.outstanding.number_from(first);
    }

    /// The number of a request in the run that another runtime asked for.
    pub fn number(&mut self) -> u64 {
        self.outstanding.number()
    }

    /// Whether no event is pending and no request outstanding.
    pub fn is_done(&self) -> bool {
        self.overrun.is_some()
            || (self.ready.is_empty() && self.timers.first().is_none() && self.outstanding.count() == 0)
    }

    /// Requests whose completion wakes a filament, and has not come.
    pub fn outstanding(&self) -> usize {
        self.outstanding.count()
    }

    /// Why the program cannot go on.
    pub fn overrun(&self) -> Option<Overrun> {
        self.overrun.clone()
    }

    fn forget(&mut self, filament: FilamentId) {
        self.filaments[filament.0 as usize].pending -= 1;
    }

    fn wake(&mut self, id: FilamentId, event: Event, now: Nanos, cause: Option<u64>) {
        let filaments = self.filaments.len() as u32;
        let Entry { filament, pending, max_pending, stream, has_ended } = &mut self.filaments[id.0 as usize];
        if *has_ended || self.overrun.is_some() {
            return;
        }
        let mut context = FilamentContext {
            now,
            me: id,
            stream: *stream,
            cause,
            filaments,
            count: 0,
            pending,
            max_pending: *max_pending,
            timers: &mut self.timers,
            ready: &mut self.ready,
            outstanding: &mut self.outstanding,
            overrun: &mut self.overrun,
            has_ended,
            is_without_device: self.is_without_device,
        };
        filament.wake(event, &mut context);
    }
}
