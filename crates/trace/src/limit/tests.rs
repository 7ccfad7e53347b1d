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
    assert_eq!((limit.requests, limit.most_done_per_second, limit.kept_up_per_second), (0, 0.0, None));
}

#[test]
fn the_rate_of_a_device_of_known_speed_is_measured() {
    let limit = replayed(10, 40_000, 500);
    // 500 per second are demanded at 50 s. From there on the backlog grows as 5·(t − 50 s)² requests, and a wait of one
    // second is one of 500: at 60 s, when 600 per second are demanded, 595 on average over the last second.
    let until = limit.fell_behind_ns.unwrap() as f64 / 1e9;
    assert!((until - 60.0).abs() < 0.2, "{until}");
    assert!((limit.demanded_per_second.unwrap() - 595.0).abs() < 8.0, "{limit:?}");
    assert!((limit.sustained_per_second.unwrap() - 500.0).abs() < 1.0, "{limit:?}");
    let [low, high] = limit.sustained_interval.unwrap();
    assert!((499.0..=500.0).contains(&low) && (500.0..=501.0).contains(&high), "{limit:?}");
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
    let at = Nanos(limit.fell_behind_ns.unwrap());
    let demanded = requests.iter().filter(|&&time| at - Nanos(1_000_000_000) < time && time <= at).count() as u64;
    assert!(demanded > 500, "{demanded}");
    // To within the requests of a millisecond.
    assert!((limit.demanded_per_second.unwrap() - demanded as f64).abs() <= 8.0, "{limit:?}, {demanded}");
}

#[test]
fn a_load_of_less_than_a_second_has_a_rate_as_well() {
    let limit = of(steady_rows(500, 500_000, 500));
    assert_eq!(limit.fell_behind_ns, None);
    assert!((limit.kept_up_per_second.unwrap() - 2000.0).abs() <= 20.0, "{limit:?}");
}

#[test]
fn a_replay_that_is_late_without_a_growing_backlog_has_no_limit() {
    let limit = of(late(1000, |_| {}));
    assert_eq!((limit.fell_behind_ns, limit.sustained_per_second, limit.kept_up_per_second), (None, None, None));
    assert_eq!((limit.late_requests, limit.first_late_ns), (1000, Some(0)));
}

/// `count` requests, evenly over ten seconds, all 1.5 s late. `change` is applied to every second row.
fn late(count: u64, change: fn(&mut IoResult)) -> Vec<IoResult> {
    let row = |number| {
        let at = Nanos((number * 10_000_000_000 / count) as i64);
        let issued = Some(at + Nanos(1_500_000_000));
        let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
        let mut record = IoResult { issued, completed: issued, outcome: Outcome::Ok, ..IoResult::of(&request, number) };
        if number % 2 == 1 {
            change(&mut record);
        }
        record
    };
    (0..count).map(row).collect()
}

#[test]
fn skipped_requests_are_no_demand_and_failed_ones_not_done() {
    let limit = of(late(1000, |record| {
        (record.outcome, record.issued, record.completed) = (Outcome::Excluded, None, None);
    }));
    assert_eq!(limit, of(late(500, |_| {})));
    let mut rows = served((0..60_000).map(|n| n * 100_000), 125_000, &[]);
    let all = of(rows.clone()).sustained_per_second.unwrap();
    rows.iter_mut().step_by(2).for_each(|row| row.outcome = Outcome::Error);
    let half = of(rows).sustained_per_second.unwrap();
    assert!((half * 2.0 - all).abs() < 1.0, "{half} of {all}");
}

#[test]
fn requests_that_never_completed_do_not_make_others_late() {
    let mut rows = served((0..4000).map(|n| n * 1_000_000), 10_000, &[]);
    rows[7].completed = None;
    let limit = of(rows);
    assert_eq!((limit.requests, limit.late_requests, limit.fell_behind_ns), (4000, 0, None));
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
        assert_eq!((limit.fell_behind_ns, limit.sustained_per_second), (None, None), "{late_ms} ms: {limit:?}");
        assert!((limit.kept_up_per_second.unwrap() - 36_000.0).abs() < 300.0, "{late_ms} ms: {limit:?}");
        assert!((limit.most_done_per_second - 36_000.0).abs() < 300.0, "{limit:?}");
        assert_eq!(limit.late_requests > 0, late_ms < 1000, "{limit:?}");
        let around = limit.first_late_ns.is_none_or(|at| (4990 * MS..5030 * MS).contains(&at));
        assert!(around, "{limit:?}");
    }
}

#[test]
fn a_stall_at_the_start_or_short_stalls_are_not_a_limit() {
    // Cold caches: a stall in the first 200 ms; and one of 3 ms every 300 ms.
    let short = (1..30).map(|n| (n * 300 * MS, n * 300 * MS + 3 * MS));
    let stalls: Vec<_> = std::iter::once((0, 200 * MS)).chain(short).collect();
    let limit = with_lateness(&served(ramp(4000.0, 9.5), 10_000, &stalls), 1);
    assert!(limit.fell_behind_ns.is_none() && limit.late_requests > 1000, "{limit:?}");
    assert!(limit.kept_up_per_second.unwrap() > 33_000.0, "{limit:?}");
}

