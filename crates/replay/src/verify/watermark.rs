//! Which requests are through: all up to a low-water mark, and some beyond it.
//!
//! The loop takes requests in the order of their sequence numbers. So those not through, below the highest that is,
//! are in flight, wait for an overlap, or stand before a full gate, and there are never more of these than the loop has
//! places for: a request that hangs for an hour costs one entry.

use std::collections::BTreeSet;

use super::block::is_sequence_number;

/// The sequence numbers that are through.
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
    pub fn add(&mut self, sequence_number: u64) {
        if sequence_number >= self.next {
            self.open.extend((self.next..sequence_number).filter(|&g| is_sequence_number(g)));
            self.next = sequence_number + 1;
        } else {
            self.open.remove(&sequence_number);
        }
    }

    /// The sequence number up to which all are through.
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
            .map(|sequence_number| {
                through.add(sequence_number);
                through.low()
            })
            .collect();
        assert_eq!(lows, [0, 0, 2, 4, 5]);
    }

    #[test]
    fn numbers_that_no_request_has_are_not_waited_for() {
        let mut through = CompletionWatermark::default();
        let last = (1 << 32) - 4;
        (1..=3).for_each(|sequence_number| through.add(sequence_number));
        through.next = last;
        through.add(last);
        through.add((1 << 32) + 1);
        assert_eq!(through.low(), (1 << 32) + 1);
    }
}
