//! The highest rate of requests that a device sustains: the evaluation of a replay with growing demand (`ramped`, bursts,
//! ramps).
//!
//! The device kept up in a second if at most 5 % of its requests were late. A single slow request is not a limit, and
//! neither is a short stall after which the device keeps up with a higher demand. So the *limit* is the highest demand of a
//! second in which it kept up. It *fell behind* where it never recovered, or where the demand exceeded the limit and it did
//! not deliver.

mod time_series;

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::io_result::{IoResult, Outcome};
use crate::model::units::Nanos;

use time_series::{TimeSeries, Window};

/// Percentage of a second's requests that may be late while the device keeps up. It is the percentage that may be late in a
/// faithful replay through the fault of the replayer.
const MAX_LATE_PCT: u64 = 5;
/// The last tenth of a second decides whether a run ended in time, or a longer time if that has fewer requests.
const MIN_LAST_REQUESTS: u64 = 10;

/// The limit of a device, and its rates beyond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The most requests scheduled in one second in which the device kept up; in a run of less than a second, the rate over
    /// the run. `None` if there is no such second.
    pub kept_up_per_second: Option<u64>,
    /// When the device fell behind: the scheduled time of the first late request, in nanoseconds. `None` if it kept up to
    /// the end, apart from stalls from which it recovered.
    pub kept_up_until_ns: Option<i64>,
    /// What delayed that request: `delay_reason` as in its row, or `overlap` if it was pushed back.
    pub delay_reason: Option<&'static str>,
    /// Requests per second scheduled in the second before `kept_up_until_ns` (or since the first request, if that is
    /// shorter); without it, `kept_up_per_second`. With a deep queue it exceeds the rate of the device, because requests wait
    /// in the queue before the first is late.
    pub demanded_per_second: u64,
    /// Mean requests per second completed without an error after `kept_up_until_ns`, until the device kept up again or the
    /// run ended. `None` if it did not fall behind, or for less than a second.
    pub done_per_second: Option<f64>,
    /// The most requests completed without an error in one second; in a shorter run, the rate over the run.
    pub most_done_per_second: u64,
    /// Late requests of the whole run.
    pub late_requests: u64,
    /// The scheduled time of the first late request, in nanoseconds.
    pub first_late_ns: Option<i64>,
    /// Requests of the whole run, without skipped ones.
    pub requests: u64,
}

/// Evaluates a run. A request is late if it was issued more than `late` after its scheduled time. The specification of the
/// method (blkreplay's ramped loads) sets one second. Skipped requests are not part of the demand; failed ones are not
/// counted as done. Memory is bounded: a run longer than a quarter of an hour is counted in slots of more than a
/// millisecond.
///
/// # Errors
/// If the run can't be read.
pub fn limit(run: &mut dyn Reader<IoResult>, late: Nanos) -> Result<Limit> {
    let mut series = TimeSeries::default();
    while let Some(record) = run.next()? {
        if record.outcome.is_skipped() {
            continue;
        }
        series.at(record.scheduled).demanded += 1;
        if let Some(completed) = record.completed.filter(|_| record.outcome != Outcome::Error) {
            series.at(completed).done += 1;
        }
        if record.delay().is_some_and(|delay| delay > late) {
            series.late(record.scheduled, if record.pushed_back { "overlap" } else { record.delay_reason.name() });
        }
    }
    Ok(evaluated(&series))
}

fn evaluated(series: &TimeSeries) -> Limit {
    let most_done = series.all().and_then(|all| greatest(series, all, |window| Some(window.done))).unwrap_or(0);
    let Some(demanded) = series.demanded() else {
        return Limit {
            kept_up_per_second: None,
            kept_up_until_ns: None,
            delay_reason: None,
            demanded_per_second: 0,
            done_per_second: None,
            most_done_per_second: most_done,
            late_requests: 0,
            first_late_ns: None,
            requests: 0,
        };
    };
    let all = series.sum(demanded.clone());
    let kept_up = greatest(series, demanded.clone(), |window| is_in_time(window).then_some(window.demanded));
    let fell = fell_behind(series, &demanded, kept_up);
    let first_late = fell.as_ref().and_then(|fell| series.get(*fell.start()).first_late);
    let demanded_then = fell.as_ref().map(|fell| {
        let begin = (fell.start() + 1).saturating_sub(series.slots_per_second()).max(*demanded.start());
        per_second(series, series.sum(begin..=*fell.start()).demanded, fell.start() + 1 - begin)
    });
    let done = fell.filter(|fell| fell.clone().count() >= series.slots_per_second());
    Limit {
        kept_up_per_second: kept_up,
        kept_up_until_ns: first_late.map(|(at, _)| at.0),
        delay_reason: first_late.map(|(_, delay_reason)| delay_reason),
        demanded_per_second: demanded_then.or(kept_up).unwrap_or(0),
        done_per_second: done.map(|of| series.per_second(series.sum(of.clone()).done, of.count())),
        most_done_per_second: most_done,
        late_requests: all.late,
        first_late_ns: all.first_late.map(|(at, _)| at.0),
        requests: all.demanded,
    }
}

