use iosonar_trace::{InMemory, Kind, Metadata, Op, Sector, Sectors};

use super::*;
use crate::schedule::Window;

const US: i64 = 1000;

/// A request at this time, in µs, of a process, with its latency.
fn request(at: i64, pid: Option<u32>, latency: i64) -> Request {
    let latency = Some(Nanos(latency * US));
    Request { pid, latency, ..Request::new(Nanos(at * US), Op::Read, Sector(0), Sectors(8)) }
}

/// What each request waits for, and the summary.
fn inferred(load: &[Request]) -> (Vec<Option<After>>, RunDependencies) {
    let mut load = load.to_vec();
    load.sort_by_key(|request| request.at);
    let iterations = || {
        let reader = InMemory::new(load.clone(), Metadata::new(Kind::Load, "test"));
        Iterations::new(Box::new(reader), Window::default(), None)
    };
    let mut known = Dependencies::learn(&mut iterations()).unwrap();
    let mut second = iterations();
    let found = std::iter::from_fn(|| second.take_next().unwrap()).map(|next| known.after(&next)).collect();
    (found, known.summary())
}

/// A generator of numbers below a limit.
fn random() -> impl FnMut(i64) -> i64 {
    let mut state = 1_u64;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % limit as u64) as i64
    }
}

/// Requests of one thread: each so long after the completion of the one before.
fn chain(pid: Option<u32>, start: i64, think: i64, requests: usize, mut latency: impl FnMut() -> i64) -> Vec<Request> {
    let mut at = start;
    let next = |_| {
        let took = latency();
        let made = request(at, pid, took);
        at += took + think;
        made
    };
    (0..requests).map(next).collect()
}

#[test]
fn requests_of_a_thread_wait_for_the_one_before() {
    let mut random = random();
    let mut load = chain(Some(1), 0, 300, 500, || 500 + random(1000));
    load.extend(chain(Some(2), 77, 2000, 200, || 500 + random(1000)));
    let (found, summary) = inferred(&load);
    assert_eq!(found.iter().filter(|after| after.is_none()).count(), 2, "the first of each thread");
    let thinks: Vec<_> = found.iter().flatten().map(|after| after.think.0 / US).collect();
    assert!(thinks.iter().all(|think| [300, 2000].contains(think)), "{thinks:?}");
    assert!(found.iter().flatten().all(|after| after.confidence > 0.3));
    assert_eq!((summary.by_process, summary.by_time), (698.into(), 0.into()));
}

#[test]
fn threads_are_told_apart_by_think_time_without_a_process() {
    let mut random = random();
    let load: Vec<_> = (0..4).flat_map(|n| chain(None, n * 333, 1000, 500, || 500 + random(1500))).collect();
    let (found, summary) = inferred(&load);
    let right = found.iter().flatten().filter(|after| after.think == Nanos(1000 * US)).count();
    assert!(right > 1900, "{right}");
    assert_eq!(summary.by_process, 0.into());
}

#[test]
fn requests_that_come_at_any_time_wait_for_none() {
    for pid in [None, Some(7)] {
        let (mut random, mut at) = (random(), 0);
        let load: Vec<_> = (0..4000)
            .map(|_| {
                // About exponential.
                at += 1 + (0..).take_while(|_| random(100) > 0).count() as i64 * 10;
                request(at, pid, 200 + random(3000))
            })
            .collect();
        let (found, summary) = inferred(&load);
        assert_eq!(found.iter().flatten().count(), 0, "{summary:?}");
    }
}

#[test]
fn requests_at_even_times_wait_for_none() {
    let mut random = random();
    let load: Vec<_> = (0..2000).map(|n| request(n * 2000, Some(7), 300 + random(900))).collect();
    assert_eq!(inferred(&load).0.iter().flatten().count(), 0);
}

#[test]
fn requests_made_together_wait_for_the_same() {
    let (mut random, mut load, mut at, mut last) = (random(), Vec::new(), 0, Vec::new());
    for round in 0..200 {
        let ends = [0, 1, 2].map(|n| at + n + 300 + random(800));
        load.extend((0..).zip(ends).map(|(n, end)| request(at + n, Some(1), end - at - n)));
        let end = *ends.iter().max().unwrap();
        last.push(round * 3 + ends.iter().rposition(|&each| each == end).unwrap() as u64);
        at = end + 200;
    }
    let (found, _) = inferred(&load);
    for (n, after) in found.iter().enumerate().skip(3) {
        assert_eq!(after.unwrap().request, last[n / 3 - 1], "request {n}");
    }
}

#[test]
fn a_load_without_latencies_is_refused() {
    let load = vec![Request { latency: None, ..request(0, None, 0) }];
    let reader = InMemory::new(load, Metadata::new(Kind::Load, "test"));
    let why = Dependencies::learn(&mut Iterations::new(Box::new(reader), Window::default(), None)).unwrap_err();
    assert!(why.to_string().contains("no latencies"), "{why}");
}
