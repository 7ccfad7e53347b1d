//! Verified runs of the loop, on storage with and without faults.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use iosonar_device::discarded::Discarded;
use iosonar_device::geometry::Geometry;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::Pool;
use iosonar_pacing::stalls::StallMonitor;
use iosonar_trace::run_info::{Finding, FindingKind, Pass};
use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use proptest::prelude::*;
use rtrb::RingBuffer;

use super::load::write;
use super::store::{Fault, Plan, Store};
use crate::engine::Io;
use crate::engine::mock::{SkipToNextEvent, Time};
use crate::io::PreparedIo;
use crate::issuer::conflicts::{Policy, Strong};
use crate::issuer::{IssueRules, Issuer, IssuerParts, Limits, Pace, Rereader};
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::{FinalPass, FinalPassProgress};
use crate::verify::header::{poison, write_header};

const RUN: u64 = 77;
const SECTORS: u64 = 64;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
struct Bench {
    verify: Verify,
    policy: Policy,
    strong: Strong,
    depth: usize,
    discarded: Discarded,
}

struct RunResult {
    rows: Vec<IoResult>,
    findings: Vec<Finding>,
    mismatches: u64,
    progress: FinalPassProgress,
    undecided: u64,
    /// Reads with wrong data: reads of the load, read-backs and reads of the final pass.
    wrong_reads: usize,
    /// Sectors of the store with wrong content at the end.
    wrong_sectors: Vec<u64>,
}

impl RunResult {
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

