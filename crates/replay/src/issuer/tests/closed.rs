//! Closed loops: each request is issued exactly when its client is ready.

use super::*;
use crate::io::Origin;

fn bench(think: Think, depth: usize, policy: Policy) -> Bench {
    Bench { pace: Pace::Closed(think), ..Bench::new(policy, depth) }
}

/// Chooses the latency by the position of the request.
fn latency_by_position(latencies: Vec<i64>) -> Responder {
    Box::new(move |io| (Nanos(latencies[io.offset as usize / 4096 % latencies.len()]), io.length as i64))
}

#[test]
fn without_think_times_each_completion_issues_the_next_request() {
    let load = (0..30).map(|i| write(i, i as i64 * 1000 * MS, i * 8, 8)).collect();
    let (rows, counters) = bench(Think::Never, 3, Policy::Partial).run(load, each_takes(MS));
    let rows = by_request(rows);
    assert_eq!(counters.max_in_flight, 3);
    assert!(rows.last().unwrap().completed.unwrap() < Nanos(10 * MS + MS / 10), "three at a time: {rows:?}");
    assert!(rows[..3].iter().all(|row| row.scheduled == Nanos::ZERO));
}

#[test]
fn with_think_times_a_slow_device_delays_the_load() {
    // One client; the load has a request every 5 ms, each with a latency of 3 ms.
    let load = (0..10).map(|i| write(i, i as i64 * 5 * MS, i * 8, 8)).collect();
    let (rows, _) = bench(Think::AsLoad, 1, Policy::Partial).run(load, each_takes(3 * MS));
    for (row, next) in rows.iter().zip(&rows[1..]) {
        assert_eq!(next.scheduled, row.completed.unwrap() + Nanos(5 * MS));
        assert!(next.delay().unwrap() < Nanos(100), "{next:?}");
    }
}

#[test]
fn the_client_of_a_skipped_request_takes_the_next_one() {
    let mut load: Vec<_> = (0..20).map(|i| write(i, 0, 0, 8)).collect();
    load[7].skip = Some(Outcome::BeyondEnd);
    for policy in [Policy::Drop, Policy::Partial, Policy::Ordering] {
        let load = load.iter().map(|p| PreparedIo { skip: p.skip, ..write(p.request, 0, 0, 8) }).collect();
        let (rows, _) = bench(Think::Never, 2, policy).run(load, each_takes(MS));
        let rows = by_request(rows);
        assert!(rows.iter().map(|row| row.request).eq(0..20), "each once");
        assert!(rows.iter().all(|row| row.outcome != Outcome::Unfinished), "{rows:?}");
        assert_eq!(rows[7].outcome, Outcome::BeyondEnd);
    }
}

#[test]
fn draining_discards_requests_of_thinking_clients() {
    let bench = bench(Think::AsLoad, 2, Policy::Partial);
    let load = (0..9).map(|i| write(i, i as i64 * 1000 * MS, i * 8, 8)).collect();
    let responder = stopping(&bench, Stop::drain);
    let (rows, _) = bench.run(load, responder);
    assert!(by_request(rows).iter().map(|row| row.request).eq(0..3));
}

#[test]
fn by_dependencies_a_request_waits_for_its_own_predecessor() {
    // Two chains with a think time of 2 ms, from 0 and 1 ms on, and one request at 50 ms.
    let waits = |request: u64, after: u64| {
        let origin = Some(Origin { stream: None, cause: Some(after), ticket: None });
        PreparedIo { origin, deadline: Nanos(2 * MS), ..write(request, 1000 * MS, request * 8, 8) }
    };
    for takes in [MS / 2, 5 * MS] {
        let chains = (2..40).map(|n| waits(n, n - 2));
        let load = [write(0, 0, 0, 8), write(1, MS, 8, 8)].into_iter().chain(chains);
        let load = load.chain([write(40, 50 * MS, 320, 8)]).collect();
        let (rows, _) = bench(Think::Inferred, 16, Policy::Partial).run(load, each_takes(takes));
        let rows = by_request(rows);
        assert_eq!(rows.len(), 41);
        assert_eq!([0, 1, 40].map(|n| rows[n].scheduled), [0, MS, 50 * MS].map(Nanos));
        for n in 2..40 {
            assert_eq!(rows[n].scheduled, rows[n - 2].completed.unwrap() + Nanos(2 * MS), "request {n}");
            assert_eq!(rows[n].cause, Some(n as u64 - 2));
            assert!(rows[n].delay().unwrap() < Nanos(100), "{:?}", rows[n]);
        }
    }
}

#[test]
fn by_dependencies_each_request_is_issued_once_whatever_fits() {
    let load = || {
        let all = (0..3000_u64).map(|n| {
            let after = n.checked_sub(1 + n * 7919 % 50).filter(|_| n % 11 > 0);
            let origin = after.map(|after| Origin { stream: None, cause: Some(after), ticket: None });
            let skip = (n % 97 == 0).then_some(Outcome::BeyondEnd);
            let deadline = Nanos(if after.is_some() { n as i64 % 5 * 1000 } else { n as i64 * 1000 });
            PreparedIo { origin, deadline, skip, ..write(n, n as i64 * 1000, n % 40 * 4, 8) }
        });
        all.collect::<Vec<_>>()
    };
    for (depth, policy) in [(1, Policy::Partial), (3, Policy::Partial), (100, Policy::Drop), (20, Policy::Ordering)] {
        let (rows, _) = bench(Think::Inferred, depth, policy).run(load(), latency_by_position(vec![MS, 3000, MS / 7]));
        let rows = by_request(rows);
        assert!(rows.iter().map(|row| row.request).eq(0..3000), "{policy:?}");
        for row in &rows {
            let before = row.cause.map(|cause| &rows[cause as usize]);
            let is_before = |before: &IoResult| before.completed.is_none() || before.completed <= row.issued;
            assert!(row.issued.is_none() || before.is_none_or(is_before), "{row:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// Clients are freed in the order of completions and take requests in the order of the load.
    #[test]
    fn each_request_follows_the_completion_that_freed_its_client(
        gaps in prop::collection::vec(0_i64..20_000, 1..60), depth in 1_usize..6, thinks in any::<bool>(),
        latencies in prop::collection::vec(1_i64..30_000, 1..20),
    ) {
        let mut at = 0;
        let load: Vec<_> = gaps.iter().zip(0..).map(|(gap, i)| { at += gap; write(i, at, i * 8, 8) }).collect();
        let times: Vec<_> = load.iter().map(|io| io.scheduled).collect();
        let think = if thinks { Think::AsLoad } else { Think::Never };
        let (rows, _) = bench(think, depth, Policy::Allow).run(load, latency_by_position(latencies));
        prop_assert_eq!(rows.len(), times.len());
        for row in &rows {
            let number = row.request as usize;
            let expected = match (number.checked_sub(depth).map(|index| &rows[index]), think) {
                (None, Think::AsLoad) => times[number],
                (None, _) => Nanos::ZERO,
                                (Some(before), Think::AsLoad) => {
                    before.completed.unwrap() + (times[number] - times[before.request as usize]).max(Nanos::ZERO)
                }
                (Some(before), _) => before.completed.unwrap(),
            };
            prop_assert_eq!(row.scheduled, expected, "{:?}", row);
            let delay = row.delay().unwrap();
            prop_assert!((Nanos::ZERO..Nanos(1000)).contains(&delay), "late or early: {:?}", row);
            let in_flight = rows.iter().filter(|other| other.issued <= row.issued && other.completed > row.issued);
            prop_assert!(in_flight.count() <= depth);
        }
    }
}
