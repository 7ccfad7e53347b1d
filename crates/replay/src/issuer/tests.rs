//! The loop on a mock target with simulated time: exact and deterministic.

use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

use iosonar_pacing::buffers::{Buffer, Pool};
use iosonar_pacing::idle::{Sleep, Waiter};
use iosonar_pacing::stalls::Scheduler;
use iosonar_trace::{DelayReason, DeviceId, Flags, IoResult, Op, Outcome, Sector, Sectors};
use proptest::prelude::*;
use rtrb::RingBuffer;

use super::*;
use crate::engine::mock::{Mock, Responder, SkipToNextEvent, Time};
use crate::engine::{Completion, Io};
use crate::io::testing::write;
use crate::issuer::conflicts::Strong;

mod closed;
mod program;
mod reasons;
mod sharing;

const MS: i64 = 1_000_000;

fn read(request: u64, at: i64, sector: u64, sectors: u64) -> PreparedIo {
    PreparedIo { op: Op::Read, ..write(request, at, sector, sectors) }
}

/// Settings of a run on a mock target.
struct Bench {
    pace: Pace,
    policy: Policy,
    depth: usize,
    pushed_back: usize,
    queues: usize,
    until: Nanos,
    in_flight: AtomicU32,
    stop: Rc<Stop>,
}

impl Bench {
    fn new(policy: Policy, depth: usize) -> Self {
        Self {
            pace: Pace::Timed,
            policy,
            depth,
            pushed_back: 64,
            queues: 1,
            until: Nanos::MAX,
            in_flight: AtomicU32::default(),
            stop: Rc::default(),
        }
    }

    fn with_depth_per_target(targets: usize, policy: Policy, depth: usize) -> Self {
        Self { queues: targets, ..Self::new(policy, depth) }
    }

    fn issuer<T: Target>(
        &self,
        time: &Time,
        target: T,
        load: Vec<PreparedIo>,
        output: Producer<CompletedIo>,
    ) -> Issuer<'_, T, Time, SkipToNextEvent> {
        let (mut producer, input) = RingBuffer::new(load.len().max(1));
        for request in load {
            producer.push(request).expect("the queue has room for the load");
        }
        self.issuer_with_input(time, target, input, output)
    }

    fn issuer_with_input<T: Target>(
        &self,
        time: &Time,
        target: T,
        input: Consumer<PreparedIo>,
        output: Producer<CompletedIo>,
    ) -> Issuer<'_, T, Time, SkipToNextEvent> {
        let limits = Limits {
            depth: self.depth,
            pushed_back: self.pushed_back,
            batch: 4,
            queues: self.queues,
            shared: 0,
            until: self.until,
        };
        let rules = IssueRules { pace: self.pace, policy: self.policy, strong: Strong::AnyWrite, limits };
        let stall_monitor = StallMonitor::with_scheduler(&self.in_flight, RingBuffer::new(64).0, Scheduler::NONE);
        let (clock, stop) = (time.clone(), &*self.stop);
        let parts = IssuerParts {
            clock,
            target,
            idle: SkipToNextEvent,
            rules,
            stop,
            input,
            output,
            stall_monitor,
            rereader: None,
            program: None,
        };
        Issuer::new(parts)
    }

    /// Returns the rows in the order of the output, and the counters.
    fn run(&self, load: Vec<PreparedIo>, responder: Responder) -> (Vec<IoResult>, LoopCounters) {
        let time = Time::starting_at(-MS);
        let target = Mock::new(time.clone(), responder);
        let (rows, counters, outcome) = self.run_on(&time, target, load);
        outcome.expect("a mock submission does not fail");
        (rows, counters)
    }

    fn run_on<T: Target>(
        &self,
        time: &Time,
        target: T,
        load: Vec<PreparedIo>,
    ) -> (Vec<IoResult>, LoopCounters, io::Result<()>) {
        let (output, mut done) = RingBuffer::new(load.len() + (self.depth + self.pushed_back) * self.queues + 1);
        let (counters, _, _, outcome) = self.issuer(time, target, load, output).run();
        (std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect(), counters, outcome)
    }
}

