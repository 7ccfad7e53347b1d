//! What comes mostly in order, put fully in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How many times as much room as is used is too much, and what never is.
const ROOMY: usize = 16;
const FEW: usize = 1024;

/// A priority queue, smallest first, that costs next to nothing while what is put in does not go back: a heap holds only
/// what was overtaken.
pub struct Reorder<T> {
    ordered: VecDeque<T>,
    overtaken: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for Reorder<T> {
    fn default() -> Self {
        Self { ordered: VecDeque::new(), overtaken: BinaryHeap::new() }
    }
}

impl<T: Ord> Reorder<T> {
    /// How many are in it.
    pub fn len(&self) -> usize {
        self.ordered.len() + self.overtaken.len()
    }

    /// Takes one more.
    pub fn push(&mut self, item: T) {
        // It is a ring, and goes round through all of its memory, which should be no more than the processor's cache.
        let few = FEW.max(self.ordered.len());
        if self.ordered.capacity() > ROOMY * few {
            self.ordered.shrink_to(2 * few);
        }
        if self.ordered.back().is_none_or(|last| *last <= item) {
            self.ordered.push_back(item);
        } else {
            self.overtaken.push(Reverse(item));
        }
    }

    /// The smallest.
    pub fn peek(&self) -> Option<&T> {
        match (self.ordered.front(), self.overtaken.peek()) {
            (Some(ordered), Some(Reverse(overtaken))) => Some(ordered.min(overtaken)),
            (ordered, overtaken) => ordered.or(overtaken.map(|Reverse(item)| item)),
        }
    }

    /// Takes out the smallest.
    pub fn pop(&mut self) -> Option<T> {
        let from_heap = match (self.ordered.front(), self.overtaken.peek()) {
            (Some(ordered), Some(Reverse(overtaken))) => overtaken < ordered,
            (ordered, _) => ordered.is_none(),
        };
        if from_heap { self.overtaken.pop().map(|Reverse(item)| item) } else { self.ordered.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_does_not_stay_large() {
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
