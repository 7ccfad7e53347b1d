//! Up to which rate a storage kept up: the evaluation of a replay of growing demand (`ramped`, bursts, ramps).
//!
//! A second counts as kept up with if hardly any of its requests was late: one slow answer is no limit, and a storage that
//! stalls for a moment and then keeps up with more has none there either. So the *limit* is the highest demand of a second
//! that it kept up with, and it *fell behind* where it never got back in time, or was asked for more than that and did not do
//! it.

mod pieces;

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::io_result::{IoResult, Outcome};
use crate::model::units::Nanos;

use pieces::{Pieces, Window};

/// So many percent of a second's requests may be late, and the storage kept up with it all the same: as many as a faithful
/// replay may have that are late by its own fault.
const STRAY_PCT: u64 = 5;
/// What decides whether a run ended in time: its last tenth of a second, or longer until there are so many requests.
const LAST_REQUESTS: u64 = 10;

/// Up to which demand a storage kept up, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The most requests that were to be issued in one second of which at most 5 % were late; in a run of less than a second, per
    /// second of it. `None`: there is no such second.
    pub kept_up_per_second: Option<u64>,
    /// When it fell behind: when the first request that was late then should have been issued, in nanoseconds. `None`: it kept
    /// up to the end, but for stalls that it got over.
    pub kept_up_until_ns: Option<i64>,
    /// What kept that request: `delay_reason` as in its row, or `overlap` if it was pushed back.
    pub delay_reason: Option<&'static str>,
    /// Requests per second that were to be issued in the second before that (in the time since the first of them, if that is
    /// shorter); else as `kept_up_per_second`. With a deep queue it is more than the storage can do: what came too fast
    /// waits there before the first request is late.
    pub demanded_per_second: u64,
    /// Requests that completed without an error per second from then on, on average, until it kept up again or all was done;
    /// where it fell behind and that took a second or longer.
    pub done_per_second: Option<f64>,
    /// The most requests that completed without an error in one second of the run; in a shorter run, per second of it.
    pub most_done_per_second: u64,
    /// Requests that were late, anywhere in the run.
    pub late_requests: u64,
    /// When the first of them should have been issued, in nanoseconds.
    pub first_late_ns: Option<i64>,
    /// Requests that were to be issued, anywhere in the run.
    pub requests: u64,
}

/// Evaluates a run: a request is late if it was issued more than `late` after its deadline. The specification of the
/// method (blkreplay's ramped loads) sets one second. What was left out was demanded of no storage, and what failed was not
/// done. Memory is bounded: what lasts longer than a quarter of an hour is counted in longer pieces of time than milliseconds.
///
/// # Errors
/// If the run can't be read.
pub fn limit(run: &mut dyn Reader<IoResult>, late: Nanos) -> Result<Limit> {
    let mut pieces = Pieces::default();
    while let Some(record) = run.next()? {
        if record.outcome.is_skipped() {
            continue;
        }
        pieces.at(record.scheduled).demanded += 1;
        if let Some(completed) = record.completed.filter(|_| record.outcome != Outcome::Error) {
            pieces.at(completed).done += 1;
        }
        if record.delay().is_some_and(|delay| delay > late) {
            pieces.late(record.scheduled, if record.pushed_back { "overlap" } else { record.delay_reason.name() });
        }
    }
    Ok(evaluated(&pieces))
}

