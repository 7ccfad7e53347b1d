//! Requests become events again, for the formats that are made of events: what is known of them, and nothing else. When a
//! request that was taken from its issue was asked for stands in its queueing time; without that it gets no `Q`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::events::Action;
use crate::model::metadata::RequestTime;
use crate::model::request::Request;

/// The events of the requests that were taken, in the order of time: asked for, given to the device, completed.
pub struct Unfolded {
    events: BinaryHeap<Reverse<Pending>>,
    taken: u64,
    request_time: RequestTime,
    /// The time of the last event that was handed out.
    last: u64,
    /// Requests that were asked for before what could be written.
    clipped: u64,
    never_asked: u64,
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

/// Events that are held back where requests were asked for before their time.
const HELD: usize = 1 << 16;

impl Unfolded {
    /// Of requests with that time.
    pub fn new(request_time: RequestTime) -> Self {
        Self { events: BinaryHeap::new(), taken: 0, request_time, last: 0, clipped: 0, never_asked: 0 }
    }

    /// Takes a request that begins at that time, in nanoseconds.
    pub fn push(&mut self, at: u64, request: &Request) {
        let span = |time: Option<crate::Nanos>| time.and_then(|t| u64::try_from(t.0).ok());
        let queued = span(request.queued);
        let (asked, issued) = match (self.request_time, queued) {
            (RequestTime::Queued, _) => (Some(at), queued.map(|queued| at.saturating_add(queued))),
            (RequestTime::Issued, None) => (None, Some(at)),
            (RequestTime::Issued, Some(queued)) => {
                // Nothing is before the zero of time, nor before what was written already.
                let asked = at.saturating_sub(queued).max(self.last.min(at));
                self.clipped += u64::from(asked.saturating_add(queued) > at);
                (Some(asked), Some(at))
            }
        };
        let mut add = |at, action| {
            self.events.push(Reverse(Pending { at, number: self.taken, action, request: *request }));
        };
        match asked {
            Some(asked) => add(asked, Action::Queue),
            None => self.never_asked += 1,
        }
        if let Some(issued) = issued {
            add(issued, Action::Issue);
        }
        if let Some(latency) = span(request.latency) {
            add(issued.unwrap_or(at).saturating_add(latency), Action::Complete);
        }
        self.taken += 1;
    }

    /// Requests of which it is not known when they were asked for.
    pub fn never_asked(&self) -> u64 {
        self.never_asked
    }

    /// Warnings: how many times did not fit the format, and how to read the times of the issue back.
    pub fn warnings(&self, format: &str) -> Vec<String> {
        let mut said = Vec::new();
        if self.clipped > 0 {
            said.push(format!(
                "the format {format} can't hold everything: {} requests were asked for before the zero of its times, or too \
                 long before their issue to be put in order; their Q is later than it was",
                self.clipped
            ));
        }
        // Where each has both, the reader takes the first.
        if self.request_time == RequestTime::Issued && self.never_asked < self.taken {
            said.push(format!("the times are those of the issue: read what was written as {format} with `--action D`"));
        }
        said
    }

    /// The next event that is not after that time; at the end of all requests, which is that of time, every one.
    pub fn before(&mut self, at: u64) -> Option<(u64, Action, Request)> {
        let held = if self.request_time == RequestTime::Issued && at < u64::MAX { HELD } else { 0 };
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

    fn unfolded(request_time: RequestTime, requests: &[(u64, Option<i64>, Option<i64>)]) -> Vec<(u64, char)> {
        let mut unfolded = Unfolded::new(request_time);
        let mut events = Vec::new();
        for &(at, queued, latency) in requests {
            let request = Request {
                queued: queued.map(Nanos),
                latency: latency.map(Nanos),
                ..Request::new(Nanos(at as i64), Op::Read, Sector(0), Sectors(8))
            };
            unfolded.push(at, &request);
            events.extend(std::iter::from_fn(|| unfolded.before(at)));
        }
        events.extend(std::iter::from_fn(|| unfolded.before(u64::MAX)));
        events.into_iter().map(|(at, action, _)| (at, action.letter())).collect()
    }

    #[test]
    fn the_queueing_time_is_behind_the_asking() {
        let events = unfolded(RequestTime::Queued, &[(10, Some(5), Some(30)), (12, None, Some(1))]);
        assert_eq!(events, [(10, 'Q'), (12, 'Q'), (13, 'C'), (15, 'D'), (45, 'C')]);
    }

    #[test]
    fn the_queueing_time_is_before_the_issue() {
        let requests = [(10, Some(5), Some(30)), (12, None, Some(1)), (13, Some(10), None), (14, Some(99), None)];
        let events = unfolded(RequestTime::Issued, &requests);
        let expected = [(0, 'Q'), (3, 'Q'), (5, 'Q'), (10, 'D'), (12, 'D'), (13, 'C'), (13, 'D'), (14, 'D'), (40, 'C')];
        assert_eq!(events, expected);
    }

    #[test]
    fn how_to_read_the_times_of_the_issue_is_told_where_it_is_needed() {
        let request = Request::new(Nanos(0), Op::Read, Sector(0), Sectors(8));
        let queued = Request { queued: Some(Nanos(5)), ..request };
        for (request_time, request, told) in
            [(RequestTime::Issued, queued, 1), (RequestTime::Issued, request, 0), (RequestTime::Queued, queued, 0)]
        {
            let mut unfolded = Unfolded::new(request_time);
            unfolded.push(15, &request);
            assert_eq!(unfolded.warnings("x").len(), told);
        }
    }

    #[test]
    fn times_before_the_first_are_told_of() {
        let request = Request { queued: Some(Nanos(15)), ..Request::new(Nanos(0), Op::Read, Sector(0), Sectors(8)) };
        let mut unfolded = Unfolded::new(RequestTime::Issued);
        unfolded.push(15, &request);
        assert_eq!(
            unfolded.warnings("x"),
            ["the times are those of the issue: read what was written as x with `--action D`"]
        );
        unfolded.push(14, &request);
        assert!(unfolded.warnings("x")[0].contains("1 requests were asked for before"), "{:?}", unfolded.warnings("x"));
    }

    #[test]
    fn time_never_goes_back() {
        let requests: Vec<_> =
            (0..100_000).map(|i| (i * 10, Some(if i == 99_000 { 900_000 } else { 3 }), None)).collect();
        let events = unfolded(RequestTime::Issued, &requests);
        assert_eq!(events.len(), 200_000);
        assert!(events.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
