//! Several loops in threads of their own, on one target that takes note of what is in flight.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::idle::{Turn, Waiter};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::issuer::SharedWith;
use crate::issuer::conflicts::Range;
use crate::pipeline::sharding::{Outputs, Shards, SharedRequests};

/// The ends of extents are multiples of this.
const EXTENT: u64 = 8192;

/// What all loops have in flight, and the faults seen.
struct World {
    strong: Strong,
    may_overlap: bool,
    in_flight: HashMap<u64, Range>,
    /// Requests in the order of issue.
    issued: Vec<u64>,
    faults: Vec<String>,
}

impl World {
    fn issue(&mut self, request: u64, range: Range) {
        let overlapping = self.in_flight.iter().filter(|(_, other)| {
            let have_sectors = range.sectors > 0 && other.sectors > 0;
            have_sectors && range.overlaps(other) && self.strong.conflict(range.modifies, other.modifies)
        });
        let found: Vec<u64> = overlapping.map(|(other, _)| *other).collect();
        if !self.may_overlap && !found.is_empty() {
            self.faults.push(format!("{request} was issued while {found:?} were in flight"));
        }
        self.in_flight.insert(request, range);
        self.issued.push(request);
    }
}

/// Completes requests in any order, after any number of turns.
struct AnyOrder {
    world: Arc<Mutex<World>>,
    random: Xoshiro256PlusPlus,
    staged: Vec<(u32, u64, Range, i64)>,
    in_flight: Vec<(u32, u64, i64)>,
    /// Submissions until it fails.
    fails_after: u32,
}

impl Target for AnyOrder {
    fn stage(&mut self, io: Io<'_>) {
        let range =
            Range { target: io.target, sector: io.offset / 512, sectors: io.length / 512, modifies: io.op.modifies() };
        self.staged.push((io.slot, io.key, range, io.length as i64));
    }