fn each_takes(ns: i64) -> Responder {
    Box::new(move |io| (Nanos(ns), io.length as i64))
}

fn by_request(mut rows: Vec<IoResult>) -> Vec<IoResult> {
    rows.sort_by_key(|row| row.request);
    rows
}

fn overlap(a: &IoResult, b: &IoResult) -> bool {
    let have_sectors = a.sectors.0 > 0 && b.sectors.0 > 0;
    have_sectors && a.sector < b.sector + b.sectors && b.sector < a.sector + a.sectors
}

#[test]
fn requests_are_issued_at_their_deadline_and_never_before() {
    let load = (0..50).map(|i| write(i, i as i64 * MS, i * 8, 8)).collect();
    let (rows, counters) = Bench::new(Policy::Partial, 8).run(load, each_takes(MS / 2));
    assert_eq!(rows.len(), 50);
    for row in &rows {
        let delay = row.delay().unwrap();
        // The clock advances by 1 ns with each reading.
        assert!((0..100).contains(&delay.0), "{row:?}");
        assert!((MS / 2..MS / 2 + 100).contains(&row.latency().unwrap().0), "{row:?}");
        assert_eq!((row.in_flight, row.waiting, row.delay_reason, row.outcome), (1, 0, DelayReason::None, Outcome::Ok));
    }
    assert_eq!((counters.max_in_flight, counters.submissions), (1, 50));
}

#[test]
fn due_requests_wait_while_the_depth_is_reached() {
    let load = (0..6).map(|i| write(i, 0, i * 8, 8)).collect();
    let (rows, counters) = Bench::new(Policy::Partial, 2).run(load, each_takes(MS));
    let rows = by_request(rows);
    let reasons: Vec<_> = rows.iter().map(|row| row.delay_reason).collect();
    let (none, depth) = ([DelayReason::None; 2], [DelayReason::Depth; 4]);
    assert_eq!(reasons, [&none[..], &depth].concat());
    assert!(rows.is_sorted_by_key(|row| row.issued));
    assert_eq!(rows.iter().map(|row| row.waiting).max(), Some(5), "five requests are due behind the first");
    assert_eq!(counters.max_in_flight, 2);
}

#[test]
fn a_request_prepared_late_has_the_delay_reason_input() {
    let late = PreparedIo { ready: Nanos(5), ..write(1, 0, 8, 8) };
    let (rows, _) = Bench::new(Policy::Partial, 8).run(vec![write(0, 0, 0, 8), late], each_takes(MS));
    assert_eq!(
        by_request(rows).iter().map(|r| r.delay_reason).collect::<Vec<_>>(),
        [DelayReason::None, DelayReason::Input]
    );
}

#[test]
fn pushed_back_requests_follow_their_overlaps_in_order() {
    // 1 overlaps 0; 2 overlaps 1 alone; 3 is free; 4 overlaps all of them.
    let load =
        vec![write(0, 0, 0, 8), write(1, 10, 4, 8), write(2, 20, 10, 8), write(3, 30, 100, 8), read(4, 40, 0, 200)];
    let (rows, counters) = Bench::new(Policy::Partial, 8).run(load, each_takes(MS));
    let rows = by_request(rows);
    assert_eq!(rows.iter().map(|row| row.pushed_back).collect::<Vec<_>>(), [false, true, true, false, true]);
    for (earlier, later) in [(0, 1), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4)] {
        assert!(rows[earlier].completed <= rows[later].issued, "{earlier} before {later}");
    }
    let wait = rows[1].issued.unwrap() - rows[0].completed.unwrap();
    assert!(wait < Nanos(100), "issued immediately: {wait:?}");
    assert!(rows[3].delay().unwrap() < Nanos(100), "other requests are not delayed");
    assert!(rows.iter().all(|row| row.delay_reason == DelayReason::None), "an overlap sets only pushed_back");
    assert_eq!(counters.max_pushed_back, 3);
}

