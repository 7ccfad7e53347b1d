//! Calls in the order of their start, though they arrive in the order of their end.
//!
//! From time to time, the recorder notes the calls in flight and then drains the ring. Each call that began before that has
//! either ended, and is known, or is in flight, and its begin is known: all of them get their place in the order. A call
//! that is in flight holds back those after it, in memory or in a temporary file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::{io, mem};

use iosonar_trace::Nanos;

use crate::model::call::Call;
use crate::model::kind::CallKind;
use crate::strace::order::Order;

/// What tells a call in flight from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    thread: u32,
    begin: Nanos,
    is_uring: bool,
    is_fault: bool,
}

impl From<&Call> for Key {
    fn from(call: &Call) -> Self {
        Self {
            thread: call.thread,
            begin: call.begin,
            is_uring: call.is_uring,
            is_fault: call.kind == CallKind::PageFault,
        }
    }
}

/// Puts calls in order.
#[derive(Default)]
pub struct Sequence {
    order: Order,
    /// Calls that ended and have no place yet.
    ended: Vec<Call>,
    /// Calls in flight that have a place.
    open: HashMap<Key, u64>,
    open_numbers: BTreeSet<u64>,
    /// The start of the last call that has a place.
    last: Nanos,
    /// Calls that take longer hold nothing back, and begin later.
    limit: Option<Nanos>,
    long: u64,
    late: u64,
    lost: u64,
}

impl Sequence {
    /// Keeps calls that are held back in this file, from which a killed recording is recovered.
    pub fn save_in(&mut self, file: File) {
        self.order.save_in(file);
    }

    /// Goes on with another file for [`Sequence::save_in`], which gets the calls that are held back now.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn move_to(&mut self, file: File) -> io::Result<()> {
        self.order.move_to(file)
    }

    /// Lets no call hold back those after it for longer than this.
    pub fn limit(&mut self, limit: Nanos) {
        self.limit = Some(limit);
    }

    /// Whether so many calls are held back that [`Sequence::save`] is due.
    pub fn is_full(&self) -> bool {
        self.order.is_saved() && self.order.is_full()
    }

    /// Writes the calls that are held back to the file of [`Sequence::save_in`], and frees their memory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&mut self) -> io::Result<()> {
        self.order.save()
    }

    /// A call has ended.
    pub fn push(&mut self, call: Call) {
        match self.open.remove(&Key::from(&call)) {
            Some(number) => {
                self.open_numbers.remove(&number);
                self.order.complete(number, call);
            }
            None => self.ended.push(call),
        }
    }

    /// Gives their places to all calls that began before `before`. `in_flight` was noted before the ring was drained, and
    /// has begins only.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn settle(&mut self, before: Nanos, in_flight: &[Call]) -> io::Result<()> {
        let mut all = mem::take(&mut self.ended);
        let mut in_flight: HashSet<Key> = in_flight.iter().map(Key::from).collect();
        self.drop_lost(&in_flight);
        self.drop_long(before);
        // Those that ended in the meantime.
        if !in_flight.is_empty() {
            all.iter().for_each(|call| _ = in_flight.remove(&Key::from(call)));
        }
        let is_new = |key: &&Key| key.begin < before && !self.open.contains_key(key);
        let mut begun: Vec<Key> = in_flight.iter().filter(is_new).copied().collect();
        begun.sort_by_key(|key| key.begin);
        // Stable, so that calls that begin at the same time stay in the order of their end.
        all.sort_by_key(|call| call.begin);
        let keep_from = all.partition_point(|call| call.begin < before);
        self.ended = all.split_off(keep_from);
        let mut begun = begun.into_iter().peekable();
        for mut call in all {
            while let Some(key) = begun.next_if(|key| key.begin <= call.begin) {
                self.open(key);
            }
            if call.begin < self.last {
                let is_long = self.limit.is_some_and(|limit| call.duration.is_none_or(|duration| duration >= limit));
                *if is_long { &mut self.long } else { &mut self.late } += 1;
                delay(&mut call, self.last);
            }
            self.last = call.begin;
            let number = self.order.begin();
            self.order.complete(number, call);
        }
        begun.for_each(|key| self.open(key));
        if self.order.is_full() && !self.order.is_saved() {
            self.order.spill()?;
        }
        Ok(())
    }

    fn open(&mut self, key: Key) {
        // What arrives late at its place is not delayed: it has a place of its own.
        if key.begin < self.last {
            return;
        }
        self.last = key.begin;
        let number = self.order.begin();
        self.open.insert(key, number);
        self.open_numbers.insert(number);
    }

    /// A call that is no longer in flight, though its end did not arrive, was lost.
    fn drop_lost(&mut self, in_flight: &HashSet<Key>) {
        let lost: Vec<(Key, u64)> =
            self.open.iter().filter(|(key, _)| !in_flight.contains(key)).map(|(key, number)| (*key, *number)).collect();
        for (key, number) in lost {
            self.open.remove(&key);
            self.open_numbers.remove(&number);
            self.order.drop(number);
            // Most page faults are in memory that is no file: they have no event.
            self.lost += u64::from(!key.is_fault);
        }
    }

    /// A call that takes very long gets another place when it ends.
    fn drop_long(&mut self, before: Nanos) {
        let Some(limit) = self.limit else { return };
        let long: Vec<(Key, u64)> = self
            .open
            .iter()
            .filter(|(key, _)| key.begin + limit < before)
            .map(|(key, number)| (*key, *number))
            .collect();
        for (key, number) in long {
            self.open.remove(&key);
            self.open_numbers.remove(&number);
            self.order.drop(number);
        }
    }

    /// The next call, if none comes before it.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Call>> {
        self.order.next(self.open_numbers.first().copied())
    }

    /// Calls that ended and have no place yet.
    pub fn unsettled(&self) -> usize {
        self.ended.len()
    }

    /// Calls that came after later ones had their places. They have a later begin.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Calls that took longer than the limit. They have a later begin.
    pub fn long(&self) -> u64 {
        self.long
    }

    /// Calls in flight whose end never arrived.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Moves the start of a call, not its end.
