//! Numbers of demanded, late and done requests over time, in bounded memory.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::model::units::Nanos;

/// Initial length of a slot, in nanoseconds. It is doubled as often as needed.
const SHORTEST: i64 = 1_000_000;
/// Most slots: 50 MB. Slots of a millisecond cover a quarter of an hour.
const MAX_SLOTS: i64 = 1 << 20;
const SECOND: i64 = 1_000_000_000;

/// The requests of a slot of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Requests scheduled in it.
    pub demanded: u64,
    /// Of these, late ones.
    pub late: u64,
    /// Requests that completed in it without an error.
    pub done: u64,
    /// Scheduled time and delay reason of the first late request.
    pub first_late: Option<(Nanos, &'static str)>,
}

impl Slot {
    fn join(self, later: Self) -> Self {
        Self {
            demanded: self.demanded + later.demanded,
            late: self.late + later.late,
            done: self.done + later.done,
            first_late: earlier(self.first_late, later.first_late),
        }
    }
}

fn earlier(one: Option<(Nanos, &'static str)>, other: Option<(Nanos, &'static str)>) -> Option<(Nanos, &'static str)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
        (one, other) => one.or(other),
    }
}

/// Slots of equal length.
pub struct TimeSeries {
    /// The length of a slot in nanoseconds.
    length: i64,
    slots: VecDeque<Slot>,
    /// The number of the first slot. Slot 0 begins at time zero.
    first: i64,
}

impl Default for TimeSeries {
    fn default() -> Self {
        Self { length: SHORTEST, slots: VecDeque::new(), first: 0 }
    }
}

impl TimeSeries {
    /// The slot of a time. Times may come in any order.
    pub fn at(&mut self, at: Nanos) -> &mut Slot {
        if self.slots.is_empty() {
            self.first = at.0.div_euclid(self.length);
        }
        let number = loop {
            let number = at.0.div_euclid(self.length);
            let (first, last) = (self.first.min(number), self.last().max(number));
            if last - first < MAX_SLOTS {
                break number;
            }
            self.coarsen();
        };
        while number < self.first {
            self.slots.push_front(Slot::default());
            self.first -= 1;
        }
        let index = (number - self.first) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        &mut self.slots[index]
    }

    /// Notes a late request.
    pub fn late(&mut self, at: Nanos, delay_reason: &'static str) {
        let slot = self.at(at);
        slot.late += 1;
        slot.first_late = earlier(slot.first_late, Some((at, delay_reason)));
    }

    /// Doubles the length of the slots.
    fn coarsen(&mut self) {
        self.length *= 2;
        if self.first.rem_euclid(2) == 1 {
            self.slots.push_front(Slot::default());
            self.first -= 1;
        }
        self.first = self.first.div_euclid(2);
        let pairs = self.slots.make_contiguous().chunks(2);
        self.slots = pairs.map(|pair| pair.iter().copied().fold(Slot::default(), Slot::join)).collect();
    }

    /// The number of the last slot.
    fn last(&self) -> i64 {
        self.first + (self.slots.len() as i64 - 1).max(0)
    }

    /// The number of slots in a second, rounded.
    pub fn slots_per_second(&self) -> usize {
        ((SECOND + self.length / 2) / self.length).max(1) as usize
    }

    /// The slot with this index.
    pub fn get(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    /// The indices of all slots from the first to the last with a demand.
    pub fn demanded(&self) -> Option<RangeInclusive<usize>> {
        let is_demanded = |slot: &Slot| slot.demanded > 0;
        Some(self.slots.iter().position(is_demanded)?..=self.slots.iter().rposition(is_demanded)?)
    }

    /// The indices of all slots; `None` if there are none.
    pub fn all(&self) -> Option<RangeInclusive<usize>> {
        (!self.slots.is_empty()).then(|| 0..=self.end())
    }

    /// The index of the last slot.
    pub fn end(&self) -> usize {
        self.slots.len().saturating_sub(1)
    }

    /// The rate of `count` requests in `slots` slots.
    pub fn per_second(&self, count: u64, slots: usize) -> f64 {
        count as f64 / (slots.max(1) as f64 * self.length as f64 / 1e9)
    }

    /// The sum of a range of slots.
    pub fn sum(&self, of: RangeInclusive<usize>) -> Slot {
        self.slots.range(of).copied().fold(Slot::default(), Slot::join)
    }

    /// For each slot of a range, the sum over the second that ends with it, or over the slots since the start of the range.
    pub fn seconds(&self, of: RangeInclusive<usize>) -> impl Iterator<Item = (usize, Window)> {
        let (begin, slots) = (*of.start(), self.slots_per_second());
        let mut sum = Window { demanded: 0, late: 0, done: 0, is_full: false };
        of.map(move |index| {
            let entering = &self.slots[index];
            sum.demanded += entering.demanded;
            sum.late += entering.late;
            sum.done += entering.done;
            if let Some(index) = index.checked_sub(slots).filter(|index| *index >= begin) {
                let leaving = &self.slots[index];
                sum.demanded -= leaving.demanded;
                sum.late -= leaving.late;
                sum.done -= leaving.done;
            }
            sum.is_full = index + 1 - begin >= slots;
            (index, sum)
        })
    }
}

/// The requests of a second; see [`Slot`].
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// As in a slot.
    pub demanded: u64,
    /// As in a slot.
    pub late: u64,
    /// As in a slot.
    pub done: u64,
    /// Whether it covers a full second, not less.
    pub is_full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_fits_into_the_slots_and_loses_no_request() {
        let mut slots = TimeSeries::default();
        let year = 31_536_000_000_000_000;
        for at in [year, -5, 0, 7, year / 2, year] {
            slots.at(Nanos(at)).demanded += 1;
        }
        slots.late(Nanos(7), "depth");
        slots.late(Nanos(3), "input");
        assert!(slots.slots.len() as i64 <= MAX_SLOTS);
        let all = slots.sum(slots.demanded().unwrap());
        assert_eq!((all.demanded, all.late, all.first_late), (6, 2, Some((Nanos(3), "input"))));
    }

    #[test]
    fn a_window_sums_the_slots_of_a_second() {
        let mut slots = TimeSeries::default();
        // One in each millisecond of three seconds, and two more at 1.5 s.
        for ms in 0..3000_i64 {
            slots.at(Nanos(ms * 1_000_000)).demanded += if ms == 1500 { 3 } else { 1 };
        }
        let seconds: Vec<_> = slots.seconds(slots.demanded().unwrap()).collect();
        assert!(!seconds[998].1.is_full && seconds[999].1.is_full);
        for (index, window) in seconds.iter().skip(999) {
            assert_eq!(window.demanded, if (1500..2500).contains(index) { 1002 } else { 1000 }, "{index}");
        }
    }
}