#[test]
fn pushed_back_requests_do_not_count_against_the_depth() {
    // A long request takes up half the depth.
    let load = vec![write(0, 0, 0, 8), write(1, 10, 0, 8), write(2, 20, 100, 8)];
    let (rows, counters) = Bench { depth: 2, ..Bench::new(Policy::Partial, 2) }
        .run(load, Box::new(|io| (Nanos(if io.offset == 100 * 512 { 50 * MS } else { MS }), io.length as i64)));
    let rows = by_request(rows);
    assert!(rows[1].issued < rows[2].completed);
    assert_eq!(counters.max_in_flight, 2);
}

#[test]
fn ordering_holds_everything_behind_a_conflict_and_counts_it() {
    let load = vec![write(0, 0, 0, 8), write(1, 10, 0, 8), write(2, 20, 0, 8), write(3, 30, 100, 8)];
    let (rows, counters) = Bench::new(Policy::Ordering, 8).run(load, each_takes(MS));
    let rows = by_request(rows);
    assert!(rows.is_sorted_by_key(|row| row.issued));
    use DelayReason::Order;
    assert_eq!(rows.iter().map(|row| row.delay_reason).collect::<Vec<_>>(), [DelayReason::None, Order, Order, Order]);
    assert_eq!((counters.ordered_waits, counters.max_pushed_back), (2, 0), "1 waits for 0, and 2 for 1");
    assert!(rows.iter().all(|row| !row.pushed_back));
}

#[test]
fn dropped_requests_are_recorded_and_counted() {
    let load = vec![write(0, 0, 0, 8), write(1, 10, 0, 8), write(2, 20, 100, 8), write(3, 2 * MS, 0, 8)];
    let (rows, counters) = Bench::new(Policy::Drop, 8).run(load, each_takes(MS));
    let rows = by_request(rows);
    use Outcome::{Dropped, Ok};
    assert_eq!(rows.iter().map(|row| row.outcome).collect::<Vec<_>>(), [Ok, Dropped, Ok, Ok]);
    assert_eq!((rows[1].issued, rows[1].completed, counters.dropped), (None, None, 1));
}

#[test]
fn skipped_requests_are_recorded_and_never_submitted() {
    let skipped = PreparedIo { skip: Some(Outcome::BeyondEnd), ..write(1, 0, 8, 8) };
    let time = Time::starting_at(0);
    let (output, mut done) = RingBuffer::new(8);
    let bench = Bench::new(Policy::Partial, 8);
    let target = Mock::with_latency(time.clone(), Nanos(MS));
    let (_, target, _, _) = bench.issuer(&time, target, vec![write(0, 0, 0, 8), skipped], output).run();
    assert_eq!(target.log.len(), 1);
    let rows = by_request(std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect());
    assert_eq!((rows[1].outcome, rows[1].issued), (Outcome::BeyondEnd, None));
}

#[test]
fn as_fast_as_possible_fills_the_depth_and_has_no_deadlines() {
    let bench = Bench { pace: Pace::AsFastAsPossible, ..Bench::new(Policy::Partial, 3) };
    let (rows, counters) = bench.run((0..30).map(|i| write(i, 0, i * 8, 8)).collect(), each_takes(MS));
    assert!(rows.iter().all(|row| row.delay() == Some(Nanos(0)) && row.delay_reason == DelayReason::None));
    assert_eq!(counters.max_in_flight, 3);
    assert!(by_request(rows).is_sorted_by_key(|row| row.issued));
}

#[test]
fn admitted_requests_complete_after_the_time_limit() {
    // Pairs of requests overlap: a pushed-back request admitted before the limit still completes.
    let pace = Pace::AsFastAsPossible;
    let bench = Bench { pace, until: Nanos(10 * MS + MS / 2), ..Bench::new(Policy::Partial, 1) };
    let (rows, _) = bench.run((0..40).map(|i| write(i, 0, i / 2 * 8, 8)).collect(), each_takes(MS));
    let rows = by_request(rows);
    assert!(rows.len() > 5 && rows.len() < 40, "{}", rows.len());
    assert!(rows.iter().map(|row| row.request).eq(0..rows.len() as u64), "a prefix of the load, each once");
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok));
}

