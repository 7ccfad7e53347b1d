//! Reasons of delays: the same in each way of waiting, and a stall of the replayer is never the device's.

use iosonar_pacing::fidelity::{Fidelity, LATE, UncountedCauses, of_closed_loop};
use iosonar_pacing::idle::{BlockingWait, Hybrid, Sleep, Spin, Turn, Waiter};
use iosonar_trace::run_info::{Cause, Verdict};

use super::*;
use crate::result::delays::delay_of;

/// As [`VirtualIdle`](crate::run::inline_stages::VirtualIdle) without other stages.
struct VirtualTime;

impl<T: Target> Idle<T> for VirtualTime {
    const DEADLINE_MARGIN: Nanos = Nanos(i64::MIN);
    const COMPLETIONS_FIRST: bool = true;

    fn idle(&mut self, left: Nanos, target: &mut T) -> io::Result<Turn> {
        target.wait(if left > Nanos::ZERO { left } else { Nanos::MAX }).map(|()| Turn::Simulated)
    }
}

/// What the loop meets.
struct World {
    /// When each request is due.
    times: Vec<i64>,
    /// How far apart they are; 0 if all overlap.
    distance: u64,
    latency: i64,
    depth: usize,
    /// When the loop is stopped, and when it continues.
    stall: Option<(i64, i64)>,
}

impl World {
    fn every(ms: i64, count: i64, latency: i64, depth: usize) -> Self {
        Self { times: (0..count).map(|i| i * ms * MS).collect(), distance: 8, latency, depth, stall: None }
    }

    fn with_stall(self, from: i64, to: i64) -> Self {
        Self { stall: Some((from, to)), ..self }
    }

    fn run<I: Idle<Mock>>(&self, idle: I, step: i64) -> Outcomes {
        self.run_at(Pace::Timed, idle, step)
    }

    fn run_at<I: Idle<Mock>>(&self, pace: Pace, idle: I, step: i64) -> Outcomes {
        let time = Time::with_step(-MS, step);
        if let Some((from, to)) = self.stall {
            time.stall(Nanos(from), Nanos(to));
        }
        let (mut producer, input) = RingBuffer::new(self.times.len());
        for (request, at) in (0..).zip(&self.times) {
            let prepared = write(request, *at, request * self.distance, 8);
            producer.push(prepared).expect("the queue has room for the load");
        }
        drop(producer);
        let limits = Limits {
            depth: self.depth,
            clients: self.depth,
            pushed_back: 4096,
            batch: 32,
            queues: 1,
            shared: 0,
            until: Nanos::MAX,
        };
        let (output, mut done) = RingBuffer::new(self.times.len() + limits.slots() + 1);
        let (in_flight, stop) = (AtomicU32::default(), Stop::default());
        let (stalls, mut stalled) = RingBuffer::new(4096);
        let parts = IssuerParts {
            clock: time.clone(),
            target: Mock::with_latency(time, Nanos(self.latency)),
            idle,
            rules: IssueRules { pace, policy: Policy::Partial, strong: Strong::AnyWrite, limits },
            stop: &stop,
            input,
            output,
            stall_monitor: StallMonitor::with_scheduler(&in_flight, stalls, Scheduler::NONE),
            rereader: None,
            program: None,
        };
        let (counters, _, _, outcome) = Issuer::new(parts).run();
        outcome.expect("a mock does not fail");
        let done: Vec<_> = std::iter::from_fn(|| done.pop().ok()).collect();
        assert_eq!(done.len(), self.times.len());
        let mut fidelity = Fidelity::default();
        std::iter::from_fn(|| stalled.pop().ok()).for_each(|stall| fidelity.add_stall(0, stall));
        let delays = done.iter().filter_map(|done| delay_of(&done.record, done.is_late_by_load));
        delays.for_each(|delay| fidelity.add(&delay, 0));
        let rows = by_request(done.into_iter().map(|done| done.record).collect());
        let mut verdict =
            fidelity.verdict_of(true, &UncountedCauses { burst: counters.burst, other_io: None }).unwrap();
        if pace != Pace::Timed {
            let end = rows.iter().filter_map(|row| row.completed).max().unwrap();
            verdict = of_closed_loop(verdict, counters.blind_time, end);
        }
        Outcomes { rows, verdict }
    }

    /// In each way of waiting, with its name. In virtual time there are no stalls.
    fn in_each_mode(&self) -> Vec<(&'static str, Outcomes)> {
        let mut all = vec![
            ("spin", self.run(Spin, 4000)),
            ("hybrid", self.run(Hybrid { margin: Nanos(100_000) }, 4000)),
            ("sleep", self.run(Sleep, 4000)),
            ("inline", self.run(BlockingWait, 4000)),
        ];
        if self.stall.is_none() {
            all.push(("virtual time", self.run(VirtualTime, 0)));
        }
        all
    }
}