fn is_in_time(window: Window) -> bool {
    window.late * 100 <= window.demanded * MAX_LATE_PCT
}

fn per_second(series: &TimeSeries, count: u64, of: usize) -> u64 {
    series.per_second(count, of).round() as u64
}

/// The greatest rate over a full second, or over the whole range if that is shorter.
fn greatest(series: &TimeSeries, of: RangeInclusive<usize>, what: impl Fn(Window) -> Option<u64>) -> Option<u64> {
    let length = of.clone().count();
    let is_short = length < series.slots_per_second();
    let last = *of.end();
    let counts =
        series.seconds(of).filter(|(index, window)| window.is_full || is_short && *index == last).map(|(_, w)| w);
    counts.filter_map(what).max().map(|count| per_second(series, count, length.min(series.slots_per_second())))
}

/// The slots in which the device fell behind: up to the end, or while the demand exceeded the limit.
fn fell_behind(
    series: &TimeSeries,
    demanded: &RangeInclusive<usize>,
    kept_up: Option<u64>,
) -> Option<RangeInclusive<usize>> {
    let (mut begun, mut last_late, mut is_limit) = (None, 0, false);
    for (index, window) in series.seconds(demanded.clone()) {
        if is_in_time(window) {
            if let Some(begin) = begun.take().filter(|_| is_limit) {
                return Some(begin..=last_late);
            }
            continue;
        }
        if series.get(index).late > 0 {
            last_late = index;
        }
        let begin = *begun.get_or_insert_with(|| onset(series, demanded, index));
        let demand = per_second(series, window.demanded, series.slots_per_second());
        let exceeds = kept_up.is_none_or(|kept_up| demand as f64 > 1.1 * kept_up as f64);
        let falls_short = window.late * 2 >= window.demanded || window.done * 100 < window.demanded * 95;
        is_limit |= window.is_full && exceeds && falls_short && index > begin;
    }
    let begin = begun?;
    (is_limit || !ended_in_time(series, demanded)).then(|| begin..=series.end().max(begin))
}

/// The first slot with late requests from which most requests are late up to `last`, the end of the first late second.
fn onset(series: &TimeSeries, demanded: &RangeInclusive<usize>, last: usize) -> usize {
    let from = (last + 1).saturating_sub(series.slots_per_second()).max(*demanded.start());
    let (mut all, mut late, mut found) = (0, 0, last);
    for index in (from..=last).rev() {
        let slot = series.get(index);
        (all, late) = (all + slot.demanded, late + slot.late);
        if slot.late > 0 && late * 2 >= all {
            found = index;
        }
    }
    // The second may have become late because requests in time left it, not because a late one entered.
    if series.get(found).late == 0 {
        (from..=last).find(|&index| series.get(index).late > 0).unwrap_or(found)
    } else {
        found
    }
}