#[test]
fn perturbed_requests_have_a_delay_and_its_reason() {
    let late = PreparedIo { scheduled: Nanos(MS), ..write(1, 3 * MS, 8, 8) };
    let (rows, _) = Bench::new(Policy::Partial, 8).run(vec![write(0, 0, 0, 8), late], each_takes(MS));
    let rows = by_request(rows);
    assert_eq!(rows.iter().map(|r| r.delay_reason).collect::<Vec<_>>(), [DelayReason::None, DelayReason::Perturbed]);
    assert!((2 * MS..2 * MS + 100).contains(&rows[1].delay().unwrap().0));
}

#[test]
fn a_sleep_lasts_until_the_deadline_but_at_most_10_ms() {
    let time = Time::starting_at(0);
    let mut target = Mock::with_latency(time.clone(), Nanos(MS));
    for (left, slept) in [(5 * MS, 5 * MS), (3000 * MS, 10 * MS)] {
        let before = time.now();
        Sleep.idle(Nanos(left), &mut target).unwrap();
        assert_eq!((time.now() - before).0, slept + 1);
    }
}

#[test]
fn the_loop_records_errors_and_short_requests_and_continues() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut with_data = |io: PreparedIo| -> PreparedIo {
        let buffer: Option<Buffer> = pool.take(io.sectors.bytes());
        PreparedIo { buffer, ..io }
    };
    let load = (0..5).map(|i| with_data(write(i, i as i64 * MS, i * 8, 8))).collect();
    let responder: Responder = Box::new(|io| {
        let result = match io.offset / 4096 {
            1 => -i64::from(libc::EIO),
            2 => 512,
            3 => 0,
            _ => io.length as i64,
        };
        (Nanos(1000), result)
    });
    let (rows, _) = Bench::new(Policy::Partial, 8).run(load, responder);
    let results: Vec<_> = by_request(rows).iter().map(|row| (row.outcome, row.errno, row.bytes_done)).collect();
    use Outcome::{Error, Ok, Short};
    assert_eq!(results, [(Ok, 0, 4096), (Error, libc::EIO, 0), (Short, 0, 512), (Short, 0, 0), (Ok, 0, 4096)]);
}

/// Requests a stop when request 2 is staged.
fn stopping(bench: &Bench, request_stop: fn(&Stop)) -> Responder {
    let stop = Rc::clone(&bench.stop);
    Box::new(move |io| {
        if io.offset == 2 * 4096 {
            request_stop(&stop);
        }
        (Nanos(MS / 2), io.length as i64)
    })
}

#[test]
fn draining_waits_for_requests_in_flight_and_issues_no_more() {
    let bench = Bench::new(Policy::Partial, 8);
    // Request 9 waits for request 0 and would be issued after it.
    let mut load: Vec<_> = (0..3).map(|i| write(i, i as i64 * 1000, i * 8, 8)).collect();
    load.insert(2, write(9, 1500, 0, 8));
    load.extend((3..9).map(|i| write(i, i as i64 * MS, i * 8, 8)));
    let responder = stopping(&bench, Stop::drain);
    let (rows, _) = bench.run(load, responder);
    let results: Vec<_> = by_request(rows).iter().map(|row| (row.request, row.outcome, row.issued.is_some())).collect();
    use Outcome::{Ok, Unfinished};
    assert_eq!(results, [(0, Ok, true), (1, Ok, true), (2, Ok, true), (9, Unfinished, false)]);
}

#[test]
fn an_abort_leaves_requests_in_flight_unfinished() {
    let bench = Bench::new(Policy::Partial, 8);
    let responder = stopping(&bench, Stop::abort);
    let (rows, _) = bench.run((0..9).map(|i| write(i, i as i64 * 1000, i * 8, 8)).collect(), responder);
    let rows = by_request(rows);
    assert_eq!(rows.iter().map(|row| row.request).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows.iter().all(|r| r.outcome == Outcome::Unfinished && r.issued.is_some() && r.completed.is_none()));
}

