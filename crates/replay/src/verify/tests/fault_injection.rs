//! Whole runs through the loop, on storage that is honest and on storage that lies.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use iosonar_trace::run_info::{Finding, FindingKind, Pass};
use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use proptest::prelude::*;
use rtrb::RingBuffer;

use super::load::write;
use super::store::{Lie, Plan, Store};
use crate::address::placement::Geometry;
use crate::device::discarded::Discarded;
use crate::engine::Io;
use crate::engine::mock::{SkipToNextEvent, Time};
use crate::issuer::conflicts::{Policy, Strong};
use crate::issuer::{IssueRules, Issuer, IssuerParts, Limits, Pace, Rereader, StallMonitor, Stop};
use crate::pipeline::buffers::Pool;
use crate::pipeline::io::PreparedIo;
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::{FinalPass, FinalPassProgress};
use crate::verify::header::{poison, write_header};

const RUN: u64 = 77;
const SECTORS: u64 = 64;

/// A run, and how it is to be.
#[derive(Clone, Copy, Debug)]
struct Bench {
    verify: Verify,
    policy: Policy,
    strong: Strong,
    depth: usize,
    discarded: Discarded,
}

/// What came of it.
struct Ran {
    rows: Vec<IoResult>,
    findings: Vec<Finding>,
    mismatches: u64,
    far: FinalPassProgress,
    undecided: u64,
    /// Reads of the load, of what was just written, and at the end, that an honest store would have answered otherwise.
    wrong_reads: usize,
    /// Sectors in which the store is not as it says.
    wrong_sectors: Vec<u64>,
}

impl Ran {
    fn corrupt(&self, op: Op) -> usize {
        self.rows.iter().filter(|row| row.outcome == Outcome::Corrupt && row.op == op).count()
    }
}

impl Bench {
    fn new(verify: Verify) -> Self {
        let discarded = Discarded::Zeros { unit: 1 };
        Self { verify, policy: Policy::Partial, strong: Strong::AnyWrite, depth: 8, discarded }
    }

    fn may_overlap(&self) -> bool {
        self.policy == Policy::Allow || self.strong == Strong::Writes
    }