fn ended_in_time(series: &TimeSeries, demanded: &RangeInclusive<usize>) -> bool {
    let (mut all, mut late) = (0, 0);
    for (index, count) in demanded.clone().rev().zip(0_usize..) {
        let slot = series.get(index);
        (all, late) = (all + slot.demanded, late + slot.late);
        if all >= MIN_LAST_REQUESTS && count + 1 >= series.slots_per_second() / 10 {
            break;
        }
    }
    late * 10 <= all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::{Kind, Metadata};
    use crate::model::request::Op;
    use crate::model::units::{Sector, Sectors};
    use crate::transforms;
    use crate::{DelayReason, Request};

    struct Run(std::vec::IntoIter<IoResult>, Metadata);

    impl Reader<IoResult> for Run {
        fn next(&mut self) -> Result<Option<IoResult>> {
            Ok(self.0.next())
        }
        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    fn of(rows: Vec<IoResult>) -> Limit {
        limit(&mut Run(rows.into_iter(), Metadata::new(Kind::Replay, "test")), Nanos(1_000_000_000)).unwrap()
    }

    struct Load(u64, Metadata);

    impl Reader<Request> for Load {
        fn next(&mut self) -> Result<Option<Request>> {
            self.0 = self.0.saturating_sub(1);
            Ok((self.0 > 0).then(|| Request::new(Nanos::ZERO, Op::Read, Sector(self.0), Sectors(8))))
        }
        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    /// A ramp, replayed on a device that completes exactly `per_second` requests per second, one after the other.
    fn replayed(slope: u32, count: u64, per_second: i64) -> Limit {
        let pipeline = transforms::parse(&format!("ramped slope={slope}")).unwrap();
        let mut load = pipeline.apply(Box::new(Load(count, Metadata::new(Kind::Load, "test")))).unwrap();
        let mut records = Vec::new();
        let mut free_at = Nanos::ZERO;
        while let Some(request) = load.next().unwrap() {
            let issued = free_at.max(request.at);
            free_at = issued + Nanos(1_000_000_000 / per_second);
            records.push(IoResult {
                issued: Some(issued),
                completed: Some(free_at),
                in_flight: 1,
                outcome: Outcome::Ok,
                ..IoResult::of(&request, records.len() as u64)
            });
        }
        records.reverse();
        of(records)
    }

    #[test]
    fn a_run_without_rows_has_no_limit() {
        let limit = of(Vec::new());
        assert_eq!((limit.requests, limit.most_done_per_second, limit.kept_up_per_second), (0, 0, None));
    }

    #[test]
    fn the_rate_of_a_device_of_known_speed_is_measured() {
        let limit = replayed(10, 40_000, 500);
        // 500 per second are demanded at 50 s. From there on the backlog grows as 5·(t − 50 s)² requests, and a delay of
        // one second is one of 500: at 60 s, when 600 per second are demanded, 595 on average over the last second.
        let until = limit.kept_up_until_ns.unwrap() as f64 / 1e9;
        assert!((until - 60.0).abs() < 0.2, "{until}");
        assert!(limit.demanded_per_second.abs_diff(595) < 8, "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 500.0).abs() < 5.0, "{limit:?}");
    }

    /// Requests scheduled at equal distances, and issued two seconds late from number `late_from` on.
    fn steady_rows(count: i64, distance_ns: i64, late_from: i64) -> Vec<IoResult> {
        let rows = (0..count).map(|i| {
            let request = Request::new(Nanos(i * distance_ns), Op::Read, Sector(0), Sectors(8));
            let late = if i >= late_from { Nanos(2_000_000_000) } else { Nanos::ZERO };
            let issued = Some(request.at + late);
            IoResult { issued, completed: issued, outcome: Outcome::Ok, ..IoResult::of(&request, i as u64) }
        });
        rows.collect()
    }

    fn steady(count: i64, distance_ns: i64, late_from: i64) -> Limit {
        of(steady_rows(count, distance_ns, late_from).into_iter().rev().collect())
    }

    #[test]
    fn the_burst_that_exceeded_the_limit_counts_as_demand() {
        // At each full second a burst of 100 ms, with 100 requests more than the one before. The device takes 2 ms for each,
        // and so is 800 ms behind in the fourth burst, and one second at its end.
        let mut requests = Vec::new();
        for second in 1..8_i64 {
            let step = 100_000_000 / (second * 100);
            requests.extend((0..second * 100).map(|n| Nanos(second * 1_000_000_000 + n * step)));
        }
        let mut free_at = Nanos::ZERO;
        let rows = requests.iter().enumerate().map(|(number, &at)| {
            let issued = free_at.max(at);
            free_at = issued + Nanos(2_000_000);
            let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
            let record = IoResult::of(&request, number as u64);
            IoResult { issued: Some(issued), completed: Some(free_at), outcome: Outcome::Ok, ..record }
        });
        let limit = of(rows.collect());
        let at = Nanos(limit.kept_up_until_ns.unwrap());
        let demanded = requests.iter().filter(|&&time| at - Nanos(1_000_000_000) < time && time <= at).count() as u64;
        assert!(demanded > 500, "{demanded}");
        // To within the requests of a millisecond.
        assert!(limit.demanded_per_second.abs_diff(demanded) <= 8, "{limit:?}, {demanded}");
    }

    #[test]
    fn the_demand_in_the_first_second_is_a_rate_as_well() {
        for late_from in [0, 3, 105, 1999, 2001, 5000] {
            let limit = steady(6000, 500_000, late_from);
            assert_eq!(limit.kept_up_until_ns, Some(late_from * 500_000));
            assert!(limit.demanded_per_second.abs_diff(2000) <= 20, "late from {late_from}: {limit:?}");
        }
        let short = steady(500, 500_000, 500);
        assert_eq!(short.kept_up_until_ns, None);
        assert!(short.demanded_per_second.abs_diff(2000) <= 20, "{short:?}");
    }

    /// `count` requests, evenly over ten seconds, all 1.5 s late. `change` is applied to every second row.
    fn late(count: u64, change: fn(&mut IoResult)) -> Vec<IoResult> {
        let row = |number| {
            let at = Nanos((number * 10_000_000_000 / count) as i64);
            let issued = Some(at + Nanos(1_500_000_000));
            let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
            let mut record =
                IoResult { issued, completed: issued, outcome: Outcome::Ok, ..IoResult::of(&request, number) };
            if number % 2 == 1 {
                change(&mut record);
            }
            record
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn skipped_requests_are_not_demanded_and_failed_requests_are_not_done() {
        let limit = of(late(1000, |record| {
            (record.outcome, record.issued, record.completed) = (Outcome::Excluded, None, None);
        }));
        assert_eq!(limit, of(late(500, |_| {})));
        let (half, all) = (of(late(1000, |record| record.outcome = Outcome::Error)), of(late(1000, |_| {})));
        assert_eq!(half.demanded_per_second, all.demanded_per_second);
        let (half, all) = (half.done_per_second.unwrap(), all.done_per_second.unwrap());
        assert!((half * 2.0 - all).abs() < 0.2, "{half} of {all}");
    }

    #[test]
    fn done_requests_are_counted_from_the_onset() {
        // 100 per second, two seconds late from 90 ms on.
        let done = of(steady_rows(300, 10_000_000, 9)).done_per_second.unwrap();
        assert!((done - 291.0 / 4.9).abs() < 1.0, "{done}");
    }

    /// The rows of a device that takes `service_ns` for each request, one after the other, and does nothing during stalls.
    fn served(demand: impl Iterator<Item = i64>, service_ns: i64, stalls: &[(i64, i64)]) -> Vec<IoResult> {
        let mut free_at = Nanos::ZERO;
        let rows = demand.zip(0..).map(|(at, number)| {
            let request = Request::new(Nanos(at), Op::Read, Sector(0), Sectors(8));
            let mut issued = free_at.max(request.at);
            for &(from, to) in stalls {
                if (from..to).contains(&issued.0) {
                    issued = Nanos(to);
                }
            }
            free_at = issued + Nanos(service_ns);
            IoResult {
                issued: Some(issued),
                completed: Some(free_at),
                delay_reason: if issued > request.at { DelayReason::Depth } else { DelayReason::None },
                outcome: Outcome::Ok,
                ..IoResult::of(&request, number)
            }
        });
        rows.collect()
    }

    /// Times of a demand that grows by `slope` requests per second each second.
    fn ramp(slope: f64, seconds: f64) -> impl Iterator<Item = i64> {
        let count = (slope * seconds * seconds / 2.0) as u64;
        (0..count).map(move |n| ((2.0 * n as f64 / slope).sqrt() * 1e9) as i64)
    }

    fn with_lateness(rows: &[IoResult], late_ms: i64) -> Limit {
        let metadata = Metadata::new(Kind::Replay, "test");
        limit(&mut Run(Vec::from(rows).into_iter(), metadata), Nanos(late_ms * 1_000_000)).unwrap()
    }

    const MS: i64 = 1_000_000;

    /// A ramp to 38,000 per second was reported to have a limit of 20,993, because of a stall of 30 ms at that demand.
    #[test]
    fn a_short_stall_is_not_a_limit() {
        let rows = served(ramp(4000.0, 9.5), 10_000, &[(5000 * MS, 5030 * MS)]);
        for late_ms in [1, 10, 1000] {
            let limit = with_lateness(&rows, late_ms);
            assert_eq!((limit.kept_up_until_ns, limit.done_per_second), (None, None), "{late_ms} ms: {limit:?}");
            assert!(limit.kept_up_per_second.unwrap().abs_diff(36_000) < 300, "{late_ms} ms: {limit:?}");
            assert!(limit.most_done_per_second.abs_diff(36_000) < 300, "{limit:?}");
            assert_eq!(limit.late_requests > 0, late_ms < 1000, "{limit:?}");
            let around = limit.first_late_ns.is_none_or(|at| (4990 * MS..5030 * MS).contains(&at));
            assert!(around, "{limit:?}");
        }
    }

    #[test]
    fn a_stall_at_the_start_and_short_stalls_throughout_are_not_a_limit() {
        // Cold caches: a stall in the first 200 ms; and one of 3 ms every 300 ms.
        let short = (1..30).map(|n| (n * 300 * MS, n * 300 * MS + 3 * MS));
        let stalls: Vec<_> = std::iter::once((0, 200 * MS)).chain(short).collect();
        let limit = with_lateness(&served(ramp(4000.0, 9.5), 10_000, &stalls), 1);
        assert!(limit.kept_up_until_ns.is_none() && limit.late_requests > 1000, "{limit:?}");
        assert!(limit.kept_up_per_second.unwrap() > 33_000, "{limit:?}");
    }

    #[test]
    fn a_real_limit_is_found_with_any_lateness_and_after_a_stall() {
        for late_ms in [1, 10, 100, 1000] {
            // The device does 20,000 per second, which are demanded at 5 s.
            let rows = served(ramp(4000.0, 9.0), 50_000, &[(2000 * MS, 2060 * MS)]);
            let limit = with_lateness(&rows, late_ms);
            let until = limit.kept_up_until_ns.expect("it fell behind") as f64 / 1e9;
            // A delay of d seconds is a backlog of 20,000·d requests; the backlog grows as 2000·(t − 5 s)².
            let expected = 5.0 + (20_000.0 * late_ms as f64 / 1e3 / 2000.0).sqrt();
            assert!((until - expected).abs() < 0.05, "{late_ms} ms: {until} for {expected}");
            assert!((limit.done_per_second.unwrap() - 20_000.0).abs() < 200.0, "{late_ms} ms: {limit:?}");
            assert!(limit.most_done_per_second.abs_diff(20_000) < 50, "{limit:?}");
            // The mean over the second before.
            let demanded = 4000.0 * (expected - 0.5);
            assert!((limit.kept_up_per_second.unwrap() as f64 - demanded).abs() < 250.0, "{late_ms} ms: {limit:?}");
            assert_eq!(limit.delay_reason, Some("depth"));
        }
    }

    #[test]
    fn a_limit_is_found_although_the_demand_falls_again() {
        // Up to 40,000 per second and down again. The device does 30,000; from 8 s on all requests are in time again.
        let up: Vec<i64> = ramp(8000.0, 5.0).collect();
        let last = *up.last().unwrap();
        let down = up.iter().rev().map(|at| 2 * last - at);
        let rows = served(up.iter().copied().chain(down.collect::<Vec<_>>()), 33_333, &[]);
        let limit = with_lateness(&rows, 10);
        let until = limit.kept_up_until_ns.expect("it fell behind") as f64 / 1e9;
        assert!((3.9..4.1).contains(&until), "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 30_000.0).abs() < 500.0, "{limit:?}");
        assert!(limit.kept_up_per_second.unwrap().abs_diff(28_200) < 500, "{limit:?}");
    }

    #[test]
    fn a_constant_demand_beyond_the_limit_is_found() {
        let limit = with_lateness(&served((0..60_000).map(|n| n * 100_000), 125_000, &[]), 100);
        // 10,000 are demanded, 8000 done: the delay is 100 ms at a backlog of 800, after 0.4 s.
        assert!((limit.kept_up_until_ns.unwrap() - 400 * MS).abs() < 10 * MS, "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 8000.0).abs() < 100.0, "{limit:?}");
        assert!(limit.kept_up_per_second.is_none(), "no second of it was in time: {limit:?}");
    }

    #[test]
    fn the_delay_reason_is_that_of_the_first_late_request() {
        assert_eq!(of(late(10, |_| {})).delay_reason, Some("none"));
        let mut rows = late(10, |record| record.delay_reason = DelayReason::Depth);
        rows[0].delay_reason = DelayReason::Input;
        rows.reverse();
        assert_eq!(of(rows.clone()).delay_reason, Some("input"));
        rows[9].pushed_back = true;
        assert_eq!(of(rows).delay_reason, Some("overlap"));
        assert_eq!(steady(10, 1000, 10).delay_reason, None);
    }

    #[test]
    fn a_device_that_keeps_up_has_no_limit() {
        let limit = replayed(10, 5000, 500);
        // 5000 requests reach √1000 s, when 316 per second are demanded.
        assert_eq!((limit.kept_up_until_ns, limit.done_per_second, limit.late_requests), (None, None, 0));
        assert!(limit.demanded_per_second.abs_diff(311) < 8, "{limit:?}");
        assert_eq!(limit.kept_up_per_second, Some(limit.demanded_per_second));
    }
}