fn delay(call: &mut Call, begin: Nanos) {
    let end = call.end();
    call.begin = begin;
    call.duration = end.map(|end| Nanos((end.0 - begin.0).max(0)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::kind::CallKind;

    fn call(thread: u32, begin: i64, end: i64) -> Call {
        Call { duration: Some(Nanos(end - begin)), ..Call::new(Nanos(begin), thread, CallKind::Read) }
    }

    fn in_flight(thread: u32, begin: i64) -> Call {
        Call { duration: None, ..call(thread, begin, begin) }
    }

    fn begins(sequence: &mut Sequence) -> Vec<i64> {
        std::iter::from_fn(|| sequence.next().unwrap()).map(|call| call.begin.0).collect()
    }

    #[test]
    fn a_call_in_flight_holds_back_those_after_it() {
        let mut sequence = Sequence::default();
        sequence.push(call(1, 5, 6));
        sequence.push(call(2, 30, 40));
        sequence.settle(Nanos(50), &[in_flight(1, 10)]).unwrap();
        assert_eq!(begins(&mut sequence), [5]);
        sequence.push(call(1, 10, 60));
        assert_eq!(begins(&mut sequence), [10, 30]);
        assert_eq!((sequence.late(), sequence.lost()), (0, 0));
    }

    #[test]
    fn a_call_whose_end_was_lost_holds_nothing_back_for_long() {
        let mut sequence = Sequence::default();
        sequence.push(call(2, 30, 40));
        sequence.settle(Nanos(50), &[in_flight(1, 10)]).unwrap();
        assert_eq!(begins(&mut sequence), [0; 0]);
        sequence.settle(Nanos(60), &[]).unwrap();
        assert_eq!(begins(&mut sequence), [30]);
        assert_eq!(sequence.lost(), 1);
    }

    #[test]
    fn beyond_the_limit_a_call_holds_nothing_back() {
        let mut sequence = Sequence::default();
        sequence.limit(Nanos(100));
        sequence.push(call(2, 30, 40));
        sequence.settle(Nanos(50), &[in_flight(1, 10)]).unwrap();
        assert_eq!(begins(&mut sequence), [0; 0]);
        sequence.settle(Nanos(200), &[in_flight(1, 10)]).unwrap();
        assert_eq!(begins(&mut sequence), [30]);
        sequence.push(call(1, 10, 300));
        sequence.settle(Nanos(400), &[]).unwrap();
        let long = sequence.next().unwrap().unwrap();
        assert_eq!((long.begin, long.end()), (Nanos(30), Some(Nanos(300))));
        assert_eq!((sequence.long(), sequence.late(), sequence.lost()), (1, 0, 0));
    }

    #[test]
    fn a_call_that_comes_too_late_begins_later() {
        let mut sequence = Sequence::default();
        sequence.push(call(2, 30, 40));
        sequence.settle(Nanos(50), &[]).unwrap();
        sequence.push(call(1, 10, 45));
        sequence.settle(Nanos(60), &[]).unwrap();
        let calls: Vec<Call> = std::iter::from_fn(|| sequence.next().unwrap()).collect();
        assert_eq!((calls[1].begin, calls[1].end()), (Nanos(30), Some(Nanos(45))));
        assert_eq!(sequence.late(), 1);
    }

    proptest! {
        /// Threads call one after the other; the recorder looks at random times.
        #[test]
        fn calls_come_in_order_of_begin(
            threads in prop::collection::vec(prop::collection::vec((1_i64..20, 0_i64..60), 1..30), 1..5),
            looks in prop::collection::btree_set(1_i64..1000, 0..20),
        ) {
            let mut all = Vec::new();
            for (thread, calls) in threads.iter().enumerate() {
                let mut now = 0;
                for (gap, duration) in calls {
                    all.push(call(thread as u32, now + gap, now + gap + duration));
                    now += gap + duration;
                }
            }
            let mut expected: Vec<i64> = all.iter().map(|call| call.begin.0).collect();
            expected.sort_unstable();
            all.sort_by_key(|call| call.end());
            let mut sequence = Sequence::default();
            let mut found = Vec::new();
            let mut waiting = all.iter().peekable();
            for look in looks {
                while let Some(ended) = waiting.next_if(|call| call.end() < Some(Nanos(look))) {
                    sequence.push(ended.clone());
                }
                let running: Vec<Call> = waiting.clone().filter(|call| call.begin.0 < look).map(|c| (*c).clone()).collect();
                sequence.settle(Nanos(look), &running).unwrap();
                found.extend(begins(&mut sequence));
            }
            waiting.for_each(|call| sequence.push(call.clone()));
            sequence.settle(Nanos(i64::MAX), &[]).unwrap();
            found.extend(begins(&mut sequence));
            prop_assert_eq!(found, expected);
            prop_assert_eq!((sequence.late(), sequence.lost()), (0, 0));
        }
    }
}