fn evaluated(pieces: &Pieces) -> Limit {
    let most_done = pieces.all().and_then(|all| greatest(pieces, all, |window| Some(window.done))).unwrap_or(0);
    let Some(demanded) = pieces.demanded() else {
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
    let all = pieces.sum(demanded.clone());
    let kept_up = greatest(pieces, demanded.clone(), |window| is_in_time(window).then_some(window.demanded));
    let fell = fell_behind(pieces, &demanded, kept_up);
    let first_late = fell.as_ref().and_then(|fell| pieces.get(*fell.start()).first_late);
    let demanded_then = fell.as_ref().map(|fell| {
        let begin = (fell.start() + 1).saturating_sub(pieces.in_second()).max(*demanded.start());
        per_second(pieces, pieces.sum(begin..=*fell.start()).demanded, fell.start() + 1 - begin)
    });
    let done = fell.filter(|fell| fell.clone().count() >= pieces.in_second());
    Limit {
        kept_up_per_second: kept_up,
        kept_up_until_ns: first_late.map(|(at, _)| at.0),
        delay_reason: first_late.map(|(_, delay_reason)| delay_reason),
        demanded_per_second: demanded_then.or(kept_up).unwrap_or(0),
        done_per_second: done.map(|of| pieces.per_second(pieces.sum(of.clone()).done, of.count())),
        most_done_per_second: most_done,
        late_requests: all.late,
        first_late_ns: all.first_late.map(|(at, _)| at.0),
        requests: all.demanded,
    }
}

fn is_in_time(window: Window) -> bool {
    window.late * 100 <= window.demanded * STRAY_PCT
}

fn per_second(pieces: &Pieces, count: u64, of: usize) -> u64 {
    pieces.per_second(count, of).round() as u64
}

/// The greatest rate of a whole second, or of all of it if that is shorter.
fn greatest(pieces: &Pieces, of: RangeInclusive<usize>, what: impl Fn(Window) -> Option<u64>) -> Option<u64> {
    let length = of.clone().count();
    let is_short = length < pieces.in_second();
    let last = *of.end();
    let counts =
        pieces.seconds(of).filter(|(place, window)| window.is_whole || is_short && *place == last).map(|(_, w)| w);
    counts.filter_map(what).max().map(|count| per_second(pieces, count, length.min(pieces.in_second())))
}

/// Where the storage fell behind for good, or as long as it was asked for more than it had ever kept up with.
fn fell_behind(
    pieces: &Pieces,
    demanded: &RangeInclusive<usize>,
    kept_up: Option<u64>,
) -> Option<RangeInclusive<usize>> {
    let (mut begun, mut last_late, mut is_limit) = (None, 0, false);
    for (place, window) in pieces.seconds(demanded.clone()) {
        if is_in_time(window) {
            if let Some(begin) = begun.take().filter(|_| is_limit) {
                return Some(begin..=last_late);
            }
            continue;
        }
        if pieces.get(place).late > 0 {
            last_late = place;
        }
        let begin = *begun.get_or_insert_with(|| beginning(pieces, demanded, place));
        let asked = per_second(pieces, window.demanded, pieces.in_second());
        let is_more = kept_up.is_none_or(|kept_up| asked as f64 > 1.1 * kept_up as f64);
        let did_less = window.late * 2 >= window.demanded || window.done * 100 < window.demanded * 95;
        is_limit |= window.is_whole && is_more && did_less && place > begin;
    }
    let begin = begun?;
    (is_limit || !ended_in_time(pieces, demanded)).then(|| begin..=pieces.end().max(begin))
}

/// The first piece with late requests from which on most are late, up to the one that made a second late.
fn beginning(pieces: &Pieces, demanded: &RangeInclusive<usize>, tipped: usize) -> usize {
    let from = (tipped + 1).saturating_sub(pieces.in_second()).max(*demanded.start());
    let (mut all, mut late, mut found) = (0, 0, tipped);
    for place in (from..=tipped).rev() {
        let piece = pieces.get(place);
        (all, late) = (all + piece.demanded, late + piece.late);
        if piece.late > 0 && late * 2 >= all {
            found = place;
        }
    }
    // What tipped it may be that requests in time are longer ago than a second.
    if pieces.get(found).late == 0 {
        (from..=tipped).find(|&place| pieces.get(place).late > 0).unwrap_or(found)
    } else {
        found
    }
}

fn ended_in_time(pieces: &Pieces, demanded: &RangeInclusive<usize>) -> bool {
    let (mut all, mut late) = (0, 0);
    for (place, count) in demanded.clone().rev().zip(0_usize..) {
        let piece = pieces.get(place);
        (all, late) = (all + piece.demanded, late + piece.late);
        if all >= LAST_REQUESTS && count + 1 >= pieces.in_second() / 10 {
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

    /// A ramp, replayed on a storage that does exactly so many requests per second, one after the other.
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
    fn a_storage_of_known_speed_is_measured() {
        let limit = replayed(10, 40_000, 500);
        // 500 per second are demanded at 50 s. From there on the backlog grows as 5·(t − 50 s)² requests, and a delay of
        // one second is one of 500: at 60 s, when 600 per second are demanded, 595 on average over the last second.
        let until = limit.kept_up_until_ns.unwrap() as f64 / 1e9;
        assert!((until - 60.0).abs() < 0.2, "{until}");
        assert!(limit.demanded_per_second.abs_diff(595) < 8, "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 500.0).abs() < 5.0, "{limit:?}");
    }

    /// Asked for at even distances, and issued two seconds late from a certain request on.
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
    fn the_burst_that_broke_the_storage_was_demanded() {
        // At each full second a burst of 100 ms, of 100 requests more than the one before; the storage does one each 2 ms, and so
        // is 800 ms behind in the fourth burst, and one second at its end.
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
        // As many as come within a millisecond.
        assert!(limit.demanded_per_second.abs_diff(demanded) <= 8, "{limit:?}, {demanded}");
    }

    #[test]
    fn in_the_first_second_the_demand_is_a_rate_as_well() {
        for late_from in [0, 3, 105, 1999, 2001, 5000] {
            let limit = steady(6000, 500_000, late_from);
            assert_eq!(limit.kept_up_until_ns, Some(late_from * 500_000));
            assert!(limit.demanded_per_second.abs_diff(2000) <= 20, "late from {late_from}: {limit:?}");
        }
        let short = steady(500, 500_000, 500);
        assert_eq!(short.kept_up_until_ns, None);
        assert!(short.demanded_per_second.abs_diff(2000) <= 20, "{short:?}");
    }

    /// So many, evenly within ten seconds, the whole of them 1.5 s late, and this changed in every second one.
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
    fn what_was_left_out_is_not_demanded_and_what_failed_is_not_done() {
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
    fn what_is_done_is_counted_and_timed_from_the_same_moment() {
        // 100 per second, from 90 ms on two seconds late.
        let done = of(steady_rows(300, 10_000_000, 9)).done_per_second.unwrap();
        assert!((done - 291.0 / 4.9).abs() < 1.0, "{done}");
    }

    /// What a storage does that takes so long for each request, one after the other, and nothing during its stalls.
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

    /// Times of a demand that grows by so many per second each second.
    fn ramp(slope: f64, seconds: f64) -> impl Iterator<Item = i64> {
        let count = (slope * seconds * seconds / 2.0) as u64;
        (0..count).map(move |n| ((2.0 * n as f64 / slope).sqrt() * 1e9) as i64)
    }

    fn with_lateness(rows: &[IoResult], late_ms: i64) -> Limit {
        let metadata = Metadata::new(Kind::Replay, "test");
        limit(&mut Run(Vec::from(rows).into_iter(), metadata), Nanos(late_ms * 1_000_000)).unwrap()
    }

    const MS: i64 = 1_000_000;

    /// A ramp to 38,000 per second was told to be limited by 20,993, because something took 30 ms when so many were demanded.
    #[test]
    fn a_stall_that_is_got_over_is_no_limit() {
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
    fn noise_at_the_start_and_strays_all_over_are_no_limit() {
        // Cold caches: nothing is done in the first 200 ms; and all 300 ms something takes 3 ms.
        let strays = (1..30).map(|n| (n * 300 * MS, n * 300 * MS + 3 * MS));
        let stalls: Vec<_> = std::iter::once((0, 200 * MS)).chain(strays).collect();
        let limit = with_lateness(&served(ramp(4000.0, 9.5), 10_000, &stalls), 1);
        assert!(limit.kept_up_until_ns.is_none() && limit.late_requests > 1000, "{limit:?}");
        assert!(limit.kept_up_per_second.unwrap() > 33_000, "{limit:?}");
    }

    #[test]
    fn a_real_limit_is_found_with_any_lateness_and_after_a_stall() {
        for late_ms in [1, 10, 100, 1000] {
            // 20,000 per second can be done, and are demanded at 5 s.
            let rows = served(ramp(4000.0, 9.0), 50_000, &[(2000 * MS, 2060 * MS)]);
            let limit = with_lateness(&rows, late_ms);
            let until = limit.kept_up_until_ns.expect("it fell behind") as f64 / 1e9;
            // A delay of d seconds is a backlog of 20,000·d requests, and that grows as 2000·(t − 5 s)².
            let expected = 5.0 + (20_000.0 * late_ms as f64 / 1e3 / 2000.0).sqrt();
            assert!((until - expected).abs() < 0.05, "{late_ms} ms: {until} for {expected}");
            assert!((limit.done_per_second.unwrap() - 20_000.0).abs() < 200.0, "{late_ms} ms: {limit:?}");
            assert!(limit.most_done_per_second.abs_diff(20_000) < 50, "{limit:?}");
            // Over the second before, on average; a late limit hides what came too fast.
            let demanded = 4000.0 * (expected - 0.5);
            assert!((limit.kept_up_per_second.unwrap() as f64 - demanded).abs() < 250.0, "{late_ms} ms: {limit:?}");
            assert_eq!(limit.delay_reason, Some("depth"));
        }
    }

    #[test]
    fn a_demand_that_falls_again_has_had_its_limit() {
        // Up to 40,000 per second and down again; 30,000 can be done, and from 8 s on all is in time again.
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
    fn a_steady_demand_that_is_too_much_is_found() {
        let limit = with_lateness(&served((0..60_000).map(|n| n * 100_000), 125_000, &[]), 100);
        // 10,000 are demanded, 8000 done: 100 ms late when 800 lie behind, after 0.4 s.
        assert!((limit.kept_up_until_ns.unwrap() - 400 * MS).abs() < 10 * MS, "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 8000.0).abs() < 100.0, "{limit:?}");
        assert!(limit.kept_up_per_second.is_none(), "no second of it was in time: {limit:?}");
    }

    #[test]
    fn what_kept_the_first_late_request_is_told() {
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
    fn one_that_keeps_up_has_no_limit() {
        let limit = replayed(10, 5000, 500);
        // 5000 requests reach √1000 s, when 316 per second are demanded.
        assert_eq!((limit.kept_up_until_ns, limit.done_per_second, limit.late_requests), (None, None, 0));
        assert!(limit.demanded_per_second.abs_diff(311) < 8, "{limit:?}");
        assert_eq!(limit.kept_up_per_second, Some(limit.demanded_per_second));
    }
}