    /// Runs a load on a store that does each request as `plan` says, the last pass included.
    fn run(&self, load: &[(i64, Op, u64, u64)], plan: impl FnMut(&Io<'_>) -> Plan) -> Ran {
        let mut pool = Pool::new(4 << 20).unwrap();
        let arena = Arc::clone(pool.arena());
        let time = Time::starting_at(-1000);
        let (mut input, planned) = RingBuffer::new(load.len().max(1));
        let (output, mut through) = RingBuffer::new(load.len() * 2 + 80);
        for (sequence_number, &(at, op, sector, sectors)) in (1..).zip(load) {
            let deadline = Nanos(at);
            let mut planned =
                PreparedIo { op, scheduled: deadline, deadline, ..write(sequence_number, sector, sectors) };
            let bytes = sectors * 512;
            if bytes > 0 && matches!(op, Op::Read | Op::Write) {
                let mut buffer = pool.take(bytes).unwrap();
                let memory = arena.bytes_mut(&mut buffer, bytes);
                match op {
                    Op::Write => {
                        memory.iter_mut().zip(sequence_number..).for_each(|(byte, i)| *byte = (i * 31) as u8);
                        write_header(memory, RUN, &planned);
                    }
                    _ => poison(memory, RUN),
                }
                planned.buffer = Some(buffer);
            }
            input.push(planned).unwrap();
        }
        drop(input);
        let limits = Limits { depth: self.depth, pushed_back: 16, batch: 4, queues: 1, until: Nanos::MAX };
        let rules = IssueRules { pace: Pace::Timed, policy: self.policy, strong: self.strong, limits };
        let rereader = (self.verify == Verify::Paranoia).then(|| Rereader { arena: Arc::clone(&arena), run: RUN });
        let (stop, in_flight) = (Stop::default(), AtomicU32::default());
        let issuer = Issuer::new(IssuerParts {
            clock: time.clone(),
            target: Store::new(&time, &arena, SECTORS, plan),
            idle: SkipToNextEvent,
            rules,
            stop: &stop,
            input: planned,
            output,
            stall_monitor: StallMonitor::new(&in_flight, RingBuffer::new(64).0),
            rereader,
        });
        let (_, mut store, _, outcome) = issuer.run();
        outcome.unwrap();
        let mut checker = Checker::new(RUN, 1 << 30, self.may_overlap()).with_discards(vec![self.discarded]);
        let mut rows = Vec::new();
        while let Ok(done) = through.pop() {
            checker.take(&done, &arena);
            rows.extend(std::iter::from_fn(|| checker.decided()));
        }
        checker.finish();
        rows.extend(std::iter::from_fn(|| checker.decided()));
        let targets = [Geometry { sectors: SECTORS, block_sectors: 1 }];
        let mut far = FinalPassProgress::default();
        if self.verify >= Verify::Final {
            let (came, said) = FinalPass::new(&mut checker, &mut pool, &targets).run(&mut store, &time, &stop, &|_| {});
            assert!(came.is_whole && said.is_none());
            far = came;
        }
        let wrong_sectors = (0..SECTORS)
            .filter(|&s| store.disk.chunks(512).nth(s as usize) != store.honest.chunks(512).nth(s as usize));
        Ran {
            rows,
            mismatches: checker.findings.mismatches,
            findings: checker.findings.kept.clone(),
            far,
            undecided: checker.counts.undecided,
            wrong_reads: store.wrong_reads.len(),
            wrong_sectors: wrong_sectors.collect(),
        }
    }
}

/// Far enough apart for each request to be through before the next.
const MS: i64 = 1_000_000;
const W: Op = Op::Write;
const R: Op = Op::Read;

/// Sixteen sectors are written twice and read, then something else is written.
const LOAD: [(i64, Op, u64, u64); 5] =
    [(0, W, 0, 16), (MS, W, 0, 16), (2 * MS, W, 32, 8), (3 * MS, R, 0, 16), (4 * MS, R, 32, 8)];

/// Does that request of the load as the lie says.
fn lying(nth: usize, lie: Lie) -> impl FnMut(&Io<'_>) -> Plan {
    let mut number = 0;
    move |_| {
        number += 1;
        Plan { lie: (number == nth + 1).then_some(lie), ..Plan::default() }
    }
}

const MODES: [Verify; 3] = [Verify::Reads, Verify::Final, Verify::Paranoia];

#[test]
fn honest_storage_is_said_to_be_so() {
    for verify in MODES {
        let ran = Bench::new(verify).run(&LOAD, |_| Plan::default());
        assert_eq!((ran.mismatches, ran.wrong_reads, ran.undecided), (0, 0, 0), "{:?}", ran.findings);
        let at_end = if verify == Verify::Reads { 0 } else { 24 };
        assert_eq!((ran.far.checked, ran.far.to_check, ran.far.errors), (at_end, at_end, 0), "{verify:?}");
    }
}

#[test]
fn a_discard_that_was_not_done_is_seen_where_the_target_promises_zeros() {
    let load = [(0, W, 0, 16), (MS, Op::Discard, 3, 10), (2 * MS, R, 0, 16)];
    let run = |discarded| {
        let bench = Bench { discarded, ..Bench::new(Verify::Final) };
        bench.run(&load, lying(1, Lie::LostDiscard))
    };
    let ran = run(Discarded::Zeros { unit: 1 });
    let found: Vec<_> = ran.findings.iter().map(|f| (f.kind, f.pass, f.sector, f.sectors)).collect();
    assert_eq!(found, [(FindingKind::Stale, Pass::Read, 3, 10), (FindingKind::Stale, Pass::Final, 3, 10)]);
    let said = ran.findings[0].describe(&[]).to_string();
    assert!(said.starts_with("sectors 3 to 12: stale; expected zeros, found 1 (request 0)"), "{said}");
    assert_eq!((ran.corrupt(R), ran.far.checked), (1, 16));
    // Only whole units are promised; of the rest nothing is known.
    let ran = run(Discarded::Zeros { unit: 4 });
    assert_eq!(ran.findings.iter().map(|f| (f.sector, f.sectors)).collect::<Vec<_>>(), [(4, 8); 2]);
    assert_eq!(ran.far.checked, 14);
    let ran = run(Discarded::Anything);
    assert_eq!((ran.mismatches, ran.far.checked), (0, 6));
}

#[test]
fn a_lost_write_is_named_with_what_should_be_there_and_what_is() {
    // The first write of sectors 32 to 39.
    let ran = Bench::new(Verify::Reads).run(&LOAD, lying(2, Lie::LostWrite));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.pass, finding.sector, finding.sectors), (FindingKind::Lost, Pass::Read, 32, 8));
    assert_eq!((finding.expected_sequence_number, finding.found_sequence_number), (Some(3), None));
    assert_eq!((finding.request, ran.findings.len()), (Some(4), 1));
    let row = ran.rows.iter().find(|row| row.request == 4).unwrap();
    assert_eq!((row.outcome, row.completed), (Outcome::Corrupt, Some(Nanos(finding.at_ns))));
    // The second of sectors 0 to 15: what the first wrote is still there.
    let ran = Bench::new(Verify::Reads).run(&LOAD, lying(1, Lie::LostWrite));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.sector, finding.sectors), (FindingKind::Stale, 0, 16));
    assert_eq!((finding.expected_sequence_number, finding.found_sequence_number), (Some(2), Some(1)));
    assert!(
        finding.describe(&[]).to_string().contains("sectors 0 to 15: stale; expected sequence number 2, found 1"),
        "{finding:?}"
    );
}

