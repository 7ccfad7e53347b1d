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
    /// Requests that completed in it.
    pub ended: u64,
    /// Of these, those without an error.
    pub done: u64,
    /// Scheduled time and delay reason of the first late request.
    pub first_late: Option<(Nanos, &'static str)>,
}

impl Slot {
    fn join(self, later: Self) -> Self {
        Self {
            demanded: self.demanded + later.demanded,
            late: self.late + later.late,
            ended: self.ended + later.ended,
            done: self.done + later.done,
            first_late: earlier(self.first_late, later.first_late),
        }
    }

    /// What is left of a sum without one of its slots; the first late request stays.
    fn without(self, slot: Self) -> Self {
        Self {
            demanded: self.demanded - slot.demanded,
            late: self.late - slot.late,
            ended: self.ended - slot.ended,
            done: self.done - slot.done,
            ..self
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
    /// Requests that were issued and never completed. They are in no slot.
    pub unfinished: u64,
    /// The time of the last issue, of requests that were not pushed back.
    pub last_issued: Nanos,
}

impl Default for TimeSeries {
    fn default() -> Self {
        Self { length: SHORTEST, slots: VecDeque::new(), first: 0, unfinished: 0, last_issued: Nanos(i64::MIN) }
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

    /// The index of the last slot with an issue. After it, what is in flight is no longer the mix of the load.
    pub fn last_issue(&self) -> usize {
        let after_first = self.last_issued.0.div_euclid(self.length) - self.first;
        usize::try_from(after_first).unwrap_or(0).min(self.end())
    }

    /// The rate of `count` requests in `slots` slots.
    pub fn per_second(&self, count: u64, slots: usize) -> f64 {
        count as f64 / (slots.max(1) as f64 * self.length as f64 / 1e9)
    }

    /// The sum of a range of slots.
    pub fn sum(&self, of: RangeInclusive<usize>) -> Slot {
        self.slots.range(of).copied().fold(Slot::default(), Slot::join)
    }

    /// The number of slots of a duration, rounded down.
    pub fn slots(&self, duration: Nanos) -> usize {
        usize::try_from(duration.0 / self.length).unwrap_or(usize::MAX)
    }

    /// The duration of some slots in nanoseconds.
    pub fn nanos(&self, slots: usize) -> i64 {
        self.length.saturating_mul(slots as i64)
    }

    /// The greatest rate per second over `slots` slots of a range: `count` of their sum, which may rule them out.
    pub fn greatest(
        &self,
        range: RangeInclusive<usize>,
        slots: usize,
        count: impl Fn(&Slot) -> Option<u64>,
    ) -> Option<f64> {
        let from = *range.start();
        let mut sum = Slot::default();
        let counts = range.filter_map(|index| {
            sum = sum.join(*self.get(index));
            if let Some(leaving) = index.checked_sub(slots).filter(|leaving| *leaving >= from) {
                sum = sum.without(*self.get(leaving));
            }
            (index + 1 - from >= slots).then(|| count(&sum)).flatten()
        });
        counts.max().map(|count| self.per_second(count, slots))
    }
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
    fn the_greatest_rate_is_that_of_the_fullest_second() {
        let mut slots = TimeSeries::default();
        // One in each millisecond of three seconds, and two more at 1.5 s.
        for ms in 0..3000_i64 {
            slots.at(Nanos(ms * 1_000_000)).demanded += if ms == 1500 { 3 } else { 1 };
        }
        let all = slots.all().unwrap();
        assert_eq!(slots.greatest(all.clone(), 1000, |slot| Some(slot.demanded)), Some(1002.0));
        assert_eq!(slots.greatest(all.clone(), 1000, |slot| (slot.demanded == 1000).then_some(1000)), Some(1000.0));
        assert_eq!(slots.greatest(all, 4000, |slot| Some(slot.demanded)), None);
    }
}
