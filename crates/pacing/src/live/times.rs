//! Distributions of times that one thread counts and others read meanwhile, without a lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use iosonar_trace::Nanos;
use iosonar_trace::run_info::Quantiles;

use super::layout::LAYOUT;
use crate::histogram::{full_range, quantiles_of};

/// Adds to a number that only this thread changes.
#[inline]
pub(super) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Times in the cells of the live histograms.
#[derive(Debug)]
pub(super) struct Cells {
    counts: Box<[AtomicU64]>,
    /// The sum, in ns, as the halves of a number of 128 bits.
    sum: [AtomicU64; 2],
}

impl Cells {
    pub fn new() -> Self {
        Self { counts: zeros(LAYOUT.cells()), sum: Default::default() }
    }

    #[inline]
    pub fn add(&self, time: Nanos) {
        let time = time.0.max(0) as u64;
        add(&self.counts[LAYOUT.cell(time)], 1);
        let [high, low] = &self.sum;
        let (sum, has_carry) = low.load(Ordering::Relaxed).overflowing_add(time);
        low.store(sum, Ordering::Release);
        if has_carry {
            add(high, 1);
        }
    }

    pub fn read(&self) -> Distribution {
        let [high, low] = &self.sum;
        let low = low.load(Ordering::Acquire);
        Distribution {
            cells: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: (u128::from(high.load(Ordering::Relaxed)) << 64) + u128::from(low),
        }
    }
}

/// Times that were counted so far, in cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    cells: Vec<u64>,
    /// In ns.
    sum: u128,
}

impl Distribution {
    /// None.
    pub fn empty() -> Self {
        Self { cells: vec![0; LAYOUT.cells()], sum: 0 }
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// Their sum, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Times of 0.
    pub fn zeros(&self) -> u64 {
        self.cells[0]
    }

    /// For each classic bucket its highest time in ns, and how many times are not longer.
    pub fn classic(&self) -> Vec<(u64, u64)> {
        LAYOUT.classic(&self.cells)
    }

    /// The native buckets that hold times, with their numbers.
    pub fn native(&self) -> Vec<(i32, u64)> {
        LAYOUT.native(&self.cells)
    }

    /// Adds a time.
    pub fn add(&mut self, time: Nanos) {
        let time = time.0.max(0) as u64;
        self.cells[LAYOUT.cell(time)] += 1;
        self.sum += u128::from(time);
    }

    /// Adds the times that another has more than an earlier state of it.
    pub fn add_since(&mut self, now: &Self, before: Option<&Self>) {
        for (at, (cell, now)) in self.cells.iter_mut().zip(&now.cells).enumerate() {
            *cell += now - before.map_or(0, |before| before.cells[at]);
        }
        self.sum += now.sum - before.map_or(0, |before| before.sum);
    }
}

/// Buckets for each doubling beyond the first 2048 ns.
const HALF: u64 = 1024;
/// All buckets of times of 63 bits.
const BUCKETS: usize = 52 * HALF as usize + 2 * HALF as usize;

/// Times in the buckets of the run's own histogram, with a precision of 0.1 %.
#[derive(Debug)]
pub(super) struct Fine {
    counts: Box<[AtomicU64]>,
    min: AtomicI64,
    max: AtomicI64,
}

fn bucket(time: u64) -> usize {
    let bits = u64::from(u64::BITS - time.leading_zeros()).saturating_sub(11);
    (bits * HALF + (time >> bits)) as usize
}

/// The least time in a bucket.
fn least(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let bits = (bucket / HALF).saturating_sub(1);
    (bucket - bits * HALF) << bits
}

impl Fine {
    pub fn new() -> Self {
        Self { counts: zeros(BUCKETS), min: AtomicI64::new(i64::MAX), max: AtomicI64::new(i64::MIN) }
    }

    #[inline]
    pub fn add(&self, time: Nanos) {
        add(&self.counts[bucket(time.0.max(0) as u64)], 1);
        if time.0 < self.min.load(Ordering::Relaxed) {
            self.min.store(time.0, Ordering::Relaxed);
        }
        if time.0 > self.max.load(Ordering::Relaxed) {
            self.max.store(time.0, Ordering::Relaxed);
        }
    }

