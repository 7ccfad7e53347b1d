//! The engine in virtual time, with a file system of known durations and a replayer that is stopped: who delayed a call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use iosonar_pacing::options::PacingOptions;
use iosonar_trace::Nanos;
use proptest::prelude::*;
use rtrb::RingBuffer;

use super::core::{Core, Queues, Rules, Step};
use super::descriptors::DescriptorTable;
use super::job::{Completion, Job};
use super::pace::Pace;
use crate::replay::action::Action;
use crate::replay::options::Timing;
use crate::replay::prepared_call::{FinishedCall, Predecessor, PreparedCall, Record};
use crate::replay::timed::Issued;
use crate::{CallKind, DelayReason};

const US: i64 = 1000;
const MS: i64 = 1000 * US;

/// A call of the trace: when it begins, how long it takes in the replay, and the call that must end before it.
#[derive(Clone, Copy, Debug)]
struct Given {
    begin: i64,
    takes: i64,
    after: Option<u64>,
}

/// Calls of one thread at these distances.
fn chain(calls: u64, every: i64, takes: i64) -> Vec<Given> {
    (0..calls).map(|at| Given { begin: at as i64 * every, takes, after: at.checked_sub(1) }).collect()
}

/// Calls that do not wait for each other.
fn independent(calls: u64, every: i64, takes: i64) -> Vec<Given> {
    (0..calls).map(|at| Given { begin: at as i64 * every, takes, after: None }).collect()
}

fn planned(number: u64, given: Given) -> Box<PreparedCall> {
    Box::new(PreparedCall {
        number,
        begin: Nanos(given.begin),
        end: Nanos(given.begin + US),
        worker: None,
        action: Some(Box::new(Action { length: number, ..Action::end(CallKind::Fsync, Vec::new()) })),
        predecessors: given.after.map(Predecessor::completed).into_iter().collect(),
        record: Record {
            thread: 1,
            kind: CallKind::Fsync,
            path: None,
            position: None,
            length: None,
            expected_result: Some(0),
            expected_errno: 0,
            expected_duration: None,
            left_out: None,
        },
    })
}

/// Replays with a pool of so many threads, and a replayer that stands still in these times. Returns the calls in their order,
/// and the time that the replayer says it lost.
fn replay(timing: Timing, calls: &[Given], workers: usize, stops: &[(i64, i64)]) -> (Vec<FinishedCall>, i64) {
    let options = PacingOptions::parse([""; 0]).unwrap();
    let pace = Pace { timing, extra_delay: Nanos::ZERO, options };
    replay_at(pace, calls, workers, stops)
}

fn replay_at(pace: Pace, calls: &[Given], workers: usize, stops: &[(i64, i64)]) -> (Vec<FinishedCall>, i64) {
    let capacity = calls.len() + 1;
    let (mut to, input) = RingBuffer::new(capacity);
    let (output, mut done) = RingBuffer::new(capacity);
    let (buffers, _returned) = RingBuffer::new(1);
    (0..).zip(calls).for_each(|(number, &given)| to.push(planned(number, given)).unwrap());
    drop(to);
    let rules = Rules { pace, ahead: 1024, history: 1 << 18, fake_io: false, workers, announces: false };
    let queues = Queues { input, output, buffers, floor: Arc::new(AtomicU64::new(0)) };
    let mut core = Core::new(rules, 0, DescriptorTable::default(), queues);
    let stop_at = |now: i64| stops.iter().copied().find(|&(from, to)| (from..to).contains(&now));
    // Calls are read before virtual zero.
    let (mut now, mut running) = (-100 * MS, Vec::<(i64, i64, Job)>::new());
    loop {
        now = stop_at(now).map_or(now, |(_, to)| to);
        while let Some(at) = running.iter().position(|&(_, end, _)| end <= now) {
            let (begin, end, Job { slot, action, is_left_out, .. }) = running.swap_remove(at);
            // Its thread sees the end only after a stop.
            let stop = stop_at(end);
            let completed = stop.map_or(end, |(_, to)| to);
            let issued = Issued { issued: Nanos(begin), completed: Nanos(completed), result: 0, errno: 0 };
            let stalled = stop.map(|(from, to)| (Nanos(from.max(begin)), Nanos(to)));
            core.complete(Completion { slot, action, issued, is_left_out, stalled }, Nanos(now));
        }
        let next_end = running.iter().map(|&(_, end, _)| end).min();
        let found = if core.is_full() { Step::WaitForCalls } else { core.find(0, Nanos(now)) };
        now = match found {
            Step::Job(job) => {
                running.push((now, now + takes_of(calls, &job), job));
                continue;
            }
            Step::WaitUntil(at) => next_end.unwrap_or(i64::MAX).min(at.0).max(now),
            Step::WaitForCalls => next_end.expect("a call is in progress"),
            Step::Finished => break,
            other => panic!("{other:?}"),
        };
    }
    let lost = core.idle().0;
    core.abandon();
    let mut rows: Vec<FinishedCall> = std::iter::from_fn(|| done.pop().ok()).collect();
    rows.sort_by_key(|row| row.call.number);
    (rows, lost)
}