/// Its third submission fails.
struct Failing(Mock, u32);

impl Target for Failing {
    fn stage(&mut self, io: Io<'_>) {
        self.0.stage(io);
    }
    fn submit(&mut self) -> io::Result<()> {
        self.1 += 1;
        if self.1 == 3 { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { self.0.submit() }
    }
    fn reap(&mut self) -> Option<Completion> {
        self.0.reap()
    }
}

impl Waiter for Failing {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        self.0.wait(timeout)
    }
}

#[test]
fn a_failed_submission_ends_the_loop_and_keeps_its_results() {
    let time = Time::starting_at(-MS);
    let target = Failing(Mock::with_latency(time.clone(), Nanos(100)), 0);
    let load = (0..9).map(|i| write(i, i as i64 * MS, i * 8, 8)).collect();
    let (rows, _, outcome) = Bench::new(Policy::Partial, 8).run_on(&time, target, load);
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ENODEV));
    use Outcome::{Ok, Unfinished};
    assert_eq!(rows.iter().map(|row| row.outcome).collect::<Vec<_>>(), [Ok, Ok, Unfinished]);
}

#[test]
fn a_slow_completion_log_holds_the_loop_and_loses_nothing() {
    let bench = Bench::new(Policy::Partial, 4);
    let time = Time::starting_at(-MS);
    let target = Mock::with_latency(time.clone(), Nanos(1000));
    // The smallest queue that holds all requests in flight.
    let (output, mut done) = RingBuffer::<CompletedIo>::new(8);
    let slow = thread::spawn(move || {
        let mut rows = Vec::new();
        while !(done.is_abandoned() && done.is_empty()) {
            thread::sleep(Duration::from_millis(2));
            rows.extend(done.pop().map(|done| done.record).ok());
        }
        rows
    });
    let load = (0..60).map(|i| write(i, i as i64 * 1000, i * 8, 8)).collect();
    let (counters, _, _, outcome) = bench.issuer(&time, target, load, output).run();
    outcome.unwrap();
    let rows = by_request(slow.join().unwrap());
    assert!(rows.iter().map(|row| row.request).eq(0..60), "each once");
    assert!(counters.completion_log_stalls > 0);
    assert!(rows.iter().any(|row| row.delay_reason == DelayReason::CompletionLog));
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Allow, Policy::Drop, Policy::Partial, Policy::Ordering])
}

