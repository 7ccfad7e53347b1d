//! Turns requests back into events, for output formats of events. An event is written only if its time is known: a request
//! whose time is its issue has a `Q` only if it has a queueing time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::events::Action;
use crate::model::metadata::RequestTime;
use crate::model::request::Request;
use crate::text::human;

/// Queue, issue and completion events of requests, in time order.
pub struct RequestEvents {
    events: BinaryHeap<Reverse<Pending>>,
    /// Requests so far.
    requests: u64,
    request_time: RequestTime,
    /// The time of the last event that was taken out.
    last: u64,
    /// Requests whose `Q` is later than it was, because it would be before time zero or before `last`.
    clipped: u64,
    without_queue: u64,
    /// Events beyond the last time.
    too_far: u64,
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

/// The most events in memory. Completions after very long latencies must not fill it.
const MAX_PENDING: usize = 1 << 20;

/// Events held back if times are issue times, because the `Q` of a later request may be earlier.
const HELD_BACK: usize = 1 << 16;

impl RequestEvents {
    /// For requests with this kind of time.
    pub fn new(request_time: RequestTime) -> Self {
        Self { events: BinaryHeap::new(), requests: 0, request_time, last: 0, clipped: 0, without_queue: 0, too_far: 0 }
    }

    /// Adds a request at time `at`, in nanoseconds.
    pub fn push(&mut self, at: u64, request: &Request) {
        let span = |time: Option<crate::Nanos>| time.and_then(|t| u64::try_from(t.0).ok());
        let queued = span(request.queued);
        let (queued_at, issued_at) = match (self.request_time, queued) {
            (RequestTime::Queued, _) => (Some(at), queued.map(|queued| at.saturating_add(queued))),
            (RequestTime::Issued, None) => (None, Some(at)),
            (RequestTime::Issued, Some(queued)) => {
                // Neither before time zero nor before the events already taken out.
                let queued_at = at.saturating_sub(queued).max(self.last.min(at));
                self.clipped += u64::from(queued_at.saturating_add(queued) > at);
                (Some(queued_at), Some(at))
            }
        };
        let mut add = |at: u64, action| {
            // A reader would refuse it.
            if at >= i64::MAX.cast_unsigned() {
                self.too_far += 1;
                return;
            }
            self.events.push(Reverse(Pending { at, number: self.requests, action, request: *request }));
        };
        match queued_at {
            Some(queued_at) => add(queued_at, Action::Queue),
            None => self.without_queue += 1,
        }
        if let Some(issued_at) = issued_at {
            add(issued_at, Action::Issue);
        }
        if let Some(latency) = span(request.latency) {
            add(issued_at.unwrap_or(at).saturating_add(latency), Action::Complete);
        }
        self.requests += 1;
    }

    /// The number of requests without a `Q`, because the time when they were queued is unknown.
    pub fn without_queue(&self) -> u64 {
        self.without_queue
    }

    /// Sentences about times that were changed, and about how to read issue times from the output.
    pub fn warnings(&self, format: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.clipped > 0 {
            warnings.push(format!(
                "the format {format} cannot hold everything: {}",
                human::agreed(
                    self.clipped,
                    "requests were queued before time zero, or too long before their issue to be sorted; Q is written later \
                     than it was"
                )
            ));
        }
        if self.too_far > 0 {
            let what = "events were left out because their time is 292 years or more from zero";
            warnings.push(format!("the format {format} cannot hold everything: {}", human::agreed(self.too_far, what)));
        }
        // If all requests had both events, a reader would take Q.
        if self.request_time == RequestTime::Issued && self.without_queue < self.requests {
            warnings.push(format!("the times are issue times: read the {format} output with `--action D`"));
        }
        warnings
    }

    /// Takes out the next event up to time `at`. At the end, `u64::MAX` takes out all events.
    pub fn pop_until(&mut self, at: u64) -> Option<(u64, Action, Request)> {
        let held = if self.request_time == RequestTime::Issued && at < u64::MAX { HELD_BACK } else { 0 };
        let due = self.events.len() > held
            && self.events.peek().is_some_and(|Reverse(event)| event.at <= at || self.events.len() > MAX_PENDING);
        if !due {
            return None;
        }
        let Reverse(event) = self.events.pop()?;
        self.last = event.at;
        Some((event.at, event.action, event.request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::Op;
    use crate::model::units::{Nanos, Sector, Sectors};

    fn events(request_time: RequestTime, requests: &[(u64, Option<i64>, Option<i64>)]) -> Vec<(u64, char)> {
        let mut pending = RequestEvents::new(request_time);
        let mut events = Vec::new();
        for &(at, queued, latency) in requests {
            let request = Request {
                queued: queued.map(Nanos),
                latency: latency.map(Nanos),
                ..Request::new(Nanos(at as i64), Op::Read, Sector(0), Sectors(8))
            };
            pending.push(at, &request);
            events.extend(std::iter::from_fn(|| pending.pop_until(at)));
        }
        events.extend(std::iter::from_fn(|| pending.pop_until(u64::MAX)));
        events.into_iter().map(|(at, action, _)| (at, action.letter())).collect()
    }

    #[test]
    fn the_issue_is_the_queueing_time_after_the_request() {
        let events = events(RequestTime::Queued, &[(10, Some(5), Some(30)), (12, None, Some(1))]);
        assert_eq!(events, [(10, 'Q'), (12, 'Q'), (13, 'C'), (15, 'D'), (45, 'C')]);
    }

    #[test]
    fn the_queue_event_is_the_queueing_time_before_an_issue() {
        let requests = [(10, Some(5), Some(30)), (12, None, Some(1)), (13, Some(10), None), (14, Some(99), None)];
        let events = events(RequestTime::Issued, &requests);
        let expected = [(0, 'Q'), (3, 'Q'), (5, 'Q'), (10, 'D'), (12, 'D'), (13, 'C'), (13, 'D'), (14, 'D'), (40, 'C')];
        assert_eq!(events, expected);
    }

    #[test]
    fn output_with_q_and_issue_times_needs_action_d() {
        let request = Request::new(Nanos(0), Op::Read, Sector(0), Sectors(8));
        let queued = Request { queued: Some(Nanos(5)), ..request };
        for (request_time, request, warnings) in
            [(RequestTime::Issued, queued, 1), (RequestTime::Issued, request, 0), (RequestTime::Queued, queued, 0)]
        {
            let mut events = RequestEvents::new(request_time);
            events.push(15, &request);
            assert_eq!(events.warnings("x").len(), warnings);
        }
    }

    #[test]
    fn queue_events_before_time_zero_are_reported() {
        let request = Request { queued: Some(Nanos(15)), ..Request::new(Nanos(0), Op::Read, Sector(0), Sectors(8)) };
        let mut events = RequestEvents::new(RequestTime::Issued);
        events.push(15, &request);
        assert_eq!(events.warnings("x"), ["the times are issue times: read the x output with `--action D`"]);
        events.push(14, &request);
        assert!(events.warnings("x")[0].contains("1 request was queued before"), "{:?}", events.warnings("x"));
    }

    #[test]
    fn events_are_in_time_order() {
        let requests: Vec<_> =
            (0..100_000).map(|i| (i * 10, Some(if i == 99_000 { 900_000 } else { 3 }), None)).collect();
        let events = events(RequestTime::Issued, &requests);
        assert_eq!(events.len(), 200_000);
        assert!(events.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