    /// Runs a load, including the final pass, on a store that performs each request as `plan` returns.
    fn run(&self, load: &[(i64, Op, u64, u64)], plan: impl FnMut(&Io<'_>) -> Plan) -> RunResult {
        let mut pool = Pool::new(4 << 20).unwrap();
        let arena = Arc::clone(pool.arena());
        let time = Time::starting_at(-1000);
        let (mut producer, input) = RingBuffer::new(load.len().max(1));
        let (output, mut completed) = RingBuffer::new(load.len() * 2 + 80);
        for (sequence_number, &(at, op, sector, sectors)) in (1..).zip(load) {
            let deadline = Nanos(at);
            let mut io = PreparedIo { op, scheduled: deadline, deadline, ..write(sequence_number, sector, sectors) };
            let bytes = sectors * 512;
            if bytes > 0 && matches!(op, Op::Read | Op::Write) {
                let mut buffer = pool.take(bytes).unwrap();
                let memory = arena.bytes_mut(&mut buffer, bytes);
                match op {
                    Op::Write => {
                        memory.iter_mut().zip(sequence_number..).for_each(|(byte, i)| *byte = (i * 31) as u8);
                        write_header(memory, RUN, &io);
                    }
                    _ => poison(memory, RUN),
                }
                io.buffer = Some(buffer);
            }
            producer.push(io).unwrap();
        }
        drop(producer);
        let limits = Limits {
            depth: self.depth,
            clients: self.depth,
            pushed_back: 16,
            batch: 4,
            queues: 1,
            shared: 0,
            until: Nanos::MAX,
        };
        let rules = IssueRules { pace: Pace::Timed, policy: self.policy, strong: self.strong, limits };
        let rereader = (self.verify == Verify::Paranoia).then(|| Rereader { arena: Arc::clone(&arena), run: RUN });
        let (stop, in_flight) = (Stop::default(), AtomicU32::default());
        let issuer = Issuer::new(IssuerParts {
            clock: time.clone(),
            target: Store::new(&time, &arena, SECTORS, plan),
            idle: SkipToNextEvent,
            rules,
            stop: &stop,
            input,
            output,
            stall_monitor: StallMonitor::new(&in_flight, RingBuffer::new(64).0),
            rereader,
            program: None,
        });
        let (_, mut store, _, outcome) = issuer.run();
        outcome.unwrap();
        let mut checker = Checker::new(RUN, 1 << 30, self.may_overlap()).with_discards(vec![self.discarded]);
        let mut rows = Vec::new();
        while let Ok(done) = completed.pop() {
            checker.add(&done, &arena);
            rows.extend(std::iter::from_fn(|| checker.decided()));
        }
        checker.finish();
        rows.extend(std::iter::from_fn(|| checker.decided()));
        let targets = [Geometry { sectors: SECTORS, block_sectors: 1 }];
        let mut progress = FinalPassProgress::default();
        if self.verify >= Verify::Final {
            let (reached, warning) =
                FinalPass::new(&mut checker, &mut pool, &targets).run(&mut store, &time, &stop, &|_| {});
            assert!(reached.is_complete && warning.is_none());
            progress = reached;
        }
        let wrong_sectors = (0..SECTORS)
            .filter(|&s| store.disk.chunks(512).nth(s as usize) != store.correct.chunks(512).nth(s as usize));
        RunResult {
            rows,
            mismatches: checker.findings.mismatches,
            findings: checker.findings.kept.clone(),
            progress,
            undecided: checker.counts.undecided,
            wrong_reads: store.wrong_reads.len(),
            wrong_sectors: wrong_sectors.collect(),
        }
    }
}

/// The interval of requests that do not overlap in time.
const MS: i64 = 1_000_000;
const W: Op = Op::Write;
const R: Op = Op::Read;

/// Writes sixteen sectors twice and reads them, and writes and reads eight others.
const LOAD: [(i64, Op, u64, u64); 5] =
    [(0, W, 0, 16), (MS, W, 0, 16), (2 * MS, W, 32, 8), (3 * MS, R, 0, 16), (4 * MS, R, 32, 8)];

/// Injects a fault into a request of the load.
fn with_fault(nth: usize, fault: Fault) -> impl FnMut(&Io<'_>) -> Plan {
    let mut number = 0;
    move |_| {
        number += 1;
        Plan { fault: (number == nth + 1).then_some(fault), ..Plan::default() }
    }
}

const MODES: [Verify; 3] = [Verify::Reads, Verify::Final, Verify::Paranoia];

#[test]
fn correct_storage_has_no_findings() {
    for verify in MODES {
        let ran = Bench::new(verify).run(&LOAD, |_| Plan::default());
        assert_eq!((ran.mismatches, ran.wrong_reads, ran.undecided), (0, 0, 0), "{:?}", ran.findings);
        let at_end = if verify == Verify::Reads { 0 } else { 24 };
        assert_eq!(
            (ran.progress.checked, ran.progress.to_check, ran.progress.errors),
            (at_end, at_end, 0),
            "{verify:?}"
        );
    }
}

#[test]
fn a_lost_discard_is_found_if_the_target_guarantees_zeros() {
    let load = [(0, W, 0, 16), (MS, Op::Discard, 3, 10), (2 * MS, R, 0, 16)];
    let run = |discarded| {
        let bench = Bench { discarded, ..Bench::new(Verify::Final) };
        bench.run(&load, with_fault(1, Fault::LostDiscard))
    };
    let ran = run(Discarded::Zeros { unit: 1 });
    let found: Vec<_> = ran.findings.iter().map(|f| (f.kind, f.pass, f.sector, f.sectors)).collect();
    assert_eq!(found, [(FindingKind::Stale, Pass::Read, 3, 10), (FindingKind::Stale, Pass::Final, 3, 10)]);
    let text = ran.findings[0].describe(&[]).to_string();
    assert!(text.starts_with("sectors 3 to 12: stale; expected zeros, found 1 (request 0)"), "{text}");
    assert_eq!((ran.corrupt(R), ran.progress.checked), (1, 16));
    // Only whole units are guaranteed to be zero.
    let ran = run(Discarded::Zeros { unit: 4 });
    assert_eq!(ran.findings.iter().map(|f| (f.sector, f.sectors)).collect::<Vec<_>>(), [(4, 8); 2]);
    assert_eq!(ran.progress.checked, 14);
    let ran = run(Discarded::Anything);
    assert_eq!((ran.mismatches, ran.progress.checked), (0, 6));
}

#[test]
fn a_lost_write_is_reported_with_expected_and_found_content() {
    // The only write of sectors 32 to 39.
    let ran = Bench::new(Verify::Reads).run(&LOAD, with_fault(2, Fault::LostWrite));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.pass, finding.sector, finding.sectors), (FindingKind::Lost, Pass::Read, 32, 8));
    assert_eq!((finding.expected_sequence_number, finding.found_sequence_number), (Some(3), None));
    assert_eq!((finding.request, ran.findings.len()), (Some(4), 1));
    let row = ran.rows.iter().find(|row| row.request == 4).unwrap();
    assert_eq!((row.outcome, row.completed), (Outcome::Corrupt, Some(Nanos(finding.at_ns))));
    // The second write of sectors 0 to 15: the data of the first one is still there.
    let ran = Bench::new(Verify::Reads).run(&LOAD, with_fault(1, Fault::LostWrite));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.sector, finding.sectors), (FindingKind::Stale, 0, 16));
    assert_eq!((finding.expected_sequence_number, finding.found_sequence_number), (Some(2), Some(1)));
    assert!(
        finding.describe(&[]).to_string().contains("sectors 0 to 15: stale; expected sequence number 2, found 1"),
        "{finding:?}"
    );
}

