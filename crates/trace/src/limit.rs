//! The highest rate of requests that a device sustains: the evaluation of a replay with growing demand (`ramped`, bursts,
//! ramps).
//!
//! A queue hides saturation: a device that is asked for twice its rate keeps every request in time for seconds while its
//! backlog grows. So the limit is not the highest demand without late requests, but the rate at which the device completes
//! while it is *overloaded*: while requests that arrive complete more than `late` after their scheduled time, after a backlog
//! that grew because more were demanded than completed ([`overload`]). A stall from which the device recovers is no
//! overload. A device that completed faster at first and slower for good, as one that spends a burst credit does, sustains
//! the slower rate ([`rate`]).
//!
//! A device that is never overloaded sustains at least the greatest demand that it kept up with for some seconds.

mod overload;
mod rate;
mod time_series;

use serde::Serialize;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::io_result::{IoResult, Outcome};
use crate::model::units::Nanos;

use overload::Backlog;
use time_series::{Slot, TimeSeries};

/// What a device sustains, and what it kept up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Limit {
    /// Mean requests per second completed without an error while the device was overloaded: what it sustains. `None` if it
    /// was not overloaded for a second.
    pub sustained_per_second: Option<f64>,
    /// The 95 % confidence interval of this mean, from twenty batches.
    pub sustained_interval: Option<[f64; 2]>,
    /// For how long the device was overloaded at that rate, in nanoseconds.
    pub overloaded_ns: Option<i64>,
    /// Mean requests per second completed earlier in the overload, if this rate was clearly another.
    pub first_per_second: Option<f64>,
    /// For how long it was overloaded at the earlier rate, in nanoseconds.
    pub first_ns: Option<i64>,
    /// The greatest mean demand, in requests per second, that the device completed in time over `kept_up_ns`: at most 5 % of the
    /// requests were late. `None` if there is no such time.
    pub kept_up_per_second: Option<f64>,
    /// The length of these times, in nanoseconds: a twentieth of the load, but one to ten seconds; less in a shorter load.
    pub kept_up_ns: i64,
    /// When the device fell behind: the scheduled time of the first late request of the overload, in nanoseconds.
    pub fell_behind_ns: Option<i64>,
    /// What delayed that request, or without an overload the first late one: `delay_reason` as in its row, or `overlap` if it
    /// was pushed back.
    pub delay_reason: Option<&'static str>,
    /// Requests per second scheduled in the second before `fell_behind_ns` (or since the first request, if that is shorter).
    pub demanded_per_second: Option<f64>,
    /// The most requests completed without an error in one second; in a shorter run, the rate over the run.
    pub most_done_per_second: f64,
    /// Late requests of the whole run.
    pub late_requests: u64,
    /// The scheduled time of the first late request, in nanoseconds.
    pub first_late_ns: Option<i64>,
    /// Requests of the whole run, without skipped ones.
    pub requests: u64,
}

/// Evaluates a run. A request is late if it completed more than `late` after its scheduled time, wherever it waited: before
/// it was issued, or in the queue of the device. Skipped requests are not part of the demand; failed ones are not counted as
/// done. Memory is bounded: a run longer than a quarter of an hour is counted in slots of more than a millisecond.
///
/// # Errors
/// If the run can't be read.
pub fn limit(run: &mut dyn Reader<IoResult>, late: Nanos) -> Result<Limit> {
    let mut series = TimeSeries::default();
    while let Some(record) = run.next()? {
        // A request that never completed would make every later one look late.
        let Some(completed) = record.completed.filter(|_| !record.outcome.is_skipped()) else {
            series.unfinished += u64::from(!record.outcome.is_skipped());
            continue;
        };
        series.at(record.scheduled).demanded += 1;
        if !record.pushed_back {
            series.last_issued = series.last_issued.max(record.issued.unwrap_or(record.scheduled));
        }
        let slot = series.at(completed);
        slot.ended += 1;
        slot.done += u64::from(record.outcome != Outcome::Error);
        if completed - record.scheduled > late {
            series.late(record.scheduled, if record.pushed_back { "overlap" } else { record.delay_reason.name() });
        }
    }
    Ok(evaluated(&series, late))
}

fn evaluated(series: &TimeSeries, late: Nanos) -> Limit {
    let requests = series.unfinished + series.demanded().map_or(0, |demanded| series.sum(demanded).demanded);
    let (Some(demanded), Some(all)) = (series.demanded(), series.all()) else {
        return Limit { requests, ..Limit::default() };
    };
    let second = series.slots_per_second();
    let kept_up_slots = (demanded.clone().count() / 20).clamp(second, 10 * second).min(demanded.clone().count());
    let in_time = |slot: &Slot| (slot.late * 20 <= slot.demanded).then_some(slot.demanded.min(slot.done));
    let backlog = Backlog::of(series, late);
    let per_slot = series.nanos(1) as f64 / 1e9;
    let kept_up_from =
        |from| series.greatest(from..=*demanded.end(), kept_up_slots, in_time).map(|rate| rate * per_slot);
    let overload = backlog.overload(kept_up_from);
    let kept_up = series.greatest(demanded.clone(), kept_up_slots, in_time);
    let total = series.sum(demanded.clone());
    let mut limit = Limit {
        kept_up_per_second: kept_up,
        kept_up_ns: series.nanos(kept_up_slots),
        most_done_per_second: series
            .greatest(all.clone(), second.min(all.count()), |slot| Some(slot.done))
            .unwrap_or(0.0),
        late_requests: total.late,
        first_late_ns: total.first_late.map(|(at, _)| at.0),
        delay_reason: total.first_late.map(|(_, delay_reason)| delay_reason),
        requests,
        ..Limit::default()
    };
    let Some(first) = overload.first() else { return limit };
    let fell = series.sum(first.clone()).first_late;
    limit.fell_behind_ns = fell.map(|(at, _)| at.0);
    limit.delay_reason = fell.map(|(_, delay_reason)| delay_reason);
    let before = (first.start() + 1).saturating_sub(second).max(*demanded.start())..=*first.start();
    limit.demanded_per_second = Some(series.per_second(series.sum(before.clone()).demanded, before.count()));
    let done: Vec<u64> = overload.into_iter().flatten().map(|index| series.get(index).done).collect();
    if done.len() >= second {
        let rate = rate::of(&done);
        let per_second = |done: f64| done / per_slot;
        limit.sustained_per_second = Some(per_second(rate.mean));
        limit.sustained_interval = rate.interval.map(|ends| ends.map(per_second));
        limit.overloaded_ns = Some(series.nanos(rate.slots));
        limit.first_per_second = rate.before.map(|(mean, _)| per_second(mean));
        limit.first_ns = rate.before.map(|(_, slots)| series.nanos(slots));
    }
    limit
}

#[cfg(test)]
mod tests;
