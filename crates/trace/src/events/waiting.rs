//! A request that was seen, and what has been found of it.

use crate::model::request::Request;
use crate::model::units::Nanos;

use super::Event;
use super::asked::Asked;
use super::open::Place;

/// A request, which waits for the other events of its life.
pub struct Waiting {
    pub request: Request,
    /// Where its events are looked for.
    pub place: Place,
    pub issued: Option<Nanos>,
    /// Sectors that were not seen to be given to the device.
    pub to_issue: u64,
    /// Sectors whose completion has not been seen.
    pub to_complete: u64,
    pub state: State,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    InFlight,
    Completed,
    /// Its completion is among the events that were lost.
    Lost,
    /// The device did not take it; it is another request when it is given to the device again.
    TakenBack,
    /// It never came to the device; it is another request when it is asked for again.
    Refused,
}

impl Waiting {
    /// It, or a part of it, was given to the device.
    pub fn issue(&mut self, at: Nanos) {
        if self.issued.is_none() {
            self.issued = Some(at);
            self.request.queued = Some(at - self.request.at).filter(|queued| queued.0 >= 0);
        }
    }

    /// It will be another request when it is given to the device again, asked for when this one was.
    pub fn drop_taken_back(&mut self, event: &Event, asked: &mut Asked) {
        self.state = State::TakenBack;
        if let Some(queued) = self.request.queued {
            asked.ask(&Event { at: self.request.at - queued, ..*event });
        }
    }

    /// All of it was completed.
    pub fn complete(&mut self, at: Nanos) {
        self.request.latency = Some(at - self.issued.unwrap_or(self.request.at));
        self.state = State::Completed;
    }
}