/// How long the call of a job takes: its number is in the length of the action.
fn takes_of(calls: &[Given], job: &Job) -> i64 {
    calls[job.action.length as usize].takes
}

#[test]
fn time_before_virtual_zero_is_not_lost_by_the_replayer() {
    for timing in [Timing::Asap, Timing::Exact, Timing::Diff, Timing::Begin] {
        let (rows, lost) = replay(timing, &chain(100, 0, 100 * US), 4, &[(5 * MS, 7 * MS)]);
        let last = rows.iter().map(|row| row.issued.unwrap().completed.0).max().unwrap();
        assert!(lost <= 2 * MS && lost < last, "{lost} of {last}");
    }
}

fn late(row: &FinishedCall) -> i64 {
    row.issued.unwrap().issued.0 - row.scheduled.0
}

#[test]
fn extra_delays_of_calls_that_wait_for_each_other_add_up() {
    let issued = |timing, options: &[&str], calls: &[Given]| -> Vec<i64> {
        let options = PacingOptions::parse(options.iter().copied()).unwrap();
        let pace = Pace { timing, extra_delay: Nanos(5 * MS), options };
        let (rows, _) = replay_at(pace, calls, 4, &[]);
        rows.iter().map(|row| row.issued.unwrap().issued.0 / MS).collect()
    };
    let (alone, after_each_other) = (independent(4, MS, US), chain(4, MS, US));
    assert_eq!(issued(Timing::Exact, &[], &alone), [5, 6, 7, 8]);
    assert_eq!(issued(Timing::Exact, &[], &after_each_other), [5, 10, 15, 20]);
    assert_eq!(issued(Timing::Diff, &[], &after_each_other), [5, 11, 17, 23]);
    // That of --perturb is added: to the next multiple of 10 ms.
    assert_eq!(issued(Timing::Exact, &["--perturb", "quantize=10ms"], &alone), [5, 15, 15, 15]);
}

#[test]
fn the_replayer_delays_calls_until_it_caught_up_after_a_stop() {
    // A second of a thread that is busy for a fifth of the time; the replayer stands still for a quarter of it.
    let (rows, lost) = replay(Timing::Exact, &chain(1000, MS, 200 * US), 4, &[(300 * MS, 550 * MS)]);
    assert_eq!(lost, 250 * MS);
    let by_replayer: Vec<_> = rows.iter().filter(|row| row.delay_reason.is_replayer() && late(row) > 50 * US).collect();
    // 250 calls were due meanwhile, and 63 until the backlog was gone.
    assert_eq!(by_replayer.len(), 313);
    assert!(rows.iter().all(|row| row.delay_reason.is_replayer()), "the file system held none");
    assert_eq!(rows.iter().filter(|row| row.delay_reason == DelayReason::Replayer).count(), 312);
    assert!(rows[700..].iter().all(|row| late(row) == 0 && row.delay_reason == DelayReason::None));
}