#[test]
fn each_kind_of_lie_has_its_name() {
    let named = |nth, lie| {
        let ran = Bench::new(Verify::Reads).run(&LOAD, lying(nth, lie));
        assert_eq!(ran.corrupt(Op::Read), ran.wrong_reads, "{lie:?} {:?}", ran.findings);
        let mut kinds: Vec<_> = ran.findings.iter().map(|f| f.kind).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(named(1, Lie::TornWrite), [FindingKind::Torn]);
    assert_eq!(named(2, Lie::TornSector), [FindingKind::Damaged]);
    assert_eq!(named(2, Lie::FlippedBit(9000)), [FindingKind::Damaged]);
    assert_eq!(named(3, Lie::FlippedBit(70)), [FindingKind::Damaged]);
    assert_eq!(named(3, Lie::PhantomRead), [FindingKind::Unread]);
    assert_eq!(named(3, Lie::StaleRead), [FindingKind::Lost]);
    // What was meant for 32 lies at 8 to 15, and nothing at 32.
    assert_eq!(named(2, Lie::Misdirected(40)), [FindingKind::Misdirected, FindingKind::Lost]);
    assert_eq!(named(3, Lie::MisdirectedRead(4)), [FindingKind::Misdirected, FindingKind::Lost]);
}

#[test]
fn what_was_misdirected_is_seen_where_nothing_was_written() {
    let load = [(0, W, 0, 8), (MS, R, 40, 8)];
    let ran = Bench::new(Verify::Reads).run(&load, lying(0, Lie::Misdirected(40)));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.sector, finding.found_sector), (FindingKind::Misdirected, 40, Some(0)));
    assert_eq!((finding.sectors, finding.found_sequence_number), (8, Some(1)));
}

#[test]
fn final_sees_what_no_read_saw_and_paranoia_sees_it_at_once() {
    let load = [(0, W, 0, 16), (MS, W, 32, 8)];
    for lie in [Lie::LostWrite, Lie::TornWrite, Lie::TornSector, Lie::Misdirected(20), Lie::FlippedBit(3000)] {
        let passes = |verify| {
            let ran = Bench::new(verify).run(&load, lying(0, lie));
            let mut passes: Vec<_> = ran.findings.iter().map(|f| f.pass).collect();
            passes.dedup();
            (passes, ran.corrupt(Op::Write))
        };
        assert_eq!(passes(Verify::Reads), (vec![], 0), "{lie:?}: nothing was read");
        assert_eq!(passes(Verify::Final), (vec![Pass::Final], 0), "{lie:?}");
        assert_eq!(passes(Verify::Paranoia), (vec![Pass::Reread, Pass::Final], 1), "{lie:?}");
    }
    // The read at once after a write may be the one that lies.
    let ran = Bench::new(Verify::Paranoia).run(&load, lying(1, Lie::PhantomRead));
    assert_eq!(ran.findings[0].pass, Pass::Reread);
    assert_eq!(ran.mismatches, 16);
}

/// Requests at few places, many at the same time: gap, operation, sector, length, how long it takes, how it ends.
type Step = (i64, Op, u64, u64, i64, u8);

fn steps(with_failures: bool) -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![6 => Just(W), 6 => Just(R), 1 => Just(Op::Discard), 1 => Just(Op::WriteZeroes), 1 => Just(Op::Flush)];
    let gap = prop_oneof![3 => Just(0_i64), 2 => 1..3000_i64];
    let fails = if with_failures { 0_u8..40 } else { 20..21_u8 };
    prop::collection::vec((gap, op, 0..SECTORS - 20, 0_u64..20, 1_i64..5000, fails), 1..60)
}