#[test]
fn a_real_limit_is_found_with_any_lateness_and_after_a_stall() {
    for late_ms in [1, 10, 100, 1000] {
        // The device does 20,000 per second, which are demanded at 5 s.
        let rows = served(ramp(4000.0, 9.0), 50_000, &[(2000 * MS, 2060 * MS)]);
        let limit = with_lateness(&rows, late_ms);
        let until = limit.fell_behind_ns.expect("it fell behind") as f64 / 1e9;
        // A wait of d seconds is a backlog of 20,000·d requests; the backlog grows as 2000·(t − 5 s)².
        let expected = 5.0 + (20_000.0 * late_ms as f64 / 1e3 / 2000.0).sqrt();
        assert!((until - expected).abs() < 0.05, "{late_ms} ms: {until} for {expected}");
        assert!((limit.sustained_per_second.unwrap() - 20_000.0).abs() < 200.0, "{late_ms} ms: {limit:?}");
        assert!((limit.most_done_per_second - 20_000.0).abs() < 50.0, "{limit:?}");
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
    let until = limit.fell_behind_ns.expect("it fell behind") as f64 / 1e9;
    assert!((3.8..4.1).contains(&until), "{limit:?}");
    assert!((limit.sustained_per_second.unwrap() - 30_000.0).abs() < 500.0, "{limit:?}");
}

#[test]
fn a_constant_demand_beyond_the_limit_is_found() {
    let limit = with_lateness(&served((0..60_000).map(|n| n * 100_000), 125_000, &[]), 100);
    // A request that waits 100 ms stands behind 800 others: 2000 more are demanded than done each second.
    assert!((limit.fell_behind_ns.unwrap() - 400 * MS).abs() < 10 * MS, "{limit:?}");
    assert!((limit.sustained_per_second.unwrap() - 8000.0).abs() < 1.0, "{limit:?}");
}

#[test]
fn a_deep_queue_is_not_the_rate_of_the_device() {
    // All are issued in time, and wait in the device.
    let mut rows = served(ramp(20.0, 30.0), 1_000_000_000 / 161, &[]);
    rows.iter_mut().for_each(|row| (row.issued, row.delay_reason) = (Some(row.scheduled), DelayReason::None));
    let limit = of(rows);
    assert!((limit.sustained_per_second.unwrap() - 161.0).abs() < 1.0, "{limit:?}");
    assert!(limit.delay_reason == Some("none") && limit.most_done_per_second < 163.0, "{limit:?}");
}

#[test]
fn what_drains_after_the_last_issue_is_not_the_rate() {
    // Requests that were pushed back follow one another for a minute, and keep the device busy only in part.
    let mut rows = served(ramp(20.0, 30.0), 1_000_000_000 / 161, &[]);
    let (last, end) = (*rows.last().unwrap(), rows.last().unwrap().completed.unwrap());
    rows.extend((1..=600).map(|number| {
        let issued = end + Nanos(number * 100 * MS);
        IoResult { issued: Some(issued), completed: Some(issued + Nanos(6 * MS)), pushed_back: true, ..last }
    }));
    let limit = of(rows);
    assert!((limit.sustained_per_second.unwrap() - 161.0).abs() < 1.0, "{limit:?}");
    assert_eq!(limit.first_per_second, None, "{limit:?}");
}

#[test]
fn a_device_with_regular_stalls_sustains_its_mean_rate() {
    // 500 per second, but 1.5 s of every ten do nothing.
    let stalls: Vec<_> = (1..60).map(|n| (n * 10_000 * MS, n * 10_000 * MS + 1500 * MS)).collect();
    let limit = of(served(ramp(10.0, 120.0), 2_000_000, &stalls));
    assert!((limit.sustained_per_second.unwrap() - 425.0).abs() < 9.0, "{limit:?}");
}

#[test]
fn what_a_burst_credit_adds_is_told_apart() {
    // 300 per second until 9000 requests are done, 100 per second from then on.
    let mut rows = served(ramp(20.0, 20.0), 1_000_000_000 / 300, &[]);
    rows.extend(served((0..20_000).map(|n| 20_000 * MS + n * MS * 2), 1_000_000_000 / 300, &[]));
    let mut free_at = Nanos::ZERO;
    for (number, row) in rows.iter_mut().enumerate() {
        let issued = free_at.max(row.scheduled);
        free_at = issued + Nanos(if number < 9000 { 1_000_000_000 / 300 } else { 10_000_000 });
        (row.issued, row.completed) = (Some(issued), Some(free_at));
    }
    let limit = of(rows);
    assert!((limit.sustained_per_second.unwrap() - 100.0).abs() < 2.0, "{limit:?}");
    assert!((limit.most_done_per_second - 300.0).abs() < 2.0, "{limit:?}");
    let first = limit.first_per_second.map(|rate| (rate - 300.0).abs() < 2.0);
    assert_eq!(first, Some(true), "{limit:?}");
}

#[test]
fn the_delay_reason_is_that_of_the_first_late_request() {
    let demand = || (0..60_000).map(|n| n * 100_000);
    let mut rows = served(demand(), 125_000, &[]);
    assert_eq!(of(rows.clone()).delay_reason, Some("depth"));
    rows.iter_mut().for_each(|row| row.delay_reason = DelayReason::Input);
    assert_eq!(of(rows.clone()).delay_reason, Some("input"));
    rows.iter_mut().for_each(|row| row.pushed_back = true);
    rows.reverse();
    assert_eq!(of(rows).delay_reason, Some("overlap"));
}

#[test]
fn a_device_that_keeps_up_has_no_limit() {
    let limit = replayed(10, 5000, 500);
    // 5000 requests reach √1000 s, when 316 per second are demanded; 308 over the last 1.6 s.
    assert_eq!((limit.fell_behind_ns, limit.sustained_per_second, limit.late_requests), (None, None, 0));
    assert!((limit.kept_up_per_second.unwrap() - 308.0).abs() < 3.0, "{limit:?}");
}
