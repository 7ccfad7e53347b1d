//! When a device is overloaded.

use std::ops::RangeInclusive;

use crate::model::units::Nanos;

use super::time_series::TimeSeries;

/// A range of slots.
pub type Slots = RangeInclusive<usize>;

/// How long requests wait that arrive in each slot, if the device completes them in the order of arrival: until as many ended
/// as were demanded up to then.
pub struct Backlog<'a> {
    series: &'a TimeSeries,
    /// In slots.
    waits: Vec<usize>,
    /// In slots.
    late: usize,
}

impl<'a> Backlog<'a> {
    pub fn of(series: &'a TimeSeries, late: Nanos) -> Self {
        let all = series.all().into_iter().flatten();
        let (mut demanded, mut ended, mut until) = (0, 0, 0);
        let waits = all.map(|index| {
            demanded += series.get(index).demanded;
            while ended < demanded && until <= series.end() {
                ended += series.get(until).ended;
                until += 1;
            }
            until.saturating_sub(index + 1)
        });
        Self { waits: waits.collect(), late: series.slots(late).max(1), series }
    }

    /// The times in which the device was overloaded, until the last issue: what drains after it may keep
    /// only a part of the device busy. `kept_up` gives the greatest demand per slot that the device kept up
    /// with from a slot on: an overload at a lower rate, before it, was a stall.
    pub fn overload(&self, kept_up: impl Fn(usize) -> Option<f64>) -> Vec<Slots> {
        let mut found = self.late_times();
        found.retain(|time| self.is_overload(time));
        found.retain(|time| kept_up(time.end() + 1).is_none_or(|later| 1.05 * self.done_per_slot(time) >= later));
        let last = self.series.last_issue();
        found.retain(|time| *time.start() <= last);
        found.into_iter().map(|time| *time.start()..=last.min(*time.end())).collect()
    }

    /// Times in which requests arrive late, each from the first late arrival until the wait is half as long as that.
    fn late_times(&self) -> Vec<Slots> {
        let mut found = Vec::new();
        let mut begun = None;
        for (index, &wait) in self.waits.iter().enumerate() {
            if wait > self.late {
                begun.get_or_insert(index);
            } else if wait <= self.late / 2
                && let Some(from) = begun.take()
            {
                found.push(from..=index);
            }
        }
        found.extend(begun.map(|from| from..=self.series.end()));
        found
    }

    /// Whether the wait grew because more was demanded than done. It does not grow if every request takes long. When a device
    /// stalls, the requests that arrive first wait longest, and there is no backlog yet.
    fn is_overload(&self, time: &Slots) -> bool {
        let is_short = |wait: &usize| *wait <= self.late / 10;
        let onset = self.waits[..*time.start()].iter().rposition(is_short).map_or(0, |last| last + 1);
        let longest = self.waits[time.clone()].iter().max().copied().unwrap_or(0);
        let peak = time.clone().rfind(|&index| self.waits[index] == longest).unwrap_or(*time.start());
        let (grows, per_slot) = (onset..=peak, self.done_per_slot(time));
        let demanded = self.series.sum(grows.clone()).demanded as f64 / grows.count() as f64;
        let until_peak = self.series.sum(0..=peak);
        let backlog = (until_peak.demanded - until_peak.ended) as f64 / per_slot;
        let at_once = self.series.get(onset).demanded as f64 / per_slot;
        let growth = longest as f64 - self.waits[onset] as f64 + at_once;
        demanded > per_slot && growth > 0.5 * self.late as f64 && backlog > 0.5 * longest as f64
    }

    fn done_per_slot(&self, time: &Slots) -> f64 {
        self.series.sum(time.clone()).done as f64 / time.clone().count() as f64
    }
}
