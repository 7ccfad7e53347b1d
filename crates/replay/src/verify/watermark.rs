//! Which requests are through: all up to a low-water mark, and some beyond it.
//!
//! The loop takes requests in the order of their generations. So those that are not through, below the highest that is,
//! are in flight, wait for an overlap, or stand before a full gate, and there are never more of these than the loop has
//! places for: a request that hangs for an hour costs one entry.

use std::collections::BTreeSet;

use super::block::is_generation;

/// The generations that are through.
#[derive(Debug)]
pub struct CompletionWatermark {
    /// The first that nothing is known of.
    next: u64,
    /// Those below it that are not through.
    open: BTreeSet<u64>,
}

impl Default for CompletionWatermark {
    /// None yet.
    fn default() -> Self {
        Self { next: 1, open: BTreeSet::new() }
    }
}

impl CompletionWatermark {
    /// A request is through.
    pub fn add(&mut self, generation: u64) {
        if generation >= self.next {
            self.open.extend((self.next..generation).filter(|&g| is_generation(g)));
            self.next = generation + 1;
        } else {
            self.open.remove(&generation);
        }
    }

    /// The generation up to which all are through.
    pub fn low(&self) -> u64 {
        self.open.first().copied().unwrap_or(self.next) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_water_mark_stands_before_the_first_that_is_missing() {
        let mut through = CompletionWatermark::default();
        assert_eq!(through.low(), 0);
        let lows: Vec<u64> = [2, 4, 1, 3, 5]
            .into_iter()
            .map(|generation| {
                through.add(generation);
                through.low()
            })
            .collect();
        assert_eq!(lows, [0, 0, 2, 4, 5]);
    }

    #[test]
    fn numbers_that_no_request_has_are_not_waited_for() {
        let mut through = CompletionWatermark::default();
        let last = (1 << 32) - 4;
        (1..=3).for_each(|generation| through.add(generation));
        through.next = last;
        through.add(last);
        through.add((1 << 32) + 1);
        assert_eq!(through.low(), (1 << 32) + 1);
    }
}
