//! How many requests there were when, in bounded memory.

use std::collections::VecDeque;

use crate::units::Nanos;

/// Requests are counted in pieces of time of this length, in nanoseconds, or twice that, and so on: as long as needed.
const FINEST: i64 = 1_000_000;
/// How many pieces there are at most: 16 MB. Those of a millisecond last for more than an hour.
const MOST: i64 = 1 << 22;
const SECOND: i64 = 1_000_000_000;

/// How many requests there were in each piece of time.
pub struct Rates {
    /// The length of a piece in nanoseconds.
    piece: i64,
    /// From the one of that number on; the zero begins number 0.
    counts: VecDeque<u32>,
    first: i64,
}

impl Default for Rates {
    fn default() -> Self {
        Self { piece: FINEST, counts: VecDeque::new(), first: 0 }
    }
}

impl Rates {
    /// One more at that time; times may come in any order.
    pub fn count(&mut self, at: Nanos) {
        if self.counts.is_empty() {
            self.first = at.0.div_euclid(self.piece);
        }
        let number = loop {
            let number = at.0.div_euclid(self.piece);
            let (first, last) = (self.first.min(number), self.last().max(number));
            if last - first < MOST {
                break number;
            }
            self.coarsen();
        };
        while number < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let index = (number - self.first) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
    }

    /// Two pieces become one.
    fn coarsen(&mut self) {
        self.piece *= 2;
        if self.first.rem_euclid(2) == 1 {
            self.counts.push_front(0);
            self.first -= 1;
        }
        self.first = self.first.div_euclid(2);
        let pieces = self.counts.make_contiguous().chunks(2);
        self.counts = pieces.map(|two| two.iter().fold(0_u32, |sum, &count| sum.saturating_add(count))).collect();
    }

    /// The number of the last piece.
    fn last(&self) -> i64 {
        self.first + (self.counts.len() as i64 - 1).max(0)
    }

    /// How many pieces a second has, all but exactly.
    fn in_second(&self) -> i64 {
        ((SECOND + self.piece / 2) / self.piece).max(1)
    }

    fn index(&self, at: Nanos) -> usize {
        let number = at.0.div_euclid(self.piece);
        (number - self.first).clamp(0, self.counts.len() as i64) as usize
    }

    fn per_second(&self, count: u64, pieces: usize) -> f64 {
        count as f64 / (pieces as f64 * self.piece as f64 / 1e9)
    }

    /// Per second, in the second up to that time, or since the first if that is not as long ago.
    pub fn until(&self, at: Nanos) -> u64 {
        let end = (self.index(at) + 1).min(self.counts.len());
        let begin = end.saturating_sub(self.in_second() as usize);
        let count = self.counts.range(begin..end).map(|&count| u64::from(count)).sum();
        self.per_second(count, (end - begin).max(1)).round() as u64
    }

    /// The most in any second, or in all of the time if that is not as long.
    pub fn busiest_second(&self) -> u64 {
        let pieces = (self.in_second() as usize).min(self.counts.len());
        let (mut count, mut most) = (0_u64, 0);
        for (index, &entering) in self.counts.iter().enumerate() {
            count += u64::from(entering);
            if let Some(leaving) = index.checked_sub(pieces) {
                count -= u64::from(self.counts[leaving]);
            }
            most = count.max(most);
        }
        self.per_second(most, pieces.max(1)).round() as u64
    }

    /// Per second from that time until the last, if that is a second or longer.
    pub fn average_from(&self, at: Nanos) -> Option<f64> {
        let begin = self.index(at);
        let pieces = self.counts.len() - begin;
        let count = self.counts.range(begin..).map(|&count| u64::from(count)).sum();
        (pieces as i64 >= self.in_second()).then(|| self.per_second(count, pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = i64>) -> Rates {
        let mut rates = Rates::default();
        times.into_iter().for_each(|at| rates.count(Nanos(at)));
        rates
    }

    #[test]
    fn nothing_has_no_rate() {
        let none = Rates::default();
        assert_eq!((none.until(Nanos(5)), none.busiest_second(), none.average_from(Nanos(5))), (0, 0, None));
    }

    #[test]
    fn a_second_is_counted_to_the_millisecond() {
        // One in each millisecond from 1 s before zero on, and ten more in the one of 1.5 s.
        let rates = of((-1000..3000).map(|n| n * FINEST).chain([1_500_000_000; 10]));
        assert_eq!((rates.until(Nanos(1_499_000_000)), rates.until(Nanos(1_500_000_000))), (1000, 1010));
        assert_eq!((rates.until(Nanos(2_499_999_999)), rates.until(Nanos(2_500_000_000))), (1010, 1000));
        assert_eq!(rates.busiest_second(), 1010);
        assert_eq!(rates.average_from(Nanos(1_000_000_000)), Some(2010.0 / 2.0));
        assert_eq!(rates.average_from(Nanos(2_001_000_000)), None);
    }

    #[test]
    fn long_runs_take_no_more_memory_and_keep_their_rates() {
        let hour = 3_600 * SECOND;
        let ten_per_second = |from: i64, to: i64| (from..to).map(|n| n * SECOND / 10);
        for backwards in [false, true] {
            let mut times: Vec<i64> = ten_per_second(-36_000, 24 * 36_000).collect();
            if backwards {
                times.reverse();
            }
            let rates = of(times);
            assert!(rates.counts.len() as i64 <= MOST && rates.piece > FINEST);
            assert!(rates.until(Nanos(7 * hour)).abs_diff(10) <= 1, "{}", rates.until(Nanos(7 * hour)));
            assert!((rates.average_from(Nanos(hour)).unwrap() - 10.0).abs() < 0.01);
        }
        // As far apart as times can be.
        assert!(of([i64::MIN, i64::MAX, 0]).busiest_second() <= 3);
    }
}