#[test]
fn each_fault_has_its_kind_of_finding() {
    let kinds_of = |nth, fault| {
        let ran = Bench::new(Verify::Reads).run(&LOAD, with_fault(nth, fault));
        assert_eq!(ran.corrupt(Op::Read), ran.wrong_reads, "{fault:?} {:?}", ran.findings);
        let mut kinds: Vec<_> = ran.findings.iter().map(|f| f.kind).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds_of(1, Fault::TornWrite), [FindingKind::Torn]);
    assert_eq!(kinds_of(2, Fault::TornSector), [FindingKind::Damaged]);
    assert_eq!(kinds_of(2, Fault::FlippedBit(9000)), [FindingKind::Damaged]);
    assert_eq!(kinds_of(3, Fault::FlippedBit(70)), [FindingKind::Damaged]);
    assert_eq!(kinds_of(3, Fault::PhantomRead), [FindingKind::Unread]);
    assert_eq!(kinds_of(3, Fault::StaleRead), [FindingKind::Lost]);
    // Data for sector 32 was written to sectors 8 to 15 (with wrap-around), and none to 32.
    assert_eq!(kinds_of(2, Fault::Misdirected(40)), [FindingKind::Misdirected, FindingKind::Lost]);
    assert_eq!(kinds_of(3, Fault::MisdirectedRead(4)), [FindingKind::Misdirected, FindingKind::Lost]);
}

#[test]
fn a_misdirected_write_is_found_where_nothing_was_written() {
    let load = [(0, W, 0, 8), (MS, R, 40, 8)];
    let ran = Bench::new(Verify::Reads).run(&load, with_fault(0, Fault::Misdirected(40)));
    let finding = &ran.findings[0];
    assert_eq!((finding.kind, finding.sector, finding.found_sector), (FindingKind::Misdirected, 40, Some(0)));
    assert_eq!((finding.sectors, finding.found_sequence_number), (8, Some(1)));
}

#[test]
fn the_final_pass_finds_unread_faults_and_paranoia_at_once() {
    let load = [(0, W, 0, 16), (MS, W, 32, 8)];
    for fault in
        [Fault::LostWrite, Fault::TornWrite, Fault::TornSector, Fault::Misdirected(20), Fault::FlippedBit(3000)]
    {
        let passes = |verify| {
            let ran = Bench::new(verify).run(&load, with_fault(0, fault));
            let mut passes: Vec<_> = ran.findings.iter().map(|f| f.pass).collect();
            passes.dedup();
            (passes, ran.corrupt(Op::Write))
        };
        assert_eq!(passes(Verify::Reads), (vec![], 0), "{fault:?}: nothing was read");
        assert_eq!(passes(Verify::Final), (vec![Pass::Final], 0), "{fault:?}");
        assert_eq!(passes(Verify::Paranoia), (vec![Pass::Reread, Pass::Final], 1), "{fault:?}");
    }
    // A read-back can be faulty too.
    let ran = Bench::new(Verify::Paranoia).run(&load, with_fault(1, Fault::PhantomRead));
    assert_eq!(ran.findings[0].pass, Pass::Reread);
    assert_eq!(ran.mismatches, 16);
}

/// A request: gap to the previous one, operation, sector, length, latency, kind of result. Few positions, and many
/// requests at the same time.
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

