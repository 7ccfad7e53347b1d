//! A priority queue for items that arrive almost in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A queue whose capacity exceeds its length by this factor is shrunk.
const MAX_EXCESS: usize = 16;
/// A queue of up to this length is not shrunk.
const MIN_LENGTH: usize = 1024;

/// A priority queue, smallest first. It costs little while items arrive in order: only items that arrive late go to a heap.
pub struct Reorder<T> {
    ordered: VecDeque<T>,
    late: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for Reorder<T> {
    fn default() -> Self {
        Self { ordered: VecDeque::new(), late: BinaryHeap::new() }
    }
}

impl<T: Ord> Reorder<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.ordered.len() + self.late.len()
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        // A ring buffer cycles through all of its memory, which should fit into the processor's cache.
        let length = MIN_LENGTH.max(self.ordered.len());
        if self.ordered.capacity() > MAX_EXCESS * length {
            self.ordered.shrink_to(2 * length);
        }
        if self.ordered.back().is_none_or(|last| *last <= item) {
            self.ordered.push_back(item);
        } else {
            self.late.push(Reverse(item));
        }
    }

    /// The smallest item.
    pub fn peek(&self) -> Option<&T> {
        match (self.ordered.front(), self.late.peek()) {
            (Some(ordered), Some(Reverse(late))) => Some(ordered.min(late)),
            (ordered, late) => ordered.or(late.map(|Reverse(item)| item)),
        }
    }

    /// Removes and returns the smallest item.
    pub fn pop(&mut self) -> Option<T> {
        let from_heap = match (self.ordered.front(), self.late.peek()) {
            (Some(ordered), Some(Reverse(late))) => late < ordered,
            (ordered, _) => ordered.is_none(),
        };
        if from_heap { self.late.pop().map(|Reverse(item)| item) } else { self.ordered.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_queue_that_was_long_is_shrunk() {
        let mut queue = Reorder::default();
        (0..100_000).for_each(|number| queue.push(number));
        (0..99_000).for_each(|number| assert_eq!(queue.pop(), Some(number)));
        (100_000..110_000).for_each(|number| {
            queue.push(number);
            assert_eq!(queue.pop(), Some(number - 1000));
        });
        assert!(queue.len() == 1000 && queue.ordered.capacity() < 4000, "{}", queue.ordered.capacity());
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec(prop::option::weighted(0.6, 0_u8..20), 0..80)) {
            let (mut queue, mut model) = (Reorder::default(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(value) => {
                        queue.push((value, number));
                        model.push((value, number));
                        model.sort_unstable();
                    }
                    None => {
                        let expected = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop(), expected);
                    }
                }
                prop_assert_eq!(queue.peek(), model.first());
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
