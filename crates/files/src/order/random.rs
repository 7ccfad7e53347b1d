//! Random traces for tests, and the rules of the policies word by word.

use std::collections::BTreeSet;

use iosonar_trace::Nanos;
use proptest::prelude::*;

use super::tables::makes_descriptions;
use super::{Order, Policy};
use crate::{Access, Call, CallKind, DescriptionId, NameId, ObjectId, Resolved, Resource, Skip, Touch};

type Choice = (u32, (i64, i64), u8, prop::sample::Index, Vec<(u8, u64, bool)>);

/// Calls of up to four threads that open, use and close descriptions and touch a few resources.
pub(crate) fn traces() -> impl Strategy<Value = Vec<(Call, Resolved)>> {
    let touch = (0u8..6, 0u64..3, any::<bool>());
    let choice: BoxedStrategy<Choice> =
        (0u32..4, (0i64..3, 0i64..8), 0u8..40, any::<prop::sample::Index>(), prop::collection::vec(touch, 0..4))
            .boxed();
    prop::collection::vec(choice, 1..60).prop_map(build)
}

fn build(choices: Vec<Choice>) -> Vec<(Call, Resolved)> {
    let mut now = 0;
    let mut free = [0; 4];
    let mut open: Vec<DescriptionId> = Vec::new();
    let mut trace = Vec::new();
    for (number, (thread, (gap, duration), action, index, touches)) in (0..).zip(choices) {
        let is_uring = action % 13 == 0;
        now += gap;
        if !is_uring {
            // Now and then a recorder rounds, and two calls of a thread seem to overlap.
            now = now.max(free[thread as usize] - i64::from(action % 7 == 0));
            free[thread as usize] = now + duration;
        }
        let mut call = Call::new(Nanos(now), thread, CallKind::Pread64);
        call.duration = (action != 17).then_some(Nanos(duration));
        call.is_uring = is_uring;
        let mut resolved = Resolved::default();
        if action % 11 == 0 {
            resolved.skip = Some(Skip::Bookkeeping);
        }
        match action % 5 {
            0 => {
                resolved.makes = Some(DescriptionId(number));
                open.push(DescriptionId(number));
            }
            1 | 2 if !open.is_empty() => resolved.description = Some(open[index.index(open.len())]),
            3 if !open.is_empty() => resolved.ends = vec![open.swap_remove(index.index(open.len()))],
            _ => {}
        }
        for (kind, id, modifies) in touches {
            let resource = match kind {
                0 => Resource::Name(NameId(id)),
                1 => Resource::Size(ObjectId(id)),
                2 => Resource::Attributes(ObjectId(id)),
                3 => Resource::Entries(ObjectId(id)),
                4 => Resource::Position(DescriptionId(1000 + id)),
                _ => Resource::Object(ObjectId(id)),
            };
            let access = if modifies { Access::Modify } else { Access::Use };
            resolved.touches.push(Touch { resource, access });
        }
        trace.push((call, resolved));
    }
    trace
}

/// Whether `p` must precede `c` directly, by the words of the rules.
pub(crate) fn precedes(policy: Policy, trace: &[(Call, Resolved)], p: usize, c: usize) -> bool {
    let ((first, before), (call, resolved)) = (&trace[p], &trace[c]);
    let descriptions =
        |resolved: &Resolved| [resolved.description, resolved.description2].into_iter().flatten().collect::<Vec<_>>();
    let takes_part = |resolved: &Resolved| resolved.skip.is_none() || policy.orders_skipped_calls();
    let used_before = descriptions(before);
    let made_before = before.makes.filter(|_| policy.orders_skipped_calls() || makes_descriptions(before));
    let uses_made = takes_part(resolved) && made_before.is_some_and(|made| descriptions(resolved).contains(&made));
    let ends_made = made_before.is_some_and(|made| resolved.ends.contains(&made));
    let ends_used = takes_part(before) && resolved.ends.iter().any(|ended| used_before.contains(ended));
    if uses_made || ends_made || ends_used {
        return true;
    }
    if !takes_part(before) || !takes_part(resolved) {
        return false;
    }
    let ended = first.end().is_some_and(|end| end <= call.begin);
    let in_thread = first.thread == call.thread && (ended || !(first.is_uring || call.is_uring));
    let conflicts = |objects: bool| {
        resolved.touches.iter().any(|touch| {
            before.touches.iter().any(|other| {
                other.resource == touch.resource
                    && matches!(touch.resource, Resource::Object(_)) == objects
                    && (other.access == Access::Modify || (!objects && touch.access == Access::Modify))
            })
        })
    };
    match policy {
        Policy::Conservative => ended || in_thread,
        Policy::Thread => in_thread,
        Policy::Fs | Policy::FsDispatched => conflicts(true),
        Policy::Resource => in_thread || conflicts(false),
    }
}

/// All calls that precede each call, directly or through others.
pub(crate) fn closure(edges: &[Vec<u64>]) -> Vec<BTreeSet<u64>> {
    let mut all: Vec<BTreeSet<u64>> = Vec::new();
    for before in edges {
        let mut set: BTreeSet<u64> = before.iter().copied().collect();
        for &p in before {
            set.extend(&all[p as usize]);
        }
        all.push(set);
    }
    all
}

/// The predecessors of each call of a trace.
pub(crate) fn predecessors(policy: Policy, trace: &[(Call, Resolved)]) -> Vec<Vec<u64>> {
    let mut order = Order::new(policy);
    (0..).zip(trace).map(|(number, (call, resolved))| order.predecessors(number, call, resolved).to_vec()).collect()
}

fn by_the_rules(policy: Policy, trace: &[(Call, Resolved)]) -> Vec<BTreeSet<u64>> {
    let rules: Vec<Vec<u64>> = (0..trace.len())
        .map(|c| (0..c).filter(|&p| precedes(policy, trace, p, c)).map(|p| p as u64).collect())
        .collect();
    closure(&rules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_predecessors_imply_the_rules(trace in traces()) {
        for policy in Policy::ALL {
            let found = closure(&predecessors(policy, &trace));
            for (found, rules) in found.iter().zip(by_the_rules(policy, &trace)) {
                prop_assert!(found.is_superset(&rules), "{}", policy);
            }
        }
    }

    #[test]
    fn the_rules_imply_the_predecessors_where_times_are_not_rounded(mut trace in traces()) {
        for policy in [Policy::Fs, Policy::Thread, Policy::Resource] {
            for (call, _) in &mut trace {
                call.is_uring = false;
            }
            prop_assert_eq!(closure(&predecessors(policy, &trace)), by_the_rules(policy, &trace), "{}", policy);
        }
    }
}
