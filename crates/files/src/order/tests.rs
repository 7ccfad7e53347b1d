//! The rules of each policy, on calls whose resources are stated by hand.

use iosonar_trace::Nanos;

use super::tables::FEWEST_TO_SWEEP;
use super::*;
use crate::{Access, CallKind, DescriptionId, NameId, ObjectId, Resource, Skip, Touch};

const D: DescriptionId = DescriptionId(7);
const FILE: Resource = Resource::Size(ObjectId(1));

struct Step(Call, Resolved);

fn step(thread: u32, begin: i64, end: i64) -> Step {
    let mut call = Call::new(Nanos(begin), thread, CallKind::Pread64);
    call.duration = Some(Nanos(end - begin));
    Step(call, Resolved::default())
}

impl Step {
    fn touches(mut self, resource: Resource, access: Access) -> Self {
        self.1.touches.push(Touch { resource, access });
        self
    }

    fn uses(self, resource: Resource) -> Self {
        self.touches(resource, Access::Use)
    }

    fn modifies(self, resource: Resource) -> Self {
        self.touches(resource, Access::Modify)
    }

    fn makes(mut self, description: DescriptionId) -> Self {
        self.1.makes = Some(description);
        self
    }

    fn on(mut self, description: DescriptionId) -> Self {
        self.1.description = Some(description);
        self
    }

    fn ends(mut self, description: DescriptionId) -> Self {
        self.1.ends.push(description);
        self
    }

    fn uring(mut self) -> Self {
        self.0.is_uring = true;
        self
    }

    fn skipped(mut self) -> Self {
        self.1.skip = Some(Skip::Bookkeeping);
        self
    }
}

fn predecessors(policy: Policy, steps: &[Step]) -> Vec<Vec<u64>> {
    let mut order = Order::new(policy);
    (0..).zip(steps).map(|(number, Step(call, resolved))| order.predecessors(number, call, resolved).to_vec()).collect()
}

#[test]
fn conservative_waits_for_every_call_that_had_ended() {
    let steps = [step(1, 0, 5), step(2, 1, 6), step(3, 7, 8), step(1, 7, 9)];
    assert_eq!(predecessors(Policy::Conservative, &steps), [vec![], vec![], vec![0, 1], vec![0, 1]]);
}

#[test]
fn conservative_leaves_overlapping_calls_free() {
    let steps = [step(1, 0, 10), step(2, 5, 7), step(2, 8, 9), step(1, 10, 11)];
    assert_eq!(predecessors(Policy::Conservative, &steps), [vec![], vec![], vec![1], vec![0, 2]]);
}

#[test]
fn a_thread_is_a_sequence_even_where_rounded_times_overlap() {
    let steps = [step(1, 0, 3), step(1, 2, 4), step(2, 2, 3), step(2, 3, 4)];
    let expected = [vec![], vec![0], vec![0], vec![2]];
    assert_eq!(predecessors(Policy::Conservative, &steps), expected);
    assert_eq!(predecessors(Policy::Thread, &steps), [vec![], vec![0], vec![], vec![2]]);
}

#[test]
fn every_policy_orders_opening_use_and_end_of_a_description() {
    let steps = || {
        [step(1, 0, 4).makes(D), step(2, 3, 9).on(D), step(3, 5, 6).on(D), step(4, 7, 8).on(D).ends(D), step(5, 8, 9)]
    };
    let expected = |last: Vec<u64>| [vec![], vec![0], vec![0], vec![1, 2], last];
    assert_eq!(predecessors(Policy::Conservative, &steps()), expected(vec![3]));
    for policy in [Policy::Fs, Policy::Thread, Policy::Resource] {
        assert_eq!(predecessors(policy, &steps()), expected(vec![]), "{policy}");
    }
}

#[test]
fn a_description_without_uses_is_ended_after_its_opening() {
    for policy in Policy::ALL {
        let steps = [step(1, 0, 4).makes(D), step(2, 4, 5).ends(D)];
        assert_eq!(predecessors(policy, &steps), [vec![], vec![0]], "{policy}");
    }
}

