//! A request that waits for its further events.

use crate::model::request::Request;
use crate::model::units::Nanos;

use super::Event;
use super::extents::Position;
use super::queue_times::QueueTimes;

/// A request whose issue or completion has not been read yet.
pub struct PendingRequest {
    pub request: Request,
    /// The position of its events.
    pub position: Position,
    pub issued: Option<Nanos>,
    /// Sectors whose issue has not been read.
    pub to_issue: u64,
    /// Sectors whose completion has not been read.
    pub to_complete: u64,
    pub state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    InFlight,
    Completed,
    /// Its completion is among the lost events.
    Lost,
    /// The device requeued it. Its next issue is another request.
    Requeued,
    /// It was refused before it was issued. Its next try is another request.
    Refused,
}

impl PendingRequest {
    /// Notes the issue of the request or of a part of it.
    pub fn issue(&mut self, at: Nanos) {
        if self.issued.is_none() {
            self.issued = Some(at);
            self.request.queued = Some(at - self.request.at);
        }
    }

    /// Drops a requeued request. Its next issue becomes another request with the queue time of this one.
    pub fn requeue(&mut self, event: &Event, queue_times: &mut QueueTimes) {
        self.state = State::Requeued;
        if let Some(queued) = self.request.queued {
            queue_times.queue(&Event { at: self.request.at - queued, ..*event });
        }
    }

    /// Notes the completion of the whole request.
    pub fn complete(&mut self, at: Nanos) {
        self.request.latency = Some(at - self.issued.unwrap_or(self.request.at));
        self.state = State::Completed;
    }
}