fn load_of(steps: &[Step]) -> Vec<(i64, Op, u64, u64)> {
    let mut at = 0;
    let timed = |&(gap, op, sector, sectors, ..): &Step| {
        at += gap;
        (at, op, sector, if op == Op::Flush { 0 } else { sectors })
    };
    steps.iter().map(timed).collect()
}

/// Takes the times and failures of the steps one after the other, whichever request comes: all that matters is variety.
fn honest(steps: &[Step]) -> impl FnMut(&Io<'_>) -> Plan {
    let mut rest: std::collections::VecDeque<Step> = steps.iter().copied().collect();
    move |io| {
        rest.rotate_left(1);
        let (.., takes, how) = rest[0];
        let io_error = Some(-i64::from(libc::EIO));
        let (result, does) = match (how, io.op) {
            // Fails, and did nothing; a part; all of it.
            (0, _) => (io_error, None),
            (1, Op::Write) => (io_error, Some(io.length / 1024)),
            (2, Op::Write) => (io_error, Some(io.length / 512)),
            // Does a part, and says so; and a part that ends within a sector.
            (3, Op::Write | Op::Read) => (Some((io.length / 1024 * 512) as i64), None),
            (4, Op::Write | Op::Read) => (Some((io.length / 2) as i64), None),
            _ => (None, None),
        };
        Plan { takes, result, does, lie: None }
    }
}

fn benches() -> impl Strategy<Value = Bench> {
    let policies = prop::sample::select(vec![Policy::Allow, Policy::Drop, Policy::Partial, Policy::Ordering]);
    let strengths = prop::sample::select(vec![Strong::Writes, Strong::AnyWrite, Strong::Everything]);
    let promises = vec![Discarded::Anything, Discarded::Zeros { unit: 1 }, Discarded::Zeros { unit: 8 }];
    (prop::sample::select(MODES.to_vec()), policies, strengths, 1_usize..12, prop::sample::select(promises))
        .prop_map(|(verify, policy, strong, depth, discarded)| Bench { verify, policy, strong, depth, discarded })
}

fn lies() -> impl Strategy<Value = Lie> {
    prop_oneof![
        Just(Lie::LostWrite),
        Just(Lie::LostDiscard),
        Just(Lie::TornWrite),
        Just(Lie::TornSector),
        (1_u64..SECTORS).prop_map(Lie::Misdirected),
        (1_u64..SECTORS).prop_map(Lie::MisdirectedRead),
        (0_usize..100_000).prop_map(Lie::FlippedBit),
        Just(Lie::PhantomRead),
        Just(Lie::StaleRead),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    #[test]
    fn honest_storage_never_raises_an_alarm(bench in benches(), steps in steps(true)) {
        let load = load_of(&steps);
        let ran = bench.run(&load, honest(&steps));
        prop_assert_eq!(ran.mismatches, 0, "{:#?}", ran.findings);
        prop_assert_eq!(ran.corrupt(R) + ran.corrupt(W), 0);
        prop_assert_eq!(ran.rows.len(), load.len(), "each once");
        prop_assert!(bench.may_overlap() || ran.undecided == 0);
    }

    /// Where nothing overlaps and nothing fails there is exactly one thing that each sector may hold: a read is corrupt if
    /// and only if it brought something else.
    #[test]
    fn storage_that_lies_is_caught_whenever_it_can_be_seen(
        verify in prop::sample::select(MODES.to_vec()), steps in steps(false), lie in lies(), nth in 0_usize..60,
    ) {
        // What lies outside the run's own writes cannot be known: all is written first.
        let mut load = vec![(0, W, 0, SECTORS / 2), (1, W, SECTORS / 2, SECTORS / 2)];
        load.extend(load_of(&steps).into_iter().map(|step| (step.0 + 20_000, step.1, step.2, step.3)));
        let bench = Bench::new(verify);
        let mut plan = honest(&steps);
        let mut number = 0;
        let ran = bench.run(&load, |io| {
            number += 1;
            Plan { lie: (number == nth % load.len() + 3).then_some(lie), ..plan(io) }
        });
        let seen = ran.corrupt(R) + ran.corrupt(W) + ran.findings.iter().filter(|f| f.pass == Pass::Final).count();
        prop_assert_eq!(seen > 0, ran.wrong_reads > 0, "{:?} {:#?}", lie, ran.findings);
        if verify == Verify::Reads {
            prop_assert_eq!(ran.corrupt(R), ran.wrong_reads);
        } else {
            prop_assert!(ran.wrong_sectors.is_empty() || ran.mismatches > 0, "{:?}", ran.wrong_sectors);
        }
    }
}