#[test]
fn a_slow_file_system_holds_calls_and_the_replayer_none() {
    let (rows, lost) = replay(Timing::Exact, &chain(500, MS, 2 * MS), 4, &[]);
    assert_eq!((lost, rows[0].delay_reason), (0, DelayReason::None));
    assert!(rows[1..].iter().all(|row| row.delay_reason == DelayReason::Thread));
    // If it is stopped, too, the calls stay late because of the file system; what the replayer lost is counted.
    let (rows, lost) = replay(Timing::Exact, &chain(500, MS, 2 * MS), 4, &[(300 * MS, 550 * MS)]);
    assert!(rows[1..].iter().all(|row| row.delay_reason == DelayReason::Thread));
    assert!((248 * MS..=250 * MS).contains(&lost), "{lost}");
}

#[test]
fn a_call_in_progress_in_a_stop_does_not_delay_later_ones() {
    // The stop begins while the file system executes call 300, and ends long after.
    let stop = (300 * MS + 100 * US, 550 * MS);
    let (rows, lost) = replay(Timing::Exact, &chain(1000, MS, 200 * US), 4, &[stop]);
    assert_eq!(lost, stop.1 - stop.0);
    assert!(rows.iter().all(|row| row.delay_reason.is_replayer()));
    assert!(rows[301].delay_reason == DelayReason::Replayer && late(&rows[301]) > 200 * MS);
}

#[test]
fn a_pool_that_a_stop_filled_is_not_the_file_systems() {
    // Three calls at a time; the backlog of the stop needs all four threads.
    let (rows, lost) = replay(Timing::Exact, &independent(1000, MS, 3 * MS), 4, &[(300 * MS, 400 * MS)]);
    assert_eq!(lost, 100 * MS);
    assert!(rows.iter().all(|row| row.delay_reason.is_replayer()), "never full without the stop");
    assert!(rows.iter().filter(|row| late(row) > 50 * US).count() > 300);
    // Five at a time do not fit.
    let (rows, lost) = replay(Timing::Exact, &independent(1000, MS, 5 * MS), 4, &[]);
    assert_eq!(lost, 0);
    assert!(rows[4..].iter().all(|row| row.delay_reason == DelayReason::Pool));
    assert!(rows[..4].iter().all(|row| row.delay_reason == DelayReason::None));
}

#[test]
fn gaps_are_kept_after_a_stop_and_the_time_is_counted() {
    for timing in [Timing::Diff, Timing::Begin, Timing::Asap] {
        let (rows, lost) = replay(timing, &chain(200, MS, 100 * US), 4, &[(10 * MS, 60 * MS)]);
        assert!((48 * MS..=50 * MS).contains(&lost), "{timing:?}: {lost}");
        assert!(rows.iter().all(|row| row.delay_reason == DelayReason::None), "{timing:?}");
    }
    // A predecessor that takes longer than the gap from start to begin holds a call.
    let (rows, _) = replay(Timing::Begin, &chain(10, MS, 3 * MS), 4, &[]);
    assert!(rows[1..].iter().all(|row| row.delay_reason == DelayReason::Thread));
}

proptest! {
    /// The calls of a thread are held if those before them would have held them in a replay that was never stopped.
    #[test]
    fn calls_are_held_as_without_the_stops(
        gaps in prop::collection::vec((0i64..2000, 1i64..2000), 1..200),
        stops in prop::collection::vec((1i64..20_000, 60i64..20_000), 0..5),
    ) {
        let mut begin = 0;
        let calls: Vec<Given> = (0_u64..).zip(&gaps).map(|(number, &(gap, takes))| {
            begin += gap * US;
            Given { begin, takes: takes * US, after: number.checked_sub(1) }
        }).collect();
        let mut at = 0;
        let stops: Vec<(i64, i64)> = stops.iter().map(|&(pause, length)| {
            let from = at + pause * US;
            at = from + length * US;
            (from, at)
        }).collect();
        let (rows, _) = replay(Timing::Exact, &calls, 2, &stops);
        let mut free = i64::MIN;
        for (row, call) in rows.iter().zip(&calls) {
            prop_assert_eq!(!row.delay_reason.is_replayer(), free > call.begin, "{:?} {}", row, free);
            // Of a call that was in progress when a stop began and over at its end, it is not known when it ended.
            let issued = row.issued.unwrap().issued.0;
            let end = issued + call.takes;
            let stop = stops.iter().find(|&&(from, to)| (from..to).contains(&end));
            free = free.max(call.begin) + stop.map_or(call.takes, |&(from, _)| from.max(issued) - issued);
        }
    }
}