    /// Reads only the buckets in use.
    pub fn read(&self) -> FineCounts {
        let (min, max) = (self.min.load(Ordering::Relaxed), self.max.load(Ordering::Relaxed));
        let mut counts = Vec::new();
        let first = bucket(min.max(0) as u64);
        if min <= max {
            let used = &self.counts[first..=bucket(max.max(0) as u64)];
            counts = used.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        }
        FineCounts { first, counts, min, max }
    }
}

/// Times that were counted so far, in the buckets of the run's own histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct FineCounts {
    first: usize,
    counts: Vec<u64>,
    min: i64,
    max: i64,
}

impl FineCounts {
    fn at(&self, bucket: usize) -> u64 {
        bucket.checked_sub(self.first).and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    /// Of all times; their sum is in `distributions`. `None` without times.
    pub fn quantiles<'a>(&self, distributions: impl IntoIterator<Item = &'a Distribution>) -> Option<Quantiles> {
        let sum = distributions.into_iter().map(|part| part.sum as i128).sum();
        self.since(None, sum, (self.min, self.max))
    }

    /// Of the times since an earlier state, without their mean. `None` without times.
    pub fn quantiles_since(&self, before: &Self) -> Option<Quantiles> {
        let is_new = |bucket: &usize| self.at(*bucket) > before.at(*bucket);
        let mut used = (self.first..self.first + self.counts.len()).filter(is_new);
        let first = used.next()?;
        let last = used.next_back().unwrap_or(first);
        let bounds = [least(first), least(last + 1) - 1].map(|bound| (bound as i64).clamp(self.min, self.max));
        self.since(Some(before), 0, bounds.into())
    }

    fn since(&self, before: Option<&Self>, sum: i128, bounds: (i64, i64)) -> Option<Quantiles> {
        let mut histogram = full_range();
        let mut total = 0;
        for (bucket, &count) in (self.first..).zip(&self.counts) {
            let count = count - before.map_or(0, |before| before.at(bucket));
            if count > 0 {
                histogram.record_n(least(bucket), count).expect("within the bounds");
                total += count;
            }
        }
        quantiles_of(&histogram, total, sum, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Times;

    #[test]
    fn live_quantiles_are_those_of_the_run() {
        let (fine, cells, mut times) = (Fine::new(), Cells::new(), Times::new());
        let all =
            (0..60_000_i64).map(|i| Nanos(i * i % 40_009 * 977)).chain([2047, 2048, 4095, 4096, i64::MAX].map(Nanos));
        for time in all {
            fine.add(time);
            cells.add(time);
            times.add(time);
        }
        assert_eq!(fine.read().quantiles([&cells.read()]), times.quantiles());
        assert_eq!(Fine::new().read().quantiles([]), None);
    }

    #[test]
    fn buckets_begin_at_their_least_times() {
        for time in [0, 1, 2047, 2048, 2049, 2050, 4095, 4096, 123_456_789, i64::MAX as u64] {
            let at = bucket(time);
            assert!(least(at) <= time && (at + 1 == BUCKETS || time < least(at + 1)), "{time}");
        }
        assert_eq!(bucket(i64::MAX as u64), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_an_interval_are_of_its_times_alone() {
        let fine = Fine::new();
        (0..1000).for_each(|_| fine.add(Nanos(100)));
        let before = fine.read();
        assert_eq!(before.quantiles_since(&before), None);
        (0..1000).for_each(|_| fine.add(Nanos(1_000_000)));
        let found = fine.read().quantiles_since(&before).unwrap();
        assert!((found.p50.unwrap() - 1000.0).abs() < 1.0 && (found.max - 1000.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn sums_beyond_64_bits_are_exact() {
        let cells = Cells::new();
        (0..5).for_each(|_| cells.add(Nanos(i64::MAX)));
        assert_eq!(cells.read().sum, 5 * i64::MAX as u128);
    }
}
