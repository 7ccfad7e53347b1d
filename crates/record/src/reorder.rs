//! Sorts rows by time. Events arrive from several processors slightly out of order, and completions arrive much later.
//!
//! **The rule.** A row is released when
//! 1. its request has completed, or was abandoned, and
//! 2. the ring was found empty more than [`REORDER_WINDOW`] after the row's time, and
//! 3. every earlier row has been released.
//!
//! Why 2 is enough: the eBPF program reads an event's time right before it reserves room in the ring, on the same
//! processor with preemption off. An event older than the window that is not yet in the ring would need a processor
//! that was stopped for that long between the two steps. A hypervisor can do even that. The late row then gets the time
//! of the row released last, and is counted ([`ReorderBuffer::late`]).
//!
//! A request that hangs would hold back all later rows: when [`MAX_ROWS`] rows wait, the oldest is abandoned.

use std::collections::BTreeMap;

use iosonar_trace::{Nanos, Request};

/// How long after its time a row waits for earlier ones.
pub const REORDER_WINDOW: Nanos = Nanos(250_000_000);

/// The most rows that may wait: some 100 MB.
pub const MAX_ROWS: usize = 500_000;

/// Identifies a waiting row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    at: Nanos,
    /// Keeps rows of equal time in order of arrival.
    sequence: u64,
}

/// Rows that wait for their completion, or for earlier rows.
pub struct ReorderBuffer {
    rows: BTreeMap<Key, Row>,
    limit: usize,
    inserted: u64,
    /// No row up to this time can arrive any more.
    watermark: Nanos,
    last_released: Nanos,
    late: u64,
    abandoned: u64,
    in_flight_at_end: u64,
}

struct Row {
    request: Request,
    state: State,
}

#[derive(PartialEq)]
enum State {
    InFlight,
    Ended,
}

impl ReorderBuffer {
    /// Holds at most `limit` rows.
    pub fn new(limit: usize) -> Self {
        Self {
            rows: BTreeMap::new(),
            limit,
            inserted: 0,
            watermark: Nanos(i64::MIN),
            last_released: Nanos(i64::MIN),
            late: 0,
            abandoned: 0,
            in_flight_at_end: 0,
        }
    }

    /// Inserts a request that is in flight.
    pub fn insert(&mut self, request: Request) -> Key {
        let key = Key { at: request.at, sequence: self.inserted };
        self.inserted += 1;
        self.rows.insert(key, Row { request, state: State::InFlight });
        key
    }

    /// Changes a row, unless it was already released.
    pub fn update(&mut self, key: Key, update: impl FnOnce(&mut Request)) {
        if let Some(row) = self.rows.get_mut(&key) {
            update(&mut row.request);
        }
    }

    /// The request completed: `update` fills in its row. A row that was already released stays unchanged.
    pub fn complete(&mut self, key: Key, update: impl FnOnce(&mut Request)) {
        if let Some(row) = self.rows.get_mut(&key) {
            update(&mut row.request);
            row.state = State::Ended;
        }
    }

    /// The completion of this request will never be seen: its row is released without one.
    pub fn abandon(&mut self, key: Key) {
        if let Some(row) = self.rows.get_mut(&key).filter(|row| row.state == State::InFlight) {
            row.state = State::Ended;
            self.abandoned += 1;
        }
    }

    /// Removes a row that is not part of the recording.
    pub fn remove(&mut self, key: Key) {
        self.rows.remove(&key);
    }

    /// The ring was empty at that time.
    pub fn ring_empty_at(&mut self, at: Nanos) {
        self.watermark = self.watermark.max(at - REORDER_WINDOW);
    }

    /// Appends the rows that may be released to `into`.
    pub fn release(&mut self, into: &mut Vec<Request>) {
        while let Some((key, row)) = self.rows.first_key_value() {
            let is_ready = row.state == State::Ended && key.at <= self.watermark;
            if !is_ready && self.rows.len() <= self.limit {
                return;
            }
            self.release_first(into);
        }
    }

    /// Releases all rows; requests still in flight are abandoned. Those that began at `last` or later may have been in
    /// flight at the end of the recording.
    pub fn release_all(&mut self, last: Nanos, into: &mut Vec<Request>) {
        let in_flight = |(_, row): &(&Key, &Row)| row.state == State::InFlight;
        let from = Key { at: last, sequence: 0 };
        self.in_flight_at_end += self.rows.range(from..).filter(in_flight).count() as u64;
        while !self.rows.is_empty() {
            self.release_first(into);
        }
    }

