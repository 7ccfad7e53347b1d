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
mod stops;
mod targets;

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
            clients: self.depth * self.queues,
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