    fn submit(&mut self) -> io::Result<()> {
        self.fails_after -= 1;
        if self.fails_after == 0 {
            return Err(io::Error::other("it fails on purpose"));
        }
        for (slot, request, range, bytes) in self.staged.drain(..) {
            self.world.lock().unwrap().issue(request, range);
            self.in_flight.push((slot, request, bytes));
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Completion> {
        if self.in_flight.is_empty() || !self.random.next_u32().is_multiple_of(4) {
            return None;
        }
        let at = self.random.next_u32() as usize % self.in_flight.len();
        let (slot, request, result) = self.in_flight.swap_remove(at);
        self.world.lock().unwrap().in_flight.remove(&request);
        Some(Completion { slot, result, issued: None })
    }
}

impl Waiter for AnyOrder {
    fn wait(&mut self, _: Nanos) -> io::Result<()> {
        thread::yield_now();
        Ok(())
    }
}

/// Yields the processor: there may be fewer than loops.
struct Yield;

impl<T> Idle<T> for Yield {
    fn idle(&mut self, _: Nanos, _: &mut T) -> io::Result<Turn> {
        thread::yield_now();
        Ok(Turn::Busy)
    }
}

#[derive(Clone, Debug)]
struct Setup {
    issuers: usize,
    targets: usize,
    policy: Policy,
    strong: Strong,
    pace: Pace,
    depth: usize,
    queues: usize,
    capacity: usize,
    until: Nanos,
    seed: u64,
    /// Requests after which the run is stopped.
    stop_after: usize,
    fails_after: u32,
}

impl Setup {
    fn new(issuers: usize) -> Self {
        Self {
            issuers,
            targets: 1,
            policy: Policy::Partial,
            strong: Strong::AnyWrite,
            pace: Pace::AsFastAsPossible,
            depth: 4,
            queues: 1,
            capacity: 16,
            until: Nanos::MAX,
            seed: 1,
            stop_after: usize::MAX,
            fails_after: u32::MAX,
        }
    }

    /// Returns all rows, and what the target saw.
    fn run(&self, load: Vec<PreparedIo>) -> (Vec<IoResult>, World) {
        let may_overlap = self.policy == Policy::Allow;
        let world = World {
            strong: self.strong,
            may_overlap,
            in_flight: HashMap::new(),
            issued: Vec::new(),
            faults: Vec::new(),
        };
        let world = Arc::new(Mutex::new(world));
        let shards = Shards::new(self.issuers, self.targets);
        let shared = (!may_overlap).then(|| Arc::new(SharedRequests::default()));
        let prepared = Arc::new(AtomicU64::new(0));
        let (producers, consumers): (Vec<_>, Vec<_>) =
            (0..self.issuers).map(|_| RingBuffer::new(self.capacity)).unzip();
        let mut outputs = Outputs::new(producers, shards, shared.clone(), Arc::clone(&prepared));
        let clock = Monotonic::starting_in(Nanos::ZERO);
        let (stop, in_flight) = (Stop::default(), AtomicU32::default());
        let limits = Limits {
            depth: self.depth,
            clients: self.depth * self.queues,
            pushed_back: 8,
            batch: 4,
            queues: self.queues,
            shared: SharedRequests::SLOTS,
            until: self.until,
        };
        let rules = IssueRules { pace: self.pace, policy: self.policy, strong: self.strong, limits };
        let rows = thread::scope(|scope| {
            let loops: Vec<_> = consumers
                .into_iter()
                .enumerate()
                .map(|(number, input)| {
                    let (output, rows) = RingBuffer::new(load.len() + limits.slots() + 1);
                    let random = Xoshiro256PlusPlus::seed_from_u64(self.seed + number as u64);
                    let (staged, world) = (Vec::new(), Arc::clone(&world));
                    let fails_after = if number == 0 { self.fails_after } else { u32::MAX };
                    let target = AnyOrder { world, random, staged, in_flight: Vec::new(), fails_after };
                    let with = SharedWith { issuer: number as u16, shared: shared.clone(), prepared: None };
                    let (stop, in_flight) = (&stop, &in_flight);
                    let run = move || {
                        let parts = IssuerParts {
                            clock,
                            target,
                            idle: Yield,
                            rules,
                            stop,
                            input,
                            output,
                            stall_monitor: StallMonitor::new(in_flight, RingBuffer::new(64).0),
                            rereader: None,
                            program: None,
                        };
                        let (.., outcome) = Issuer::new(parts).sharing(with).run();
                        if outcome.is_err() {
                            stop.drain();
                        }
                    };
                    (scope.spawn(run), rows)
                })
                .collect();
            for (number, mut io) in load.into_iter().enumerate() {
                if number == self.stop_after {
                    stop.drain();
                }
                while let Some(back) = outputs.push(io) {
                    io = back;
                    if outputs.is_abandoned() || stop.is_requested() {
                        break;
                    }
                    thread::yield_now();
                }
            }
            drop(outputs);
            let mut all = Vec::new();
            for (thread, mut rows) in loops {
                thread.join().expect("a loop does not panic");
                all.extend(std::iter::from_fn(|| rows.pop().ok()).map(|done| done.record));
            }
            all
        });
        (rows, Arc::into_inner(world).unwrap().into_inner().unwrap())
    }
}

fn range(io: &PreparedIo) -> Range {
    Range { target: io.target, sector: io.sector.0, sectors: io.sectors.0, modifies: io.op.modifies() }
}

/// Pairs of a request with a later one that conflicts.
fn conflicts(load: &[PreparedIo], strong: Strong) -> Vec<(u64, u64)> {
    let ranges: Vec<_> = load.iter().filter(|io| io.sectors.0 > 0 && io.skip.is_none()).collect();
    let pairs = ranges.iter().enumerate().flat_map(|(i, first)| ranges[i + 1..].iter().map(move |then| (first, then)));
    pairs
        .filter(|(first, then)| {
            let (a, b) = (range(first), range(then));
            a.overlaps(&b) && strong.conflict(a.modifies, b.modifies)
        })
        .map(|(first, then)| (first.request, then.request))
        .collect()
}

fn copy(load: &[PreparedIo]) -> Vec<PreparedIo> {
    load.iter().map(|io| PreparedIo { buffer: None, ..*io }).collect()
}

/// Few extents and few positions in them, often across an end; some requests are long, some are skipped or have no sectors.
fn loads() -> impl Strategy<Value = Vec<PreparedIo>> {
    let position = (0_u64..7, prop_oneof![3 => 0_u64..40, 1 => Just(0), 3 => (EXTENT - 40)..EXTENT])
        .prop_map(|(extent, at)| extent * EXTENT + at);
    let sectors = prop_oneof![6 => 1_u64..30, 3 => 30_u64..2 * EXTENT, 1 => Just(40 * EXTENT)];
    let op = prop_oneof![4 => Just(Op::Write), 4 => Just(Op::Read), 1 => Just(Op::Discard), 1 => Just(Op::Flush)];
    let request = (position, sectors, op, 0_u16..2, 0_u8..20);
    prop::collection::vec(request, 1..150).prop_map(|requests| {
        let prepared = |(i, (sector, sectors, op, target, skip)): (usize, (u64, u64, Op, u16, u8))| {
            let sectors = Sectors(if op == Op::Flush { 0 } else { sectors });
            let skip = (skip == 0).then_some(Outcome::BeyondEnd);
            PreparedIo { op, sectors, target, skip, ..write(i as u64, i as i64 * 2000, sector, 0) }
        };
        requests.into_iter().enumerate().map(prepared).collect()
    })
}

fn setups() -> impl Strategy<Value = Setup> {
    let issuers = prop::sample::select(vec![1, 2, 3, 8]);
    let policy = prop::sample::select(vec![Policy::Partial, Policy::Partial, Policy::Drop, Policy::Allow]);
    let strong = prop::sample::select(vec![Strong::Writes, Strong::AnyWrite, Strong::Everything]);
    let pace = prop::sample::select(vec![Pace::Timed, Pace::AsFastAsPossible]);
    let sizes = (prop::sample::select(vec![1, 2, 5, 16]), 1_usize..=2, prop::sample::select(vec![1, 3, 64]));
    (issuers, policy, strong, pace, sizes, any::<u64>(), 1_usize..=2).prop_map(
        |(issuers, policy, strong, pace, (depth, queues, capacity), seed, targets)| Setup {
            policy,
            strong,
            pace,
            depth,
            queues,
            capacity,
            targets,
            seed: seed >> 8,
            ..Setup::new(issuers)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_loops_keeps_conflicts_apart(
        setup in setups(), load in loads(),
    ) {
        let (rows, world) = setup.run(copy(&load));
        prop_assert_eq!(&world.faults, &Vec::<String>::new());
        let mut ended: Vec<u64> = rows.iter().map(|row| row.request).collect();
        ended.sort_unstable();
        prop_assert!(ended.iter().copied().eq(0..load.len() as u64), "each exactly once: {:?}", ended);
        let pairs = conflicts(&load, setup.strong);
        let rows = by_request(rows);
        let place: HashMap<u64, usize> = world.issued.iter().copied().zip(0..).collect();
        for row in &rows {
            let io = &load[row.request as usize];
            match row.outcome {
                Outcome::BeyondEnd => prop_assert!(io.skip.is_some()),
                Outcome::Dropped => {
                    prop_assert_eq!(setup.policy, Policy::Drop);
                    let has_earlier = pairs.iter().any(|&(first, then)| {
                        then == row.request && rows[first as usize].outcome != Outcome::Dropped
                    });
                    prop_assert!(has_earlier, "{} has nothing in flight to conflict with", row.request);
                }
                outcome => {
                    prop_assert_eq!(outcome, Outcome::Ok);
                    prop_assert!(io.skip.is_none() && place.contains_key(&row.request));
                }
            }
            if row.pushed_back {
                prop_assert_eq!(setup.policy, Policy::Partial);
                prop_assert!(pairs.iter().any(|&(_, then)| then == row.request), "{} conflicts with nothing", row.request);
            }
        }
        if setup.policy == Policy::Partial {
            for (first, then) in pairs {
                prop_assert!(place[&first] < place[&then], "{first} before {then}");
                let (first, then) = (&rows[first as usize], &rows[then as usize]);
                prop_assert!(first.completed <= then.issued);
            }
        }
    }

    #[test]
    fn a_run_that_ends_early_has_no_request_twice(
        setup in setups(), load in loads(), way in 0_u8..3, when in 0_usize..60,
    ) {
        let setup = match way {
            0 => Setup { stop_after: when, ..setup },
            1 => Setup { fails_after: when as u32 / 4 + 1, ..setup },
            // From before the loops have started to after their end.
            _ => Setup { until: Nanos(when as i64 * 50_000), ..setup },
        };
        let (rows, world) = setup.run(copy(&load));
        if way != 1 {
            prop_assert_eq!(&world.faults, &Vec::<String>::new());
        }
        let mut ended: Vec<u64> = rows.iter().map(|row| row.request).collect();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), rows.len(), "none twice");
        for request in world.issued {
            prop_assert!(ended.binary_search(&request).is_ok(), "{request} was issued and has no row");
        }
    }
}

#[test]
fn loops_end_though_requests_wait_for_some_never_issued() {
    // Every request overlaps others, in all loops; much longer than the time.
    let load: Vec<_> = (0..4000).map(|i| write(i, 0, i % 7 * EXTENT / 2, 3 * EXTENT)).collect();
    for (seed, issuers) in (0..30).zip([2, 3, 8].into_iter().cycle()) {
        let until = Nanos(seed as i64 * 200_000);
        let (rows, world) = Setup { seed, until, capacity: 64, ..Setup::new(issuers) }.run(copy(&load));
        assert_eq!(world.faults, [""; 0]);
        assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "{seed}");
    }
}

#[test]
fn a_conflict_in_another_loop_marks_a_request_as_pushed_back() {
    // Two loops: the first extent of a group belongs to one, the second to the other.
    let load = || vec![write(0, 0, EXTENT, 8), write(1, 0, EXTENT - 8, 16)];
    for seed in 0..20 {
        let (rows, world) = Setup { seed, ..Setup::new(2) }.run(load());
        let rows = by_request(rows);
        assert_eq!(world.issued, [0, 1]);
        assert!(rows[0].completed <= rows[1].issued && !rows[0].pushed_back);
        // Not if the first has completed before the second reaches its guard.
        assert!(rows[1].outcome == Outcome::Ok && rows[1].delay_reason == DelayReason::None, "{:?}", rows[1]);
    }
}
