//! The checker accepts every order that `order` derives, and finds what breaks it.

use iosonar_trace::{InMemory, Nanos};
use proptest::prelude::*;

use super::*;
use crate::order::Order;
use crate::order::random::{precedes, predecessors, traces};
use crate::{CallKind, CallOutcome, DelayReason, Metadata};

fn result(call: u64, instance: u32, times: Option<(i64, i64)>) -> CallResult {
    CallResult {
        call,
        instance,
        thread: 0,
        kind: CallKind::Pread64,
        path: None,
        position: None,
        length: None,
        scheduled: Nanos::ZERO,
        issued: times.map(|(issued, _)| Nanos(issued)),
        completed: times.map(|(_, completed)| Nanos(completed)),
        predecessors_end: None,
        gap: None,
        delay_reason: DelayReason::None,
        result: Some(0),
        errno: 0,
        expected_result: Some(0),
        expected_errno: 0,
        expected_duration: None,
        outcome: if times.is_some() { CallOutcome::Same } else { CallOutcome::Bookkeeping },
    }
}

type Trace = [(Call, Resolved)];

/// When each call is issued and completed if it goes as soon as its predecessors are through. Skipped calls take no time.
fn replay(policy: Policy, trace: &Trace, durations: &[i64]) -> Vec<(i64, i64)> {
    let mut times: Vec<(i64, i64)> = Vec::new();
    let mut order = Order::new(policy);
    for (number, (call, resolved)) in (0..).zip(trace) {
        order.predecessors(number, call, resolved);
        let through = |(p, suffices_issue): (u64, bool)| {
            let (issued, completed) = times[p as usize];
            if suffices_issue { issued } else { completed }
        };
        let issued = order.latest().map(through).max().unwrap_or(0);
        let duration = if resolved.skip.is_some() { 0 } else { durations[number as usize % durations.len()] };
        times.push((issued, issued + duration));
    }
    times
}

fn checked(policy: Policy, trace: &Trace, times: &[(i64, i64)], instances: u32) -> Report {
    let mut rows: Vec<CallResult> = Vec::new();
    for instance in 0..instances {
        rows.extend((0..).zip(times).map(|(number, &times)| {
            result(number, instance, trace[number as usize].1.skip.is_none().then_some(times))
        }));
    }
    rows.sort_by_key(|row| row.completed);
    let mut calls = InMemory::new(trace.iter().map(|(call, _)| call.clone()).collect(), Metadata::default());
    let mut results = InMemory::new(rows, Metadata::default());
    let mut resolved = trace.iter().map(|(_, resolved)| resolved.clone());
    let options = Options { policy, instances, ..Options::default() };
    check(&mut calls, &mut results, &options, |_| resolved.next().unwrap()).unwrap()
}

fn durations() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(1i64..50, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_replay_that_waits_for_its_predecessors_is_proven(trace in traces(), durations in durations()) {
        for policy in Policy::ALL {
            let report = checked(policy, &trace, &replay(policy, &trace, &durations), 2);
            prop_assert!(report.is_proven(), "{policy} {:?}", report.first_violations);
            let issued = trace.iter().filter(|(_, resolved)| resolved.skip.is_none()).count();
            prop_assert_eq!(report.calls, 2 * issued as u64);
        }
    }

    #[test]
    fn a_call_issued_before_a_predecessor_completed_is_found(
        trace in traces(),
        durations in durations(),
        choice in any::<prop::sample::Index>(),
    ) {
        for policy in Policy::ALL {
            let replayed = |call: usize| trace[call].1.skip.is_none();
            let pairs: Vec<(usize, usize)> = (0..trace.len())
                .flat_map(|c| (0..c).map(move |p| (p, c)))
                .filter(|&(p, c)| replayed(p) && replayed(c) && precedes(policy, &trace, p, c))
                .collect();
            if pairs.is_empty() {
                continue;
            }
            let (p, c) = pairs[choice.index(pairs.len())];
            let mut times = replay(policy, &trace, &durations);
            let through = if policy == Policy::FsDispatched { times[p].0 } else { times[p].1 };
            times[c].0 = through - 1;
            let report = checked(policy, &trace, &times, 1);
            prop_assert!(report.first_violations.iter().any(|found| found.call == c as u64), "{policy} {p} {c}");
        }
    }

    #[test]
    fn a_call_is_reorderable_without_an_edge_from_its_neighbour(trace in traces()) {
        for policy in Policy::ALL {
            let mut degrees = crate::order::Degrees::default();
            for (number, before) in (0..).zip(predecessors(policy, &trace)) {
                let takes_part = trace[number as usize].1.skip.is_none() || policy.orders_skipped_calls();
                degrees.add(number, &before, takes_part);
            }
            let times = replay(policy, &trace, &[1]);
            prop_assert_eq!(checked(policy, &trace, &times, 1).reorderable, degrees.summary().reorderable, "{}", policy);
        }
    }
}
