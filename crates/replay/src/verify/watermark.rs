//! Tracks completed sequence numbers by a low-water mark.
//!
//! The loop admits requests roughly in the order of their sequence numbers. An uncompleted request below the highest
//! completed one is therefore in flight, waits for an overlap, or is in another target's dispatch queue. The loop's
//! limits bound their number: a request that hangs for an hour costs one entry.

use std::collections::BTreeSet;

use super::block::is_sequence_number;

/// The completed sequence numbers.
#[derive(Debug)]
pub struct CompletionWatermark {
    /// Higher than all completed sequence numbers.
    next: u64,
    /// Lower sequence numbers that have not completed.
    uncompleted: BTreeSet<u64>,
}

impl Default for CompletionWatermark {
    /// None completed.
    fn default() -> Self {
        Self { next: 1, uncompleted: BTreeSet::new() }
    }
}

impl CompletionWatermark {
    /// Marks a request as completed.
    pub fn add(&mut self, sequence_number: u64) {
        if sequence_number >= self.next {
            self.uncompleted.extend((self.next..sequence_number).filter(|&g| is_sequence_number(g)));
            self.next = sequence_number + 1;
        } else {
            self.uncompleted.remove(&sequence_number);
        }
    }

    /// The highest sequence number up to which all have completed.
    pub fn low(&self) -> u64 {
        self.uncompleted.first().copied().unwrap_or(self.next) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_water_mark_is_before_the_first_uncompleted_request() {
        let mut watermark = CompletionWatermark::default();
        assert_eq!(watermark.low(), 0);
        let lows: Vec<u64> = [2, 4, 1, 3, 5]
            .into_iter()
            .map(|sequence_number| {
                watermark.add(sequence_number);
                watermark.low()
            })
            .collect();
        assert_eq!(lows, [0, 0, 2, 4, 5]);
    }

    #[test]
    fn unused_sequence_numbers_do_not_hold_the_mark() {
        let mut watermark = CompletionWatermark::default();
        let last = (1 << 32) - 4;
        (1..=3).for_each(|sequence_number| watermark.add(sequence_number));
        watermark.next = last;
        watermark.add(last);
        watermark.add((1 << 32) + 1);
        assert_eq!(watermark.low(), (1 << 32) + 1);
    }
}