struct Outcomes {
    rows: Vec<IoResult>,
    verdict: Verdict,
}

impl Outcomes {
    /// Requests that are late by more than `least`, and whether they count as the replayer's.
    fn late(&self, least: Nanos) -> impl Iterator<Item = (u64, bool)> {
        let late = self.rows.iter().filter(move |row| row.delay().unwrap() > least);
        late.map(|row| (row.request, row.is_not_held_back()))
    }
}

#[test]
fn a_burst_beyond_the_loop_is_the_loads_demand() {
    let burst = (0..1503).map(|i| 1_409_400_000 + i * 1264);
    let times = (0..100).map(|i| i * 10 * MS).chain(burst).collect();
    // The loop takes 2.5 µs for each request, so that it is 1.9 ms late at the end.
    let world = World { times, ..World::every(0, 0, 20 * MS, 4096) };
    let Outcomes { verdict, .. } = world.run(Spin, 16_000);
    assert!(!verdict.is_faithful() && verdict.worst[0].cause == Cause::Burst, "{verdict:?}");
    let why =
        "late requests because the load demands 1,503 requests within 1.9 ms, 790,000/s, at 1.409 s; this loop reaches";
    assert!(verdict.sentence.contains(why), "{}", verdict.sentence);
    // The same number at the pace of the loop, with a stall.
    let steady = (0..1503).map(|i| i * 4000).collect();
    let world = World { times: steady, ..World::every(0, 0, MS / 10, 512) }.with_stall(2 * MS, 3 * MS);
    let Outcomes { verdict, .. } = world.run(Spin, 4000);
    assert!(!verdict.late.is_empty() && verdict.late.iter().all(|late| late.cause != Cause::Burst), "{verdict:?}");
}

#[test]
fn every_request_beyond_the_depth_has_delay_reason_depth() {
    let bursts = (0..10).flat_map(|burst| (0..15).map(move |i| (burst * 30 + (i - 7).max(0)) * MS)).collect();
    let world = World { times: bursts, ..World::every(0, 0, 10 * MS, 8) };
    for (mode, Outcomes { rows, verdict }) in world.in_each_mode() {
        for row in &rows {
            let expected = if row.request % 15 < 8 { DelayReason::None } else { DelayReason::Depth };
            assert_eq!(row.delay_reason, expected, "{mode}: {row:?}");
        }
        assert!(verdict.is_faithful(), "{mode}: {}", verdict.sentence);
        assert_eq!((verdict.own.requests, verdict.device.requests), (80, 70), "{mode}");
    }
}

#[test]
fn a_backlog_from_a_stall_is_the_replayers_at_each_depth() {
    for depth in [1, 4, 64] {
        // The device takes a tenth and nine tenths of the time that it has.
        for latency in [MS / 10, depth as i64 * MS * 9 / 10] {
            let world = World::every(1, 1500, latency, depth).with_stall(500 * MS, 800 * MS);
            for (mode, found) in world.in_each_mode() {
                let late: Vec<_> = found.late(LATE).collect();
                assert!(late.len() >= 299, "{mode}, depth {depth}, {latency} ns: {}", late.len());
                let of_device: Vec<_> = late.iter().filter(|(_, own)| !own).collect();
                let first = of_device.first();
                assert!(first.is_none(), "{mode}, depth {depth}, {latency} ns: {first:?} of {}", of_device.len());
                assert!(!found.verdict.is_faithful(), "{mode}, depth {depth}: {}", found.verdict.sentence);
                assert!(!found.verdict.sentence.contains("device"), "{}", found.verdict.sentence);
            }
        }
    }
}

#[test]
fn a_stall_is_the_replayers_wherever_in_the_loop_it_begins() {
    // Each reading of the clock, around the issue of a request and its completion.
    for begin in (0..40).map(|i| i * 3000).chain((0..40).map(|i| 900_000 + i * 3000)) {
        for depth in [1, 4] {
            let from = 100 * MS - 20_000 + begin;
            let world = World::every(1, 300, depth as i64 * MS * 9 / 10, depth).with_stall(from, from + 50 * MS);
            let found = world.run(Spin, 4000);
            assert!(found.late(LATE).all(|(_, own)| own), "{begin}, depth {depth}");
            assert!(!found.verdict.is_faithful(), "{begin}, depth {depth}: {}", found.verdict.sentence);
        }
    }
}

