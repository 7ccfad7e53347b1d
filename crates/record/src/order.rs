//! Puts rows in the order of time although their events come from several processors, and their ends much later.
//!
//! **The rule.** A row leaves when
//! 1. its end is known, or was given up, and
//! 2. the ring was found empty more than [`HOLD`] after the row's time, and
//! 3. every earlier row has left.
//!
//! Why 2 is enough: an event's time is taken right before its room in the ring, on the same processor with preemption
//! off. An event older than `HOLD` that is not yet in the ring would have to sit on a processor that was stopped for
//! that long between the two. Where a hypervisor does even that, the late row is given the time of the last row that
//! left, and is counted ([`Order::late`]).
//!
//! A request that hangs would hold back everything behind it: at [`LIMIT`] rows the oldest is given up.

use std::collections::BTreeMap;

use iosonar_trace::{Nanos, Request};

/// How long after its time a row waits for earlier ones.
pub const HOLD: Nanos = Nanos(250_000_000);

/// Rows that may wait, at most: some 100 MB of them.
pub const LIMIT: usize = 500_000;

/// Names a row that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    at: Nanos,
    /// Rows of the same time keep the order in which they came.
    number: u64,
}

/// The rows that wait.
pub struct Order {
    rows: BTreeMap<Key, Row>,
    limit: usize,
    came: u64,
    horizon: Nanos,
    left: Nanos,
    late: u64,
    given_up: u64,
}

struct Row {
    request: Request,
    end: End,
}

#[derive(PartialEq)]
enum End {
    Awaited,
    Settled,
}

impl Order {
    /// That holds so many rows at most.
    pub fn new(limit: usize) -> Self {
        Self {
            rows: BTreeMap::new(),
            limit,
            came: 0,
            horizon: Nanos(i64::MIN),
            left: Nanos(i64::MIN),
            late: 0,
            given_up: 0,
        }
    }

    /// A row whose end is awaited.
    pub fn insert(&mut self, request: Request) -> Key {
        let key = Key { at: request.at, number: self.came };
        self.came += 1;
        self.rows.insert(key, Row { request, end: End::Awaited });
        key
    }

    /// The end of a row came: `complete` writes it in. Nothing happens if the row was given up before.
    pub fn settle(&mut self, key: Key, complete: impl FnOnce(&mut Request)) {
        if let Some(row) = self.rows.get_mut(&key) {
            complete(&mut row.request);
            row.end = End::Settled;
        }
    }

    /// The row will have no end: it leaves without.
    pub fn give_up(&mut self, key: Key) {
        if let Some(row) = self.rows.get_mut(&key).filter(|row| row.end == End::Awaited) {
            row.end = End::Settled;
            self.given_up += 1;
        }
    }

    /// The row did not happen.
    pub fn remove(&mut self, key: Key) {
        self.rows.remove(&key);
    }

    /// The ring was found empty at that time.
    pub fn found_empty(&mut self, at: Nanos) {
        self.horizon = self.horizon.max(at - HOLD);
    }

    /// Hands over the rows that may leave.
    pub fn release(&mut self, into: &mut Vec<Request>) {
        while let Some((key, row)) = self.rows.first_key_value() {
            let may_leave = row.end == End::Settled && key.at <= self.horizon;
            if !may_leave && self.rows.len() <= self.limit {
                return;
            }
            self.first_leaves(into);
        }
    }

    /// Hands over all rows: those without an end are given up.
    pub fn finish(&mut self, into: &mut Vec<Request>) {
        while !self.rows.is_empty() {
            self.first_leaves(into);
        }
    }

    fn first_leaves(&mut self, into: &mut Vec<Request>) {
        let Some((_, Row { mut request, end })) = self.rows.pop_first() else { return };
        self.given_up += u64::from(end == End::Awaited);
        if request.at < self.left {
            self.late += 1;
            request.at = self.left;
        }
        self.left = request.at;
        into.push(request);
    }

    /// Rows that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Whether that row waits.
    pub fn holds(&self, key: Key) -> bool {
        self.rows.contains_key(&key)
    }

    /// Rows whose end is not known yet.
    pub fn awaited(&self) -> usize {
        self.rows.values().filter(|row| row.end == End::Awaited).count()
    }

    /// Rows that came after later ones had left, and were given the time of those.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Rows that left, or will leave, without their end.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Op, Sector, Sectors};

    use super::*;

    fn at(time: i64) -> Request {
        Request::new(Nanos(time), Op::Read, Sector(0), Sectors(8))
    }

    fn released(order: &mut Order) -> Vec<i64> {
        let mut rows = Vec::new();
        order.release(&mut rows);
        rows.iter().map(|row| row.at.0).collect()
    }

    fn done(order: &mut Order, key: Key) {
        order.settle(key, |row| row.latency = Some(Nanos(1)));
    }

    #[test]
    fn a_row_waits_for_its_end_and_for_earlier_rows() {
        let mut order = Order::new(10);
        let (late, early) = (order.insert(at(20)), order.insert(at(10)));
        order.found_empty(HOLD + Nanos(100));
        assert_eq!(released(&mut order), [0; 0]);
        done(&mut order, late);
        assert_eq!(released(&mut order), [0; 0], "the earlier one is still out");
        done(&mut order, early);
        assert_eq!(released(&mut order), [10, 20]);
        assert_eq!((order.waiting(), order.late(), order.given_up()), (0, 0, 0));
    }

    #[test]
    fn a_row_waits_until_no_earlier_one_can_come() {
        let mut order = Order::new(10);
        let key = order.insert(at(20));
        done(&mut order, key);
        order.found_empty(HOLD + Nanos(19));
        assert_eq!(released(&mut order), [0; 0]);
        order.found_empty(HOLD + Nanos(20));
        assert_eq!(released(&mut order), [20]);
    }

    #[test]
    fn one_that_comes_too_late_takes_the_last_time_and_is_counted() {
        let mut order = Order::new(10);
        let key = order.insert(at(20));
        done(&mut order, key);
        order.found_empty(HOLD + Nanos(20));
        assert_eq!(released(&mut order), [20]);
        let key = order.insert(at(15));
        done(&mut order, key);
        assert_eq!(released(&mut order), [20]);
        assert_eq!(order.late(), 1);
    }

    #[test]
    fn a_request_that_hangs_holds_back_no_more_than_the_limit() {
        let mut order = Order::new(3);
        let hangs = order.insert(at(0));
        for time in 1..=3 {
            let key = order.insert(at(time));
            done(&mut order, key);
        }
        assert_eq!(released(&mut order), [0], "given up");
        assert_eq!(order.given_up(), 1);
        done(&mut order, hangs);
        order.give_up(hangs);
        assert_eq!((order.given_up(), order.awaited(), order.waiting()), (1, 0, 3));
    }

    #[test]
    fn the_end_of_the_recording_lets_everything_go() {
        let mut order = Order::new(10);
        order.insert(at(2));
        let taken_back = order.insert(at(1));
        order.remove(taken_back);
        let mut rows = Vec::new();
        order.finish(&mut rows);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].latency, order.given_up()), (None, 1));
    }
}