#[test]
fn fs_and_resource_order_skipped_calls_only_as_ends() {
    let steps = || {
        [
            step(1, 0, 1).makes(D),
            step(1, 2, 3).on(D),
            step(1, 4, 5).skipped(),
            step(1, 6, 7).skipped().ends(D),
            step(1, 8, 9),
        ]
    };
    let with_all = [vec![], vec![0], vec![1], vec![2], vec![3]];
    assert_eq!(predecessors(Policy::Conservative, &steps()), with_all);
    assert_eq!(predecessors(Policy::Thread, &steps()), with_all);
    assert_eq!(predecessors(Policy::Fs, &steps()), [vec![], vec![0], vec![], vec![1], vec![]]);
    assert_eq!(predecessors(Policy::Resource, &steps()), [vec![], vec![0], vec![], vec![1], vec![1]]);
}

#[test]
fn fs_follows_only_the_last_modification_of_an_object() {
    let object = Resource::Object(ObjectId(1));
    let steps = [
        step(1, 0, 1).modifies(object),
        step(1, 2, 3).uses(object),
        step(2, 4, 5).uses(object),
        step(1, 6, 7).modifies(object),
        step(1, 8, 9).uses(object).modifies(FILE),
        step(1, 10, 11).uses(FILE),
    ];
    assert_eq!(predecessors(Policy::Fs, &steps), [vec![], vec![0], vec![0], vec![0], vec![3], vec![]]);
}

#[test]
fn resource_orders_uses_and_modifications_and_leaves_uses_free() {
    let steps = [
        step(1, 0, 1).modifies(FILE),
        step(2, 2, 3).uses(FILE),
        step(3, 2, 3).uses(FILE),
        step(2, 4, 5).uses(FILE),
        step(4, 6, 7).modifies(FILE),
        step(5, 8, 9).uses(Resource::Name(NameId(1))),
        step(1, 9, 10).uses(FILE).uses(Resource::Object(ObjectId(1))),
    ];
    assert_eq!(
        predecessors(Policy::Resource, &steps),
        [vec![], vec![0], vec![0], vec![1], vec![2, 3], vec![], vec![0, 4]]
    );
}

#[test]
fn a_call_that_uses_and_modifies_never_precedes_itself() {
    let steps =
        [step(1, 0, 1).modifies(FILE).uses(FILE), step(2, 2, 3).uses(FILE).modifies(FILE), step(3, 4, 5).uses(FILE)];
    assert_eq!(predecessors(Policy::Resource, &steps), [vec![], vec![0], vec![1]]);
}

#[test]
fn calls_of_io_uring_may_overlap_with_their_thread() {
    let steps = || {
        [
            step(1, 0, 1),
            step(1, 2, 20).uring(),
            step(1, 3, 6).uring(),
            step(1, 4, 5),
            step(1, 7, 8).uring(),
            step(1, 9, 10),
            step(1, 21, 22),
        ]
    };
    let expected = [vec![], vec![0], vec![0], vec![0], vec![2, 3], vec![4], vec![1, 5]];
    assert_eq!(predecessors(Policy::Thread, &steps()), expected);
    assert_eq!(predecessors(Policy::Conservative, &steps()), expected);
}

#[test]
fn a_thread_may_begin_with_io_uring() {
    let steps = [step(1, 0, 9).uring(), step(1, 1, 2), step(1, 3, 4).uring(), step(1, 10, 11)];
    assert_eq!(predecessors(Policy::Thread, &steps), [vec![], vec![], vec![1], vec![0, 2]]);
}

#[test]
fn forgotten_calls_are_not_listed_and_take_no_memory() {
    for policy in [Policy::Fs, Policy::Resource] {
        let mut order = Order::new(policy);
        for number in 0..100_000u64 {
            let object = ObjectId(number / 2);
            let Step(call, resolved) = step((number % 2) as u32, number as i64, number as i64 + 1)
                .modifies(Resource::Object(object))
                .modifies(Resource::Size(object));
            let found = order.predecessors(number, &call, &resolved);
            assert!(found.iter().all(|&before| before >= number.saturating_sub(3)), "{policy}");
            order.forget_before(number.saturating_sub(2));
        }
        assert!(order.entries() < 3 * FEWEST_TO_SWEEP, "{policy}: {}", order.entries());
    }
}