/// Few positions, so that many requests overlap; many with the same time.
fn loads() -> impl Strategy<Value = Vec<PreparedIo>> {
    let request = (prop_oneof![Just(0_i64), 0..3000_i64], 0_u64..64, 0_u64..16, any::<bool>(), 0_u8..20);
    prop::collection::vec(request, 0..80).prop_map(|requests| {
        let mut at = 0;
        let prepare = |(number, (gap, sector, sectors, reads, skip)): (usize, (i64, u64, u64, bool, u8))| {
            at += gap;
            let io = write(number as u64, at, sector, sectors);
            let op = if reads { Op::Read } else { Op::Write };
            PreparedIo { op, skip: (skip == 0).then_some(Outcome::BeyondEnd), ..io }
        };
        requests.into_iter().enumerate().map(prepare).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_request_is_lost_repeated_early_or_reordered(
        load in loads(), policy in policies(), depth in 1_usize..6, pushed_back in 1_usize..5,
        latencies in prop::collection::vec(1_i64..20_000, 1..20), errors in 1_usize..30,
    ) {
        let count = load.len() as u64;
        let skipped = load.iter().filter(|io| io.skip.is_some()).count();
        let mut number = 0;
        let responder: Responder = Box::new(move |io| {
            number += 1;
            let result = if number % errors == 0 { -i64::from(libc::EIO) } else { io.length as i64 };
            (Nanos(latencies[number % latencies.len()]), result)
        });
        let bench = Bench { pushed_back, ..Bench::new(policy, depth) };
        let (rows, counters) = bench.run(load, responder);
        let done: Vec<_> = rows.iter().filter_map(|row| row.completed).collect();
        prop_assert!(done.is_sorted(), "in the order of completion");
        let rows = by_request(rows);
        prop_assert!(rows.iter().map(|row| row.request).eq(0..count), "each once");
        let dropped = rows.iter().filter(|row| row.outcome == Outcome::Dropped).count();
        prop_assert_eq!(dropped as u64, counters.dropped);
        prop_assert!(dropped == 0 || policy == Policy::Drop);
        let issued: Vec<&IoResult> = rows.iter().filter(|row| row.issued.is_some()).collect();
        prop_assert_eq!(issued.len() + dropped + skipped, rows.len());
        for row in &issued {
            prop_assert!(row.issued.unwrap() >= row.scheduled, "early: {:?}", row);
            prop_assert!(row.completed.unwrap() > row.issued.unwrap());
            prop_assert!(row.issued <= row.last_empty_poll && row.last_empty_poll <= row.completed, "{:?}", row);
            let in_flight = |pushed: bool| issued.iter().filter(|other| {
                other.pushed_back == pushed && other.issued <= row.issued && other.completed > row.issued
            }).count();
            prop_assert!(in_flight(false) <= depth, "the depth is exceeded at {:?}", row);
            prop_assert!(in_flight(true) <= pushed_back, "the limit of pushed-back requests is exceeded at {:?}", row);
            prop_assert!(!row.pushed_back || policy == Policy::Partial);
        }
        // Requests that were not pushed back are issued in the order of the load.
        let in_order: Vec<_> = issued.iter().filter(|row| !row.pushed_back).map(|row| row.issued).collect();
        prop_assert!(in_order.is_sorted());
        if policy != Policy::Allow {
            for (i, a) in issued.iter().enumerate() {
                for b in &issued[i + 1..] {
                    if overlap(a, b) && (a.op.modifies() || b.op.modifies()) {
                        prop_assert!(a.completed <= b.issued, "reordered or in flight together:\n{:?}\n{:?}", a, b);
                    }
                }
            }
        }
    }
}

/// Requests alternate between target 0 with a latency of 1 s and target 1 with a latency of 0.1 ms.
fn load_of_a_slow_and_a_fast_target(requests: u64) -> (Vec<PreparedIo>, Responder) {
    let on = |i: u64| PreparedIo { target: (i % 2) as u16, ..write(i, i as i64 * MS, i * 8, 8) };
    let responder = Box::new(|io: &Io<'_>| (Nanos(if io.target == 0 { 1000 * MS } else { MS / 10 }), io.length as i64));
    ((0..requests).map(on).collect(), responder)
}

#[test]
fn with_a_depth_per_target_a_full_target_does_not_hold_others() {
    let (load, responder) = load_of_a_slow_and_a_fast_target(40);
    let (rows, counters) = Bench::with_depth_per_target(2, Policy::Partial, 1).run(load, responder);
    let rows = by_request(rows);
    for row in rows.iter().filter(|row| row.request % 2 == 1) {
        assert!(row.delay().unwrap() < Nanos(MS / 10) && row.delay_reason == DelayReason::None, "{row:?}");
    }
    for row in rows.iter().filter(|row| row.request % 2 == 0).skip(1) {
        assert!(row.delay().unwrap() > Nanos(900 * MS) && row.delay_reason == DelayReason::Depth, "{row:?}");
    }
    assert_eq!(counters.max_in_flight, 2, "one on each");

    let (load, responder) = load_of_a_slow_and_a_fast_target(40);
    let (rows, counters) = Bench::new(Policy::Partial, 1).run(load, responder);
    let held = rows.iter().filter(|row| row.delay_reason == DelayReason::Depth).count();
    assert!(held >= 38, "a shared depth also holds requests of the fast target: {held}");
    assert_eq!(counters.max_in_flight, 1);
}

#[test]
fn as_fast_as_possible_serves_all_targets_in_turn() {
    let load: Vec<_> = (0..400).map(|i| PreparedIo { target: u16::from(i >= 200), ..write(i, 0, i * 8, 8) }).collect();
    let mut bench = Bench::with_depth_per_target(2, Policy::Partial, 8);
    bench.pace = Pace::AsFastAsPossible;
    // So fast that slots of the first target are free in every turn.
    let (rows, _) = bench.run(load, each_takes(1));
    let first_of_second = rows.iter().position(|row| row.request >= 200).unwrap();
    assert!(first_of_second < 50, "{first_of_second} requests were issued before it");
}

#[test]
fn pushed_back_requests_of_one_target_take_no_slots_of_another() {
    let mut bench = Bench::with_depth_per_target(2, Policy::Partial, 8);
    bench.pushed_back = 2;
    // All requests of target 0 overlap and soon use up its slots for pushed-back requests.
    let load = (0..20).map(|i| PreparedIo { target: (i % 2) as u16, ..write(i, i as i64 * MS, (i % 2) * i * 8, 8) });
    let responder = Box::new(|io: &Io<'_>| (Nanos(if io.target == 0 { 100 * MS } else { MS / 10 }), io.length as i64));
    let (rows, counters) = bench.run(load.collect(), responder);
    assert_eq!((rows.len(), counters.max_pushed_back), (20, 2));
    for row in rows.iter().filter(|row| row.request % 2 == 1) {
        assert_eq!(row.delay_reason, DelayReason::None, "{row:?}");
    }
}

#[test]
fn a_full_dispatch_queue_holds_the_input() {
    let (mut producer, input) = RingBuffer::new(4);
    let prepare = thread::spawn(move || {
        // Far more requests for the first target than its queue holds, then one for the second.
        for i in 0..64 {
            let mut next = PreparedIo { target: u16::from(i == 63), ..write(i, 0, i * 8, 8) };
            while let Err(rtrb::PushError::Full(back)) = producer.push(next) {
                next = back;
                thread::yield_now();
            }
        }
    });
    let bench = Bench::with_depth_per_target(2, Policy::Ordering, 1);
    let time = Time::starting_at(-MS);
    let target = Mock::with_latency(time.clone(), Nanos(MS));
    let (output, mut done) = RingBuffer::<CompletedIo>::new(64 + 2 * 65);
    let (counters, _, _, outcome) = bench.issuer_with_input(&time, target, input, output).run();
    outcome.unwrap();
    prepare.join().unwrap();
    let rows: Vec<_> = std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect();
    assert!(by_request(rows.clone()).iter().map(|row| row.request).eq(0..64), "each once");
    assert!(rows.iter().all(|row| row.waiting <= 8), "no more than the queues hold");
    assert_eq!(counters.max_in_flight.max(2), 2);
}

proptest! {
    #[test]
    fn requests_in_flight_never_exceed_the_depth_of_a_target(
        requests in prop::collection::vec((0u16..3, 0i64..5, 0u64..20, 1i64..20), 1..80), depth in 1usize..4,
    ) {
        let targets: Vec<u16> = requests.iter().map(|r| r.0).collect();
        let takes: Vec<i64> = requests.iter().map(|r| r.3 * MS).collect();
        let mut at = 0;
        let load = requests.iter().enumerate().map(|(i, &(target, after, position, _))| {
            at += after * MS;
            // The length identifies the request.
            PreparedIo { target, ..write(i as u64, at, position * 1000, i as u64 + 1) }
        });
        let load: Vec<_> = load.collect();
        let responder = Box::new(move |io: &Io<'_>| (Nanos(takes[(io.length / 512) as usize - 1]), io.length as i64));
        let (rows, _) = Bench::with_depth_per_target(3, Policy::Partial, depth).run(load, responder);
        prop_assert_eq!(rows.len(), requests.len());
        for row in &rows {
            let in_flight = |other: &&IoResult| other.issued <= row.issued && other.completed > row.issued;
            let ordinary = |other: &&IoResult| !other.pushed_back;
            let target = targets[row.request as usize];
            let on_same_target = |other: &&IoResult| targets[other.request as usize] == target;
            prop_assert!(rows.iter().filter(on_same_target).filter(ordinary).filter(in_flight).count() <= depth);
        }
    }
}