/// Takes latencies and results from the steps in turn, independent of the request.
fn fault_free(steps: &[Step]) -> impl FnMut(&Io<'_>) -> Plan {
    let mut rest: std::collections::VecDeque<Step> = steps.iter().copied().collect();
    move |io| {
        rest.rotate_left(1);
        let (.., latency, how) = rest[0];
        let io_error = Some(-i64::from(libc::EIO));
        let (result, transferred) = match (how, io.op) {
            // Fails after doing nothing, a part, or all of it.
            (0, _) => (io_error, None),
            (1, Op::Write) => (io_error, Some(io.length / 1024)),
            (2, Op::Write) => (io_error, Some(io.length / 512)),
            // Reports a short transfer; the second kind ends within a sector.
            (3, Op::Write | Op::Read) => (Some((io.length / 1024 * 512) as i64), None),
            (4, Op::Write | Op::Read) => (Some((io.length / 2) as i64), None),
            _ => (None, None),
        };
        Plan { latency, result, transferred, fault: None }
    }
}

fn benches() -> impl Strategy<Value = Bench> {
    let policies = prop::sample::select(vec![Policy::Allow, Policy::Drop, Policy::Partial, Policy::Ordering]);
    let strengths = prop::sample::select(vec![Strong::Writes, Strong::AnyWrite, Strong::Everything]);
    let promises = vec![Discarded::Anything, Discarded::Zeros { unit: 1 }, Discarded::Zeros { unit: 8 }];
    (prop::sample::select(MODES.to_vec()), policies, strengths, 1_usize..12, prop::sample::select(promises))
        .prop_map(|(verify, policy, strong, depth, discarded)| Bench { verify, policy, strong, depth, discarded })
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::LostWrite),
        Just(Fault::LostDiscard),
        Just(Fault::TornWrite),
        Just(Fault::TornSector),
        (1_u64..SECTORS).prop_map(Fault::Misdirected),
        (1_u64..SECTORS).prop_map(Fault::MisdirectedRead),
        (0_usize..100_000).prop_map(Fault::FlippedBit),
        Just(Fault::PhantomRead),
        Just(Fault::StaleRead),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    #[test]
    fn correct_storage_never_causes_a_mismatch(bench in benches(), steps in steps(true)) {
        let load = load_of(&steps);
        let ran = bench.run(&load, fault_free(&steps));
        prop_assert_eq!(ran.mismatches, 0, "{:#?}", ran.findings);
        prop_assert_eq!(ran.corrupt(R) + ran.corrupt(W), 0);
        prop_assert_eq!(ran.rows.len(), load.len(), "each once");
        prop_assert!(bench.may_overlap() || ran.undecided == 0);
    }

    /// Without overlaps and errors, a sector has exactly one allowed content: a read is corrupt if and only if it returned
    /// something else.
    #[test]
    fn every_visible_fault_is_found(
        verify in prop::sample::select(MODES.to_vec()), steps in steps(false), fault in faults(), nth in 0_usize..60,
    ) {
        // Content from before the run is not known, so everything is written first.
        let mut load = vec![(0, W, 0, SECTORS / 2), (1, W, SECTORS / 2, SECTORS / 2)];
        load.extend(load_of(&steps).into_iter().map(|step| (step.0 + 20_000, step.1, step.2, step.3)));
        let bench = Bench::new(verify);
        let mut plan = fault_free(&steps);
        let mut number = 0;
        let ran = bench.run(&load, |io| {
            number += 1;
            Plan { fault: (number == nth % load.len() + 3).then_some(fault), ..plan(io) }
        });
        let found = ran.corrupt(R) + ran.corrupt(W) + ran.findings.iter().filter(|f| f.pass == Pass::Final).count();
        prop_assert_eq!(found > 0, ran.wrong_reads > 0, "{:?} {:#?}", fault, ran.findings);
        if verify == Verify::Reads {
            prop_assert_eq!(ran.corrupt(R), ran.wrong_reads);
        } else {
            prop_assert!(ran.wrong_sectors.is_empty() || ran.mismatches > 0, "{:?}", ran.wrong_sectors);
        }
    }
}