    fn release_first(&mut self, into: &mut Vec<Request>) {
        let Some((_, Row { mut request, state })) = self.rows.pop_first() else { return };
        self.abandoned += u64::from(state == State::InFlight);
        if request.at < self.last_released {
            self.late += 1;
            request.at = self.last_released;
        }
        self.last_released = request.at;
        into.push(request);
    }

    /// Number of waiting rows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the row is still waiting.
    pub fn contains(&self, key: Key) -> bool {
        self.rows.contains_key(&key)
    }

    /// Requests that have not completed yet.
    pub fn in_flight(&self) -> usize {
        self.rows.values().filter(|row| row.state == State::InFlight).count()
    }

    /// Rows that arrived after a later one was released, and got the time of that one.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Rows released, or to be released, without a completion.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Those of them that may have been in flight at the end of the recording.
    pub fn in_flight_at_end(&self) -> u64 {
        self.in_flight_at_end
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Op, Sector, Sectors};

    use super::*;

    fn at(time: i64) -> Request {
        Request::new(Nanos(time), Op::Read, Sector(0), Sectors(8))
    }

    fn released(buffer: &mut ReorderBuffer) -> Vec<i64> {
        let mut rows = Vec::new();
        buffer.release(&mut rows);
        rows.iter().map(|row| row.at.0).collect()
    }

    fn done(buffer: &mut ReorderBuffer, key: Key) {
        buffer.complete(key, |row| row.latency = Some(Nanos(1)));
    }

    #[test]
    fn a_row_waits_for_its_completion_and_for_earlier_rows() {
        let mut buffer = ReorderBuffer::new(10);
        let (late, early) = (buffer.insert(at(20)), buffer.insert(at(10)));
        buffer.ring_empty_at(REORDER_WINDOW + Nanos(100));
        assert_eq!(released(&mut buffer), [0; 0]);
        done(&mut buffer, late);
        assert_eq!(released(&mut buffer), [0; 0], "the earlier request is in flight");
        done(&mut buffer, early);
        assert_eq!(released(&mut buffer), [10, 20]);
        assert_eq!((buffer.len(), buffer.late(), buffer.abandoned()), (0, 0, 0));
    }

    #[test]
    fn a_row_waits_until_no_earlier_one_can_arrive() {
        let mut buffer = ReorderBuffer::new(10);
        let key = buffer.insert(at(20));
        done(&mut buffer, key);
        buffer.ring_empty_at(REORDER_WINDOW + Nanos(19));
        assert_eq!(released(&mut buffer), [0; 0]);
        buffer.ring_empty_at(REORDER_WINDOW + Nanos(20));
        assert_eq!(released(&mut buffer), [20]);
    }

    #[test]
    fn a_late_row_is_counted_and_gets_the_last_released_time() {
        let mut buffer = ReorderBuffer::new(10);
        let key = buffer.insert(at(20));
        done(&mut buffer, key);
        buffer.ring_empty_at(REORDER_WINDOW + Nanos(20));
        assert_eq!(released(&mut buffer), [20]);
        let key = buffer.insert(at(15));
        done(&mut buffer, key);
        assert_eq!(released(&mut buffer), [20]);
        assert_eq!(buffer.late(), 1);
    }

    #[test]
    fn a_request_that_hangs_holds_back_at_most_the_limit() {
        let mut buffer = ReorderBuffer::new(3);
        let hangs = buffer.insert(at(0));
        for time in 1..=3 {
            let key = buffer.insert(at(time));
            done(&mut buffer, key);
        }
        assert_eq!(released(&mut buffer), [0], "abandoned");
        assert_eq!(buffer.abandoned(), 1);
        done(&mut buffer, hangs);
        buffer.abandon(hangs);
        assert_eq!((buffer.abandoned(), buffer.in_flight(), buffer.len()), (1, 0, 3));
    }

    #[test]
    fn only_requests_of_the_last_moments_may_be_in_flight_at_end() {
        let mut buffer = ReorderBuffer::new(10);
        let keys = [5, 19, 20, 25, 30].map(|time| buffer.insert(at(time)));
        done(&mut buffer, keys[3]);
        buffer.abandon(keys[4]);
        buffer.release_all(Nanos(20), &mut Vec::new());
        assert_eq!((buffer.abandoned(), buffer.in_flight_at_end()), (4, 1));
    }

    #[test]
    fn the_end_of_the_recording_releases_all_rows() {
        let mut buffer = ReorderBuffer::new(10);
        buffer.insert(at(2));
        let removed = buffer.insert(at(1));
        buffer.remove(removed);
        let mut rows = Vec::new();
        buffer.release_all(Nanos(0), &mut rows);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].latency, buffer.abandoned()), (None, 1));
    }
}