#[test]
fn only_with_a_stall_does_the_replayer_add_to_slow_devices() {
    for depth in [1, 4, 64] {
        let world = || World::every(1, 1500, depth as i64 * 2 * MS, depth);
        for (mode, found) in world().in_each_mode() {
            assert!(found.verdict.is_faithful(), "{mode}, depth {depth}: {}", found.verdict.sentence);
            assert!(found.late(LATE).all(|(_, own)| !own), "{mode}, depth {depth}");
        }
        for (mode, found) in world().with_stall(500 * MS, 800 * MS).in_each_mode() {
            assert!(!found.verdict.is_faithful(), "{mode}, depth {depth}: {}", found.verdict.sentence);
            // Those before the stall were delayed by the device.
            let before = found.late(LATE).filter(|(request, own)| *request < 100 && *own).count();
            assert_eq!(before, 0, "{mode}, depth {depth}");
        }
    }
}

#[test]
fn after_a_short_stall_an_overload_is_still_the_devices() {
    let world = World::every(1, 3000, 2 * MS, 1).with_stall(1000 * MS, 1004 * MS);
    for (mode, found) in world.in_each_mode() {
        assert!(found.verdict.is_faithful(), "{mode}: {}", found.verdict.sentence);
        let own = found.late(Nanos(20 * MS)).filter(|(_, own)| *own).count();
        assert_eq!(own, 0, "{mode}");
    }
}

#[test]
fn overlaps_that_a_stall_of_the_replayer_made_are_the_replayers() {
    // Each writes the same sectors, a millisecond apart, and takes a tenth of that.
    let world = World { distance: 0, ..World::every(1, 1000, MS / 10, 64) }.with_stall(300 * MS, 500 * MS);
    for (mode, found) in world.in_each_mode() {
        let late: Vec<_> = found.late(LATE).collect();
        assert!(late.len() >= 199 && late.iter().all(|(_, own)| *own), "{mode}: {late:?}");
        assert!(found.rows.iter().filter(|row| row.pushed_back).count() > 150, "{mode}: they did wait for each other");
        assert!(!found.verdict.is_faithful(), "{mode}: {}", found.verdict.sentence);
    }
    // A device that takes longer makes them overlap without a stall.
    let world = World { distance: 0, ..World::every(1, 300, 2 * MS, 64) };
    for (mode, found) in world.in_each_mode() {
        assert!(
            found.late(LATE).all(|(_, own)| !own) && found.verdict.is_faithful(),
            "{mode}: {}",
            found.verdict.sentence
        );
    }
}

#[test]
fn a_closed_loop_that_stalled_for_long_is_not_faithful() {
    // Two clients and a device of 5 ms take 2.5 s for a thousand requests, with as few late requests as there are clients.
    let world = || World::every(0, 1000, 5 * MS, 2);
    let closed = |world: World| {
        [
            world.run_at(Pace::Closed(Think::Never), Spin, 4000),
            world.run_at(Pace::Closed(Think::Never), BlockingWait, 4000),
            world.run_at(Pace::Closed(Think::Never), Sleep, 4000),
        ]
    };
    for found in closed(world()).into_iter().chain(closed(world().with_stall(500 * MS, 550 * MS))) {
        assert!(found.verdict.is_faithful(), "{}", found.verdict.sentence);
    }
    for found in closed(world().with_stall(500 * MS, 900 * MS)) {
        assert!(
            !found.verdict.is_faithful() && found.verdict.sentence.contains("did not run"),
            "{}",
            found.verdict.sentence
        );
    }
}

/// Takes a while until it makes the call of a request, as a pool of threads does.
struct HandsOver(Mock, Time);

const SERVICE: i64 = MS;
const HAND_OVER: i64 = MS / 10;

impl Target for HandsOver {
    fn stage(&mut self, io: Io<'_>) {
        self.0.stage(io);
    }

    fn submit(&mut self) -> io::Result<()> {
        self.0.submit()
    }

    fn reap(&mut self) -> Option<Completion> {
        let completion = self.0.reap()?;
        Some(Completion { issued: Some(self.1.now() - Nanos(SERVICE)), ..completion })
    }
}

impl Waiter for HandsOver {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        self.0.wait(timeout)
    }
}

#[test]
fn a_request_is_issued_when_its_thread_makes_the_call() {
    let time = Time::starting_at(-MS);
    let target = HandsOver(Mock::with_latency(time.clone(), Nanos(SERVICE + HAND_OVER)), time.clone());
    let load = (0..20).map(|i| write(i, i as i64 * 5 * MS, i * 8, 8)).collect();
    let (rows, _, outcome) = Bench::new(Policy::Partial, 8).run_on(&time, target, load);
    outcome.unwrap();
    for row in &rows {
        assert!((0..1000).contains(&(row.delay().unwrap().0 - HAND_OVER)), "{row:?}");
        assert!((0..1000).contains(&(row.latency().unwrap().0 - SERVICE)), "{row:?}");
        assert_eq!((row.delay_reason, row.submitted), (DelayReason::None, None));
        assert!(row.last_empty_poll >= row.issued);
    }
}
