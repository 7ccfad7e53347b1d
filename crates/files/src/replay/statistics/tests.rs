//! Tests of the statistics of a replay.

use super::*;

const MS: i64 = 1_000_000;

/// A hundred calls in a second, each of them so much later than scheduled.
fn counted(keeps_times: bool, delay_reason: DelayReason, late_ns: i64) -> Counter {
    let mut counter = Counter::new(keeps_times, false, 1);
    for call in 0..100 {
        let scheduled = Nanos(call as i64 * 10 * MS);
        let issued = scheduled + Nanos(late_ns);
        let row = CallResult {
            call,
            instance: 0,
            thread: 1,
            kind: CallKind::Fsync,
            path: None,
            position: None,
            length: None,
            scheduled,
            issued: Some(issued),
            completed: Some(issued + Nanos(10 * MS)),
            predecessors_end: None,
            gap: None,
            delay_reason,
            result: Some(0),
            errno: 0,
            expected_result: Some(0),
            expected_errno: 0,
            expected_duration: None,
            outcome: CallOutcome::Same,
        };
        counter.add(&row, scheduled);
    }
    counter
}

fn verdict(counter: &Counter, idle: i64) -> (bool, String) {
    let engine = Engine { max_in_flight: Some(1), idle: Some(Nanos(idle)) };
    let verdict = counter.statistics(1.0, true, engine, None).verdict.unwrap();
    (verdict.is_faithful(), verdict.sentence)
}

#[test]
fn calls_that_the_replayer_held_count_against_it() {
    assert!(verdict(&counted(true, DelayReason::Thread, MS), 0).0);
    let (is_faithful, sentence) = verdict(&counted(true, DelayReason::Replayer, MS), 0);
    assert!(!is_faithful && sentence.contains("100 of 100 late calls because the issuing loop"), "{sentence}");
}

#[test]
fn a_replay_that_lost_much_of_its_time_is_not_faithful() {
    let on_time = counted(true, DelayReason::None, 1000);
    assert!(verdict(&on_time, 49 * MS).0);
    let (is_faithful, sentence) = verdict(&on_time, 200 * MS);
    assert!(!is_faithful && sentence.contains("for 200 ms of 1 s (20.0 %), calls were due"), "{sentence}");
    let lost = Engine { max_in_flight: Some(1), idle: Some(Nanos(200 * MS)) };
    assert_eq!(on_time.interruption(lost), None, "the verdict says it");
    assert!(counted(false, DelayReason::None, 1000).interruption(lost).is_some());
}
